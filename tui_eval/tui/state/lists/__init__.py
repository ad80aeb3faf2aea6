"""What lists of cases show: the tree, filters, reasons, lines of a run. Pure; no Textual.

May not: read files or the store.
"""
