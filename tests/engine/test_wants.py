"""What needs trust is foreseen before anything runs, and named so that one name never stands for two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config import project
from tui_eval.engine.wants import wants
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust


def surveyed(root: Path, agreed: frozenset[str] = frozenset()) -> list[str]:
    """What a project wants that was not agreed to."""
    settings, trust = project.load([root]), Trust(agreed=agreed)
    return wants(reading.load_all([root], settings, trust), settings, trust)


ECHO = "prompts: ['{{q}}']\nproviders: [echo]\n"
NAMED_AS_ITS_SUITE_GIVES_IT = {
    "a hook": (f"{ECHO}extensions: ['file://x.py:f']\ntests: [{{vars: {{q: a}}}}]\n", "x.py"),
    "a JavaScript hook": (f"{ECHO}extensions: ['file://x.js:f']\ntests: [{{vars: {{q: a}}}}]\n", "x.js with node"),
    "a filter": (f"{ECHO}nunjucksFilters: {{f: x.js}}\ntests: [{{vars: {{q: a}}}}]\n", "x.js with node"),
    "a generator": (f"{ECHO}tests: 'file://x.py:f'\n", "x.py"),
    "a variable": (f"{ECHO}tests: [{{vars: {{q: 'file://x.py'}}}}]\n", "x.py"),
    "a transform of variables": (
        f"{ECHO}tests: [{{vars: {{q: a}}, options: {{transformVars: 'file://x.py'}}}}]\n",
        "x.py",
    ),
    "a prompt": ("prompts: ['file://x.py:f']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "x.py"),
    "a prompt of a module": ("prompts: ['file://x.js:f']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "x.js with node"),
    "a command's prompt": ("prompts: ['exec:./x.sh']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "./x.sh"),
    "a provider": ("prompts: ['{{q}}']\nproviders: ['file://x.py']\ntests: [{vars: {q: a}}]\n", "x.py"),
    "a JavaScript provider": ("prompts: ['{{q}}']\nproviders: ['file://x.js']\ntests: [{vars: {q: a}}]\n", "x.js with node"),
    "a Ruby provider": ("prompts: ['{{q}}']\nproviders: ['file://x.rb']\ntests: [{vars: {q: a}}]\n", "x.rb"),
    "a command": ("prompts: ['{{q}}']\nproviders: ['exec:./x.sh']\ntests: [{vars: {q: a}}]\n", "./x.sh"),
    "an assertion": (
        f"{ECHO}tests: [{{vars: {{q: a}}, assert: [{{type: python, value: 'file://x.py'}}]}}]\n",
        "x.py",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED_AS_ITS_SUITE_GIVES_IT)
def test_agreeing_to_the_code_of_one_folder_never_grants_that_of_another(tmp_path: Path, kind: str) -> None:
    suite, code = NAMED_AS_ITS_SUITE_GIVES_IT[kind]
    (tmp_path / "tui_eval.yaml").write_text("{}\n", "utf-8")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("x.py", "x.js", "x.rb", "x.sh"):
            (tmp_path / folder / name).write_text("require('fs')\n" if name == "x.js" else "\n", "utf-8")
    (tmp_path / "one" / "promptfooconfig.yaml").write_text(suite, "utf-8")
    first = surveyed(tmp_path)
    assert first
    (tmp_path / "two" / "promptfooconfig.yaml").write_text(suite, "utf-8")
    left = surveyed(tmp_path, frozenset(first))
    assert len(left) == len(first) and not set(left) & set(first), (first, left)
    if "./" not in code and "provider" not in kind:
        assert (first, left) == ([f"run one/{code}"], [f"run two/{code}"])


def test_all_that_a_neuro_san_library_is_given_is_asked_for_at_once(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "tui_eval.yaml").write_text(
        "agents:\n  neuro-san: {type: neuro-san, python: /nowhere/python, manifest: ../m.hocon, tool_path: /tools}\n"
    )
    (root / "a.hocon").write_text('{agent: n, interactions: [{text: hi, response: {text: {keywords: "a"}}}]}')
    assert {f"read {tmp_path / 'm.hocon'}", "read /tools"} <= set(surveyed(root))
