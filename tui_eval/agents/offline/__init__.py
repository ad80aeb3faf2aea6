"""Agents that ask nobody: scripted, recorded, echoing, silent.

May not: use the network.
"""
