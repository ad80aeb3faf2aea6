"""`tui-eval init`: a first suite that runs, and the `tui_eval.yaml` that says with which agent."""

from __future__ import annotations

from pathlib import Path

from tui_eval import agents
from tui_eval.commands.output import CommandError, say
from tui_eval.config import Config, ConfigError

_SUITES: dict[str, tuple[str, str]] = {
    "start_to_agent": (
        "evals/first.yaml",
        """\
# What the agent is asked, and what its answer must and must not hold.
agent: my_agent

test_cases:
  - name: "Greeting is answered"
    input: "hello"
    expected:
      should_not_contain: ["error"]

  - name: "Remembers the name it was told"
    messages:
      - "My name is Ada."
      - "What is my name?"
    expected:
      should_contain: ["Ada"]
      max_output_tokens: 500
""",
    ),
    "nao": (
        "tests/answer.yml",
        """\
# The agent's answer is compared, cell by cell, with what this query gives.
name: answer
prompt: What is our total revenue?
sql: |
  SELECT SUM(amount) AS total_revenue
  FROM orders
""",
    ),
    "promptfoo": (
        "promptfooconfig.yaml",
        """\
# Each test is asked once per prompt and provider.
description: First evaluation
prompts:
  - "Answer in one word: {{question}}"
providers:
  - id: my_agent
tests:
  - description: Capital of France
    vars:
      question: What is the capital of France?
    assert:
      - type: icontains
        value: paris
""",
    ),
    "neuro_san": (
        "tests/fixtures/first.hocon",
        """\
# Two interactions of one conversation; the second depends on the first.
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
""",
    ),
}

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

_DATABASE = """\
databases:
  main: {type: files, path: data}        # each CSV, Parquet or JSON file is a table
"""
_ORDERS = "order_id,amount\n1,20.00\n2,64.50\n3,20.00\n"


def init(folder: Path, case_format: str, agent: str | None) -> int:
    """Write the files; those that exist are never touched.

    Raises:
        CommandError: a file is in the way or cannot be written.
    """
    name, suite = _SUITES[case_format]
    files = {name: suite}
    entry = _agent_entry(agent, folder)
    if agent is None:
        files["agent.script.yaml"] = _SCRIPT
    config = f"agents:\n  my_agent: {entry}\n"
    if case_format == "nao":
        files["data/orders.csv"] = _ORDERS
        config += f'{_DATABASE}suites:\n  - {{path: "tests/**", agent: my_agent, database: main}}\n'
    files["tui_eval.yaml"] = config
    existing = [path for path in files if (folder / path).exists()]
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
    place = "" if folder == Path() else f" {folder}"
    say(f"\nnow: tui-eval{place}        the app\n     tui-eval run{place or ' .'}  the same without it")
    return 0


def _agent_entry(text: str | None, folder: Path) -> str:
    if text is None:
        return "{type: scripted, script: agent.script.yaml}"
    try:
        spec = agents.from_argument(text, Config(root=folder.absolute()))
    except (ConfigError, agents.AgentError) as error:
        raise CommandError(str(error)) from None
    parts = [f"type: {spec.type}"]
    if spec.model:
        parts.append(f"model: {_quoted(spec.model)}")
    for key in ("base_url", "url", "function"):
        if isinstance(spec.options.get(key), str):
            parts.append(f"{key}: {_quoted(spec.options[key])}")
    return "{" + ", ".join(parts) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
