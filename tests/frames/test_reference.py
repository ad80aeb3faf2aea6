"""`compat: reference` gives nao-core 0.3.29's verdicts, recorded in nao_compare.jsonl."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tui_eval.frames import reference
from tui_eval.frames.result import ComparisonSettings

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "nao_compare.jsonl")
    .read_text("utf-8")
    .splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_recorded_verdict(vector: dict[str, Any]) -> None:
    settings = ComparisonSettings(**vector.get("options", {}))
    result = reference.compare(
        vector["actual"], vector["expected"], settings, vector["expected_columns"], vector.get("error")
    )
    verdict = vector["verdict"]
    if verdict.get("raises"):
        assert result.passed is None
        assert result.raises == verdict["raises"]
        assert verdict["raises_text"] in result.message or verdict["raises"] == "TypeError"
        return
    assert result.passed is verdict["passed"]
    if vector.get("message_order_unstable"):
        assert set(re.findall(r"'[^']*'", result.message)) == set(re.findall(r"'[^']*'", verdict["message"]))
    else:
        assert result.message == verdict["message"]
    kind = vector.get("diff_kind")
    if kind == "empty":
        assert result.text is not None and result.text.startswith("the values are equal")
    elif kind == "cells":
        assert result.text is not None and "expected" in result.text
