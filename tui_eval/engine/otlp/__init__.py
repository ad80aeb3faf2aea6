"""OpenTelemetry traces of the agents of promptfoo suites: asked for, received, kept with the attempt."""
