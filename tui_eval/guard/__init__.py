"""The border: hostile text, figures from outside, secrets, paths, trust, fair shares of the loop.

May not: import anything of ours but the vocabulary (`model`, `events`).
"""
