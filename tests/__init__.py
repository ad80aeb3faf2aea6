"""Tests of tui-eval: real files, real servers on the loopback, no internet."""
