"""What crosses the line to the terminal: the renderer, colours, keys typed ahead, clipboard, pager, editor.

May not: know runs or cases.
"""
