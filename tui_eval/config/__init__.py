"""`tui_eval.yaml` and what of `nao_config.yaml` concerns tests: its keys, reading it, environment variables in it.

May not: read suites, make agents, open databases.
"""
