"""similar: how near the meaning of the output is to that of a text, by an embedding model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js, judges
from tui_eval.assertions.promptfoo.call import Call, Result, invariant

Vector = Sequence[float]


async def similar(call: Call) -> Result:
    """The similarity to `value` (the best of a list), at least `threshold` (default 0.75); for
    `similar:euclidean` the distance, at most `threshold`.

    Raises:
        CannotJudge: no embedding model is configured, or it does not answer.
    """
    value = call.value
    texts = value if isinstance(value, list) else [value]
    invariant(
        texts and all(isinstance(text, str) and text for text in texts),
        "Similarity assertion type must have a string or array of strings value",
    )
    metric = call.kind.partition(":")[2] or "cosine"
    threshold = 0.75 if call.threshold is None else call.threshold
    vectors = await embed(call, [call.text, *texts])
    results = [_compare(metric, vectors[0], vector, threshold) for vector in vectors[1:]]
    held, score, figure = max(results, key=lambda result: (result[0], result[1]))
    passed = held != call.inverse
    word = "Distance" if metric == "euclidean" else "Similarity"
    compared = "is within" if held else "is not within"
    reason = f"{word} {figure:.2f} {compared} threshold {js.number_text(threshold)}"
    return Result(passed, 1 - score if call.inverse else score, reason, actual=call.text)


def _compare(metric: str, ours: Vector, theirs: Vector, threshold: float) -> tuple[bool, float, float]:
    """Whether it holds, a score from 0 to 1, and the figure itself."""
    if metric == "euclidean":
        distance = math.dist(ours, theirs)
        return distance <= threshold, 1 / (1 + distance), distance
    found = cosine(ours, theirs) if metric == "cosine" else _dot(ours, theirs)
    return found >= threshold, min(1.0, max(0.0, found)), found


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
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
        raise CannotJudge(f"{call.assertion.type}: the embedding model gave no vector for every text")
    return vectors
