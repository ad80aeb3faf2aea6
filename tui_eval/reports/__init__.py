"""Telling others: one module per kind of file, chosen by the file's ending."""
