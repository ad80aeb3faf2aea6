"""What Compare, the grid and side by side show. Pure; no Textual.

May not: read files or the store.
"""
