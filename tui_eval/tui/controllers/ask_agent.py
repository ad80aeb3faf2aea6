"""Before a run: is there an agent for every case? If not, ask, and write the answer into tui_eval.yaml."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from tui_eval.config.project import CONFIG_NAME, rule_for
from tui_eval.formats import format_of
from tui_eval.tui.services import Core, PlaceStack, Suites
from tui_eval.tui.state.agent_entry import AgentEntryError, added
from tui_eval.tui.state.lists.case_entry import CaseRow


class AskAgent:
    """Asks once per agent's name."""

    def __init__(self, core: Core, places: PlaceStack, suites: Suites) -> None:
        self._core, self._places, self._suites = core, places, suites
        self._asked: set[str] = set()

    def missing(self, entries: Sequence[CaseRow]) -> dict[str, int]:
        """Names of agents that cases ask for and that are nowhere, with how many cases."""
        config = self._core.state.config
        found: dict[str, int] = {}
        if config is None:
            return found
        for entry in entries:
            case = entry.case
            if case is None or not (form := format_of(case.format)).agent_may_be_chosen:
                continue
            name = case.agent or "my_agent"
            if name in found or case.agent not in config.agents:
                rule = rule_for(config, case.suite)
                if (rule is None or not rule.agent) and not form.default_agent(case.agent, config):
                    found[name] = found.get(name, 0) + 1
        return found

    def then(self, entries: Sequence[CaseRow], go_on: Callable[[], None]) -> None:
        """Ask for each agent that is missing, then go on; nothing is run where the person leaves."""
        missing = {name: count for name, count in self.missing(entries).items() if name not in self._asked}
        if not missing:
            go_on()
            return
        name, count = next(iter(missing.items()))
        config = self._core.state.config
        file = (
            config.file
            if config is not None and config.file is not None
            else self._core.state.root / CONFIG_NAME
        )

        def answer(entry: dict[str, str] | None) -> None:
            self._asked.add(name)
            if entry is None:
                self._core.notices.say(
                    f"nothing was run: no agent {name} (the next r runs without it, E edits {file.name})"
                )
                return
            try:
                text = file.read_bytes().decode("utf-8") if file.exists() else ""
                fresh = added(text, name, entry)
                temporary = file.with_name(f".{file.name}.{os.getpid()}")
                temporary.write_bytes(fresh.encode("utf-8"))
                os.replace(temporary, file)
            except (OSError, ValueError, AgentEntryError) as error:
                self._core.notices.problem(f"{file.name}: {error}")
                return
            self._core.notices.say(f"wrote {name} into {file.name}")
            self._suites.load()
            self.then(entries, go_on)

        self._places.show("agent", name, file.name, count, answer=answer)
