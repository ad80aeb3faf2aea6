"""Verdicts from outside: a web hook that answers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.config.config_values import is_loopback
from tui_eval.formats.promptfoo.judge import judges
from tui_eval.formats.promptfoo.judge.assertion_call import PASSED, AssertionCall, Result, invariant
from tui_eval.guard import figures
from tui_eval.guard.text import clip
from tui_eval.javascript import values as js

if TYPE_CHECKING:
    import httpx

_SECONDS = 5.0
_LARGEST = 16_000_000
"""Bytes of a web hook's answer that are read."""


async def webhook(call: AssertionCall) -> Result:
    """POST `{output, context: {prompt, vars}}`; the answer's `{pass, score, reason}` counts. Whatever
    goes wrong on the way is a failure, in promptfoo's words.

    Raises:
        NeedsTrust: it would send the output to another machine.
    """
    url = call.value
    invariant(isinstance(url, str) and url, '"webhook" assertion type must have a URL value')
    if needed := sends_to(url):
        call.services.trust.require(needed)
    evidence = call.evidence
    context = {"prompt": evidence.prompt_sent, "vars": js.handed(evidence.vars)}
    body = {"output": call.output, "context": context}
    import httpx

    try:
        content = js.json_text(body).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json"}
        async with (
            asyncio.timeout(_limit()),
            httpx.AsyncClient(timeout=_limit(), trust_env=False) as client,
            client.stream("POST", url, content=content, headers=headers) as answer,
        ):
            if not answer.is_success:
                return _failed(call, f"Webhook response status: {answer.status_code}")
            said = js.parse_json(await _body(answer))
    except TimeoutError:
        return _failed(call, f"Webhook error: no whole answer within {_limit():g} s")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
        return _failed(call, f"Webhook error: {' '.join(str(error).split()) or type(error).__name__}")
    if call.evidence.reference and said is not None:  # whatever is not `false` there passes
        said = said if isinstance(said, dict) else {}
        holds = said.get("pass") is not call.inverse
    elif not isinstance(said, dict):
        return _failed(call, f"Webhook error: it answered {clip(js.json_text(said), 100)}, not an object")
    elif (decided := judges.truth(said.get("pass"))) is None:
        return _failed(call, f"Webhook error: no `pass` in {clip(js.json_text(said), 100)} is true or false")
    else:
        holds = decided != call.inverse
    score = said.get("score")
    if isinstance(score, bool) or not figures.is_finite(score):
        score = float(holds)
    elif call.inverse:
        score = 1 - score
    default = PASSED if holds else f"Webhook returned {'true' if call.inverse else 'false'}"
    reason = str(said.get("reason") or default)
    told = [seen.rule("holds" if holds else "script", reason, actual=score)]
    return Result(holds, float(score), reason, actual=call.text, evidence=told)


async def _body(answer: httpx.Response) -> str:
    """The text of an answer.

    Raises:
        ValueError: it has no end in sight.
    """
    text = bytearray()
    async for part in answer.aiter_bytes():
        text += part
        if len(text) > _LARGEST:
            raise ValueError(f"it answered more than {_LARGEST // 1_000_000} MB")
    try:
        return text.decode(answer.charset_encoding or "utf-8", "replace")
    except LookupError:
        return text.decode("utf-8", "replace")


def sends_to(url: str) -> str:
    """What a web hook needs trust for; empty where it is this machine.

    Raises:
        CannotJudge: it is no URL.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError as error:
        raise CannotJudge(f"webhook: {url} is not a URL ({error})", "bad-assertion") from None
    if not host:
        raise CannotJudge(f"webhook: {url} is not a URL", "bad-assertion")
    return "" if is_loopback(url) else f"send outputs to {host} (webhook assertion)"


def _limit() -> float:
    try:
        return float(os.environ["WEBHOOK_TIMEOUT"]) / 1000
    except (KeyError, ValueError):
        return _SECONDS


def _failed(call: AssertionCall, reason: str) -> Result:
    return Result(False, 0.0, reason, actual=call.text, evidence=[seen.rule("webhook-failed", reason)])
