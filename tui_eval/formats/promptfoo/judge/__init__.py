"""promptfoo's assertions: one module per family, a table of types, and the rules that add scores up.

May not: read suites, know the store or screens; what it knows of a verdict it writes into its evidence.
"""
