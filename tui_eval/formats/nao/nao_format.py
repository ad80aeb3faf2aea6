"""nao's format (seed 000): a question a file, its answer compared with the rows of a query.

A bare model becomes an analyst for it: it gets what a nao server gives its model, the project's RULES.md as system
prompt and a tool that queries the project's database, whose description holds the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.config.project import NAO_URL, AgentSpec, Config
from tui_eval.formats.format import FirstSuite, Format, OurResults, late
from tui_eval.model import NO_VERIFICATION

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement
    from tui_eval.assertions.judging import Handler
    from tui_eval.formats.format import Editor
    from tui_eval.formats.near_miss import PassedOver
    from tui_eval.guard.trust import Trust
    from tui_eval.model import Case, Problem, Suite
    from tui_eval.suites.saved_talk import Talk

_HERE = "tui_eval.formats.nao"
_FIRST = """\
# The agent's answer is compared, cell by cell, with what this query gives.
name: answer
prompt: What is our total revenue?
sql: |
  SELECT SUM(amount) AS total_revenue
  FROM orders
"""
_SETTINGS = """\
databases:
  main: {type: files, path: data}        # each CSV, Parquet or JSON file is a table
suites:
  - {path: "tests/**", agent: my_agent, database: main}
"""
_ORDERS = "order_id,amount\n1,20.00\n2,64.50\n3,20.00\n"


class NaoFormat(Format):
    """One YAML mapping with `prompt`, and `sql` or `assertions`; nao_config.yaml says the rest."""

    name = "nao"
    title = "nao"
    files = "tests/*.yaml with sql:"
    looks_for = "a YAML mapping with prompt beside sql or assertions or below tests/ (nao)"
    endings = (".yaml", ".yml")
    hints = (b"prompt", b"Prompt", b"PROMPT", b"assertions", b"sql")
    own_ids = True
    saves = True
    saved_ending = ".yml"
    comparison_can_be_idle = True
    checks_queries = True

    def recognises(self, path: Path, text: str) -> bool:
        return late(f"{_HERE}.read_nao:recognises")(path, text)

    def recognises_surely(self, path: Path, text: str) -> bool:
        return late(f"{_HERE}.read_nao:is_test")(path, text)

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        return late(f"{_HERE}.read_nao:read")(path, text, config, trust)

    def refused(self, file: Path, shown: str) -> list[Problem]:
        return late(f"{_HERE}.read_nao:refused")(file, shown)

    def meant(self, file: PassedOver) -> list[Problem]:
        return late(f"{_HERE}.read_nao:meant")(file)

    def handler(self, kind: str) -> Handler | None:
        return late(f"{_HERE}.judge_nao:judge")

    async def before_asking(self, evidence: JudgeInput) -> Judgement | None:
        """A test whose expected SQL cannot be run is an error whatever else it asserts."""
        return await late(f"{_HERE}.judge_nao:before_asking")(evidence)

    def settle(self, judgement: Judgement, evidence: JudgeInput) -> None:
        """nao's word for a test with only a prompt."""
        if evidence.reference and not judgement.verdicts:
            judgement.message = NO_VERIFICATION

    def editor(self, suffix: str) -> Editor | None:
        return late(f"{_HERE}.write_nao:accepted") if suffix in (".yaml", ".yml", ".json") else None

    def new_file(self, talk: Talk) -> str:
        return late(f"{_HERE}.write_nao:saved_case")(talk)

    def saved_folder(self, folder: PurePath) -> PurePath:
        return folder if "tests" in folder.parts else folder / "tests"

    def saved_place_problem(self, path: Path, talk: Talk) -> str:
        bare = not talk.sql and not talk.calls and not talk.kept() and "tests" not in path.parts[:-1]
        return "a nao test with a prompt alone must be in a folder called tests" if bare else ""

    def saved_needs_rule(self, spec: AgentSpec) -> bool:
        """A test names nobody; its own server is asked by convention."""
        return spec.type != "nao"

    def first_suite(self) -> FirstSuite:
        hint = f"{NAO_URL} alone is a nao server."
        return FirstSuite(
            "tests/answer.yml", _FIRST, "a nao suite (questions, and the SQL of answers)", "n",
            {"data/orders.csv": _ORDERS}, _SETTINGS, "nao", hint,
        )  # fmt: skip

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """An agent with this name, else the server that `BACKEND_URL` names, else one on this machine."""
        import os

        # The person's own environment names the server, not a file of the project: no trust needed.
        options = {"url": os.environ.get("BACKEND_URL") or NAO_URL}
        spec = super().default_agent(name, config)
        return spec or AgentSpec("nao", "nao", options, base=str(config.root), typed=True)

    def models(self, case: Case, spec: AgentSpec | None, config: Config) -> list[str | None]:
        """A nao server is asked for the models of nao_config.yaml."""
        if spec is None or spec.type != "nao":
            return super().models(case, spec, config)
        return list(config.nao.models) if config.nao and config.nao.models else ["openai:gpt-4.1"]

    def prepared(self, spec: AgentSpec, case: Case, database: str | None, config: Config) -> AgentSpec:
        return analyst(spec, database, config)

    def withheld(self, model: str | None, config: Config) -> Iterable[str]:
        """`test` says whom to ask, how often, and how rows are compared."""
        if config.nao is None:
            return
        for key in ("models", "k", "comparison"):
            if key != "models" or model in config.nao.models:
                yield from config.nao.withheld.get(f"test.{key}", ())

    def comparison_defaults(self, config: Config) -> dict[str, Any]:
        return dict(config.nao.comparison) if config.nao else {}

    def default_attempts(self, config: Config) -> int | None:
        return config.nao.k if config.nao else None

    def threads(self, config: Config) -> int | None:
        """`test.threads` of nao_config.yaml."""
        return config.nao.threads or None if config.nao else None

    def told_files(self, config: Config) -> Iterable[Path]:
        """RULES.md, which a model without a server of nao's gets, too."""
        found = rules_file(config)
        return [found] if found is not None else []

    def as_ours(self, document: Any, path: Path) -> OurResults | None:
        """Ours is nao's, extended: a file without what ours says of the run is nao's own."""
        results = document.get("results") if isinstance(document, dict) else None
        if not isinstance(results, list) or isinstance(document.get("run"), dict):
            return None
        if not all(isinstance(one, dict) and "passed" in one for one in results):
            return None
        note = f"read from {path.name}, a file of nao; tokens are input and output together"
        entries = [
            {**one, **{key: one.get(key) or self.name for key in ("format", "agent")}} for one in results
        ]
        run = {"id": path.stem, "state": "finished", "note": note}
        return OurResults({**document, "results": entries, "run": run})

    def unique_name(self, case: Case) -> tuple[str, str]:
        """nao knows its tests by name, whatever their files."""
        return self.name, case.name

    def results_folder(self, case: Case) -> PurePath | None:
        """The outermost `tests` folder that the test is in."""
        parts = PurePath(case.suite).parts
        return PurePath(*parts[: parts.index("tests") + 1]) if "tests" in parts[:-1] else None

    def expected_query(self, case: Case) -> str | None:
        found = [one.value for one in case.assertions if one.type == "sql"]
        return found[0] if found and isinstance(found[0], str) else None


