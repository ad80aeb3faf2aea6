"""The vocabulary of the whole program: suites, cases, turns, assertions, verdicts, transcripts.

Plain typed values without behaviour. They are `msgspec.Struct`s so that the store and the reports can write
them as JSON without a mapping of their own. Those of which a large suite has many are not looked over for
garbage (`gc=False`): they are in no circle. Everything else imports this module; it imports nothing of ours.
Its annotations are no texts: msgspec would compile each of some two hundred at every start.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Outcome = Literal["passed", "failed", "error", "cancelled", "skipped"]
Compat = Literal["documented", "reference"]
EntryKind = Literal["user", "assistant", "reasoning", "tool_call", "tool_result", "hand_off", "note", "error"]
ENTRY_LABELS: Mapping[str, str] = {
    "user": "user",
    "assistant": "assistant",
    "reasoning": "thinking",
    "tool_call": "call",
    "tool_result": "result",
    "hand_off": "hand-off",
    "note": "note",
    "error": "error",
}
"""What stands before an entry of a transcript, by its kind, wherever one is shown."""

OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "cancelled", "skipped")
JUDGED: tuple[Outcome, ...] = ("passed", "failed", "error")
"""Those of an attempt that was made; the others have nothing to say of its case."""
NO_VERIFICATION = "no verification"
"""What an attempt of nao says that passes for want of anything to compare with."""
NOT_COMPARED = "the columns of this test are compared when all of them have run"
"""What an attempt says that has its answer, and would pass, until then."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something wrong (`error`) or odd (`note`) in a file, said where it is.

    `path` is relative to the project root where possible, `line` counts from 1 (0: unknown),
    `key` is the dotted key concerned, `message` says what is wrong and `cure` what to do. `tool` is
    what the format's own tool does about it: `ignores` goes on without a word, so that under
    `compat: reference` no verdict hangs on it; `refuses` runs nothing of the case, and neither do we.
    `passed_over` is said of a file that no suite was found in: it goes where a suite turns out to read the file.
    `picture` are lines that show the place, for those who print below one another. `raised_at` is the file
    (absolute) and line of people's own code that failed, where the problem is that it did. `unwritten` is a note of
    files that a run of the format's own tool would write: a run says it, too, where none is asked for.
    """

    path: str
    line: int
    key: str
    message: str
    cure: str = ""
    level: Literal["error", "note"] = "error"
    tool: Literal["", "ignores", "refuses"] = ""
    picture: str = ""
    raised_at: tuple[str, int] | None = None
    passed_over: bool = False
    unwritten: bool = False

    @property
    def to_mend(self) -> tuple[str, int]:
        """The file and line that are to be changed."""
        return self.raised_at or (self.path, self.line)

    def __str__(self) -> str:
        """`path:line: key: what is wrong, what to do`, the form that `check` prints."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        key = f" {self.key}:" if self.key else ""
        cure = f"; {self.cure}" if self.cure else ""
        return f"{place}:{key} {self.message}{cure}"


