"""`tui-eval init`: a first suite that runs, and the `tui_eval.yaml` that says with which agent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from tui_eval import agents
from tui_eval.commands.output import CommandError, say
from tui_eval.config.project import CONFIG_NAME, Config, ConfigError, load
from tui_eval.extensions import ExtensionError
from tui_eval.formats import FirstSuite, format_called, names
from tui_eval.store import printed_commands

_SCRIPT = """\
# A scripted agent: it answers from this file, so that everything can be tried offline.
# Replace it in tui_eval.yaml by a real one: `tui-eval help agents` lists the types.
rules:
  - match: {contains: "my name is"}
    say: "Nice to meet you, Ada."
  - match: {contains: "what is my name"}
    say: "Your name is Ada."
  - match: {contains: "capital of France"}
    say: "Paris"
  - match: {contains: "total revenue"}
    say: "Total revenue is 104.50."
    rows: [{total_revenue: 104.5}]
default:
  say: "Hello! How can I help?"
"""

_SCRIPTED = {"type": "scripted", "script": "agent.script.yaml"}


def init(folder: Path, case_format: str | None, agent: str | None, model: str | None = None) -> int:
    """Write the files; those that exist are never touched, but a tui_eval.yaml that is there says which
    agent the suite asks.

    Raises:
        CommandError: a file is in the way or cannot be written, or no such agent.
    """
    try:
        first = format_called(case_format or names()[0]).first_suite()
    except ExtensionError as error:
        raise CommandError(str(error)) from None
    if first is None:
        raise CommandError(f"the format {case_format} has no first suite to write")
    place, suite = first.place, first.text
    files: dict[str, str] = {}
    there = (folder / CONFIG_NAME).exists()
    if model and there:
        raise CommandError(
            f"-m {model}: {folder / CONFIG_NAME} exists and init never overwrites: write the model there"
        )
    if model and agent is None:
        raise CommandError(
            f"-m {model}: a scripted agent has no model; give --agent, too (openai:{model}, a URL)"
        )
    entry: dict[str, str] = {}
    if there:
        name = _configured(folder, agent)
    else:
        entry = _entry(agent, model, first, folder) or _SCRIPTED
        name = first.server_name if first.server_name and entry["type"] == first.server else "my_agent"
        files[CONFIG_NAME] = f"agents:\n  {name}: {_flow(entry)}\n" + first.settings
    if entry == _SCRIPTED:
        files[_SCRIPTED["script"]] = _SCRIPT
    files.update(first.files)
    served = bool(first.network) and entry.get("type") == first.server
    asked = first.network if served else name
    if asked != "my_agent":
        suite = suite.replace('"my_agent"', "my_agent").replace("my_agent", _quoted(asked))
    files[place] = suite
    _write(folder, files)
    if there and first.settings:
        say(
            f"\n{CONFIG_NAME} is as it was: it must have\n{first.settings.replace('my_agent', _quoted(name)).rstrip()}"
        )
    where = "" if folder == Path() else f" {printed_commands.quoted(str(folder))}"
    trust = " --trust" if entry.get("type") == "python" else ""
    say(
        f"\nnow: tui-eval{where}{' ' * (len(trust) + 8)}the app\n     tui-eval run{where or ' .'}{trust}  the same without it"
    )
    if first.network and asked == first.network:
        say(f'     (it asks the network "{first.network}": write yours into {place})')
    if trust:
        say(f"     (--trust: it runs {entry['function']}; the app asks)")
    return 0


def _configured(folder: Path, agent: str | None) -> str:
    """The agent that a configuration already there has for the suite."""
    settings = load([folder], folder / CONFIG_NAME)
    for problem in settings.problems:
        if problem.level == "error":
            raise CommandError(str(problem))
    file = folder / CONFIG_NAME
    if agent is not None and agent not in settings.agents:
        raise CommandError(
            f"{file} exists and init never overwrites: add {agent} there under agents:, then give its name"
            f" (it has {', '.join(settings.agents) or 'none'})"
        )
    if not settings.agents:
        raise CommandError(f"{file} exists and has no agent; add one under agents: (`tui-eval help agents`)")
    return agent or next(iter(settings.agents))


def _write(folder: Path, files: dict[str, str]) -> None:
    existing = [path for path in files if os.path.lexists(folder / path)]  # a link to nothing leads out, too
    if existing:
        raise CommandError(
            f"{folder / existing[0]} exists; init never overwrites (remove it, or choose a folder)"
        )
    for path, text in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{folder / path}: cannot be written: {error.strerror or error}") from None
        say(f"wrote {folder / path}")


def _entry(text: str | None, model: str | None, first: FirstSuite, folder: Path) -> dict[str, str]:
    """The keys of the agent's entry; none for a scripted one. The address of a server alone is one of the
    format's own servers."""
    if text is None:
        return {}
    if first.server and _is_server(text):
        entry = {"type": first.server, "url": text.rstrip("/")}
        return {**entry, "model": model} if model else entry
    try:
        spec = agents.from_argument(text, Config(root=folder.absolute()))
    except (ConfigError, agents.AgentError) as error:
        raise CommandError(str(error)) from None
    entry = {"type": spec.type}
    if model or spec.model:
        entry["model"] = model or spec.model or ""
    for key in ("base_url", "url", "function", "api_key"):
        if isinstance(spec.options.get(key), str):
            entry[key] = spec.options[key]
    if spec.type == "python":
        entry["function"] = _below(folder, entry["function"])
    return entry


def _below(folder: Path, function: str) -> str:
    """A function's file as tui_eval.yaml names it: from its own folder. A module is found from there by its name."""
    file, _, name = function.rpartition(":")
    here, outside = Path(file), not Path(file).resolve().is_relative_to(folder.resolve())
    if not file.endswith(".py") or (here.is_absolute() and outside):
        return function
    return f"{Path(os.path.relpath(here.resolve(), folder.resolve())).as_posix()}:{name}"


def _is_server(text: str) -> bool:
    try:
        address = urlsplit(text)
    except ValueError:
        return False
    return address.scheme in ("http", "https") and address.path in ("", "/")


def _flow(entry: dict[str, str]) -> str:
    plain = ("type", "script")
    return (
        "{"
        + ", ".join(f"{key}: {value if key in plain else _quoted(value)}" for key, value in entry.items())
        + "}"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
