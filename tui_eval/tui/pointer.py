"""What points at one case, wherever the person is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CasePointer:
    """A case, in the run and attempt that are looked at.

    `agent` and `model` tell the columns of a case with several agents apart (None: whichever there
    is). `run_id` is None where the case has never run; `attempt_ref` is the id of a row of that
    run's `attempts` (None: the latest attempt, or the one that failed first).
    """

    case_id: str
    agent: str | None = None
    model: str | None = None
    run_id: str | None = None
    attempt_ref: int | None = None
