"""Agents that are programs or functions of the person's own: Python, JavaScript, Ruby, a command.

May not: run any of it in the engine's own process.
"""
