"""What an assertion is judged on, what judging may use, and what comes of it; what a judge model replied.

The engine fills a `JudgeInput` from an attempt and hands it to `tui_eval.formats.judge`. Nothing
here knows agents or the engine: a judge model, the agent asked for its rows, a database and the
hosts of people's code come in as callables and values of `JudgeServices`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tui_eval.guard.trust import Trust
from tui_eval.model import (
    UNSET,
    Case,
    Compat,
    DataDetails,
    Entry,
    Evidence,
    Outcome,
    Reply,
    Trace,
    Usage,
    Verdict,
)

if TYPE_CHECKING:
    from tui_eval.frames.sql import SqlResult
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost


judged_about: ContextVar[Callable[[], dict[str, Any]] | None] = ContextVar("judged_about", default=None)
"""What the question that is being asked of a judge was made of, for a grader that is code and is told it beside."""


class CannotJudge(Exception):
    """An assertion that could not be judged; the text is its verdict's reason (one clear line), `code` its
    evidence's (`tui_eval.causes`), whose text is `said` (the reason, where nothing shorter is given)."""

    def __init__(self, reason: str = "", code: str = "cannot-judge", said: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.said = said
        self.evidence: Evidence | None = None
        """What its verdict rests on, where more is known than the code."""


class Reports(msgspec.Struct, frozen=True):
    """What the agent's type can report at all (the flags of `agents.base.Capabilities`).

    Assertions on the rest are errors; what it can report but left out of a reply counts as the
    format's default, with a note in the reason. With `calls_in_metadata` a reply without
    `metadata.toolCalls` says nothing of tools.
    """

    tokens: bool = False
    tools: bool = False
    metadata: bool = False
    sly_data: bool = False
    structure: bool = False
    calls_in_metadata: bool = False


class JudgeAnswer(msgspec.Struct):
    """A judge model's reply: its text, the model that gave it, the tokens and money it took; `output` where it is no
    text."""

    text: str
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    output: Any = None


class RowsAnswer(msgspec.Struct):
    """The agent's answer as rows.

    `rows` is None where there are none to be had; `error` then says why in one line. `sql` is the
    query behind them where the agent says one; `expected` are expected rows that the agent's own
    backend computed (nao), `columns` the order of columns where it is known, `source` says where
    the rows come from (`verification`, `extraction`).
    """

    rows: list[dict[str, Any]] | None = None
    error: str | None = None
    sql: str | None = None
    expected: list[dict[str, Any]] | None = None
    columns: list[str] | None = None
    source: str = ""
    usage: Usage | None = None


class CodeHosts(Protocol):
    """Where code of people's suites runs; each host is made when it is first asked for (None: there is none)."""

    @property
    def python(self) -> PythonHost | None:
        """Their Python."""

    @property
    def javascript(self) -> JavaScriptHost | None:
        """Their JavaScript that needs nothing of node."""

    @property
    def node(self) -> NodeHost | None:
        """Their JavaScript that needs node's modules."""


class _NoHosts:
    python = javascript = node = None


def untimed(what: str, turn: int | None = None) -> AbstractAsyncContextManager[None]:
    """No limit (`JudgeServices.in_time`)."""
    return nullcontext()


class JudgeServices(msgspec.Struct):
    """What judging may use that lies outside its layer; everything is optional.

    `ask_judge(system, prompt, schema)` asks the configured judge (None: no judge is configured; `schema` is a
    JSON schema wished for the reply); `judge_is_network` says that it is a neuro-san network, which has
    instructions of its own. `judge_for(provider)` gives such a callable for a grader that a suite names (a
    promptfoo provider id or mapping), None where another judges in its place (`CannotJudge`: nothing speaks
    to it). `embed(provider, texts)` gives a vector for each text, by the embedding provider that a suite
    names or (None) the judge's; None where neither is configured. `scores(provider, text)` gives the scores
    of a text's classes by the classifier that a suite names. `judge_fault` says in one line why the
    configured judge cannot be asked at all; empty: nothing is known. `try_sql` raises as `run_sql` would,
    before anybody is asked, and once for a query of a run; `backend_may_verify`: the agent may bring the
    expected rows itself, `backend_was_to_verify`: it was asked to. `run_sql(database, query)` runs the
    expected query, `agent_sql` the agent's own where its rows are wrong; `rows(columns)` gives the agent's
    answer as rows (`CannotJudge`: nothing says what they are).
    `hosts` run the suite's code. `base` is the suite's folder, `root` the project's.
    `comparison` holds comparison settings in force (rtol, atol, decimals, ordered, key, and whatever
    `reference` needs). `env` are variables that templates may read. `compares_columns` says that whoever asks
    will compare the columns of a test itself when all have run (promptfoo's select-best, max-score), in
    `compare_seconds` (None: as long as it takes). `in_time(what, turn)` is entered around the judging of an
    assertion (the turn may be left out), and raises `CannotJudge` where that does not end.
    """

    ask_judge: Callable[[str | None, str, dict[str, Any] | None], Awaitable[JudgeAnswer]] | None = None
    judge_name: str | None = None
    judge_is_network: bool = False
    judge_for: (
        Callable[[Any], Callable[[str | None, str, dict[str, Any] | None], Awaitable[JudgeAnswer]] | None]
        | None
    ) = None
    embed: Callable[[Any, list[str]], Awaitable[list[list[float]]]] | None = None
    scores: Callable[[Any, str], Awaitable[dict[str, float]]] | None = None
    judge_fault: Callable[[], str] | None = None
    run_sql: Callable[[str | None, str], Awaitable[SqlResult]] | None = None
    try_sql: Callable[[str | None, str], Awaitable[None]] | None = None
    backend_may_verify: bool = False
    backend_was_to_verify: bool = False
    agent_sql: Callable[[str | None, str], Awaitable[SqlResult]] | None = None
    rows: Callable[[list[str]], Awaitable[RowsAnswer]] | None = None
    hosts: CodeHosts = _NoHosts()
    trust: Trust = msgspec.field(default_factory=Trust)
    root: Path = msgspec.field(default_factory=Path)
    base: Path = msgspec.field(default_factory=Path)
    comparison: dict[str, Any] = {}
    env: Mapping[str, str] = {}
    compares_columns: bool = False
    compare_seconds: float | None = None
    in_time: Callable[..., AbstractAsyncContextManager[Any]] = untimed


class JudgeInput(msgspec.Struct):
    """One finished attempt as assertions see it: raw text, nothing masked.

    `replies` are the agent's answers in order, one per turn that was answered; `usage` sums the
    whole conversation, as do `tool_call_count`, `cost` (USD) and `duration_ms` (milliseconds).
    `vars` are those the prompt was rendered with, `prompt_sent` is that prompt. `compat` is
    `reference` where the original tool's verdict is wanted to the letter. `trace` is what the agent
    exported over OpenTelemetry (None: the suite asks for no tracing). `test` is the whole test as promptfoo's
    scripts get it (None: made from the case, without its assertions). `unknown` are figures that were reported
    and are none, by what they are called (`input tokens`), each with the line that says so: no limit on them is kept.
    `output` is the last reply as the transforms of its provider and test have it (unset: not known yet). `begun` is the
    judgement that is being made: what stays of it where judging is cut off.
    """

    case: Case
    replies: list[Reply] = []
    transcript: list[Entry] = []
    capabilities: Reports = msgspec.field(default_factory=Reports)
    usage: Usage | None = None
    tool_call_count: int | None = None
    duration_ms: float | None = None
    cost: float | None = None
    vars: dict[str, Any] = {}
    prompt_sent: str | None = None
    compat: Compat = "documented"
    services: JudgeServices = msgspec.field(default_factory=JudgeServices)
    trace: Trace | None = None
    test: dict[str, Any] | None = None
    unknown: Mapping[str, str] = {}
    output: Any = UNSET
    begun: Judgement | None = None

    def reply(self, turn: int | None = None) -> Reply | None:
        """The reply to a turn (counted from 1); the last one where `turn` is None."""
        if turn is None:
            return self.replies[-1] if self.replies else None
        for reply in self.replies:
            if reply.turn == turn:
                return reply
        return None

    @property
    def reference(self) -> bool:
        """Whether the original tool's verdict is wanted to the letter."""
        return self.compat == "reference"


class Judgement(msgspec.Struct):
    """What came of judging an attempt; see `Attempt` for the meaning of each value.

    `frames` holds whole frames by side (`expected`, `actual`) where `data` had to be cut.
    `response_text` and `output` are what was judged after transforms, where that differs from the
    reply (None: it does not). `named_weights` are the weights behind `named_scores`. `evidence` is that of a score that
    decided, or of what kept all from being judged. `open` is True
    while an assertion waits for the other columns of the test.
    """

    verdicts: list[Verdict] = []
    outcome: Outcome = "passed"
    score: float = 1.0
    named_scores: dict[str, float] = {}
    named_weights: dict[str, float] = {}
    message: str = ""
    data: DataDetails | None = None
    response_text: str | None = None
    output: Any = None
    frames: dict[str, Any] = {}
    open: bool = False
    evidence: list[Evidence] | None = None


_PASS = r"\bpass(?:e[sd]|ing)?\b"  # no "password", of which a judge may speak beside either word, or neither
_FAIL = r"\bfail(?:s|ed|ing|ures?)?\b"
_WORDS = (
    r"(?:[^\S\n]+(?!(?:and|but|hence|or|so|then|therefore|thus|which)\b)[\w'’-]+(?:,[^,.;\n]{1,40},)?){0,8}"
)
"""Up to eight words of a line, none of which begins a part of its own."""
_SAID = rf"[^\S\n]+[\"'`*]{{0,3}}(?:{_PASS}|{_FAIL})"
_WANTING = (
    r"\b(?:almost|condition|denied|far[^\S\n]+from|hardly|insufficient|instead[^\S\n]+of|in[^\S\n]+no[^\S\n]+way"
    r"|lacks|must|needed|needs|nearly|order|rather[^\S\n]+than|refuses?|required|unlikely|would[^\S\n]+have|wrong)"
)
"""Words of what is wanted for a pass, before it."""
_DENIED = (
    rf"(?:\bno|(?:\b(?:not|cannot|never|neither|none|unable[^\S\n]+to)|n['’]t)(?:,[^,.;\n]{{1,40}},)?{_WORDS})"
    rf"[^\S\n]+[\"'`*]{{0,3}}(?:{_PASS}|{_FAIL})"  # does not quite pass; "It names no price\nFAIL" denies nothing
    rf"|{_WANTING}{_WORDS}[^\S\n]+[\"'`*]{{0,3}}{_PASS}"
    rf"|\b(?:do|does|did|would|will|should|can|could)(?:[^\S\n]+not|n['’]t)\s+{_PASS}"
    r"|\b(?:no|non|not)[-_](?:pass|fail)|\bto[^\S\n]+pass[^\S\n]+(?:\w+[^\S\n]+){0,2}(?:must|needs?|would|has|have)\b"
    rf"|{_PASS}[^\S\n]+(?:(?:denied|unmet|withheld)\b|(?:(?:is|was|are|were|be|can|could|would|should|bar|criteri\w+"
    r"|conditions?|mark|grade|verdict)[^\S\n]+){1,3}(?:not|never|denied|unmet|withheld)\b"
    r"|(?:(?:bar|criteri\w+|conditions?|mark|grade|verdict)[^\S\n]+){0,2}(?:cannot|\w+n['’]t)\b)"  # is not warranted
    r"|\b(?:pass|fail)\w*[\"'`*]*\s*(?:"  # {"pass": false}, not pass: 0.95
    r"(?:[-:=?.–—→❌]|is\b|was\b)[\s\"'`*>]*(?:false\b|(?:no|0(?:\.0+)?(?!\.?\d))\s*(?:[\"'`*,;.}\n]|$)|[❌✗✘])"
    r"|(?:(?:it|this|that)\b)?\?\s*(?:\w+[^\S\n]+){0,2}(?:not\b|\w+n['’]t\b))"  # Does it pass? It does not.
)
_STARTS = 1000
"""Braces at which an object may begin: each costs the reading of what follows."""


def pass_or_fail(text: str, *, anywhere: bool = False) -> bool | None:
    """True for a reply that says pass and not fail, False for fail and not pass, else None.

    Case does not matter, and one that is denied ("does not pass") is none. `anywhere` takes the letters inside other
    words too (`bypass`) and looks at nothing else, as neuro-san's driver does.
    """
    lowered = text.lower()
    if not anywhere and re.search(_DENIED, lowered) is not None:
        return None
    says_pass = "pass" in lowered if anywhere else re.search(_PASS, lowered) is not None
    says_fail = "fail" in lowered if anywhere else re.search(_FAIL, lowered) is not None
    return says_pass if says_pass != says_fail else None


_THOUGHT = re.compile(r"</?(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


_OBJECTS = 20
"""Objects of a reply that are read to see whether a mark of thoughts is one of their words."""


def without_thoughts(text: str) -> str:
    """A judge's reply without what it thought aloud, as servers give it that do not take that apart
    (`<think>…</think>`; of some models only the end, and all before it is thought): a draft is no verdict.
    Empty where it never came to an end. Marks within an object are words of its texts."""
    marks = list(_THOUGHT.finditer(text))
    begins = bool(marks) and not text[: marks[0].start()].strip() and not marks[0][0].startswith("</")
    if not begins and text.lstrip()[:1] in ("{", "`", "["):
        return text  # the words of its answer
    said: list[str] = []
    place, thought, tries = 0, -1, _OBJECTS
    for mark in marks:
        if mark.start() < place:
            continue
        if thought < 0 and tries and (brace := text.find("{", place, mark.start())) >= 0:
            tries -= 1
            if (end := _end_of_object(text, brace)) > mark.start():
                said.append(text[place:end])
                place = end
                continue
        if mark[0].startswith("</"):
            if thought < 0:
                said = []
            place, thought = mark.end(), -1
        elif thought < 0:
            said.append(text[place : mark.start()])
            thought = mark.start()
    if thought < 0:
        said.append(text[place:])
    elif any(map(str.strip, said)):
        said.append(text[thought:])
    return "".join(said)


def _end_of_object(text: str, start: int) -> int:
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return -1


def first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object within a reply, in a fence or between other words; None if there is none."""
    # Python writes and reads no integers of more than 4,300 digits.
    decoder = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < 4000 else float(digits))
    start = text.find("{")
    for _ in range(_STARTS):
        if start < 0:
            break
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            value = None
        except RecursionError:
            return None  # nested as deeply from each of the braces within
        if isinstance(value, dict):
            return value
        start = text.find("{", start + 1)
    return None
