"""Suites of the StartToAgent guide (seed 001): reading, judging, accepting.

May not: know another format; print the guide's report (`reports`).
"""
