"""The hosts of people's code, real ones, for the tests that judge with them."""

from tests.support.judging import services

__all__ = ["services"]
