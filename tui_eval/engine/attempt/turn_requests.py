"""What is sent to the agent: the requests of a case's turns, templates filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents.base import Request
from tui_eval.formats import format_of
from tui_eval.formats.format import Scene
from tui_eval.model import Case, Entry
from tui_eval.suites.chat_prompts import broken_chat

if TYPE_CHECKING:
    from tui_eval.config.project import AgentSpec
    from tui_eval.engine.plan import Job
    from tui_eval.engine.run_context import RunContext


class Conversation(msgspec.Struct):
    """The requests of one attempt. `whole` is True where the case is a list of messages that an
    agent may get in one call (the StartToAgent contract); `limits` are seconds by turn; `prompt`
    and `vars` are those of a template, as rendered; `context` are earlier rows of the same conversation,
    `handed_on` the variables that came from them; `config` is what the prompt and the test lay over the
    provider's own `config`."""

    requests: list[Request]
    whole: bool = False
    limits: dict[int, float] = {}
    prompt: str | None = None
    vars: dict[str, Any] = {}
    context: list[Entry] = []
    handed_on: frozenset[str] = frozenset()
    config: dict[str, Any] = {}

    @property
    def last_turn(self) -> int:
        """The number of the last turn; 0 where a results file does not say what was asked."""
        return self.requests[-1].turn if self.requests else 0

    @property
    def judged_vars(self) -> dict[str, Any]:
        """The variables that assertions see: all but those that say where in the run this is."""
        return {name: value for name, value in self.vars.items() if name not in _WHERE}

    @property
    def own_vars(self) -> dict[str, Any]:
        """The variables that are the case's own."""
        return {name: value for name, value in self.vars.items() if name not in self.handed_on}

    @property
    def stored(self) -> bool:
        """Whether variables came from other cases."""
        return not self.handed_on <= {*_WHERE, "_conversation"}

    def shown(self, request: Request) -> str | None:
        """The text of a request as the transcript shows it."""
        if self.prompt is not None:
            return self.prompt
        return request.text


def as_one(requests: Sequence[Request]) -> Request:
    """All turns in one request, its number that of the last turn."""
    last = requests[-1]
    return Request(turn=last.turn, text=last.text, messages=[request.text for request in requests])


async def conversation_of(job: Job, environment: RunContext, number: int = 1) -> Conversation:
    """The requests of attempt `number` of a job's case.

    Raises:
        RenderError, ScriptError, NeedsTrust: the prompt cannot be rendered.
    """
    case = job.case
    if format_of(case.format).templates:
        return await _rendered(job, environment, number)
    sql, place = _sql(case)
    requests = [
        Request(
            turn=number,
            text=turn.text,
            sly_data=turn.sly_data,
            chat_filter=turn.chat_filter,
            continue_conversation=turn.continue_conversation,
            vars=case.vars,
            sql=sql if number == len(case.turns) else None,
            sql_place=place if number == len(case.turns) else "",
            database=case.database,
        )
        for number, turn in enumerate(case.turns, 1)
    ]
    limits = {number: turn.timeout for number, turn in enumerate(case.turns, 1) if turn.timeout is not None}
    whole = format_of(case.format).sent_whole(case)
    return Conversation(requests=requests, whole=whole, limits=limits, vars=case.vars)


async def _rendered(job: Job, environment: RunContext, number: int) -> Conversation:
    """The prompt with the case's variables and what earlier cases hand on; chat messages where the prompt is a list of
    them."""
    from tui_eval.engine.row_order import context_entries

    case, form = job.case, format_of(job.format)
    stored = environment.memory.stored(job, number)
    earlier = environment.memory.conversation(job, number)
    place = f"test-{case.test_number - 1}-prompt-{case.column_number - 1}-repeat-{number - 1}"
    more: dict[str, Any] = dict(zip(_WHERE, (f"eval-{environment.run_id}", place, number - 1), strict=True))
    if form.hears_conversation(case):
        more["_conversation"] = earlier
    if stored:
        # As in promptfoo, what was stored replaces a variable of that name.
        case = msgspec.structs.replace(case, vars={**case.vars, **stored})
    scene = Scene(
        job.base, environment.config.root, environment.trust, environment.hosts.python, environment.hosts.node, job.settings,
        more, job.compat, stored,
    )  # fmt: skip
    rendered = await form.rendered(case, scene)
    turn = len(earlier) + 1
    request = Request(turn=turn, text=rendered.prompt, messages=rendered.messages, vars=rendered.vars)
    return Conversation(
        requests=[request],
        prompt=rendered.prompt,
        vars=rendered.vars,
        context=context_entries(earlier),
        handed_on=frozenset((*more, *stored)) - job.case.vars.keys(),
        config={**rendered.config, **form.agent_options(case)},
    )


def no_question(spec: AgentSpec, conversation: Conversation) -> str:
    """Why a suite's own chat model cannot be asked: its prompt is written as messages, or as JSON, and is broken."""
    chat = spec.plain and spec.type in ("openai", "ollama") and not spec.options.get("completion")
    request = conversation.requests[0]
    if not chat or request.messages is not None or not (why := broken_chat(request.text or "")):
        return ""
    return f"the prompt is {why} (filled in as {{{{ name | dump }}}}, a text keeps it whole)"


_WHERE = ("__evalId", "__evalStepId", "__repeatIndex")
"""Variables that promptfoo gives prompts and providers beside a test's own."""


def _sql(case: Case) -> tuple[str | None, str]:
    """The expected query, and where it stands."""
    for one in case.assertions:
        if one.type == "sql" and isinstance(one.value, str):
            return one.value, case.place(one.line)
    return None, ""
