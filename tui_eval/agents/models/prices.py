"""What tokens cost: a dated table of common models, and the project's own prices over it.

USD per million tokens. Nobody here reads the providers' price pages: the figures are those of LiteLLM's
table (`model_prices_and_context_window_backup.json` of litellm 1.106.2, OpenAI's and Anthropic's own entries,
read on 2026-11-21); those after them are what promptfoo 0.121.20 counts (read on 2026-11-30). Models that are not
here have no cost rather than a guessed one, nor have those whose price depends on the length of the prompt, where it
is longer: `prices:` in tui_eval.yaml adds them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tui_eval.guard import figures
from tui_eval.model import Usage

PRICES: dict[str, tuple[float, float, float]] = {
    # Not in that part: what promptfoo 0.121.20 counted (tests/vectors, s39_anthropic).
    "claude-3-5-sonnet": (3.0, 15.0, 3.0),
    "claude-haiku-4-5": (1.0, 5.0, 0.10),
    "claude-opus-4-5": (5.0, 25.0, 0.50),
    "claude-opus-4-6": (5.0, 25.0, 0.50),
    "claude-opus-4-7": (5.0, 25.0, 0.50),
    "claude-opus-4-8": (5.0, 25.0, 0.50),
    "claude-opus-5": (5.0, 25.0, 0.50),
    "claude-opus-5-5": (4.0, 20.0, 0.20),
    # Not in that part: the price that this program's specification gives, the same as Bedrock's there.
    "claude-sonnet-4": (3.0, 15.0, 0.30),
    "claude-sonnet-4-5": (3.0, 15.0, 0.30),
    "claude-sonnet-4-6": (3.0, 15.0, 0.30),
    "claude-sonnet-5": (2.0, 10.0, 0.20),
    "claude-sonnet-5-5": (2.0, 10.0, 0.10),
    # Where no price for cached input is given, it costs what input costs.
    "chatgpt-4o-latest": (5.0, 15.0, 5.0),  # not in that part: promptfoo 0.121.20's
    "gpt-3.5-turbo": (0.50, 1.50, 0.50),
    "gpt-4": (30.0, 60.0, 30.0),
    "gpt-4-turbo": (10.0, 30.0, 10.0),
    "gpt-4.1": (2.0, 8.0, 0.50),
    "gpt-4.1-mini": (0.40, 1.60, 0.10),
    "gpt-4.1-nano": (0.10, 0.40, 0.025),
    "gpt-4o": (2.50, 10.0, 1.25),
    "gpt-4o-2024-05-13": (5.0, 15.0, 5.0),
    "gpt-4o-mini": (0.15, 0.60, 0.075),
    "gpt-5": (1.25, 10.0, 0.125),
    "gpt-5-mini": (0.25, 2.0, 0.025),
    "gpt-5-nano": (0.05, 0.40, 0.005),
    "gpt-5-pro": (15.0, 120.0, 15.0),
    "gpt-5.1": (1.25, 10.0, 0.125),
    "gpt-5.2": (1.75, 14.0, 0.175),
    "gpt-5.2-pro": (21.0, 168.0, 21.0),
    "gpt-5.4-mini": (0.75, 4.50, 0.075),
    "gpt-5.4-nano": (0.20, 1.25, 0.02),
    "o1": (15.0, 60.0, 7.50),
    "o1-pro": (150.0, 600.0, 150.0),
    "o3": (2.0, 8.0, 0.50),
    "o3-mini": (1.10, 4.40, 0.55),
    "o3-pro": (20.0, 80.0, 20.0),
    "o4-mini": (1.10, 4.40, 0.275),
    # Not in that part: promptfoo's.
    "claude-opus-4": (15.0, 75.0, 1.50),
    "claude-opus-4-1": (15.0, 75.0, 1.50),
    "gpt-5-chat": (1.25, 10.0, 0.125),
    "gpt-5-codex": (1.25, 10.0, 0.125),
    "gpt-5.1-chat": (1.25, 10.0, 0.125),
    "gpt-5.1-codex": (1.25, 10.0, 0.125),
    "gpt-5.1-codex-max": (1.25, 10.0, 0.125),
    "gpt-5.1-codex-mini": (0.25, 2.0, 0.025),
    "gpt-5.2-chat": (1.75, 14.0, 0.175),
    "gpt-5.2-codex": (1.75, 14.0, 0.175),
    "gpt-5.4": (2.50, 15.0, 0.25),
    "gpt-5.5": (5.0, 30.0, 0.50),
}
"""Model → input, output, cached input. Dated snapshots (`gpt-4.1-2025-04-14`) count as their model."""

_AS_LONG_AS = {"gpt-5.4": 272_000, "gpt-5.5": 272_000}
"""Model → the tokens of a prompt up to which that is its price. Beyond it a token costs more; how long each of several
requests was, their sum does not say."""


_WRITING_SHARE = 0.25
_FOR_AN_HOUR = 4
"""Shares that are added for a token which stays in the cache for an hour."""


class OwnPrice(NamedTuple):
    """What a promptfoo provider's `config` says of its price, USD per million tokens; None: the table's. `cached` is
    said with `input`."""

    input: float | None
    output: float | None
    cached: float | None


def own_price(settings: Mapping[str, Any], cached_share: float = 1.0) -> OwnPrice | None:
    """The price that `cost`, `inputCost` and `outputCost` (USD for one token) give, as promptfoo 0.121.20 reads them:
    `inputCost ?? cost` and `outputCost ?? cost`. None where none of them is there.

    Cached input costs what input does; of Anthropic's models, unless `cost` alone says all, `cached_share` of it
    (`calculateAnthropicCost`). There `cost` alone leaves cached input out, which is no price: it counts here. What is
    no number gives no cost: promptfoo's is NaN then, which no threshold exceeds.
    """
    flat, given, output = (_for_million(settings.get(name)) for name in ("cost", "inputCost", "outputCost"))
    if flat is given is output is None:
        return None
    share = 1.0 if given is output is None else cached_share
    put_in = flat if given is None else given
    return OwnPrice(put_in, flat if output is None else output, None if put_in is None else put_in * share)


def _for_million(value: Any) -> float | None:
    if value is None:
        return None
    try:
        return math.nan if isinstance(value, bool) else float(value) * 1_000_000
    except (TypeError, ValueError, OverflowError):
        return math.nan


def price_of(
    model: str, prices: Mapping[str, Mapping[str, float]], tokens: int = 0
) -> tuple[float, float, float] | None:
    """Input, output and cached input of a model in USD per million tokens, for so many of input; None where unknown.

    `prices` is the project's `{model: {input, output, cached}}`, which wins; a provider's prefix
    (`openai:gpt-4.1`) may be left out on either side.
    """
    bare = model.rpartition(":")[2] if ":" in model else model
    bare = bare.rpartition("/")[2]
    for name in (model, bare):
        own = prices.get(name)
        if own is not None:
            given = float(own.get("input", 0.0))
            cached = own.get("cached", own.get("cached_input", given))
            return given, float(own.get("output", 0.0)), float(cached)
    for name in (model, bare, _undated(bare)):
        if name in PRICES:
            return PRICES[name] if tokens <= _AS_LONG_AS.get(name, tokens) else None
    return None


def cost(
    model: str | None,
    usage: Usage | None,
    prices: Mapping[str, Mapping[str, float]],
    own: OwnPrice | None = None,
    written: int = 0,
) -> float | None:
    """USD that `usage` cost with `model`, whose `own` price comes before any table's; None where the model or
    its usage is unknown. Of its input `written` tokens went into a cache of Anthropic's, for a quarter more;
    one that stays there for an hour counts as four.

    `usage.cached_tokens` are part of `usage.input_tokens`, as everywhere in this program.
    """
    if model is None or usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    known = price_of(model, prices, usage.input_tokens or 0)
    price = _with_own(known, own)
    if price is None:
        return None
    cached = usage.cached_tokens or 0
    fresh = max(0, (usage.input_tokens or 0) - cached)
    total = fresh * price[0] + cached * price[2] + (usage.output_tokens or 0) * price[1]
    if own is None or own.input is None or own.cached != own.input:  # one price for all is that of these, too
        total += min(written, _FOR_AN_HOUR * fresh) * price[0] * _WRITING_SHARE
    return figures.amount(round(total / 1_000_000, 10), "cost")


def cost_of(
    named: str | None,
    asked: str | None,
    usage: Usage | None,
    prices: Mapping[str, Mapping[str, float]],
    own: OwnPrice | None = None,
    written: int = 0,
    *,
    priced: bool = True,
) -> float | None:
    """USD by the name that the server gave the model, else by the one that was asked for. Not `priced`: the original
    tool knows no price of that one, and only the project's own counts."""
    if not priced and (
        asked is None or not any(name in prices for name in (asked, asked.rpartition(":")[2]))
    ):
        return None
    found = cost(named, usage, prices, own, written)
    return cost(asked, usage, prices, own, written) if found is None and asked != named else found


def _with_own(
    known: tuple[float, float, float] | None, own: OwnPrice | None
) -> tuple[float, float, float] | None:
    """Input, output and cached input; None where a part of it is neither said nor known, or is no price."""
    if own is None:
        return known
    parts = own.input, own.output, own.cached
    price = (
        parts
        if known is None
        else [mine if mine is not None else its for mine, its in zip(parts, known, strict=True)]
    )
    given, output, cached = price
    if given is None or output is None or cached is None or not all(map(_is_price, (given, output, cached))):
        return None
    return given, output, cached


def _is_price(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _undated(model: str) -> str:
    """`claude-sonnet-4-20250514` and `gpt-4.1-2025-04-14` without their date."""
    parts = model.split("-")
    if len(parts) > 3 and [len(part) for part in parts[-3:]] == [4, 2, 2] and "".join(parts[-3:]).isdigit():
        return "-".join(parts[:-3])
    if len(parts) > 1 and (parts[-1] == "latest" or (len(parts[-1]) == 8 and parts[-1].isdigit())):
        return "-".join(parts[:-1])
    return model
