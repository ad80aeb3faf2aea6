"""Agents of a nao backend, and signing in to one.

May not: judge rows; know tests.
"""
