"""tui-eval: a terminal application for debugging the evaluations of AI agents.

Here lie the vocabulary (`model`, `events`), the command line's entry and what several rooms need; each package
says what lives in it.

May not: import a room; whoever starts the program imports what it needs.
"""

__version__ = "0.1.0"
