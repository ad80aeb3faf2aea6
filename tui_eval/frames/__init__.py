"""Rows: databases and SQL read-only, columns made comparable, comparison, alignment, differences, diagnosis.

May not: know suites, agents or runs; judge a case.
"""
