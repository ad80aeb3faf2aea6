"""tui-eval: a terminal application for debugging the evaluations of AI agents."""

__version__ = "0.1.0"
