"""similar: how near the meaning of the output is to that of a text, by an embedding model."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import judges
from tui_eval.assertions.promptfoo.call import Call, Result, invariant
from tui_eval.javascript import values as js

Vector = Sequence[float]


EPSILON = sys.float_info.epsilon
_METRICS = ("cosine", "dot", "euclidean")


async def similar(call: Call) -> Result:
    """The similarity to `value`, at least `threshold` (default 0.75); for `similar:euclidean` the distance, at
    most `threshold`. Of a list the first near enough counts, for `not-` the first that is too near; an empty
    text is compared as any other.

    Raises:
        CannotJudge: no embedding model is configured, or it does not answer.
    """
    value = call.value
    texts = value if isinstance(value, list) else [value]
    invariant(
        all(isinstance(text, str) for text in texts),
        "Similarity assertion type must have a string or array of strings value",
    )
    invariant(texts, "Similarity assertion must have at least one value to compare against")
    metric = call.kind.partition(":")[2] or "cosine"
    invariant(metric in _METRICS, f"Unknown similarity metric: {metric}")
    threshold = 0.75 if call.threshold is None else call.threshold
    vectors = await embed(call, [call.text, *texts])
    results = [_compare(call, metric, vectors[0], vector, threshold) for vector in vectors[1:]]
    if call.inverse:
        decides = next((result for result in results if not result.passed), None)
        return decides or min(results, key=lambda result: result.score)
    decides = next((result for result in results if result.passed), None)
    if decides is not None or not isinstance(value, list):
        return decides or results[0]
    best = max(result.score for result in results)
    reason = "None of the provided values met the similarity threshold"
    return Result(False, best, reason, actual=call.text)


def _compare(call: Call, metric: str, ours: Vector, theirs: Vector, threshold: float) -> Result:
    """What comes of one value: `not-` takes a figure at the threshold itself, too."""
    if metric == "euclidean":
        figure = math.dist(ours, theirs)
        near, far = figure <= threshold + EPSILON, figure >= threshold - EPSILON
        score, word = 1 / (1 + figure), "Distance"
        words = ("less than or equal to", "greater than")
    else:
        figure = cosine(ours, theirs) if metric == "cosine" else _dot(ours, theirs)
        near, far = figure >= threshold - EPSILON, figure <= threshold + EPSILON
        score, word = figure, "Similarity"
        words = ("greater than or equal to", "less than")
    if not math.isfinite(figure):
        raise CannotJudge(
            f"{call.assertion.type}: the embedding model gave numbers that are too large to compare"
        )
    passed = far if call.inverse else near
    score = 1 - score if call.inverse else score
    if not call.evidence.reference:
        score = min(1.0, max(0.0, score))
    compared = words[0] if passed != call.inverse else words[1]
    reason = f"{word} {js.fixed(figure, 2)} is {compared} threshold {js.number_text(threshold)}"
    return Result(passed, score, reason, actual=call.text)


def cosine(ours: Vector, theirs: Vector) -> float:
    """The cosine of the angle between two vectors; 0 where one has no length."""
    length = math.hypot(*ours) * math.hypot(*theirs)
    return _dot(ours, theirs) / length if length else 0.0


def _dot(ours: Vector, theirs: Vector) -> float:
    if len(ours) != len(theirs):
        raise CannotJudge(f"the embedding model gave vectors of {len(ours)} and {len(theirs)} numbers")
    return sum(one * other for one, other in zip(ours, theirs, strict=True))


async def embed(call: Call, texts: list[str]) -> list[list[float]]:
    """The vectors of texts, by the suite's embedding provider or that of the configured judge.

    Raises:
        CannotJudge: there is none, or it does not answer as it should.
    """
    asked = call.services.embed
    if asked is None:
        raise CannotJudge(
            f"{call.assertion.type}: no embedding model is configured; write `judge:` into tui_eval.yaml "
            "with type openai (its base_url must have /embeddings; embedding_model names the model), or "
            "name one under `provider` (openai:embedding:text-embedding-3-small)"
        )
    vectors = await asked(judges.embedding_provider(call), texts)
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise CannotJudge(f"{call.assertion.type}: the embedding model gave no vector for every text")
    return vectors
