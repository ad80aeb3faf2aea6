"""What a person asks the engine to run; the same for the app, the command line and a resumed run."""

from __future__ import annotations

import msgspec

from tui_eval.model import Compat


class RunRequest(msgspec.Struct, omit_defaults=True):
    """Which cases, with whom, how often and within which limits.

    `case_ids` None means every case of `paths`; `select` takes names, ids, stems and folders.
    `pairs` narrows to (case id, agent) columns (rerunning one cell). `threshold` (0–1) is the share
    of attempts that must pass; None: all, or what the case says. `timeout` in seconds, `max_cost`
    in USD. `linked_to` is the run whose part is run again or added to.
    """

    paths: list[str] = []
    case_ids: list[str] | None = None
    pairs: list[tuple[str, str]] | None = None
    agents: list[str] = []
    models: list[str] = []
    attempts: int | None = None
    threshold: float | None = None
    concurrency: int | None = None
    select: list[str] = []
    filter_pattern: str | None = None
    filter_metadata: list[str] = []
    filter_first_n: int | None = None
    failed_only: bool = False
    timeout: float | None = None
    trust: bool = False
    judge: str | None = None
    compat: Compat | None = None
    fail_fast: bool = False
    max_cost: float | None = None
    linked_to: str | None = None
    config_file: str | None = None
    first_attempt: int = 1
    command: str = ""
