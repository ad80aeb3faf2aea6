"""The commands of the command line, one module each; `tui_eval.cli` reads the arguments."""
