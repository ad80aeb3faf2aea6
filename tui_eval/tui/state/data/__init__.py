"""What the Data tab shows of two frames. Pure; no Textual.

May not: compare frames (`frames`).
"""
