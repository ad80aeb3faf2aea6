"""After attempts: judging again, going on, comparing columns of a test, naming how attempts failed.

May not: ask agents for new answers.
"""
