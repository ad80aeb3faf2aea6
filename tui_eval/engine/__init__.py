"""Running: which cases with which agents, attempts and limits, in the foreground or as a process."""
