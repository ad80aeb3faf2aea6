"""Remembering runs: one folder a run, one writer, any number of readers; an index across runs.

May not: know the engine, formats or screens.
"""
