"""promptfoo's suites (0.121.20): `read` makes cases of configurations and tables, `judge` judges its assertions.

May not: know another format; ask providers (`agents/promptfoo`); run anything itself (`engine`).
"""
