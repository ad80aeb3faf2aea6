"""Where a run's attempts run, as the request or the configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_eval.config.config_schema import Wrong, where
from tui_eval.config.project import Config, ConfigError

if TYPE_CHECKING:
    from tui_eval.engine.places.attempt_place import AttemptPlace
    from tui_eval.engine.request import RunRequest
    from tui_eval.engine.run_context import RunContext
    from tui_eval.store.writer import RunWriter


def check_place(request: RunRequest, config: Config) -> None:
    """Say before anything is made that attempts cannot run there.

    Raises:
        ConfigError: one line that says why.
    """
    on = _on(request, config)
    try:
        where(on)
    except Wrong as wrong:
        raise ConfigError(f"--on: {wrong}") from None
    if on != "here":
        from tui_eval.engine.places.ray_place import check_ray

        check_ray("" if on == "ray" else on)


def place_of(
    request: RunRequest,
    environment: RunContext,
    writer: RunWriter | None,
    concurrency: int,
    say: Callable[[str], None],
) -> AttemptPlace | None:
    """The place of a run; None: here, where a person also steps through a case, and answers are judged again."""
    on = _on(request, environment.config)
    if on == "here" or writer is None or request.step or request.rescores:
        return None
    from tui_eval.engine.places.ray_place import RayPlace

    shared = environment.config.run.files == "shared"
    address = "" if on == "ray" else on
    return RayPlace(address, concurrency, environment, writer, shared=shared, say=say)


def _on(request: RunRequest, config: Config) -> str:
    return request.on or config.run.on
