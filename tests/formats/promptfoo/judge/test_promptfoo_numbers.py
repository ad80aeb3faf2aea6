"""Numbers that a double cannot hold: one text in prompts, answers and verdicts.

What promptfoo 0.121.20 said of each row, seen by running it with the provider `echo` and with one whose
output is an object.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.promptfoo_cases import evidence_for
from tui_eval.formats import judge
from tui_eval.nunjucks.templates import render

pytestmark = pytest.mark.asyncio(loop_scope="module")

BIG = 2**60
VARS: dict[str, Any] = {"n": BIG, "o": {"k": BIG + 1}, "l": [[2**53 + 1, 1.0]]}
ECHOED = '{"id": 1152921504606847000}'
OBJECT: dict[str, Any] = {"id": BIG, "b": 1.0, "1": 2}

ROWS: list[tuple[Any, dict[str, Any], bool]] = [
    (ECHOED, {"type": "equals", "value": '{"id": {{n}}}'}, True),
    (ECHOED, {"type": "equals", "value": {"id": BIG}}, True),
    (ECHOED, {"type": "equals", "value": {"id": BIG + 23}}, True),
    (ECHOED, {"type": "contains", "value": "{{n}}"}, True),
    (ECHOED, {"type": "contains", "value": BIG}, True),
    (ECHOED, {"type": "contains", "value": "1152921504606846976"}, False),
    (ECHOED, {"type": "equals", "value": '{"id":{{n}}}'}, False),
    (ECHOED, {"type": "contains-all", "value": [BIG, 0.0000001]}, False),
    (ECHOED, {"type": "is-json", "value": {"properties": {"id": {"const": BIG - 1}}}}, True),
    (OBJECT, {"type": "equals", "value": '{"1":2,"id":{{n}},"b":1}'}, True),
    (OBJECT, {"type": "equals", "value": {"b": 1, "1": 2.0, "id": BIG + 1}}, True),
    (OBJECT, {"type": "contains", "value": BIG}, True),
    (OBJECT, {"type": "contains", "value": "1152921504606846976"}, False),
    (OBJECT, {"type": "is-json", "value": {"properties": {"id": {"const": BIG - 1}}}}, True),
    ("a 1e-7 b", {"type": "contains-all", "value": [0.0000001]}, True),
    ('{"a": -0}', {"type": "equals", "value": {"a": 0}}, False),
]


@pytest.mark.parametrize(("output", "assertion", "passed"), ROWS)
async def test_verdicts_are_promptfoos(output: Any, assertion: dict[str, Any], passed: bool) -> None:
    found = await judge(evidence_for({"output": output, "assertion": assertion, "vars": VARS}))
    assert found.verdicts[0].passed is passed, found.verdicts[0].reason


async def test_the_text_in_a_verdict_is_the_text_in_the_prompt() -> None:
    assertion = {"type": "equals", "value": {"id": BIG}}
    found = await judge(evidence_for({"output": OBJECT, "assertion": assertion, "vars": VARS}))
    wanted = 'Expected output "{"1":2,"id":1152921504606847000,"b":1}" to equal "{"id":1152921504606847000}"'
    assert found.verdicts[0].reason == wanted
    prompt = render("id is {{n}} {{o}} {{o | dump}} {{l}}", VARS)
    assert prompt == 'id is 1152921504606847000 [object Object] {"k":1152921504606847000} 9007199254740992,1'


@pytest.mark.parametrize(
    ("template", "shown"),
    [("{{ n + 1 }}", "1152921504606847000"), ("{{ 2.5.toFixed(0) }}", "3"), ("{{ o.k == n }}", "true"),
     ("{{ n === o.k }}", "true"), ("{{ 0.00001 | dump }}", "0.00001"), ("{{ 123.456.toPrecision(4) }}", "123.5"),
     ('{{ "9007199254740993" | int }}', "9007199254740992")],
)  # fmt: skip
async def test_templates_count_in_doubles(template: str, shown: str) -> None:
    assert render(template, VARS) == shown
