"""Answers against their context: relevance, recall, faithfulness; and against the conversation.

Where no `threshold` is given promptfoo takes 0, which every answer meets; so do we, and say it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge import expected_values, judges
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.judge.graded import unreadable
from tui_eval.formats.promptfoo.judge.json_objects import placed_objects
from tui_eval.formats.promptfoo.judge.judges import (
    NUMBER,
    TEXT,
    TRUTH,
    GraderReply,
    QuestionParts,
    a_list,
    schema_of,
    tagged,
)
from tui_eval.javascript import values as js
from tui_eval.model_ids import provider_name

# -- similar: how near the meaning of the output is to that of a text, by an embedding model.


Vector = Sequence[float]


EPSILON = sys.float_info.epsilon
_METRICS = ("cosine", "dot", "euclidean")


async def similar(call: AssertionCall) -> Result:
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
    told = [seen.budget_of("similarity", best, ">=", threshold, "under")]
    return Result(False, best, reason, actual=call.text, evidence=told)


def _compare(call: AssertionCall, metric: str, ours: Vector, theirs: Vector, threshold: float) -> Result:
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
            f"{call.assertion.type}: the embedding model gave numbers that are too large to compare",
            "judge-unreadable",
        )
    passed = far if call.inverse else near
    score = 1 - score if call.inverse else score
    if not call.evidence.reference and metric != "dot":  # what two vectors give may be any figure
        score = min(1.0, max(0.0, score))
    compared = words[0] if passed != call.inverse else words[1]
    reason = f"{word} {js.fixed(figure, 2)} is {compared} threshold {js.number_text(threshold)}"
    wanted = "<=" if (metric == "euclidean") != call.inverse else ">="
    code = "within" if passed else "over" if wanted == "<=" else "under"
    told = [seen.budget_of(word.lower(), figure, wanted, threshold, code)]
    return Result(passed, score, reason, actual=call.text, evidence=told)


def cosine(ours: Vector, theirs: Vector) -> float:
    """The cosine of the angle between two vectors; 0 where one has no length."""
    length = math.hypot(*ours) * math.hypot(*theirs)
    return _dot(ours, theirs) / length if length else 0.0


def _dot(ours: Vector, theirs: Vector) -> float:
    if len(ours) != len(theirs):
        raise CannotJudge(
            f"the embedding model gave vectors of {len(ours)} and {len(theirs)} numbers", "judge-unreadable"
        )
    return sum(one * other for one, other in zip(ours, theirs, strict=True))


async def embed(call: AssertionCall, texts: list[str]) -> list[list[float]]:
    """The vectors of texts, by the suite's embedding provider or that of the configured judge.

    Raises:
        CannotJudge: there is none, or it does not answer as it should.
    """
    asked = call.services.embed
    if asked is None:
        raise CannotJudge(
            f"{call.assertion.type}: no embedding model is configured; write `judge:` into tui_eval.yaml "
            "with type openai (its base_url must have /embeddings; embedding_model names the model), or "
            "name one under `provider` (openai:embedding:text-embedding-3-small)",
            "no-embeddings",
        )
    provider = judges.embedding_provider(call)
    if call.evidence.reference and _CHATS.match(
        name := provider_name(provider) if provider is not None else ""
    ):
        raise CannotJudge(
            f"Provider {name} is not a valid embedding provider for {call.kind}", "no-embeddings"
        )
    vectors = await asked(provider, texts)
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise CannotJudge(
            f"{call.assertion.type}: the embedding model gave no vector for every text", "judge-unreadable"
        )
    return vectors


_CHATS = re.compile(r"(?:openai|azure|azureopenai):(?:chat|completion|responses):|anthropic:")
"""Providers that have no embeddings there."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WINDOW = 5


