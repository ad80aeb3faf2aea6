"""Projects written by the tests of this folder, as those of the engine."""

from tests.engine.conftest import project

__all__ = ["project"]
