"""What a promptfoo case is judged on: the reply after the provider's transform and the test's."""

from __future__ import annotations

from typing import Any

from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo.judge import expected_values


async def case_output(evidence: JudgeInput) -> Any:
    """The reply after the provider's transform and then the test's (`transform`, else `postprocess`).

    Raises:
        CannotJudge: there is no reply, or a transform throws or gives nothing.
        NeedsTrust: a transform is code in a folder that is not trusted.
    """
    reply = evidence.reply()
    if reply is None:
        raise CannotJudge("No output: the agent gave no reply", "no-output")
    output: Any = reply.text if reply.output is None else reply.output
    if reply.text_missing:
        return output
    for transform in _transforms(evidence):
        output = await expected_values.transformed(transform, output, evidence, prompt=_template(evidence))
    return output


def _template(evidence: JudgeInput) -> dict[str, str]:
    """The prompt as a test's transform sees it: what it is rendered from."""
    case = evidence.case
    raw = (case.turns[0].text if case.turns else "") or ""
    before, after = (case.options.get(key) or "" for key in ("prefix", "suffix"))
    return {"raw": f"{before}{raw}{after}", "label": case.prompt or raw}


def _transforms(evidence: JudgeInput) -> list[str]:
    """The provider's transform, then the test's. Of a test with a provider of its own it is that of the
    provider in whose column it stands: always in the tool, here where its own has none."""
    case, options = evidence.case, evidence.case.options
    found = [_of_provider(case.provider)]
    column = options.get("columnProvider")
    if column is not None and (evidence.reference or not found[0]):
        found = [_of_provider(column)]
    found.append(options.get("transform") or options.get("postprocess"))
    return [transform for transform in found if isinstance(transform, str) and transform]


def _of_provider(provider: Any) -> Any:
    if not isinstance(provider, dict):
        return None
    inner = provider.get("transform")
    if inner is None and len(provider) == 1 and isinstance(only := next(iter(provider.values())), dict):
        inner = only.get("transform")
    return inner
