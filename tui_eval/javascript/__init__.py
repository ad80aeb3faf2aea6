"""What JavaScript means, in Python, one place for each: values and texts, operators, patterns; and running it.

May not: know suites; run code outside an isolate or a process of its own.
"""
