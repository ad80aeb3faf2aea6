"""What the Run, Runs and Search screens show. Pure; no Textual.

May not: read files or the store.
"""
