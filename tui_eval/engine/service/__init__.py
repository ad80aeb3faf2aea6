"""The engine as a process of its own, and how the app asks it for things.

May not: show anything; know screens.
"""
