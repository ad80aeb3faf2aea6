"""The program's start, also as `python -m tui_eval`: while the rest is imported, Ctrl-C ends it without a traceback."""

from __future__ import annotations

import gc
import os
import signal

_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """The program; it exits with the codes of design.md (Command line)."""
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:  # a script's job in the background
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))  # nothing is begun that needs an end
    # What is imported lives as long as the process: looking it over again and again costs a tenth of a start.
    gc.set_threshold(200_000, 20, 20)
    from tui_eval.cli import main as program

    signal.signal(signal.SIGINT, before)
    program()


if __name__ == "__main__":
    main()
