"""Agent networks of neuro-san: of a server, or run by the library in a process of its own.

May not: judge; know suites.
"""