async def faithfulness(call: AssertionCall) -> Result:
    """The share of the output's statements that the context supports."""
    query = _asked_for(call)
    context = (await _context(call)).text
    said = GraderReply(call)
    first = QuestionParts({"question": query, "answer": call.text}, part=0, rare=True)
    second = QuestionParts({"context": context, "statements": []}, part=1, rare=True)
    if call.evidence.reference or any(judges.has_own_prompt(call, asked) for asked in (first, second)):
        return await _faithful_there(call, said, first, second)
    system = (
        "You split an answer into its single statements and say of each whether it follows from the context "
        "alone. " + judges.NOT_INSTRUCTIONS + "Answer with one JSON object: "
        '{"statements": [{"statement": "…", "supported": true or false}]}.'
    )
    question = tagged(question=query, context=context, answer=call.text)
    schema = schema_of(statements=a_list(schema_of(statement=TEXT, supported=TRUTH)))
    asked = QuestionParts({"question": query, "context": context, "answer": call.text}, rare=True)
    answer, text = await said.ask(system, question, schema, asked)
    return _share(
        call, said, text, "Faithfulness", _marks(answer.get("statements"), "supported"), "supported"
    )


async def _faithful_there(
    call: AssertionCall, said: GraderReply, first: QuestionParts, second: QuestionParts
) -> Result:
    """`matchesContextFaithfulness` of promptfoo 0.121.20: statements, a line each, then a verdict of each; one that is
    left out counts against the answer."""
    query, context = first.own["question"], second.own["context"]
    system = "You split an answer into its single statements. " + judges.NOT_INSTRUCTIONS
    answer = await said.text(
        system + "Answer with one statement a line, nothing else.",
        tagged(question=query, answer=call.text),
        first,
    )
    statements = [line for line in answer.split("\n") if js.trim(line)]
    end = "Final verdict for each statement in order:"
    system = (
        "You say of each statement whether it follows from the context alone. "
        + judges.NOT_INSTRUCTIONS
        + f"Explain each, then end with one line: {end} Yes. No. (as many as there are statements)"
    )
    question = tagged(context=context, statements="\n".join(statements))
    second = second._replace(own={"context": context, "statements": statements})
    answer = await said.text(system, question, second)
    text = js.trim(answer.lower())
    held = told = 0
    if end.lower() in text:
        verdicts = [one for one in text.split(end.lower(), 1)[1].split(".") if js.trim(one)]
        held, told = sum("yes" in one for one in verdicts), len(verdicts)
    else:
        held = text.count("verdict: yes")
        told = held + text.count("verdict: no")
    count = len(statements)
    if not (count and told) and not call.evidence.reference:
        return unreadable(call, said, answer)
    against = told - held + max(0, count - told)
    score = min(1.0, max(0.0, 1 - against / count)) if count and told else 0.0
    return _by_score(call, said, score, f"Faithfulness {js.fixed(score, 2)}: {held} of {count} are supported")


async def recall(call: AssertionCall) -> Result:
    """The share of the sentences of an ideal answer (`value`) that the context holds: without one the prompt, which may
    bring what was retrieved (promptfoo's `resolveContext` with `fallbackContext`)."""
    value = call.value
    invariant(isinstance(value, str), "context-recall assertion type must have a string value")
    context = (await _context(call, call.evidence.prompt_sent)).text
    said, asked = GraderReply(call), QuestionParts({"context": context, "groundTruth": value})
    system = (
        "You say of each sentence of an ideal answer whether the context holds what it says. "
        + judges.NOT_INSTRUCTIONS
    )
    if call.evidence.reference:
        system += "Answer with a line for each sentence that ends in [Attributed] or [Not Attributed]."
        text = (await said.text(system, tagged(context=context, ideal=value), asked)).lower()
        lines = [line for line in text.split("\n") if "[attributed]" in line or "[not attributed]" in line]
        held = ["[not attributed]" not in line for line in lines]
        return _share(call, said, text, "Recall", held, "in the context")
    system += 'Answer with one JSON object: {"sentences": [{"sentence": "…", "attributed": true or false}]}.'
    schema = schema_of(sentences=a_list(schema_of(sentence=TEXT, attributed=TRUTH)))
    answer, text = await said.ask(system, tagged(context=context, ideal=value), schema, asked)
    marks = _marks(answer.get("sentences"), "attributed")
    if marks is None and not answer:
        lines = text.lower().splitlines()
        marks = [True for line in lines if "[attributed]" in line]
        marks += [False for line in lines if "[not attributed]" in line]
    own = call.evidence.vars.get("context") or call.option("contextTransform")
    where = "in the context" if own or call.evidence.reference else "in the prompt (no variable `context`)"
    return _share(call, said, text, "Recall", marks or None, where)


