"""What the Step screen shows. Pure; no Textual.

May not: talk to the engine.
"""
