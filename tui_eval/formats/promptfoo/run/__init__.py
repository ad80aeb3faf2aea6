"""What a run does for promptfoo's suites alone: the order of rows, hooks, metrics derived from columns.

May not: start runs or know the store; the engine asks for it through the `Format`.
"""
