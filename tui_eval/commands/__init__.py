"""The commands of the command line, one module each; `tui_eval.cli` reads the arguments.

May not: import the app's modules, save where a command opens it; know how a report is written.
"""
