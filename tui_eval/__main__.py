"""`python -m tui_eval`."""

from tui_eval.cli import main

if __name__ == "__main__":
    main()