async def relevance(call: AssertionCall) -> Result:
    """The share of the context's sentences that the question needs."""
    query = _asked_for(call)
    given = await _context(call)
    context, said = given.text, GraderReply(call)
    system = (
        "You pick those sentences of a context that are needed to answer a question, word for word; none "
        "where the context does not help. " + judges.NOT_INSTRUCTIONS
    )
    question = tagged(question=query, context=context)
    asked = QuestionParts({"context": context, "query": query}, beside=False)
    if call.evidence.reference:
        system += (
            "Answer with the sentences, one a line, or with Insufficient Information where there is none."
        )
        return _relevant_there(call, said, await said.text(system, question, asked), given)
    system += 'Answer with one JSON object: {"relevant": ["sentence"]}.'
    answer, text = await said.ask(system, question, schema_of(relevant=a_list(TEXT)), asked)
    found = answer.get("relevant")
    if found is None and not answer and text.strip():
        found = [] if "insufficient information" in text.lower() else [text]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return unreadable(call, said, text)
    units = _sentences(context)
    named = {_bare(one) for part in found for one in _sentences(part)} - {""}
    bare = [_bare(unit) for unit in units]
    parts = [one for one in named.difference(bare) if len(one) >= _PART]
    if len(parts) * sum(_A_LOOK + len(unit) for unit in bare) > _MOST_LOOKS:
        return unreadable(call, said, text)
    needed = sum(unit in named or any(one in unit for one in parts) for unit in bare)
    if named and not needed:  # none of it stands in the context: no choice among its sentences
        return unreadable(call, said, text)
    return _share(call, said, text, "Relevance", [place < needed for place in range(len(units))], "relevant")


_PART = 8
"""Letters of a part of a sentence that are enough to name it."""
_MOST_LOOKS, _A_LOOK = 200_000_000, 64
"""Letters of a context times parts that are looked for in it: a choice among its sentences has far fewer."""


def _bare(sentence: str) -> str:
    """A sentence without what judges add or leave out: marks of a list, quotes, blanks, case, the full stop."""
    return " ".join(re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", sentence).split()).strip("\"'“”.!?… ").casefold()


def _relevant_there(call: AssertionCall, said: GraderReply, text: str, context: _Context) -> Result:
    """`matchesContextRelevance` of promptfoo 0.121.20: whatever the judge answers is a sentence of the context, each
    counted once; a context of several lines, or a list, is in sentences already."""
    chunks = context.chunks
    units = [one for one in chunks if js.trim(one)] if chunks else _units(context.text)
    cut = chunks or sum(bool(js.trim(line)) for line in context.text.split("\n")) > 1
    found = [line for line in text.split("\n") if js.trim(line)] if cut else _units(text)
    needed = 0 if "Insufficient Information" in text else min(len(set(found)), len(units))
    return _share(call, said, text, "Relevance", [place < needed for place in range(len(units))], "relevant")


def _units(text: str) -> list[str]:
    lines = [line for line in text.split("\n") if js.trim(line)]
    parts = lines if len(lines) > 1 else re.split(rf"(?<=[.!?])[{js.WHITESPACE}]+", text)
    return [unit for part in parts if (unit := js.trim(part)) and not re.fullmatch(r"[0-9]+[.)]", unit)]


async def answer_relevance(call: AssertionCall) -> Result:
    """How near questions made from the output alone are to the question asked: by embeddings where a
    model for them is configured, else in the judge's own estimate."""
    _of_a_text(call)
    said = GraderReply(call)
    query, asked = _query(call), QuestionParts({"answer": call.text}, beside=False, rare=True)
    if call.evidence.reference or judges.has_own_prompt(call, asked):
        system = "You guess from an answer alone which question it answers. " + judges.NOT_INSTRUCTIONS
        system += "Answer with that question, nothing else."
        guessed = [await said.text(system, tagged(answer=call.text), asked) for _ in range(3)]
        return await _by_questions(call, said, query, guessed)
    system = (
        "You guess from an answer alone which question it answers: give three questions, different in "
        "wording. " + judges.NOT_INSTRUCTIONS + 'Answer with one JSON object: {"questions": ["…", "…", "…"]}.'
    )
    answer, text = await said.ask(system, tagged(answer=call.text), schema_of(questions=a_list(TEXT)), None)
    questions = answer.get("questions")
    if questions is None and not answer:
        questions = [line for line in text.splitlines() if line.strip()]
    if not isinstance(questions, list) or not questions or not all(isinstance(one, str) for one in questions):
        return unreadable(call, said, text)
    return await _by_questions(call, said, query, questions[:8])


