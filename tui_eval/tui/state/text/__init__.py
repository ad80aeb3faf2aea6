"""Lines, blocks, figures and differences of texts as the screens show them. Pure; no Textual.

May not: know runs or cases.
"""
