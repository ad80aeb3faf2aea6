"""How promptfoo's rows go: what they hand on to later rows, the order that follows from it, and what their
providers are given beside the prompt.

`storeOutputAs` puts an output into the variables of all later rows; a prompt with `_conversation` gets the rows before
it that have the same column and `metadata.conversationId`, whoever answers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tui_eval.formats.format import CasePace
from tui_eval.formats.promptfoo.promptfoo_words import OF_A_SCENARIO, beside, own_options
from tui_eval.javascript.values import json_text
from tui_eval.model import Case
from tui_eval.nunjucks.templates import flag

_CONVERSATION = "_conversation"
_NOT_THE_PROVIDERS = frozenset(
    (
        "prefix", "suffix", "transform", "postprocess", "transformVars", "storeOutputAs", "rubricPrompt", "provider",
        "factuality", "disableVarExpansion", "disableConversationVar", "disableDefaultAsserts", "runSerially", "repeat",
    )
)  # fmt: skip
"""Options of a test that are not the provider's."""


def paces(
    cases: Sequence[Case], settings: Mapping[str, Any], delay: float | None, limited: bool
) -> list[CasePace]:
    """As `Format.paces`: by `evaluateOptions`, the providers' own delays, and what rows hand on."""
    evaluate = _evaluate(settings)
    pause = delay if delay is not None else seconds(evaluate.get("delay")) or 0.0
    most = None if limited else at_once(settings)
    stored = any(case.options.get("storeOutputAs") for case in cases)
    deadline = seconds(evaluate.get("maxEvalTimeMs"))
    return [CasePace(*_place(case, stored, pause, most), deadline) for case in cases]


def _place(case: Case, stored: bool, pause: float, most: int | None) -> tuple[str | None, int, float]:
    suite = case.suite
    provider = case.provider if isinstance(case.provider, dict) else {}
    own_pause = seconds(provider.get("delay")) or 0.0
    if stored or pause > 0:
        return suite, 1, max(pause, own_pause)
    if (talk := conversation(case)) is not None:
        return "\n".join((suite, *talk[1:], talk[0])), 1, own_pause
    if own_pause > 0:
        return f"{suite}\n{case.agent}", 1, own_pause
    if case.options.get("runSerially") is True:
        return f"{suite}\nserially", 1, 0.0
    return (suite, most, 0.0) if most else (None, 0, 0.0)


def at_once(settings: Mapping[str, Any]) -> int | None:
    """`evaluateOptions.maxConcurrency`."""
    return _whole(_evaluate(settings).get("maxConcurrency"))


def conversation(case: Case) -> tuple[str, str, str] | None:
    """The conversation of a case: its id, and the provider and prompt of its column; None: its prompt asks
    for none. As promptfoo names them apart, 1 is not "1", an empty id is one, null is none. Functions that make
    prompts get one where their test names it."""
    text = (case.turns[0].text if case.turns else "") or ""
    made = (
        isinstance(beside(case, "promptFunction"), dict)
        and "conversationId" in case.metadata
        and not OF_A_SCENARIO.fullmatch(str(case.metadata["conversationId"]))
    )
    if _CONVERSATION not in text and not made:
        return None
    return conversation_name(case), case.column or case.agent or "", case.prompt or ""


def conversation_name(case: Case) -> str:
    """`metadata.conversationId`."""
    given = case.metadata.get("conversationId")
    return "" if given is None else json_text(given)


def hears(case: Case) -> bool:
    """Whether a case gets the rows before it."""
    refused = case.options.get("disableConversationVar") or flag("PROMPTFOO_DISABLE_CONVERSATION_VAR")
    return conversation(case) is not None and not refused


def stored_as(case: Case) -> str | None:
    """`options.storeOutputAs`."""
    name = case.options.get("storeOutputAs")
    return name if isinstance(name, str) and name else None


def provider_options(case: Case) -> dict[str, Any]:
    """What a test's `options` hold beyond promptfoo's own: settings for the provider."""
    return {name: value for name, value in own_options(case).items() if name not in _NOT_THE_PROVIDERS}


def sent_around(case: Case) -> dict[str, Any]:
    """What stands around a prompt and goes with it: what the test and the prompt itself say, the conversation
    it is of."""
    given = {name: case.options.get(name) or "" for name in ("prefix", "suffix")}
    kept = {name: beside(case, name) for name in ("promptConfig", "promptFunction", "filesFirst")}
    heard = conversation(case) if hears(case) else None
    return {**provider_options(case), **given, **kept, "conversation": heard and heard[0]}


def prompt_for_scripts(case: Case, config: dict[str, Any]) -> dict[str, Any]:
    """`context.prompt` of promptfoo's own providers: the template before variables are filled in, and as its
    `config` what the prompt and the test's options say (as promptfoo 0.121 does)."""
    template = (case.turns[0].text if case.turns else "") or ""
    options = own_options(case)
    return {
        "raw": f"{options.get('prefix') or ''}{template}{options.get('suffix') or ''}",
        "label": case.prompt or template,
        "config": {**config, **options},
        "template": template,
    }


def seconds(milliseconds: Any) -> float | None:
    """Milliseconds as a suite gives them, in seconds; None where it gives none above zero."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    return milliseconds / 1000


def _evaluate(settings: Mapping[str, Any]) -> dict[str, Any]:
    given = settings.get("evaluateOptions")
    return given if isinstance(given, dict) else {}


def _whole(value: Any) -> int | None:
    return (
        int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 else None
    )
