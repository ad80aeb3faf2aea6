"""Telling others: one module per kind of file, chosen by the file's ending.

May not: run, judge or read suites; what a report says it finds in the store.
"""
