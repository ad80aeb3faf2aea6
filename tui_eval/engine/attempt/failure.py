"""Why an attempt could not go on: for a person in a line, for lists and groups in a code and data."""

from __future__ import annotations

from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.config.project import ConfigError
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Evidence


class AttemptFailed(Exception):
    """The attempt cannot go on; the text is its error, and its transcript says so already. `evidence` says it in
    a code (`tui_eval.causes`), with `place` and `limit` as in `AgentError`."""

    def __init__(self, message: str, code: str, *, place: str = "", limit: Any = None) -> None:
        super().__init__(message)
        self.evidence = Evidence("agent", code, text=seen.cut(message), path=place, expected=limit)


def reason_of(failure: Exception) -> str:
    """One line. Our own exceptions are one; those of templates and of promptfoo's suites are told by where
    they come from, since importing them costs each run 20 ms."""
    ours = type(failure).__module__.startswith("tui_eval.")
    return str(failure) if ours else f"{type(failure).__name__}: {failure}"


def evidence_of(failure: Exception) -> list[Evidence]:
    """What an attempt that ended with this exception rests on."""
    known = getattr(failure, "evidence", None)
    if isinstance(known, Evidence):
        return [known]
    if isinstance(failure, NeedsTrust):
        return [seen.error(failure)]
    code = "bad-setting" if isinstance(failure, ConfigError) else getattr(failure, "code", None)
    if not isinstance(code, str):
        code = "agent-crashed"
    return [Evidence("agent", code, text=seen.cut(" ".join(reason_of(failure).split())))]
