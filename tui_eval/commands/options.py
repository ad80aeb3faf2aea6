"""The options of the command line that several commands share, and all those of `run`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tui_eval.commands import completion
from tui_eval.guard.trust import from_fingerprints


class FiniteRange(click.FloatRange):
    """Numbers within limits; `nan` is below none of them, and is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Click's own reading of it."""
        try:
            known = math.isfinite(float(value))
        except (ValueError, OverflowError):
            known = False
        if not known:
            self.fail(f"{value!r} is no number", param, ctx)
        return super().convert(value, param, ctx)


class WholeRange(click.IntRange):
    """Whole numbers within limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Click's own reading of it."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is no whole number", param, ctx)
        return super().convert(value, param, ctx)


_N_MEANS = (
    "there is no -n: in nao and StartToAgent tools it means attempts (here --attempts N, --runs N, "
    "--repeat N), in promptfoo the first N tests (here --filter-first-n N); give the one you mean"
)

NAMED_ELSEWHERE = {
    ("--collect-only", "--co", "--dry-run"): "`tui-eval list`, which says what would run",
    ("-x", "--exitfirst", "--maxfail", "--fail-on-error"): "--fail-fast",
    ("--lf", "--last-failed"): "--failed",
    ("--junitxml", "--junit-xml"): "-o FILE.junit.xml",
    ("-q", "--quiet", "--no-table", "--no-progress-bar"): "--display none",
    ("-v", "--verbose", "--table"): "`tui-eval show RUN CASE`, which prints all that was said",
    ("-w", "--watch"): "a key of the app (W in a case)",
    ("--no-write",): "--no-store",
    ("--limit",): "--filter-first-n N",
    ("--epochs",): "--attempts N",
    ("--max-connections", "--max-samples", "--max-tasks"): "-j N",
    ("-r", "--provider", "--providers"): "--agent AGENT",
    ("-p", "--prompts"): "`prompts:` of a promptfooconfig.yaml",
    ("--tests",): "`tests:` of a promptfooconfig.yaml",
    ("--vars",): "--var NAME=VALUE",
    ("--resume",): "`tui-eval resume`, which runs what has no result",
    ("--retry-errors",): "--failed, or --filter-errors-only FILE",
    ("--share",): "-o FILE.html, a page that stands alone",
    ("--json",): "--display json, or -o FILE.json",
}
"""What `run` has instead of options that pytest, promptfoo and Inspect have: the nearest name by its letters may be
one that does something else (`--collect-only`: `--trust-only`)."""


def named_elsewhere(option: str) -> str | None:
    """What `run` has instead of an option that other tools have; None where it is none of them."""
    return next((here for names, here in NAMED_ELSEWHERE.items() if option in names), None)


Decorator = Callable[[Any], Any]


class FormatName(click.ParamType):
    """A format of suites, also as people write it: `neuro-san`, `StartToAgent`. The formats are looked up when
    they are asked for."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The formats to choose from, those of other packages included."""
        return f"[{'|'.join(_format_names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format's name as the package has it."""
        names = _format_names()
        if (found := {_plain(name): name for name in names}.get(_plain(str(value)))) is None:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, names))}.", param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The formats that begin so."""
        return [CompletionItem(name) for name in _format_names() if name.startswith(incomplete)]


def _format_names() -> list[str]:
    from tui_eval import formats

    return formats.names()


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _with(options: Iterable[Decorator], function: Any) -> Any:
    """The function with these options, in the order in which help lists them."""
    for option in reversed(list(options)):
        function = option(function)
    return function


# One for all: each that is made looks for the words of the person's language.
_ANY_PATH = click.Path(readable=False)
FILE_PATH = click.Path(dir_okay=False, path_type=Path)


def suite_paths(function: Any) -> Any:
    """The suites, files and folders."""
    return click.argument("paths", nargs=-1, type=_ANY_PATH)(function)


def promptfoo_config_option(function: Any) -> Any:
    """`-c`, as promptfoo has it."""
    return click.option(
        "-c", "configs", multiple=True, metavar="CONFIG",
        help="a promptfoo configuration; several -c are read as one, as promptfoo does",
    )(function)  # fmt: skip


def config_option(function: Any) -> Any:
    """`--config`."""
    return click.option("--config", "config_file", metavar="FILE", help="the tui_eval.yaml to use")(function)


def trust_option(function: Any) -> Any:
    """`--trust`."""
    return click.option(
        "--trust", is_flag=True, help="run the suites' own code and let them read the environment"
    )(function)


