"""People's Python in child processes: the host, and the worker's modules, which are imported from this folder alone.

May not: import anything of ours in the worker; people's code shares that process.
"""
