"""What `check` says of promptfoo's tests before anything runs.

May not: run a suite's own code, ask an agent or a model.
"""
