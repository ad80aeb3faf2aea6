"""Rows: databases and SQL read-only, columns made comparable, comparison, alignment, differences, diagnosis.

May not: know suites, agents or runs; judge a case.
"""

import logging

# What it cannot read whole, it says on stderr, over the screen; what is wrong with a query its database says.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
