"""Results files of other tools, and our own, opened as runs.

May not: judge; change the files.
"""
