"""The help pages: shown, linked, complete where they list options and keys."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import click
import pytest

from tests.commands.conftest import Cli
from tui_eval.cli import cli as group
from tui_eval.config import config_schema
from tui_eval.formats.promptfoo.judge import registry
from tui_eval.help import page, pages
from tui_eval.reports.export import KINDS

HELP = Path(str(resources.files("tui_eval.help")))
ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (HELP / f"{name}.md").read_text("utf-8")


def pictures(name: str) -> set[str]:
    """The lines of a page that are pictures."""
    return {line for line in text(name).splitlines() if line.startswith("![")}


def test_the_screens_are_shown_at_both_sizes() -> None:
    shown = "".join(line for name in pages() for line in pictures(name)) + (ROOT / "README.md").read_text(
        "utf-8"
    )
    for screen in ("suites", "run", "case", "compare", "runs"):
        for size in ("80x24", "120x40"):
            assert f"screenshots/{screen}-{size}.png" in shown, f"{screen} at {size}"


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in pages() if f"(tui_eval/help/{name}.md" not in readme] == []


def test_help_lists_and_shows_every_page(cli: Cli) -> None:
    listed = cli("help").out
    for name, title in pages().items():
        assert name in listed and title in listed
        printed = cli("help", name).out
        assert printed.strip() == page(name).strip()
        assert set(text(name).splitlines()) - set(printed.splitlines()) == pictures(name)


@pytest.mark.parametrize(
    ("word", "page", "heading"),
    [
        ("shards", "large-runs", "## Shards"),
        ("shard", "large-runs", "## Looking at shards while they run"),
        ("merge", "large-runs", "## One run in the end: merge"),
        ("cache", "runs-and-store", "## Answers that are kept: the cache"),
    ],
)
def test_a_word_that_is_no_page_finds_the_sections_about_it(
    cli: Cli, word: str, page: str, heading: str
) -> None:
    found = cli("help", word)
    assert found.code == 0 and f"tui-eval help {page}:" in found.out and heading in found.out.splitlines()
    assert len(found.out) < len(text(page))


def test_a_word_that_is_only_mentioned_finds_where_and_any_other_is_an_error(cli: Cli) -> None:
    found = cli("help", "sparkline")
    assert found.code == 0 and re.search(r"^  tui-eval help lists +\S", found.out, re.MULTILINE), found.out
    nothing = cli("help", "xyzzy")
    assert nothing.code == 4 and "no help page 'xyzzy'; there are: " in nothing.err
    # What looks like a heading in a block of code is none.
    assert "ray start --head" in cli("help", "cloud").out.partition("on the first one")[2]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--failed", "--failed\n    what did not pass last time"),
        ("-s", "-s, --select\n    names"),
        ("--shard", "--shard K/N\n    the Kth of N parts"),
    ],
)
def test_an_option_is_explained_by_its_row(cli: Cli, option: str, said: str) -> None:
    """`tui-eval help --failed` was wrong usage of `help`."""
    found = cli("help", option)
    assert found.code == 0 and found.out.startswith(said) and "`-" not in found.out.splitlines()[0]
    assert cli("help", "judge.md").out == cli("help", "judge").out
    assert cli("help", "--xyzzy").code == 4 and cli("help", "--help").out.startswith("Usage: ")


@pytest.mark.parametrize("page", [*sorted(HELP.glob("*.md")), ROOT / "README.md", ROOT / "sample_suites/README.md"],
                         ids=lambda page: page.name)  # fmt: skip
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_list_of_commands_cuts_no_sentence(cli: Cli) -> None:
    told = cli("--help").out
    assert " anew, calling no agent.\n" in told and "..." not in told.partition("Commands:")[2]


def test_every_option_of_every_command_is_in_the_command_line_page() -> None:
    page = text("command-line")
    for name, command in group.commands.items():
        if command.hidden:
            continue
        assert f"tui-eval {name}" in page
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden and parameter.name != "help":
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page), f"{name} {option}"


def test_every_option_of_the_page_exists() -> None:
    known = {
        option
        for command in group.commands.values()
        for one in command.params
        for option in (*one.opts, *one.secondary_opts)
    }
    for option in re.findall(r"`(--?[a-z][a-z-]*)", text("command-line")):
        assert option in known | {"-n"}, option


def test_every_kind_of_results_file_is_listed() -> None:
    for ending in KINDS:
        assert f"`{ending}`" in text("command-line"), ending


def test_every_key_of_the_configuration_is_explained() -> None:
    configuration, agents = text("configuration"), text("agents")
    groups = (
        config_schema.TOP,
        config_schema.SUITE,
        config_schema.RUN,
        config_schema.PRICE,
        config_schema.DATABASE,
    )
    for keys in groups:
        for key in keys:
            assert f"`{key}`" in configuration or f"{key}:" in configuration, key
    comparison = text("comparison")
    for key in config_schema.COMPARISON:
        assert f"`{key}`" in configuration and f"`{key}`" in comparison, key
    for key in config_schema.AGENT:
        assert f"`{key}" in agents, key
    for kind, keys in config_schema.AGENT_OPTIONS.items():
        assert kind in agents
        for key in keys:
            assert f"`{key}" in agents or f"{key}:" in agents or f"{{{key}" in agents, f"{kind} {key}"


def test_every_assertion_of_promptfoo_that_is_judged_is_listed() -> None:
    page = text("assertions")
    for kind in registry.CHECKS:
        assert f"`{kind}`" in page, kind
    for kind in re.findall(r"`([a-z:-]+)`", page.partition("| group |")[2].partition("What is judged by")[0]):
        assert registry.check_for(kind) or kind in ("not-", "weight", "metric", "threshold", "transform", "config",
                                                 "assert-set"), kind  # fmt: skip


def test_nobody_is_told_to_install_a_name_that_nobody_owns() -> None:
    root = ROOT / "tui_eval"
    for path in [*root.rglob("*.py"), *root.rglob("*.md"), ROOT / "README.md"]:
        text = path.read_text("utf-8")
        assert not re.search(r"\b(install|add|uvx|pipx run)\s+['\"]?tui[-_]eval\b", text), path


def test_the_page_says_what_a_list_without_runs_ends_with(cli: Cli, project: Path) -> None:
    told = cli("runs")
    assert told.code == cli("runs", "--json").code == 5 and "no runs yet" in told.err + told.out
    (row,) = [line for line in text("command-line").splitlines() if line.startswith("| 5 |")]
    assert "to list (`runs`)" in row
