"""What `check` says of tests whose expected values are given away: in the prompt, the agent's system
prompt or the project's rules (seed 000, "Avoid overfitting and leakage")."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_eval.commands.expected_sql import ExpectedSql, sql_of
from tui_eval.config.project import AgentSpec, Config, ConfigError, rule_for
from tui_eval.formats import format_of
from tui_eval.guard.paths import confine
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Case, Problem, Suite

_ROWS = 200  # of an expected result that are looked for
_SHORTEST_TEXT = 4
_LEAST_DIGITS = 3
_NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,. \u00a0\u202f]*")


@dataclass(frozen=True, slots=True)
class _Place:
    """A text that an agent sees; `line` is that of its beginning in the file."""

    name: str
    text: str
    line: int = 1


def leaks(
    loaded: Sequence[Suite], config: Config, trust: Trust, expected: ExpectedSql | None = None
) -> list[Problem]:
    """A note for each test whose expected values stand in what its agent is given. Tests whose SQL
    cannot be executed here are passed over: `expected_sql.problems_of` says what is wrong."""
    expected = expected or ExpectedSql(config, trust)
    shared: dict[str, list[_Place]] = {}
    notes: list[Problem] = []
    for suite in loaded:
        for case in suite.cases if format_of(suite.format).checks_queries else ():
            values = _expected(case, expected)
            if not values:
                continue
            agent = _agent(case, config)
            key = agent.name if agent is not None else ""
            if key not in shared:
                told = format_of(suite.format).told_files(config)
                shared[key] = _told(agent, config, trust, told)
            prompt = [_Place(case.suite, turn.text or "", turn.line) for turn in case.turns]
            notes.extend(_notes(case, values, [*prompt, *shared[key]]))
    return notes


def _notes(case: Case, values: list[str | float], places: list[_Place]) -> Iterable[Problem]:
    asserted = sql_of(case)
    line = asserted.line if asserted is not None else case.line
    for place in places:
        found = [hit for value in values if (hit := _find(value, place)) is not None]
        if not found:
            continue
        shown, at = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield Problem(
            path=case.suite,
            line=line,
            key="sql",
            message=f"the expected value {clip(shown, 60)}{more} stands in {place.name}:{at}",
            cure="an agent can answer from there without the data",
            level="note",
        )


def _find(value: str | float, place: _Place) -> tuple[str, int] | None:
    """A value as it stands in a text, and the line; numbers also grouped and with other decimals."""
    if isinstance(value, str):
        match = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", place.text, re.IGNORECASE)
    else:
        match = next((m for m in _NUMBER.finditer(place.text) if value in _readings(m[0])), None)
    if match is None:
        return None
    return match[0].strip(" ,.\u00a0\u202f"), place.line + place.text.count("\n", 0, match.start())


def _readings(text: str) -> set[float]:
    """The numbers that a text of digits, points and commas may mean."""
    text = re.sub(r"[ \u00a0\u202f](?=\d{3}(?!\d))", "", text).strip(" ,.\u00a0\u202f").partition(" ")[0]
    found: set[float] = set()
    for plain in (text.replace(",", ""), text.replace(".", "").replace(",", ".")):
        try:
            found.add(float(plain))
        except ValueError:
            continue
    return found


def _expected(case: Case, expected: ExpectedSql) -> list[str | float]:
    """The values of the expected rows that are distinctive; none where every one is common."""
    from tui_eval.frames.sql import SqlError, rows

    try:
        result = expected.rows_of(case)
    except (SqlError, ConfigError, NeedsTrust, OSError):
        return []
    cells = (cell for row in rows(result, _ROWS) for cell in row.values()) if result is not None else ()
    return list(dict.fromkeys(value for cell in cells if (value := _distinctive(cell)) is not None))


def _distinctive(cell: object) -> str | float | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, (int, float)):
        digits = sum(letter.isdigit() for letter in f"{float(cell):.10g}".strip("0"))
        whole = f"{abs(int(cell))}" if abs(cell) < 1e300 else ""
        return float(cell) if max(digits, len(whole)) >= _LEAST_DIGITS else None
    text = str(cell).strip()
    return text if len(text) >= _SHORTEST_TEXT else None


def _agent(case: Case, config: Config) -> AgentSpec | None:
    """The configured agent that the case runs with by default."""
    rule = rule_for(config, case.suite)
    return config.agents.get(case.agent or (rule.agent if rule and rule.agent else ""))


def _told(agent: AgentSpec | None, config: Config, trust: Trust, files: Iterable[Path]) -> list[_Place]:
    """The agent's system prompt and the project's rules."""
    places: list[_Place] = []
    for file in files:
        name = str(file.relative_to(config.root)) if file.is_relative_to(config.root) else file.name
        places.append(_Place(name, _text(file)))
    system = agent.options.get("system") if agent is not None else None
    if agent is None or not isinstance(system, str):
        return places
    if system.startswith("file://"):
        given = system.removeprefix("file://")
        base = Path(agent.base) if agent.base else config.root
        with contextlib.suppress(NeedsTrust, ValueError, OSError):
            places.append(_Place(given, _text(confine(config.root, given, trust, base))))
    else:
        place = config.file.name if config.file is not None else "tui_eval.yaml"
        places.append(_Place(f"{place} (system of {agent.name})", system, agent.line or 1))
    return places


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
