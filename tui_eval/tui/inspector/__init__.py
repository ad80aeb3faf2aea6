"""The tabs of the Case screen, one module each.

May not: judge again; what a verdict marks it says itself (evidence).
"""
