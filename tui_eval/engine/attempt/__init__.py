"""One attempt: the conversation turn by turn, its time limits, what is collected of it, and its judgement.

May not: choose cases, know other attempts, write files.
"""