def _agreed(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[str]:
    try:
        return from_fingerprints(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def trust_only_option(function: Any) -> Any:
    """`--trust-only`."""
    return click.option(
        "--trust-only", "agreed", multiple=True, callback=_agreed, metavar="FINGERPRINTS",
        help="as --trust, but for just what was listed with these (commas; `tui-eval check` prints them)",
    )(function)  # fmt: skip


def display_option(function: Any) -> Any:
    """`--display`."""
    return click.option(
        "--display", type=click.Choice(["plain", "json", "none"]), default="plain", show_default=True,
        help="progress on stderr and tables; one JSON line per attempt on stdout; nothing",
    )(function)  # fmt: skip


def output_option(function: Any) -> Any:
    """`-o`."""
    return click.option(
        "-o", "--output", "outputs", multiple=True, metavar="FILE", type=FILE_PATH,
        help="write results; the ending says which kind (json, jsonl, junit.xml, html, csv, parquet, md, promptfoo.json); repeatable",
    )(function)  # fmt: skip


def _refuse_n(_: click.Context, __: click.Parameter, value: Any) -> None:
    if value is not None:
        raise click.UsageError(_N_MEANS)


def _place(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from tui_eval.config.config_schema import Wrong, where

    try:
        return where(value)
    except Wrong as wrong:
        raise click.UsageError(f"--on: {wrong}") from None


place_option = click.option(
    "--on",
    "on",
    callback=_place,
    metavar="PLACE",
    help="where attempts run: here, ray (started on this machine), ray://HOST:PORT or HOST:PORT (a Ray cluster)",
)


def pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE`, repeated."""
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}: expected NAME=VALUE")
        found[name] = value
    return found


def _shard(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from tui_eval.engine.selection import SelectionError
    from tui_eval.engine.shards import read_shard

    try:
        return str(read_shard(value))
    except SelectionError as error:
        raise click.UsageError(str(error)) from None


def _promptfoo_options(function: Any) -> Any:
    """Options of `promptfoo eval` by their long names."""
    options = [
        promptfoo_config_option,
        click.option("--filter-range", metavar="A:B", help="tests A up to B, counted from 0"),
        click.option("--filter-sample", type=WholeRange(1), metavar="N", help="N tests drawn at random"),
        click.option("--filter-sample-seed", metavar="SEED", help="draw the same ones again"),
        click.option("--filter-prompts", metavar="REGEX", help="prompts whose label matches"),
        click.option(
            "--filter-providers", "--filter-targets", "filter_providers", metavar="REGEX",
            help="providers whose id or label matches",
        ),
        click.option("--filter-failing", metavar="FILE", help="what did not pass in a results file"),
        click.option("--filter-failing-only", metavar="FILE", help="what failed there, errors not"),
        click.option("--filter-errors-only", metavar="FILE", help="what erred there"),
        click.option("--var", "vars", multiple=True, callback=pairs, metavar="K=V", help="promptfoo: a variable; repeatable"),
        click.option("--delay", type=FiniteRange(0), metavar="MS", help="promptfoo: milliseconds between two rows"),
        click.option("--prompt-prefix", metavar="TEXT", help="promptfoo: before every prompt"),
        click.option("--prompt-suffix", metavar="TEXT", help="promptfoo: after every prompt"),
        click.option(
            "--env-file", "--env-path", "env_files", multiple=True, metavar="FILE",
            help="variables of a .env file; repeatable, commas",
        ),
        click.option("--description", default="", metavar="TEXT", help="what this run is for"),
    ]  # fmt: skip
    return _with(options, function)


def run_options(function: Any) -> Any:
    """What `run` takes."""
    whom_and_how_often: list[Decorator] = [
        suite_paths,
        click.option(
            "--agent", "agents", multiple=True, metavar="AGENT", shell_complete=completion.agents,
            help="a configured name, FILE.py:function, http(s)://…, provider:model; repeatable: columns",
        ),
        click.option(
            "-m", "--model", "models", multiple=True, metavar="PROVIDER:MODEL", help="model; repeatable: columns",
        ),
        click.option(
            "--attempts", "--runs", "--repeat", "-k", "--k", "attempts", type=WholeRange(1, 100_000), metavar="N",
            help="execute each case N times (also --runs, --repeat, -k)",
        ),
        click.option(
            "--threshold", "--fail-threshold", "threshold", type=FiniteRange(0, 1), metavar="R",
            help="share of attempts that must pass, 0: none; without it all (also --fail-threshold)",
        ),
        click.option(
            "-j", "--concurrency", "-t", "--threads", "--max-concurrency", "concurrency", type=WholeRange(1), metavar="N",
            help="attempts at once (also -t, --threads)",
        ),
    ]  # fmt: skip
    which_cases: list[Decorator] = [
        click.option("-s", "--select", multiple=True, metavar="NAME|ID|STEM|FOLDER", help="repeatable, commas"),
        click.option("--filter-pattern", metavar="REGEX", help="cases whose description or name matches"),
        click.option("--filter-metadata", multiple=True, metavar="K=V", help="equal, or in a list; repeatable"),
        click.option(
            "--filter-first-n", type=WholeRange(1), metavar="N", help="the first N cases (promptfoo: tests)",
        ),
        _promptfoo_options,
        place_option,
        click.option(
            "--shard", callback=_shard, metavar="K/N",
            help="the Kth of N parts of the cases, by their ids; put together by `tui-eval merge`",
        ),
        click.option(
            "--changed", "changed_only", is_flag=True,
            help="what changed since it last passed: the case, its agent, their files; and what did not pass",
        ),
        click.option("--failed", is_flag=True, help="what did not pass last time"),
    ]  # fmt: skip
    how: list[Decorator] = [
        click.option("--timeout", type=FiniteRange(0, min_open=True), metavar="S", help="seconds for one attempt"),
        trust_option,
        trust_only_option,
        click.option(
            "--judge", "--grader", "judge", metavar="NAME", shell_complete=completion.agents,
            help="the agent that judges what no rule can",
        ),
        click.option(
            "--compat", type=click.Choice(["documented", "reference"]), help="whose verdicts where tools err"
        ),
        output_option,
        display_option,
        click.option("--report", type=click.Choice(["classic"]), help="the StartToAgent guide's console report"),
        click.option(
            "--assess", is_flag=True, help="group the failures by what failed, named by the judge if there is one",
        ),
        click.option(
            "--cache/--no-cache", "cache", default=None,
            help="take answers that were given before to the same conversation, and keep them",
        ),
        click.option("--anew", is_flag=True, help="take no answer that is kept; what is answered now takes its place"),
        click.option("--no-store", is_flag=True, help="keep nothing"),
        click.option("--fail-fast", is_flag=True, help="stop at the first attempt that does not pass"),
        click.option("--max-cost", type=FiniteRange(0, min_open=True), metavar="USD", help="stop at this cost"),
        config_option,
        click.option(
            "-n", "refused", hidden=True, is_flag=False, flag_value="", callback=_refuse_n, expose_value=False, is_eager=True,
        ),
    ]  # fmt: skip
    return _with([*whom_and_how_often, *which_cases, *how], function)


def again_options(function: Any) -> Any:
    """What goes on with a run that there is takes."""
    options: list[Decorator] = [
        click.argument("run", default="last", shell_complete=completion.runs),
        click.option(
            "-j", "--concurrency", "-t", "--threads", "concurrency", type=WholeRange(1), metavar="N",
            help="attempts at once",
        ),
        click.option(
            "--timeout", type=FiniteRange(0, min_open=True), metavar="S", help="seconds for one attempt"
        ),
        click.option(
            "--judge", metavar="NAME", shell_complete=completion.agents,
            help="the agent that judges what no rule can",
        ),
        click.option(
            "--env-file", "--env-path", "env_files", multiple=True, metavar="FILE",
            help="variables of a .env file; repeatable, commas",
        ),
        trust_option,
        trust_only_option,
        output_option,
        display_option,
    ]  # fmt: skip
    return _with(options, function)


_MOST_WARNINGS = 5
"""About the lines of one `.env` file."""


def read_env_files(names: Sequence[str]) -> None:
    """Put the variables of `.env` files (several in one text by commas) into the environment; the person
    named them, so they win over it.

    Raises:
        CommandError: one cannot be read.
    """
    from tui_eval.commands.output import CommandError, warn
    from tui_eval.nunjucks.suite_environment import parse, passed_over

    for name in (part.strip() for text in names for part in text.split(",")):
        try:
            text = Path(name).read_text("utf-8") if name else ""
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise CommandError(f"--env-file {name}: {reason}") from None
        for line in passed_over(text)[:_MOST_WARNINGS]:  # not what stands there: it may be a secret
            warn(f"--env-file {name}:{line}: no NAME=value: the line is passed over")
        os.environ.update(parse(text))