async def _by_questions(call: AssertionCall, said: GraderReply, asked: str, questions: list[str]) -> Result:
    try:
        vectors = await embed(call, [asked, *questions])
    except CannotJudge as error:
        if judges.failed_there(call, error) is not None:
            raise
        return await _estimated(call, said, asked, questions)
    score = sum(cosine(vectors[0], vector) for vector in vectors[1:]) / len(questions)
    if not call.evidence.reference:
        score = min(1.0, max(0.0, score))
    return _by_score(call, said, score, f"Relevance {js.fixed(score, 2)}")


async def _estimated(call: AssertionCall, said: GraderReply, asked: str, questions: list[str]) -> Result:
    system = (
        "You say how near the meaning of guessed questions is to that of the question that was asked, from "
        "0 (another subject) to 1 (the same). "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object: {"reason": "why", "score": 0 to 1}.'
    )
    question = tagged(asked=asked, guessed="\n".join(questions))
    answer, text = await said.ask(system, question, schema_of(reason=TEXT, score=NUMBER), None)
    score = judges.number(answer.get("score"))
    if score is None or not 0 <= score <= 1:
        return unreadable(call, said, text)
    why = f"{answer.get('reason') or ''} (estimated by the judge: no embeddings)".strip()
    return _by_score(call, said, score, f"Relevance {js.fixed(score, 2)}: {why}")


async def conversation_relevance(call: AssertionCall) -> Result:
    """The share of the assistant's messages that fit the messages before them (a window of
    `config.windowSize`, default 5); `threshold` default 0.5."""
    turns = _turns(call)
    config = call.assertion.config if isinstance(call.assertion.config, dict) else {}
    window = judges.number(config.get("windowSize"))
    size = max(1, int(window)) if window else _WINDOW
    said = GraderReply(call)
    system = (
        "You say whether the last assistant message of a conversation is relevant to what was said before. "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object: {"verdict": "yes" or "no", "reason": "why, where it is not"}.'
    )
    marks: list[bool] = []
    reasons: list[str] = []
    for end in range(1, len(turns) + 1):
        shown = "\n".join(
            f"user: {asked}\nassistant: {said_}" for asked, said_ in turns[max(0, end - size) : end]
        )
        question, schema = tagged(conversation=shown), schema_of(verdict=TEXT, reason=TEXT)
        messages = [{"input": asked, "output": said_} for asked, said_ in turns[max(0, end - size) : end]]
        about = QuestionParts({"messages": messages}, rare=True, whole=True)
        if call.evidence.reference:
            answer, verdict = _verdict_there(said, await said.text(system, question, about))
        else:
            answer, text = await said.ask(system, question, schema, about)
            verdict = judges.truth(answer.get("verdict"))
            if verdict is None:
                return unreadable(call, said, text)
        marks.append(verdict)
        if not verdict and answer.get("reason"):
            reasons.append(str(answer["reason"]))
    score = sum(marks) / len(marks)
    why = f": {'; '.join(reasons)}" if reasons else ""
    return _by_score(call, said, score, f"{sum(marks)} of {len(marks)} messages are relevant{why}", 0.5)


def _verdict_there(said: GraderReply, text: str) -> tuple[dict[str, Any], bool]:
    """As promptfoo 0.121.20 reads it (`matchesConversationRelevance`): the first object says `yes` or `no`, so written.

    Raises:
        GraderFailed: it does not.
    """
    found = next((value for _, value in placed_objects(text)), None)
    if found is None:
        raise said.failed("Error parsing output: No JSON object found in response")
    verdict = found.get("verdict") if isinstance(found, dict) else None
    if verdict not in ("yes", "no"):
        raise said.failed("Error parsing output: Conversation relevance grader returned an invalid verdict")
    return found, verdict == "yes"


def _turns(call: AssertionCall) -> list[tuple[str, str]]:
    given = call.evidence.vars.get("_conversation")
    earlier = [
        (js.text_of(turn.get("input", "")), js.text_of(turn.get("output", "")))
        for turn in (given if isinstance(given, list) else [])
        if isinstance(turn, dict)
    ]
    if earlier and call.evidence.reference:
        return earlier  # there it is not judged what is said now
    return [*earlier, (call.evidence.prompt_sent or "", call.text)]


