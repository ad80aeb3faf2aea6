"""What a format of suites is: one object that whoever reads, judges, runs or shows a case asks.

`Format` has for each member what holds where a format has no rule of its own; the four formats, and those of other
packages (entry points `tui_eval.formats`), derive from it and say what differs. `tui_eval.formats.format_of` finds
the one of a case. Members import what they need when they are asked: a format costs nothing to list.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from tui_eval.assertions.judging import Handler, added_or_refusing, hopeless, judge_each, judge_there

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement, JudgeServices
    from tui_eval.config.project import AgentSpec, Config
    from tui_eval.formats.near_miss import PassedOver
    from tui_eval.guard.trust import Trust
    from tui_eval.javascript import Hosts
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.model import Assertion, Attempt, Case, Compat, Problem, Suite, Verdict
    from tui_eval.scripting.python.python_host import PythonHost
    from tui_eval.suites.accepted_values import EditedValue
    from tui_eval.suites.saved_talk import Original, Talk


Editor = Callable[[str, "Case", "Verdict", "Attempt"], "EditedValue"]
"""Changes one value of a suite's text so that a verdict on an attempt of the case would be a pass.

Raises EditError (`tui_eval.yaml.yaml_edit`): it cannot without guessing."""


UNNAMED_AGENT = "my_agent"
"""The entry of tui_eval.yaml that is asked where a suite that should name an agent names none."""

COLUMNS = "columns"
"""Where the settings of a suite with hooks keep a case of each of its columns, for the tests that they add."""


class FirstSuite(NamedTuple):
    """What `init` writes for a format, and how the app offers it.

    `text` goes to `place` (from the project's folder) and asks the agent `my_agent`; `files` are written
    beside it, and `settings` are lines of `tui_eval.yaml` that the suite needs. A `server` is the type of
    agent that the address of a server alone means, `server_hint` says so; `server_name` is what its entry is
    called, `network` whom it is asked for. `key` and `words` are the app's.
    """

    place: str
    text: str
    words: str
    key: str = ""
    files: Mapping[str, str] = {}
    settings: str = ""
    server: str = ""
    server_hint: str = ""
    server_name: str = ""
    network: str = ""


class CasePace(NamedTuple):
    """How a case goes among others: at most `at_once` of its `group` run at once (None: it is in none), each `pause`
    seconds after the one before, and none begins `deadline` seconds after the run began."""

    group: str | None
    at_once: int
    pause: float
    deadline: float | None


class Scene(NamedTuple):
    """Where a template is rendered: the suite's folder and settings, the project's root, the processes in which code
    runs, variables beside the case's own, and those of its own that an earlier case's answer stands for."""

    base: Path
    root: Path
    trust: Trust
    python: PythonHost
    node: NodeHost
    settings: Mapping[str, Any]
    more_vars: Mapping[str, Any]
    compat: Compat
    stored: Mapping[str, Any] = {}


class RenderedCase(msgspec.Struct):
    """What is sent. `prompt` is the text (empty while `function` is still to be called), `vars` those
    it was rendered with, `messages` the chat messages that the prompt is, if it is a list of them.
    `config` is what a prompt function or the prompt's entry adds to the provider's configuration."""

    prompt: str
    vars: dict[str, Any]
    messages: list[dict[str, Any]] | None = None
    function: Any = None
    config: dict[str, Any] = {}


class HookScene(NamedTuple):
    """What hooks run with."""

    config: Config
    trust: Trust
    processes: Hosts
    compat: Compat


class OurResults(NamedTuple):
    """A results file of another tool as one of ours (`help results`). `beside` is what it depends on besides the
    file's own text."""

    document: dict[str, Any]
    beside: str = ""


class RenderError(Exception):
    """The prompt of an attempt could not be made; the text is one line."""


class HookError(Exception):
    """A hook failed; one line that names it."""


class Hooks(Protocol):
    """A suite's own code before and after a run and each attempt. Each raises HookError or NeedsTrust."""

    async def before_all(
        self, cases: Sequence[Case], settings: Mapping[str, Any]
    ) -> tuple[list[Case], dict[str, Any]]:
        """The cases and settings as the suite's code leaves them."""
        ...

    async def before_each(self, case: Case) -> Case:
        """The case as it is to be run."""
        ...

    async def after_each(self, case: Case, attempt: Attempt) -> None:
        """Tell of an attempt, and add to it what the suite's code gives."""
        ...

    def counted(self, case: Case, attempt: Attempt) -> None:
        """What an attempt has come to that ended before a run was gone on with, or was compared since it was told of:
        `after_all` tells of it."""
        ...

    async def after_all(self, cases: Sequence[Case], settings: Mapping[str, Any], evaluation: str) -> None:
        """Tell that the run, called `evaluation` by its hooks, is over."""
        ...


class Format:
    """A format of suites: how it is read, judged, changed, and what is special about running it.

    `name` is what stands in `Case.format` and in stored runs, `title` what people are shown.
    """

    name: str = ""
    title: str = ""

    # -- Recognising and reading.

    looks_for: str = ""
    """What a file of this format is, for people whose file is none."""
    files: str = ""
    """How its files are called and what they hold, in a few words, for an empty folder."""
    endings: tuple[str, ...] = ()
    """Endings of its files: only such are opened below a folder."""
    hints: tuple[bytes, ...] = ()
    """Texts of which a file below a folder holds at least one; none: every file with its ending is looked at."""
    own_ids: bool = False
    """Whether its reader names its cases (`case_id`, `content_hash`); else they are named after it."""

    def recognises(self, path: Path, text: str) -> bool:
        """Whether a file is a suite of this format; `path` is from the root."""
        return False

    def recognises_surely(self, path: Path, text: str) -> bool:
        """Whether it is one for certain, whatever another format takes it for."""
        return False

    def recognises_by_includes(self, path: str, text: str, root: Path) -> bool:
        """Whether it is one by what it includes: asked where no format recognised it."""
        return False

    def claims(self, name: str) -> bool:
        """Whether a file is this format's by its name alone, so that it is always looked at."""
        return False

    by_name_only: bool = False
    """Whether below a folder only files that it claims by their name count."""
    takes_configs: bool = False
    """Whether `-c FILE` names a suite of this format."""

    def configs(self, given: Sequence[str]) -> list[Path]:
        """The files that these arguments of `-c` mean, to be read as one suite; none: one of them is a suite of
        another format, and they are suites side by side."""
        return []

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        """A file as a suite; problems are values with their place, nothing raises for what a file says."""
        raise NotImplementedError(f"the format {self.name} cannot be read")

    def refused(self, file: Path, shown: str) -> list[Problem]:
        """Why the format's own tool would run nothing while this file, which no format recognised, is there."""
        return []

    def meant(self, file: PassedOver) -> list[Problem]:
        """Why a file that no format recognised is none although it was meant as a suite of this one (`near_miss`), each
        `passed_over`; empty: it was not."""
        return []

    # -- Judging.

    def handler(self, kind: str) -> Handler | None:
        """What judges an assertion type; None: there is no such type."""
        return None

    async def judge_case(self, evidence: JudgeInput) -> Judgement:
        """Judge a whole case: every assertion by its handler, added up by the rules that formats share."""
        return await judge_each(evidence, self.handler_for, self.settle)

    async def before_asking(self, evidence: JudgeInput) -> Judgement | None:
        """The judgement where it is known before anybody is asked that nothing can be judged; None: ask. There are no
        replies in `evidence` yet."""
        return hopeless(evidence, self.check_beforehand)

    def check_beforehand(self, assertion: Assertion, evidence: JudgeInput) -> None:
        """What is known of one assertion before anybody is asked.

        Raises:
            CannotJudge, NeedsTrust: it comes to nothing whatever is answered.
        """
        if self.asks_a_judge(assertion.type):
            judge_there(assertion, evidence, self.named_grader(assertion, evidence.case))

    def settle(self, judgement: Judgement, evidence: JudgeInput) -> None:
        """What is still to be said or ordered once every assertion has its verdict."""

    def asks_a_judge(self, kind: str) -> bool:
        """Whether an assertion type is graded by a model."""
        return False

    def named_grader(self, assertion: Any, case: Case) -> Any:
        """The grader that an assertion of a suite names; None: it names none."""
        return None

    def case_grader(self, case: Case) -> Any:
        """The grader that a case names for all its assertions; None: it names none."""
        return None

    def own_score(self, case: Case) -> str:
        """The key of a case whose code makes its score, so that no assertion does; empty: there is none."""
        return ""

    def odd_values(self, case: Case) -> Iterable[tuple[str, str, str]]:
        """What `check` notes of values of a case that are read and cannot be meant so: key, what is odd, what to do."""
        return ()

    def libraries_for(self, assertion: Assertion) -> Iterable[str]:
        """Modules that take long to import and that judging an assertion needs: they are imported before any attempt's
        clock goes."""
        return ("polars",) if assertion.type == "sql" else ()

    def handler_for(self, kind: str) -> Handler | None:
        """What judges an assertion type: what another package adds for it, else the format's own."""
        return added_or_refusing(self.name, kind) or self.handler(kind)

    # -- Accepting an answer, saving a conversation.

    def editor(self, suffix: str) -> Editor | None:
        """What changes one value of a file with this ending (lower case) so that an answer passes; None: nothing."""
        return None

    def files_to_change(self, case: Case) -> list[str]:
        """Where what a case asks for may stand, from the root, nearest first."""
        return [case.path]

    saves: bool = False
    """Whether a conversation can be saved as a case of this format."""
    saved_ending: str = ".yaml"
    saved_endings: tuple[str, ...] = (".yaml", ".yml")
    """The ending of a new file, and those that a file may have."""
    named_by_file: bool = False
    """Whether a case is called what its file is, and has no name of its own."""

    def as_written(self, case: Case, config: Config, trust: Trust) -> Original | None:
        """The case as its own file has it, for `new_file` and `add_to`; None: as `case` is, since this format fills
        nothing in while it reads."""
        return None

    def new_file(self, talk: Talk) -> str:
        """The text of a new suite file that holds this one conversation."""
        raise NotImplementedError(f"the format {self.name} cannot be saved")

    adds_to_files: bool = False
    """Whether a file holds several cases, so that one can be added (`add_to`)."""

    def add_to(self, text: str, talk: Talk) -> str:
        """The text of an existing suite (line feeds alone) with the conversation as its last case.

        Raises:
            EditError: it cannot be added.
        """
        raise NotImplementedError(f"the format {self.name} cannot be added to")

    def saved_name(self, stem: str) -> str:
        """The name of a new file without its ending."""
        return f"{stem}_saved"

    def saved_folder(self, folder: PurePath) -> PurePath:
        """The folder of a new file, given that of the case."""
        return folder

    def saved_place_problem(self, path: Path, talk: Talk) -> str:
        """Why a file at this place would be no suite of this format; empty: it would be one."""
        return ""

    def saved_needs_rule(self, spec: AgentSpec) -> bool:
        """Whether a suite does not say that this agent answers it, so that `tui_eval.yaml` must."""
        return False

    def asked_in_turns(self, case: Case) -> int | None:
        """How many turns of a conversation are the case's own; None: all of them."""
        return len(case.turns)

    def talk_agent(self, case: Case, attempt: Attempt) -> str:
        """Whom a saved conversation is to ask."""
        return attempt.agent

    # -- The first suite, the agents.

    def first_suite(self) -> FirstSuite | None:
        """What `init` writes; None: it has no first suite of this format."""
        return None

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """The agent of a case whose suite, rule and command line leave it open (`name`: what the suite says); None:
        there is none by convention."""
        return config.agents.get(name) if name is not None else None

    def own_agent(self, case: Case, config: Config, env: Any) -> AgentSpec | None:
        """The agent that a suite brings along itself, before all rules; None: it brings none. `env` is the suite's.

        Raises:
            ConfigError: it is none that can be spoken to.
        """
        return None

    brings_agents: bool = False
    """Whether `own_agent` finds any: two suites may have one of the same name, which are others all the same."""
    agent_key: str = "agent"
    """The key of a suite that says who is asked."""
    agent_may_be_chosen: bool = False
    """Whether a person is asked which agent a suite means where nothing says so."""

    def models(self, case: Case, spec: AgentSpec | None, config: Config) -> list[str | None]:
        """The models to ask where the command line and the agent leave them open."""
        return [case.model]

    def prepared(self, spec: AgentSpec, case: Case, database: str | None, config: Config) -> AgentSpec:
        """The spec of an agent with what this format's tool would give it."""
        return spec

    # -- A run.

    timeout_covers_all: bool = False
    """Whether a case's `timeout` is for all its attempts together, not for each."""

    limits_cover_judging: bool = False
    """Whether, under `compat: reference`, the time of a case and of a turn goes on while its answers are judged."""

    def time_for_all(self, case: Case, reference: bool) -> float | None:
        """The seconds of a case whose `timeout` is for all its attempts; None: they have no limit."""
        return case.timeout

    network_is_agent: bool = False
    """Whether the agent that a case names is a network on the server that is asked."""
    asks_as_written: bool = False
    """Whether every message stands in the file as it is sent."""

    def withheld(self, model: str | None, config: Config) -> Iterable[str]:
        """What has to be trusted before it is known what the format's own configuration says of a case that is asked
        of this model (None: it is only judged)."""
        return ()

    def left_out(self, case: Case, settings: Mapping[str, Any]) -> Iterable[str]:
        """The variables of the environment for which nothing was filled in in a case since they may not be read: judged
        as it stands, it passes on nothing. `settings` are its suite's."""
        return ()

    def comparison_defaults(self, config: Config) -> dict[str, Any]:
        """Settings for comparing rows that the format's own configuration gives."""
        return {}

    def default_attempts(self, config: Config) -> int | None:
        """How many attempts the format's own configuration asks for."""
        return None

    def threads(self, config: Config) -> int | None:
        """How many attempts may run at once by the format's own configuration."""
        return None

    def sent_whole(self, case: Case) -> bool:
        """Whether the messages of a case are sent as one list."""
        return False

    def says_attempts(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """Whether the suite itself says how many attempts there are, so that `suites:` and `run:` do not."""
        return False

    needs_suite: bool = False
    """Whether a case runs with what its suite says beside it (settings, hooks, secrets), so that it is read again when
    a run goes on."""
    templates: bool = False
    """Whether messages are templates, made with the case's variables before they are sent (`rendered`)."""

    async def rendered(self, case: Case, scene: Scene) -> RenderedCase:
        """What is sent where messages are templates, for one attempt.

        Raises:
            RenderError, ScriptError, NeedsTrust: it cannot be rendered.
        """
        raise NotImplementedError(f"the format {self.name} has no templates")

    def known_vars(self, case: Case, base: Path, root: Path, trust: Trust) -> Mapping[str, Any]:
        """The variables of a case as templates see them, as far as they are known before anything runs."""
        return case.vars

    def connection(self, case: Case) -> str | None:
        """How the server is spoken to, where a case says so (`direct`, `http`, `https`, `mcp`)."""
        return case.connection

    def speaks_directly(self, case: Case) -> bool:
        """Whether a case asks its agent to call the agents of other servers directly."""
        return False

    def column_provider(self, case: Case) -> Any:
        """The provider in whose column a case stands that has one of its own; None: it stands in its own."""
        return None

    def agent_options(self, case: Case) -> dict[str, Any]:
        """What a case lays over the settings of its agent."""
        return {}

    def sent_around(self, case: Case) -> dict[str, Any]:
        """What a case lays around its texts before they are sent, and gives whom it asks beside them."""
        return self.agent_options(case)

    def test_for_scripts(self, case: Case) -> dict[str, Any] | None:
        """The test as its own tool gives it to providers and scripts."""
        return None

    def prompt_for_scripts(self, case: Case, config: dict[str, Any]) -> dict[str, Any] | None:
        """The prompt as its own tool gives it to providers and scripts; `config` is what was rendered with it."""
        return None

    def paces(
        self, cases: Sequence[Case], settings: Mapping[str, Any], delay: float | None, limited: bool
    ) -> list[CasePace] | None:
        """How each of these cases of one suite goes among the others; None: by itself. `delay` (seconds) is from the
        command line, and `limited` says whether that limits how many run at once."""
        return None

    def at_once(self, settings: Mapping[str, Any]) -> int | None:
        """How many attempts a suite lets run at once."""
        return None

    def stored_as(self, case: Case) -> str | None:
        """The variable in which later cases of the suite find this one's output."""
        return None

    def conversation(self, case: Case) -> tuple[str, ...] | None:
        """The conversation that a case adds to and later ones see; its first part is the suite's name for it."""
        return None

    def conversation_name(self, case: Case) -> str:
        """What the conversation of a case is called, also of one that is in none: its columns go to one shard."""
        return ""

    def hears_conversation(self, case: Case) -> bool:
        """Whether the case itself sees what was said in its conversation before."""
        return self.conversation(case) is not None

    def hooks(self, settings: Mapping[str, Any], base: Path, scene: HookScene) -> Hooks | None:
        """The hooks of a suite in the folder `base`; None: it has none."""
        return None

    def asks_for_traces(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """Whether the spans of a case's agent are collected."""
        return False

    def default_grader(self, env: Any, config: Config) -> AgentSpec | None:
        """The model that grades where nobody names one; `env` is the suite's."""
        return None

    def compares_outputs(self, case: Case) -> bool:
        """Whether an assertion compares the outputs of a test's columns with each other."""
        return False

    async def compare_outputs(
        self, case: Case, attempts: Sequence[Attempt], services: JudgeServices, compat: Compat
    ) -> None:
        """Judge such assertions once all columns of a test have ended, in place."""

    def derives(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a suite's settings that says how metrics are derived from the sums of its columns when a run
        ends; empty: none are."""
        return {}

    async def derive(
        self,
        columns: Sequence[dict[str, Any]],
        settings: Mapping[str, dict[str, Any]],
        javascript: JavaScriptHost,
        rows: Sequence[Sequence[dict[str, float]]],
    ) -> None:
        """Put the derived metrics of each column into it; `settings` are by suite, `rows` what each row adds."""

    sums_up: bool = False
    """Whether a case's threshold is compared with the mean of its assertions' scores."""

    def costs_nothing(self, case: Case) -> bool:
        """Whether whoever answers reports no cost by its nature."""
        return False

    def transforms(self, case: Case) -> bool:
        """Whether something else is made of an answer before it is judged."""
        return False

    comparison_can_be_idle: bool = False
    """Whether `comparison.rtol` may make a case pass whatever its rows."""

    # -- Names and results.

    def described(self, case: Case) -> str:
        """What a pattern on the command line is looked for in."""
        return case.description or case.name

    def unique_name(self, case: Case) -> tuple[str, str]:
        """A scope and the name that ought to be the only one of its kind there; an empty name: it has none."""
        return case.suite, case.name

    def expected_query(self, case: Case) -> str | None:
        """The query whose rows an answer must equal, for the results file."""
        return None

    def results_folder(self, case: Case) -> PurePath | None:
        """The folder, from the root, below which its own tool's viewer looks for results in `outputs`; None: it
        looks nowhere."""
        return None

    checks_queries: bool = False
    """Whether `check` tries the expected SQL of its cases."""

    async def faults(self, suites: Sequence[Suite]) -> list[Problem]:
        """What `check` says of assertions that no answer can meet; nothing of a suite's own code is run."""
        return []

    def broken_values(self, suite: Suite, root: Path) -> Iterable[Problem]:
        """What `check` says of texts and files of a suite that will err whatever is answered."""
        return ()

    def scripts(self, case: Case, config: Config) -> Iterable[tuple[Path, str]]:
        """JavaScript files that `check` imports where it is trusted, each with the function it must export."""
        return ()

    def told_files(self, config: Config) -> Iterable[Path]:
        """Files besides its prompt that an agent is given, where expected values can be given away."""
        return ()

    # -- Trust and secrets.

    def decisive(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of the settings of a suite those that answers and verdicts may rest on: not how fast and how often
        it is asked, nor where results are written."""
        return settings

    def hook_files(self, settings: Mapping[str, Any]) -> Iterable[str]:
        """The code that the hooks of a suite name, `file://` before it."""
        return ()

    def hooks_make_cases(self, settings: Mapping[str, Any]) -> bool:
        """Whether hooks of a suite may make other cases of those in its files: what is judged without them is
        another."""
        return any(True for _ in self.hook_files(settings))

    def wanted_by(self, kind: str, value: str, case: Case, base: Path, root: Path) -> str | None:
        """What judging with an assertion's value needs trust for; its `file://` is looked at already."""
        return None

    def providers(self, case: Case) -> Iterable[Any]:
        """What a case gives of those whom it asks, as its file says it: its provider, and what judges it."""
        yield case.provider
        for one in case.asserted:
            yield one.provider

    def secrets(self, provider: dict[str, Any]) -> Iterable[str]:
        """Secrets of one of `providers` whose names do not say that they are."""
        return ()

    def as_ours(self, document: Any, path: Path) -> OurResults | None:
        """A JSON document that this format's own tool wrote as a results file, as one of ours; None: it is none."""
        return None

    budgets: bool = False
    """Whether its limits (tokens, tool calls) are shown beside what a case usually takes."""


def late(reference: str) -> Any:
    """What `module:name` stands for, its module imported now."""
    module, _, name = reference.partition(":")
    return getattr(_module(module), name)


_module = cache(importlib.import_module)


class ReaderFormat(Format):
    """A format of another package that is a module with `recognises` and `read` alone: it is read and judged (by
    entry points `tui_eval.assertions`), and nothing of it is written."""

    def __init__(self, name: str, reader: Any) -> None:
        self.name = self.title = name
        self.endings = (f".{name}",)
        self._reader = reader

    def recognises(self, path: Path, text: str) -> bool:
        """As the module says."""
        return self._reader.recognises(path, text)

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        """As the module reads it."""
        return self._reader.read(path, text, config, trust)


class UnknownFormat(Format):
    """The format of a recorded case that nothing installed here reads: what is known of it is shown."""

    def __init__(self, name: str) -> None:
        self.name = self.title = name