NAO = NaoFormat()


RULES = "RULES.md"
_TYPES = ("openai", "anthropic")


def analyst(spec: AgentSpec, database: str | None, config: Config) -> AgentSpec:
    """The spec with rules and a `sql` tool, where the agent is a model that has neither
    a system text nor tools of its own (`tools: []` says that it has what it needs); else the spec as it is.

    `database` is the case's; where that is not configured under this name, the only one there is. With
    several and none named, each is a tool (`run_sql_NAME`).
    """
    if spec.type not in _TYPES:
        return spec
    if "system" in spec.options or "tools" in spec.options:
        return spec
    rules = rules_file(config)
    options: dict[str, Any] = dict(spec.options)
    if rules is not None:
        # By its path: the text is not ours to look for `${NAME}` in.
        inside = spec.base and rules.is_relative_to(spec.base)  # then other checkouts' agents are the same
        options["system"] = f"file://{rules.relative_to(spec.base) if inside else rules}"
    names = [database] if database in config.databases else list(config.databases)
    if len(names) == 1:
        options["tools"] = [{"type": "sql", "database": names[0]}]
    elif names:
        options["tools"] = [
            {"type": "sql", "database": name, "name": f"run_sql_{_identifier(name or '')}"} for name in names
        ]
    return msgspec.structs.replace(spec, options=options, prepared=" ".join(["nao", *map(str, names)]))


def rules_file(config: Config) -> Path | None:
    """RULES.md beside the nao_config.yaml, else in the root; None: there is none."""
    folder = Path(config.nao.path).parent if config.nao is not None else config.root
    path = folder / RULES
    return path if path.is_file() else None


def _identifier(name: str) -> str:
    """What the models' servers take as a tool's name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)[:50]