class _Context(NamedTuple):
    """The context as one text, and its pieces where it is given as a list."""

    text: str
    chunks: list[str] | None = None


async def _context(call: AssertionCall, otherwise: str | None = None) -> _Context:
    """The context: what `contextTransform` takes from the provider's output, else the variable `context`, else
    `otherwise`; pieces of a list with an empty line between them (promptfoo 0.121.20, `resolveContext`)."""
    transform = call.option("contextTransform")
    found: Any = call.evidence.vars.get("context") or otherwise
    if call.evidence.reference and js.truthy(own := call.evidence.vars.get("context")):
        found = own  # there a context is a text, or texts
        given = found if isinstance(found, list) else []
        odd = next((place for place, part in enumerate(given) if not isinstance(part, str)), None)
        invariant(
            odd is None, f"Invalid context: expected an array of strings, but found another at index {odd}"
        )
        found = found if isinstance(found, str | list) else None
    if isinstance(transform, str) and transform:
        output = await expected_values.provider_output(call.evidence)
        found = await expected_values.transformed(transform, output, call.evidence)
        texts = isinstance(found, list) and all(isinstance(part, str) for part in found)
        invariant(
            isinstance(found, str) or texts,
            "contextTransform must return a string or array of strings",
        )
    invariant(
        found not in (None, "", [], UNSET),
        f"{call.kind} assertion type requires a `context` variable or contextTransform",
    )
    if not isinstance(found, list):
        return _Context(js.text_of(found))
    invariant(not call.evidence.reference or all(found), f"{call.kind} assertion type has an empty context")
    chunks = [js.text_of(part) for part in found]
    return _Context("\n\n".join(chunks), chunks)


def _asked_for(call: AssertionCall) -> str:
    """As `_query`; by reference an error where there is none."""
    given = call.evidence.vars.get("query")
    missing = call.evidence.reference and not isinstance(given, str)
    invariant(not missing, f'{call.kind} assertion requires a "query" variable with the user question')
    if call.kind == "context-faithfulness":
        _of_a_text(call)
    return _query(call)


def _of_a_text(call: AssertionCall) -> None:
    text = isinstance(call.output, str) or not call.evidence.reference
    invariant(text, f"{call.kind} assertion requires string output from the provider")


def _query(call: AssertionCall) -> str:
    query = call.evidence.vars.get("query")
    if isinstance(query, str) and (query or call.evidence.reference):
        return query
    return call.evidence.prompt_sent or ""


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text) if part.strip()]


def _marks(found: Any, key: str) -> list[bool] | None:
    if not isinstance(found, list) or not found:
        return None
    marks = [judges.truth(item.get(key)) if isinstance(item, dict) else None for item in found]
    return None if any(mark is None for mark in marks) else [bool(mark) for mark in marks]


def _share(
    call: AssertionCall, said: GraderReply, text: str, name: str, marks: list[bool] | None, what: str
) -> Result:
    if marks is None:
        return unreadable(call, said, text)
    score = sum(marks) / len(marks) if marks else 0.0
    return _by_score(
        call, said, score, f"{name} {js.fixed(score, 2)}: {sum(marks)} of {len(marks)} are {what}"
    )


def _by_score(
    call: AssertionCall, said: GraderReply, score: float, reason: str, default: float = 0.0
) -> Result:
    threshold = default if call.threshold is None else call.threshold
    passed = (score >= threshold - 1e-12) != call.inverse
    shown = 1 - score if call.inverse else score
    sign = "≥" if score >= threshold - 1e-12 else "<"
    note = f" ({js.fixed(score, 2)} {sign} threshold {js.number_text(threshold)})"
    if call.threshold is None and default == 0:
        note = " (no threshold is given: any score passes)"
    what = call.kind.rpartition("-")[2]
    told = [
        seen.budget_of(what, score, "<" if call.inverse else ">=", threshold, "within")
        if passed
        else seen.budget_of(
            what, score, "<" if call.inverse else ">=", threshold, "over" if call.inverse else "under"
        )
    ]
    return Result(passed, shown, reason + note, actual=call.text, judge=said.judge, evidence=told)
