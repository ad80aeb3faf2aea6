"""One promptfoo assertion with everything its handler needs, and what a handler answers."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, JudgeServices
from tui_eval.model import Assertion, Reply
from tui_eval.model import Evidence as Seen


@dataclass(slots=True)
class AssertionCall:
    """`kind` is the type without `not-`, `inverse` whether it was there.

    `output` is the reply after transforms, `text` the same as text. `value` is what is expected
    after templates and files (UNSET: none given); `from_script` says that a script computed it.
    """

    assertion: Assertion
    evidence: JudgeInput
    kind: str
    inverse: bool
    output: Any
    text: str
    value: Any
    reply: Reply
    from_script: bool = False

    @property
    def services(self) -> JudgeServices:
        """What judging may use."""
        return self.evidence.services

    @property
    def threshold(self) -> float | None:
        """The assertion's threshold as given."""
        return self.assertion.threshold

    def option(self, name: str) -> Any:
        """A key that only this type reads, None where it is absent."""
        return (self.assertion.extra or {}).get(name)

    def result(
        self,
        holds: bool,
        failed: str,
        failed_inverse: str,
        *,
        actual: Any = None,
        evidence: list[Seen] | None = None,
    ) -> Result:
        """Pass (1) or fail (0), inverted by `not-`, with the reason for either failure."""
        if holds != self.inverse:
            seen_there = self.text if actual is None else actual
            otherwise = "" if self.inverse else failed_inverse
            return Result(True, 1.0, PASSED, actual=seen_there, evidence=evidence, otherwise=otherwise)
        reason = failed_inverse if self.inverse else failed
        return Result(False, 0.0, reason, actual=self.text if actual is None else actual, evidence=evidence)


PASSED = "Assertion passed"


@dataclass(slots=True)
class Result:
    """What a handler answers; `passed` None is an error. A script's `score` may be no finite number;
    `named_weights` count beside the assertion's own weight."""

    passed: bool | None
    score: float
    reason: str
    actual: Any = None
    named_scores: dict[str, float] = field(default_factory=dict)
    named_weights: dict[str, float] = field(default_factory=dict)
    judge: dict[str, Any] | None = None
    evidence: list[Seen] | None = None
    parts: list[dict[str, Any]] | None = None
    forces_pass: bool = False
    otherwise: str = ""
    """Why it fails where `not-` turns a pass round."""


def turned_round(result: Result, kind: str) -> Result:
    """The opposite of what another package's check says of a type: `not-` is no matter of its own."""
    if result.passed is None:
        return result
    score = min(1.0, max(0.0, 1 - result.score)) if math.isfinite(result.score) else float(not result.passed)
    reason = PASSED if not result.passed else result.otherwise or f"{kind} holds: {result.reason}"
    passed = not result.passed
    return replace(result, passed=passed, score=score, reason=reason, evidence=None, parts=None)


Check = Callable[[AssertionCall], "Result | Awaitable[Result]"]


def invariant(condition: Any, message: str) -> None:
    """Raise `CannotJudge` with promptfoo's text where an assertion is not written as it must be."""
    if not condition:
        raise CannotJudge(f"Invariant failed: {message}", "bad-assertion")


_MAX_FILE = 20_000_000


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        CannotJudge: it cannot be read, is not UTF-8 or larger than 20 MB.
    """
    try:
        if path.stat().st_size > _MAX_FILE:
            raise CannotJudge(f"{path.name}: larger than 20 MB", "file")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotJudge(f"{path.name}: {getattr(error, 'strerror', None) or error}", "file") from error
