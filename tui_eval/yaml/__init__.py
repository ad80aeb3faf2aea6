"""YAML with line numbers, what plain scalars mean, and changing single values of a file where they stand.

May not: know what a key means; that is for whoever reads the file.
"""
