"""A turn that waits for a person: what they see of it, and what is sent of what they made of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tui_eval.engine.attempt.stepping import Decision, Stepper
from tui_eval.guard.masker import Masker

FIRST, SECOND = "sk-first-998877", "sk-second-112233"


class _Writer:
    """What a store is told."""

    def __init__(self) -> None:
        self.shown = ""

    def waits(self, *_: Any) -> None: ...

    def running_again(self, *_: Any) -> None: ...

    def live(self, ref: int, kind: str, text: str, name: str) -> None:
        self.shown = text


async def _sent(text: str, edited: str | None) -> tuple[str, str | None]:
    writer = _Writer()
    stepper = Stepper(cast(Any, writer), Masker([FIRST, SECOND]))
    waiting = asyncio.create_task(stepper.before(1, 1, text))
    await asyncio.sleep(0)
    assert stepper.decide(1, Decision("send", edited))
    return writer.shown, (await waiting).text


async def test_secrets_of_what_waits_are_masked_in_the_store() -> None:
    assert await _sent(f"key {FIRST}, say hi", None) == ("key •••, say hi", None)


@pytest.mark.parametrize(
    ("text", "edited", "sent"),
    [
        (f"key {FIRST}, say hi", "key •••, say ho", f"key {FIRST}, say ho"),
        (f"{FIRST} and {FIRST}", "only •••", f"only {FIRST}"),
        (f"{FIRST} and {SECOND}", "now ••• or •••!", f"now {FIRST} or {SECOND}!"),
        (f"{FIRST} and {SECOND}", "which ••• is it", "which ••• is it"),
        ("none", "none ••• here", "none ••• here"),
    ],
)
async def test_what_was_edited_is_sent_with_its_secrets(text: str, edited: str, sent: str) -> None:
    assert (await _sent(text, edited))[1] == sent