class Usage(msgspec.Struct, omit_defaults=True):
    """Tokens of one reply or of a whole attempt; None: the agent did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


CODE_TYPES = frozenset(("javascript", "python", "ruby"))
"""Types of assertions, without `not-`, whose value is code of the suite."""
OWN_JUDGES = CODE_TYPES | {"webhook"}
"""Those that are judged by something of the suite's own, its code or a host that it asks: they are handed the whole
answer with what it cost, and may give any score."""


class Assertion(msgspec.Struct, omit_defaults=True, gc=False):
    """One thing expected.

    `type` is the format's own name (`should_contain`, `tool_call`, `sql`, `not_keywords`,
    `not-contains`, `assert-set`), `value` what is expected as the file gives it (UNSET: the file
    gives none), `target` a dotted path beginning with the part of the reply it looks at (`text`,
    `sly_data.equals`, `structure.answer`, `rows`, `tools`, `metadata.escalated`,
    `usage.output_tokens`), `turn` counts from 1 (None: the whole conversation). Members of an
    assert-set follow their set's own entry and carry its index within the list in `set`.
    `extra` holds keys that only this type reads (`rubricPrompt`, `contextTransform`, `alpha`). A whole number stays one
    where it is recorded: `20000`, not `20000.0`.
    """

    type: str
    value: Any | UnsetType = UNSET
    target: str = "text"
    turn: int | None = None
    threshold: int | float | None = None
    weight: int | float | None = None
    metric: str | None = None
    transform: str | None = None
    provider: Any = None
    config: Any = None
    set: int | None = None
    extra: dict[str, Any] | None = None
    line: int = 0


class Turn(msgspec.Struct, omit_defaults=True, gc=False):
    """One user message and what is asserted of its reply.

    `text` is None where a neuro-san interaction has none. For promptfoo it is the raw prompt
    template, rendered with the case's vars when it is sent. `sly_data`, `timeout` (seconds),
    `chat_filter` and `continue_conversation` (looked at after this turn) are neuro-san's.
    """

    text: str | None
    assertions: list[Assertion] = []
    sly_data: dict[str, Any] | None = None
    timeout: float | None = None
    chat_filter: Any = None
    continue_conversation: bool = True
    line: int = 0


class Case(msgspec.Struct, omit_defaults=True, gc=False):
    """One thing to test.

    `suite` is the path of its file from the project root; `case_id` is described in the help.
    Assertions that belong to one turn stand in that turn; those about the whole conversation in
    `assertions`. `agent` is what the file names (StartToAgent's `agent:`, neuro-san's network,
    promptfoo's provider id or label); `provider` is promptfoo's provider entry as given.
    `prompt` is promptfoo's prompt label; `column` the provider in whose column a row stands that has a
    provider of its own (empty: its own). `test_number` and `column_number` say which of a promptfoo
    suite's tests (each combination of variables is one) and in which of its columns it is, from 1 (0: not
    known); `first_number` the number of its test's first combination, where it is another (0: it is the first).
    `attempts` and `required` say how many executions are
    asked for and how many must pass. `timeout` is in seconds and covers all attempts where the
    format says so. `request_metadata` goes out with each request (neuro-san's `metadata`).
    `content_hash` changes when anything in the case does. `order` is its place in the file. `file` is the
    file that `line` counts in, from the root, where it is not the suite's own (a table, a generator).
    `variant` tells it from others of its name: the short name of its prompt, where the suite has several, and
    its combination of variables; `column_name` is the short name of its column's provider, where there are
    several.

    `named_by` is the variable that a test without a name is called by, where that is not its first
    (a suite's defaults come before its own).

    `options` are what only the case's format knows (its `Format` is asked), `provider` and `provider_output`
    promptfoo's own words. `beside` is what its reader keeps next to a test's own options; None: a run of an
    older version, which has it among them. What more than one room reads is a field here, though one format
    alone may set it: the engine, the store and the reports hand it on for whichever format says it.
    """

    case_id: str
    name: str
    suite: str
    format: str
    description: str = ""
    line: int = 0
    agent: str | None = None
    model: str | None = None
    prompt: str | None = None
    turns: list[Turn] = []
    vars: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    threshold: int | float | None = None
    options: dict[str, Any] = {}
    provider: Any = None
    provider_output: Any = None
    attempts: int = 1
    required: int = 1
    timeout: float | None = None
    connection: str | None = None
    request_metadata: dict[str, Any] | None = None
    database: str | None = None
    comparison: dict[str, Any] | None = None
    assertions: list[Assertion] = []
    content_hash: str = ""
    order: int = 0
    problems: list[Problem] = []
    file: str | None = None
    column: str = ""
    test_number: int = 0
    column_number: int = 0
    first_number: int = 0
    variant: str = ""
    column_name: str = ""
    named_by: str = ""
    beside: dict[str, Any] | None = None

    @property
    def asserted(self) -> list[Assertion]:
        """Every assertion: those of the turns in order, then those about the whole conversation. To be looked
        at only."""
        found: list[Assertion] = []
        for turn in self.turns:
            if turn.assertions:
                found = found + turn.assertions
        return found + self.assertions if found else self.assertions

    @property
    def path(self) -> str:
        """The file that its lines count in, from the root."""
        return self.file or self.suite

    def place(self, line: int) -> str:
        """Where a line of it stands, for people (`tests/revenue.yml:7`); its suite where the line is not known."""
        return f"{self.path}:{line}" if line else self.suite


class Suite(msgspec.Struct, omit_defaults=True):
    """What one file defines. `files` lists every file read for it (absolute paths), so that a
    change in any of them is seen. `settings` holds what the format says about the whole suite
    (promptfoo: evaluateOptions, derivedMetrics, env; StartToAgent: model). An unreadable file is
    a suite without cases whose problems say why. The cases of large tables may be made only when
    they are asked for (`suites.promptfoo.lazy`), so `cases` is not for changing. `hidden` are values that the file
    or what it names calls secrets (promptfoo: its `env` and `.env` files, its providers' keys)."""

    path: str
    format: str
    name: str = ""
    description: str = ""
    cases: Sequence[Case] = []
    problems: list[Problem] = []
    files: list[str] = []
    settings: dict[str, Any] = {}
    hidden: list[str] = []


class Entry(msgspec.Struct, omit_defaults=True):
    """One line of a transcript, in the order it happened.

    `agent` is the agent or sub-agent speaking (dotted origin where there are several), `name` the
    tool or, for a hand-off, the agent handed to. A result carries the `call_id` of its call.
    `started_at` is seconds since the epoch, `first_token_ms` and `duration_ms` are milliseconds.
    """

    turn: int
    kind: EntryKind
    agent: str = ""
    text: str = ""
    name: str = ""
    arguments: Any = None
    result: Any = None
    error: str | None = None
    call_id: str | None = None
    usage: Usage | None = None
    started_at: float | None = None
    first_token_ms: float | None = None
    duration_ms: float | None = None


class Reply(msgspec.Struct, omit_defaults=True):
    """What the agent answered to one turn, in whatever parts its protocol has.

    `output` is set where the reply is not text (an object); `metadata` is what the reply carries
    beside its text; `rows` are records that a nao server verified, with `rows_error`,
    `expected_rows` and `rows_sql` as that server gives them. `raw` is the body as received.
    `cached` is True where nobody was asked for it now (`--cache`); its cost and time are those it had.
    `text_missing` is True where the reply has no text at all, which neuro-san tells from an empty
    one. `transformed` is True where a results file has only what transforms left of it. `of_file`
    is True of one that was read from such a file: what is not there may have been.
    """

    turn: int
    text: str = ""
    text_missing: bool = False
    output: Any = None
    metadata: dict[str, Any] | None = None
    structure: dict[str, Any] | None = None
    sly_data: dict[str, Any] | None = None
    usage: Usage | None = None
    cost: float | None = None
    latency_ms: float | None = None
    finish_reason: str | None = None
    model: str | None = None
    log_probs: list[float] | None = None
    guardrails: dict[str, Any] | None = None
    rows: list[dict[str, Any]] | None = None
    rows_error: str | None = None
    rows_sql: str | None = None
    rows_columns: list[str] | None = None
    expected_rows: list[dict[str, Any]] | None = None
    verified: bool = False
    raw: Any = None
    cached: bool = False
    transformed: bool = False
    of_file: bool = False


class Exchange(msgspec.Struct, omit_defaults=True):
    """One request and its response as sent, for the Raw tab. Secrets are masked before storing."""

    turn: int
    request: str
    response: str = ""
    status: int | None = None
    started_at: float | None = None
    duration_ms: float | None = None
    note: str = ""


class TraceSpan(msgspec.Struct, omit_defaults=True):
    """One span of an attempt's trace, as the agent exported it (OpenTelemetry).

    `start` and `end` are milliseconds since the epoch (None: not reported). `attributes` hold those of its
    resource too; `status` is 0 unset, 1 ok, 2 error, `message` what the agent says of it. `own` is True
    for the span around the request that is ours, not the agent's.
    """

    span_id: str
    name: str
    parent_id: str | None = None
    start: float | None = None
    end: float | None = None
    attributes: dict[str, Any] = {}
    status: float | None = None
    message: str | None = None
    own: bool = False


class Trace(msgspec.Struct, omit_defaults=True):
    """The trace that an attempt's agent was given, and its spans in the order in which they arrived.

    `evaluation_id` and `test_case_id` went to the agent with it. `problem` says in one line why nothing
    is known of what the agent did (nothing arrived, nothing could listen), `note` what was left out, `cut` whether the
    record lacks whole spans, or has but the beginnings of long texts.
    `command_tools` are names of tools that run commands (promptfoo's `commandToolNames`).
    """

    trace_id: str
    evaluation_id: str = ""
    test_case_id: str = ""
    spans: list[TraceSpan] = []
    problem: str = ""
    note: str = ""
    command_tools: list[str] = []
    cut: Literal["", "texts", "spans"] = ""


class Evidence(msgspec.Struct, omit_defaults=True):
    """A thing that a verdict rests on, written by the assertion that judged.

    `kind` says what it is: a `match` or something `missing` in a text, a `rule` broken or kept, a `field` of
    a value, `sql`, a `step` of the agent, a `call` of a tool, a figure against its `budget`, how an `agent`
    failed. `code` says what of it (`not-contained`, `schema`, `needs-trust`; `tui_eval.causes` knows all of
    ours, and their words). Where: `start` and `end` in the text that was judged, in code points; `row` and
    `column` from 1, `path` (a JSON path, dotted keys, what a figure counts), `call` the number of the call or
    step. `text` is what was seen or looked for, `rule` what had to hold, `expected` and `actual` the values.
    Texts and values are cut where they are long.
    """

    kind: str
    code: str = ""
    text: str = ""
    start: int | None = None
    end: int | None = None
    path: str = ""
    row: int | None = None
    column: int | None = None
    call: int | None = None
    rule: str = ""
    expected: Any = None
    actual: Any = None


class Verdict(msgspec.Struct, omit_defaults=True):
    """What came of judging one assertion. `passed` is None for an error, whose cause is `reason`.

    `set` as in `Assertion`. `judge` keeps a judge's words: {question, answer, model, usage}. `evidence` is what
    it rests on (None: the assertion does not say, as in older runs; empty: nothing was found). `parts` are the
    results that a script says its own consists of, as it gave them (promptfoo's `componentResults`).
    """

    type: str
    passed: bool | None
    target: str = "text"
    expected: Any = None
    actual: Any = None
    score: float = 0.0
    reason: str = ""
    weight: float = 1.0
    metric: str | None = None
    turn: int | None = None
    set: int | None = None
    judge: dict[str, Any] | None = None
    line: int = 0
    evidence: list[Evidence] | None = None
    parts: list[dict[str, Any]] | None = None


_NOT_FINITE = "not_finite"


class DataDetails(msgspec.Struct, omit_defaults=True):
    """What the Data tab and the results file show of a comparison of rows.

    `expected` and `actual` are records as judged; `columns` the expected columns in order; `comparison` a
    text of what differs (as nao's results file has it). JSON has neither NaN nor infinity and keeps them as
    null: `settings["not_finite"]` says where they stood, and they stand there again when the details are
    read.
    """

    expected: list[dict[str, Any]] | None = None
    actual: list[dict[str, Any]] | None = None
    columns: list[str] = []
    comparison: str | None = None
    reference_sql: str | None = None
    verification_sql: str | None = None
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        marks = self.settings.get(_NOT_FINITE)
        if not isinstance(marks, dict):
            return
        for side, rows in (("expected", self.expected), ("actual", self.actual)):
            with suppress(AttributeError, TypeError, ValueError, IndexError):  # a record may be anybody's
                _put_back(rows or [], marks.get(side) or {})

    def keep_not_finite(self) -> None:
        """Let the settings say where NaN and infinity stand."""
        marks: dict[str, dict[str, dict[str, list[int]]]] = {}
        for side, rows in (("expected", self.expected), ("actual", self.actual)):
            for at, row in enumerate(rows or ()):
                for name, value in row.items():
                    if isinstance(value, float) and not isfinite(value):
                        places = marks.setdefault(side, {}).setdefault(name, {})
                        places.setdefault(str(value), []).append(at)
        self.settings.pop(_NOT_FINITE, None)
        if marks:
            self.settings[_NOT_FINITE] = marks


_WRITTEN_SO = (None, "NaN", "Infinity", "-Infinity")
"""What stands for such numbers in a record, and in a results file."""


def _put_back(rows: list[dict[str, Any]], marks: dict[str, dict[str, list[int]]]) -> None:
    """The numbers that JSON does not have, in the columns and rows where they stood."""
    for name, places in marks.items():
        for word, at in places.items():
            for row in at:
                if rows[row].get(name) in _WRITTEN_SO:
                    rows[row][name] = float(word)


class BeforeComparison(msgspec.Struct, omit_defaults=True):
    """What an attempt came to by itself, before it was compared with the other columns of its test."""

    outcome: Outcome
    message: str = ""
    score: float = 0.0
    named_scores: dict[str, float] = {}
    named_weights: dict[str, float] = {}


class JudgeUse(msgspec.Struct, omit_defaults=True):
    """What models that judge took: how many answers they gave (`calls`), their tokens, and USD; None where no answer
    says. `cached` more were in the cache, which `saved` so much (USD)."""

    calls: int = 0
    usage: Usage | None = None
    cost: float | None = None
    cached: int = 0
    saved: float | None = None


class Attempt(msgspec.Struct, omit_defaults=True):
    """One execution of a case by one agent, finished, with everything that is kept of it.

    `message` is what a person reads first; `stdout` what people's own code printed; `prompt_sent` promptfoo's
    rendered prompt; `vars` those it was rendered with, `changed_vars` those of its case that a hook changed,
    as it did; `named_weights` the weights behind its `named_scores`; `trace` what the agent reported of
    itself over OpenTelemetry; `asserted_nothing` says that no verdict could have been another one
    (`vacuity`). `evidence` says why there are no verdicts to say it: the agent failed, or a score decided.
    `cached` turns were answered from the cache, which `saved` so much (USD); `usage` and `cost` are of the
    others. `judging` is what was taken beside the agent by the models that judged it (or played its user);
    None where none was asked. `ran_on` is the worker that executed it; empty: the engine itself.
    `before_comparison` is there where columns were compared, so that they can be again. `listed` are texts
    that its suite says mean the same, for who shows it beside the suite; it is never stored.
    """

    case_id: str
    attempt: int
    outcome: Outcome
    agent: str = ""
    model: str | None = None
    message: str = ""
    score: float = 0.0
    named_scores: dict[str, float] = {}
    named_weights: dict[str, float] = {}
    verdicts: list[Verdict] = []
    transcript: list[Entry] = []
    replies: list[Reply] = []
    exchanges: list[Exchange] = []
    usage: Usage | None = None
    cost: float | None = None
    tool_call_count: int | None = None
    started_at: float = 0.0
    duration_ms: float | None = None
    error: str | None = None
    data: DataDetails | None = None
    response_text: str = ""
    output: Any = None
    vars: dict[str, Any] = {}
    changed_vars: dict[str, Any] = {}
    prompt_sent: str | None = None
    stdout: str = ""
    retries: int = 0
    trace: Trace | None = None
    asserted_nothing: bool = False
    cached: int = 0
    saved: float | None = None
    evidence: list[Evidence] | None = None
    ran_on: str = ""
    before_comparison: BeforeComparison | None = None
    judging: JudgeUse | None = None
    listed: list[list[str]] | None = None

    @property
    def before_transforms(self) -> Reply | None:
        """The answer as it came, where something else was judged; None where it was itself."""
        judged = self.response_text, self.output
        if all((reply.text, reply.output) != judged for reply in self.replies):
            return self.replies[-1] if self.replies else None
        return None

    @property
    def cached_words(self) -> str:
        """`cached`, or `cached 2/3 turns` where the agent was asked for the others; empty where it was for all."""
        if not self.cached:
            return ""
        turns = {reply.turn for reply in self.replies}
        turns |= {entry.turn for entry in self.transcript if entry.kind == "user"}
        known = len({reply.turn for reply in self.replies if reply.cached})
        return f"cached {known}/{len(turns)} turns" if 0 < known < len(turns) else "cached"


def decoded(*kinds: object) -> None:
    """Make msgspec learn these types now, while their module is imported: learning one on first use in two threads
    at once ends the process (msgspec 0.22, a null pointer)."""
    for kind in kinds:
        msgspec.json.Decoder(kind)


decoded(Attempt, Case)
