"""Tests of the agents, against servers on the loopback."""
