"""What the Case screen shows: transcript, verdicts, tools, history, raw. Pure; no Textual.

May not: read files or the store; judge again.
"""
