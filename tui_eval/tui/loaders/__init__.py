"""What is read for the screens, off the app's loop: suites, runs, a case, two sides, a run that goes on.

May not: show anything, judge anything.
"""
