"""Running: which cases with which agents, attempts and limits, in the foreground or as a process.

May not: print or draw; whoever watches reads the store.
"""
