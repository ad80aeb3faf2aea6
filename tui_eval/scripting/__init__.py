"""People's code in child processes that can be killed and follow edits: hosts, processes, leases.

May not: run any of it in the engine's process; know suites or agents.
"""
