"""OpenTelemetry traces of the agents of promptfoo suites: asked for, received, kept with the attempt.

May not: judge spans (`formats/promptfoo/judge`); listen anywhere but on loopback.
"""
