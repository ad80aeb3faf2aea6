"""neuro-san's format (seed 003): `.hocon` with interactions of one agent network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.formats.format import FirstSuite, Format, late

if TYPE_CHECKING:
    from tui_eval.assertions.judging import Handler
    from tui_eval.config.project import AgentSpec, Config
    from tui_eval.formats.format import Editor
    from tui_eval.formats.near_miss import PassedOver
    from tui_eval.guard.trust import Trust
    from tui_eval.model import Attempt, Case, Problem, Suite
    from tui_eval.suites.saved_talk import Original, Talk

_HERE = "tui_eval.formats.neuro_san"
_FIRST = """\
# Two interactions of one conversation; the second depends on the first. "agent" is the network that is asked.
{
    "agent": "my_agent",
    "connections": "http",
    "success_ratio": "1/1",
    "interactions": [
        { "text": "My name is Ada." },
        {
            "text": "What is my name?",
            "response": { "text": { "keywords": "Ada" } }
        }
    ]
}
"""


class NeuroSanFormat(Format):
    """One conversation a file, each reply judged; `agent` is a network on the server."""

    name = "neuro_san"
    title = "neuro-san"
    files = "*.hocon with interactions"
    looks_for = "a .hocon whose root has interactions (neuro-san)"
    endings = (".hocon",)
    hints = (b"interactions", b"include")
    own_ids = True
    saves = True
    saved_ending = ".hocon"
    saved_endings = (".hocon",)
    named_by_file = True
    timeout_covers_all = True
    limits_cover_judging = True
    network_is_agent = True
    asks_as_written = True

    def time_for_all(self, case: Case, reference: bool) -> float | None:
        """See `Format.time_for_all`. A time before the beginning is over: neuro-san 0.7.15 lets no sample pass then."""
        return 0.0 if reference and "timeout_in_seconds" in case.options else case.timeout

    def recognises(self, path: Path, text: str) -> bool:
        return path.suffix.lower() == ".hocon" and late(f"{_HERE}.read_neuro_san:recognises")(path, text)

    def recognises_by_includes(self, path: str, text: str, root: Path) -> bool:
        return path.lower().endswith(".hocon") and late(f"{_HERE}.read_neuro_san:includes_interactions")(
            path, text, root
        )

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        return late(f"{_HERE}.read_neuro_san:read")(path, text, config, trust)

    def meant(self, file: PassedOver) -> list[Problem]:
        return late(f"{_HERE}.read_neuro_san:meant")(file) if file.path.lower().endswith(".hocon") else []

    def handler(self, kind: str) -> Handler | None:
        return late(f"{_HERE}.judge_neuro_san:judge")

    def asks_a_judge(self, kind: str) -> bool:
        return kind.removeprefix("not_") == "gist"

    def editor(self, suffix: str) -> Editor | None:
        return late(f"{_HERE}.write_neuro_san:accepted")

    def as_written(self, case: Case, config: Config, trust: Trust) -> Original | None:
        return late(f"{_HERE}.read_neuro_san:as_written")(case, config, trust)

    def new_file(self, talk: Talk) -> str:
        return late(f"{_HERE}.write_neuro_san:saved_case")(talk)

    def says_attempts(self, case: Case, settings: Mapping[str, Any]) -> bool:
        return "success_ratio" in case.options

    def connection(self, case: Case) -> str | None:
        return case.connection or case.options.get("connection")

    def speaks_directly(self, case: Case) -> bool:
        return bool(case.options.get("use_direct"))

    def odd_values(self, case: Case) -> Iterable[tuple[str, str, str]]:
        return late(f"{_HERE}.read_neuro_san:odd_ratio")(case)

    def talk_agent(self, case: Case, attempt: Attempt) -> str:
        """The network, not the server that it is on."""
        return case.agent or attempt.agent

    def first_suite(self) -> FirstSuite:
        from tui_eval.config.project import NEURO_SAN_URL

        hint = f"{NEURO_SAN_URL} alone is a neuro-san server."
        return FirstSuite(
            "tests/fixtures/first.hocon", _FIRST, "a neuro-san suite (.hocon)", "h", server="neuro-san",
            server_hint=hint, server_name="neuro-san", network="hello_world",
        )  # fmt: skip

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """An agent with the network's name, else the entry called `neuro-san`, else a server on this machine."""
        from tui_eval.config.project import NEURO_SAN_URL, AgentSpec, ConfigError, refused_agent

        if (
            wrong := refused_agent(config, "neuro-san")
        ) is not None:  # its server is not the one on this machine
            raise ConfigError(f"agent neuro-san: {wrong}")
        spec = super().default_agent(name, config) or config.agents.get("neuro-san")
        return spec or AgentSpec("neuro-san", "neuro-san", {"url": NEURO_SAN_URL}, base=str(config.root))


NEURO_SAN = NeuroSanFormat()
