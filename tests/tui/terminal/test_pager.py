"""A program over the app: what happens to the terminal meanwhile is heard afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT

ENDING_TOGETHER = """
import asyncio, contextlib, os, signal, subprocess, sys
from tui_eval.tui.terminal import pager

class Window:
    suspend = staticmethod(contextlib.nullcontext)

class Ended:
    '''A program that ends in the moment in which the terminal goes, before anybody has looked.'''
    returncode = 0
    def __init__(self, command): pass
    def wait(self): os.kill(os.getpid(), signal.SIGHUP)
    def send_signal(self, number): pass

async def main():
    heard = []
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, heard.append, 1)
    pager.subprocess.Popen = Ended
    for time in range(1, 101):
        pager.run_over(Window(), ["vi"])
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(heard) == time, f"{len(heard)} of {time} signals were heard"

asyncio.run(main())
"""


@pytest.mark.real
def test_a_terminal_that_goes_away_as_the_editor_ends_is_heard_of():
    done = subprocess.run(
        [sys.executable, "-c", ENDING_TOGETHER], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
