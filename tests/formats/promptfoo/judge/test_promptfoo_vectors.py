"""promptfoo's recorded verdicts of single assertions: pass, score, reason, or that it throws."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec import UNSET

from tests.support import TESTS
from tests.support.promptfoo_cases import evidence_for
from tui_eval import causes
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge.registry import NOT_YET as NOT_JUDGED
from tui_eval.javascript import values as js
from tui_eval.store.encoding import encode_json

pytestmark = pytest.mark.asyncio(loop_scope="module")
VECTORS = TESTS / "vectors"
ROWS = [
    json.loads(line)
    for name in (
        "promptfoo_assert.jsonl",
        "promptfoo_assert_meteor_repaired.jsonl",
        "promptfoo_assert_several.jsonl",  # several things that an assertion could look at: which one counts
        "promptfoo_assert_found.jsonl",  # made inputs that were judged otherwise here
    )
    for line in (VECTORS / name).read_text("utf-8").splitlines()
]


LOOSE = {
    "is-json",
    "contains-json",
    "regex",
    "javascript",
    "python",
    "is-xml",
} | {
    "is-valid-openai-tools-call",
    "is-valid-openai-function-call",
    "is-valid-function-call",
}


def base(row: dict[str, Any]) -> str:
    return row["assertion"]["type"].removeprefix("not-")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
async def test_recorded_verdict(row: dict[str, Any], services: Any) -> None:
    evidence = evidence_for(row, services)
    judgement = await judge(evidence)
    verdict = judgement.verdicts[0]
    assert verdict.evidence and all(causes.known(one.code) for one in verdict.evidence), verdict
    assert len(encode_json(verdict.evidence)) < 30_000
    if verdict.passed is not True:
        assert causes.code_of(verdict) in causes.WORDS and causes.words_of(verdict), verdict
    if "error" in row:
        assert verdict.passed is None, verdict
        assert judgement.outcome == "error"
        return
    assert verdict.passed is row["pass"], verdict
    if row["assertion"].get("config") != {"purpose": "redteam"}:
        assert judgement.outcome == ("passed" if row["pass"] else "failed")
    if row["score"] is not None and row["assertion"].get("weight") != 0:
        assert math.isclose(verdict.score, row["score"], rel_tol=1e-9, abs_tol=1e-12), verdict
    # What parsers say of broken text is their own wording, also in promptfoo.
    if "in JSON at position" in row["reason"]:
        return
    if base(row) in LOOSE:
        words = row["reason"].split(":")[0].split("\n")[0]
        assert verdict.reason.startswith(words), verdict
    elif base(row).endswith("-sql"):
        assert row["reason"].startswith(verdict.reason)
    else:
        assert verdict.reason == row["reason"]
    for name, score in row.get("result_namedScores", {}).items():
        assert judgement.named_scores[name] == pytest.approx(score)


async def test_what_is_not_judged_yet_is_an_error(services: Any) -> None:
    assert NOT_JUDGED
    for kind, why in NOT_JUDGED.items():
        row = {"output": "x", "vars": {}, "assertion": {"type": kind, "value": "x"}}
        judgement = await judge(evidence_for(row, services))
        assert (judgement.outcome, judgement.verdicts[0].passed) == ("error", None)
        assert why in judgement.message


async def test_unset_is_undefined() -> None:
    assert js.string(UNSET) == "undefined"
