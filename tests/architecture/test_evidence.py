"""The app draws what judges have written: it judges nothing again and reads no sentence of theirs."""

from __future__ import annotations

import ast
from pathlib import Path

import tui_eval
from tests.support.source import nodes_of

TUI = Path(tui_eval.__file__).parent / "tui"
ENGINES = (
    "jsonschema",
    "jsonschema_rs",
    "regex",
    "re2",
    "sqlglot",
    "lxml",
    "quickjs",
    "xmlschema",
    "jmespath",
)
"""Modules that judge: none of them is needed to draw."""
PROSE = ("message", "reason", "error")
"""Fields whose words are for people alone."""
DRAWN = (
    "state/case/assertions_view.py", "state/case/calls_evidence.py",
    "state/case/case_content.py", "state/case/case_details.py", "state/case/explain.py", "state/case/history_view.py",
    "state/case/text_evidence.py", "state/case/tools_view.py",
    "state/case/verdict_lines.py", "state/compare/compare_view.py", "state/lists/case_tree.py",
    "state/lists/entries.py", "state/lists/case_entry.py", "state/lists/tree_lines.py", "state/runs/run_facts.py", "state/runs/runs_view.py",
)  # fmt: skip
"""Modules that draw verdicts and why attempts did not pass: they compile no pattern."""
MATCHING = ("match", "search", "fullmatch", "findall", "finditer", "sub", "split")
READERS = (
    "startswith",
    "endswith",
    "removeprefix",
    "removesuffix",
    "partition",
    "rpartition",
    "split",
    "find",
    "index",
)


def modules() -> list[tuple[str, tuple[ast.AST, ...]]]:
    return [(path.relative_to(TUI).as_posix(), nodes_of(path)) for path in sorted(TUI.rglob("*.py"))]


def test_no_engine_that_judges_is_imported() -> None:
    for name, nodes in modules():
        for node in nodes:
            found = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            found += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [one for one in found if one.split(".")[0] in ENGINES], name
            assert not [
                one
                for one in found
                if one.startswith(("tui_eval.assertions", "tui_eval.formats.promptfoo.judge"))
            ], name


def test_what_draws_verdicts_compiles_no_pattern() -> None:
    found = dict(modules())
    assert set(DRAWN) <= found.keys(), sorted(set(DRAWN) - found.keys())
    for name in DRAWN:
        imported = [one.name for node in found[name] if isinstance(node, ast.Import) for one in node.names]
        assert "re" not in imported, name


def _prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in PROSE


def test_no_sentence_is_read() -> None:
    """Nothing asks how a message, a reason or an error begins, or whether words of ours stand in it."""
    for name, nodes in modules():
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                asked = node.func.attr in READERS and _prose(node.func.value) and bool(node.args)
                assert not asked, f"{name}:{node.lineno}"
                matched = node.func.attr in MATCHING and any(_prose(one) for one in node.args)
                assert not matched, f"{name}:{node.lineno}"
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
                words = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
                assert not (words and _prose(node.comparators[0])), f"{name}:{node.lineno}"
