"""What screens show, as plain values: pure functions and dataclasses, tested without an app.

May not: import Textual or widgets, read files, ask the engine.
"""
