"""The command line: what it understands; `tui_eval.commands` does it.

Everything heavier than reading arguments is imported inside the command that needs it.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tui_eval import __version__
from tui_eval.commands import completion
from tui_eval.commands.options import (
    FILE_PATH,
    FiniteRange,
    FormatName,
    WholeRange,
    again_options,
    config_option,
    named_elsewhere,
    output_option,
    pairs,
    place_option,
    promptfoo_config_option,
    read_env_files,
    run_options,
    suite_paths,
    trust_option,
)

_EXIT_USAGE, _EXIT_INTERNAL = 4, 3
_LEAVING_SECONDS = 3.0
_SECTIONS = 8
_OPEN_FILES, _FEWEST_FILES = 1024, 64


def _said(option: click.Option | None) -> click.Option | None:
    """The option `--help`, which prints as all else is printed: on a full disk, or for a reader that has gone, too."""
    if option is not None:
        option.callback = lambda ctx, _, wanted: _answer(ctx, wanted, ctx.get_help)
    return option


def _answer(ctx: click.Context, wanted: bool, text: Callable[[], str]) -> None:
    if wanted and not ctx.resilient_parsing:
        from tui_eval.commands.output import say

        say(text())
        ctx.exit()


_MAY_BE_EMPTY = frozenset({"topic", "description", "prompt_prefix", "prompt_suffix", "filter_pattern",
                           "filter_prompts", "filter_providers"})  # fmt: skip


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A name that is empty is a variable that is not set (`--judge "$JUDGE"`), and not the option left out."""
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            here = named_elsewhere(error.option_name) if self.name == "run" else None
            if here is None:
                raise
            raise click.UsageError(f"there is no {error.option_name}: here it is {here}", ctx) from None
        for param in self.params:
            given = ctx.params.get(param.name or "")
            values = given if isinstance(given, (tuple, list)) else (given,)
            if "" in values and param.name not in _MAY_BE_EMPTY and not ctx.resilient_parsing:
                raise click.BadParameter("is empty; give a value, or leave it out", ctx, param)
        return left

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _said(super().get_help_option(ctx))

    def get_short_help_str(self, limit: int = 45) -> str:
        """Its sentence up to the first sign, whole: what stands behind it the command's own help says."""
        told = " ".join((self.help or "").split())
        return re.split(r"[;:]| \(", told, maxsplit=1)[0].removesuffix(".") + "."


class _AppByDefault(click.Group):
    """`tui-eval PATH` is the app; a first word that is a command's name is that command."""

    command_class = _Command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _said(super().get_help_option(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((arg for arg in args if not arg.startswith("-")), None)
        # While a shell completes, the word that may become a command's name is not among these yet.
        wants_group = args[:1] in (["--help"], ["-h"], ["--version"]) or (ctx.resilient_parsing and not args)
        if first not in self.commands and not wants_group:
            if first is not None and not ctx.resilient_parsing and not os.path.lexists(first):
                self._meant(first, ctx)
            args = ["app", *args]
        return super().parse_args(ctx, args)

    def _meant(self, word: str, ctx: click.Context) -> None:
        from tui_eval.guard.spelling import close_to
        from tui_eval.guard.text import visible

        meant = close_to(word, (name for name, command in self.commands.items() if not command.hidden))
        if meant:
            named = visible(word, newlines=False)
            raise click.UsageError(f"{named}: no such file, folder or command; did you mean {meant}?", ctx)


_version_option = click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, help="Show the version and exit.",
    callback=lambda ctx, _, wanted: _answer(ctx, wanted, lambda: f"tui-eval, version {__version__}"),
)  # fmt: skip


@click.group(cls=_AppByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@_version_option
def cli() -> None:
    """Debug the evaluations of AI agents: nao, StartToAgent, promptfoo and neuro-san suites.

    `tui-eval [PATH...]` opens the app on the suites of the current folder, or of PATHs; the
    commands below work without it. The app takes --config, --trust and --local
    (`tui-eval . --help`).
    """


@cli.command(name="app", hidden=True)
@suite_paths
@config_option
@trust_option
@click.option("--local", is_flag=True, help="leave the slow-line profile: full frame rate, animations")
@_version_option
def app_command(paths: tuple[str, ...], config_file: str | None, trust: bool, local: bool) -> int:
    """The app."""
    from tui_eval.commands.open_app import open_app

    return open_app(paths, config_file=config_file, trust=trust, local=local)


@cli.command(name="run")
@run_options
def run_command(
    paths: tuple[str, ...],
    outputs: tuple[Path, ...],
    display: str,
    report: str | None,
    no_store: bool,
    failed: bool,
    anew: bool,
    configs: tuple[str, ...],
    env_files: tuple[str, ...],
    delay: float | None,
    **options: Any,
) -> int:
    """Run suites headless: progress on stderr, tables on stdout, exit code 0 when all passed."""
    from tui_eval.commands.run_suites import run
    from tui_eval.engine.request import RunRequest

    for key in ("agents", "models", "select", "filter_metadata"):
        options[key] = list(options[key])
    options["command"] = _typed_command()
    if report and display == "json":
        raise click.UsageError(
            "--report classic and --display json are two reports on stdout: give one (-o writes files)"
        )
    if options["filter_sample_seed"] is not None and options["filter_sample"] is None:
        raise click.UsageError("--filter-sample-seed draws nothing by itself: give --filter-sample N, too")
    if env_files:
        read_env_files(env_files)
    options["env_files"] = _files(env_files)
    if options["config_file"] is not None:
        options["config_file"] = str(Path(options["config_file"]).absolute())
    options["delay"] = None if delay is None else delay / 1000
    options["configs"] = [str(Path(path).absolute()) for path in configs]
    # What did not pass is asked again, and not answered from the cache: as `R` in the app.
    again = failed or any(
        options[name] for name in ("filter_failing", "filter_failing_only", "filter_errors_only")
    )
    paths_given = [str(Path(path)) for path in paths]
    request = RunRequest(paths=paths_given, failed_only=failed, anew=anew or again, **options)
    return run(request, display, outputs, keep=not no_store, report=report)


@cli.command(name="list")
@suite_paths
@click.option("--json", "as_json", is_flag=True, help="one object per case")
@promptfoo_config_option
@config_option
@trust_option
def list_command(
    paths: tuple[str, ...], as_json: bool, configs: tuple[str, ...], config_file: str | None, trust: bool
) -> int:
    """What would run."""
    from tui_eval.commands.listing import list_cases

    return list_cases(paths, config_file, as_json, trust, configs)


@cli.command(name="check")
@suite_paths
@click.option("--vacuous", is_flag=True, help="also cases that pass against an agent that answers nothing")
@promptfoo_config_option
@config_option
@trust_option
def check_command(
    paths: tuple[str, ...], vacuous: bool, configs: tuple[str, ...], config_file: str | None, trust: bool
) -> int:
    """Every problem in the files, with line and cure."""
    from tui_eval.commands.check import check

    return check(paths, config_file, trust, vacuous, configs)


@cli.command(name="runs")
@click.option("--json", "as_json", is_flag=True)
def runs_command(as_json: bool) -> int:
    """Runs with state, counts and cost."""
    from tui_eval.commands.recorded_runs import list_runs

    return list_runs(as_json)


@cli.command(name="show")
@click.argument("run", default="last", shell_complete=completion.runs)
@click.argument("case", required=False, shell_complete=completion.cases_of_run)
def show_command(run: str, case: str | None) -> int:
    """Print a run, or one case of it with its transcript and verdicts."""
    from tui_eval.commands.recorded_runs import show

    return show(run, case)


@cli.command(name="attach")
@click.argument("run", default="last", shell_complete=completion.runs)
@click.option("--display", type=click.Choice(["app", "plain"]), default=None, help="the app, or plain lines")
def attach_command(run: str, display: str | None) -> int:
    """Follow a run that another process executes; gives the run's exit code."""
    if display == "plain" or (display is None and not (sys.stdin.isatty() and sys.stdout.isatty())):
        from tui_eval.commands.recorded_runs import follow

        return follow(run)
    from tui_eval.commands.open_app import attach

    return attach(run)


def _files(names: tuple[str, ...]) -> list[str]:
    """The files that `--env-file` names (several in one text by commas), absolute."""
    parts = [part.strip() for text in names for part in text.split(",")]
    return [str(Path(name).absolute()) for name in parts if name]


def _typed_command() -> str:
    from tui_eval.guard.secrets import in_words

    return " ".join(in_words(sys.argv))


@cli.command(name="resume")
@again_options
@click.option(
    "--agent", "agents", multiple=True, metavar="AGENT",
    help="an agent of the run that is code or a URL: trusted by being typed again; repeatable",
)  # fmt: skip
@click.option(
    "--max-cost", type=FiniteRange(0, min_open=True), metavar="USD",
    help="what all of the run may cost, with what was spent before",
)  # fmt: skip
@click.option(
    "--var", "vars", multiple=True, callback=pairs, metavar="K=V",
    help="a variable of the run that is a secret, which no record holds; repeatable",
)  # fmt: skip
@place_option
@click.option("--no-fail-fast", is_flag=True, help="attempts that do not pass do not end it any more")
def resume_command(
    run: str, outputs: tuple[Path, ...], display: str, env_files: tuple[str, ...], **options: Any
) -> int:
    """Go on with an interrupted run: only what has no result is executed."""
    from tui_eval.commands.run_suites import resume_run
    from tui_eval.engine.request import RunRequest

    read_env_files(env_files)
    options["agents"] = list(options["agents"])
    return resume_run(run, RunRequest(**options), display, outputs)


@cli.command(name="rescore")
@again_options
def rescore_command(
    run: str, outputs: tuple[Path, ...], display: str, env_files: tuple[str, ...], **options: Any
) -> int:
    """Judge the recorded answers of a run anew, calling no agent; a new run, linked to it."""
    from tui_eval.commands.run_suites import rescore
    from tui_eval.engine.request import RunRequest

    read_env_files(env_files)
    options["env_files"] = _files(env_files)
    options["command"] = _typed_command()
    return rescore(run, RunRequest(**options), display, outputs)


@cli.command(name="assess")
@click.argument("run", default="last", shell_complete=completion.runs)
@click.option(
    "--judge", metavar="NAME", shell_complete=completion.agents, help="the agent that names what failed"
)
@click.option("--json", "as_json", is_flag=True)
@trust_option
def assess_command(run: str, judge: str | None, as_json: bool, trust: bool) -> int:
    """Group the failures of a run by what failed; the judge names the groups, which are kept."""
    from tui_eval.commands.recorded_runs import assess

    return assess(run, judge, trust, as_json)


@cli.command(name="cancel")
@click.argument("run", default="last", shell_complete=completion.runs)
def cancel_command(run: str) -> int:
    """Cancel a run that another process executes."""
    from tui_eval.commands.recorded_runs import cancel

    return cancel(run)


@cli.command(name="export")
@click.argument("run", default="last", shell_complete=completion.runs)
@click.option(
    "-o", "--output", "outputs", required=True, multiple=True, metavar="FILE", help="repeatable",
    type=FILE_PATH,
)  # fmt: skip
def export_command(run: str, outputs: tuple[Path, ...]) -> int:
    """Write a run to a file; its ending says which kind: json, jsonl, junit.xml, html, csv, parquet, md,
    promptfoo.json."""
    from tui_eval.commands.recorded_runs import export_run

    return export_run(run, outputs)


@cli.command(name="compare")
@click.argument("before", metavar="RUN", shell_complete=completion.runs)
@click.argument("after", metavar="[RUN]", required=False, shell_complete=completion.runs)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.agents_of_run,
    help="given twice: two agents of one run",
)
@click.option("--json", "as_json", is_flag=True)
def compare_command(before: str, after: str | None, agents: tuple[str, ...], as_json: bool) -> int:
    """Two runs against each other, or two agents of one: what regressed, is fixed, flaky, new, gone. The second
    run is the last one where none is named. Exit code 1 on a regression."""
    from tui_eval.commands.compare_runs import compare_runs

    if agents and (len(agents) != 2 or after is not None):
        raise click.UsageError("--agent is given twice, for two agents of one run: RUN --agent A --agent B")
    return compare_runs(before, after, agents, as_json)


@cli.command(name="merge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=completion.runs)
@output_option
def merge_command(runs: tuple[str, ...], outputs: tuple[Path, ...]) -> int:
    """The runs of shards as one new run: folders, ids, results files, or folders of them."""
    from tui_eval.commands.merge import merge

    return merge(runs, outputs)


@cli.command(name="prune")
@click.option("--older-than", type=FiniteRange(0), metavar="DAYS", help="runs older than this")
@click.option("--keep-size", type=FiniteRange(0), metavar="MB", help="the oldest runs beyond this size")
@click.option("--cache", is_flag=True, help="the answers that --cache keeps")
@click.option("-y", "--yes", is_flag=True, help="do not ask")
def prune_command(older_than: float | None, keep_size: float | None, cache: bool, yes: bool) -> int:
    """Delete old runs, by age or size, or the answers that are kept; asks."""
    from tui_eval.commands.prune import prune

    return prune(older_than, keep_size, yes, cache)


@cli.command(name="server")
@click.option("--port", type=WholeRange(1, 65535), default=8765, show_default=True, metavar="N")
def server_command(port: int) -> int:
    """Results in a browser, for this machine only; needs the extra `web`."""
    from tui_eval.commands.recorded_runs import serve

    return serve(port)


@cli.command(name="init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    "case_format",
    type=FormatName(),
    help="of the suite; without it the first of these",
)
@click.option("--agent", metavar="AGENT", help="as for `run`; without it a scripted agent to begin with")
@click.option("-m", "--model", metavar="MODEL", help="the agent's model")
def init_command(folder: Path, case_format: str | None, agent: str | None, model: str | None) -> int:
    """Write a first suite and a tui_eval.yaml."""
    from tui_eval.commands.init import init

    return init(folder, case_format, agent, model)


@cli.command(name="help", context_settings={"ignore_unknown_options": True})
@click.argument("topic", required=False, shell_complete=completion.pages)
def help_command(topic: str | None) -> int:
    """The user's documentation, a page each."""
    from tui_eval.commands.output import CommandError, say
    from tui_eval.help import option_rows, page, pages, sections

    known = pages()
    if topic is None:
        width = max(len(name) for name in known)
        say("tui-eval help TOPIC prints a page:\n")
        for name, title in known.items():
            say(f"  {name:<{width}}  {title}")
        return 0
    topic = topic.removesuffix(".md")  # as pages name one another
    if topic in known:
        say(page(topic))
        return 0
    if rows := option_rows(topic) if topic.startswith("-") else []:
        for names, meaning in rows:
            say(f"{names}\n    {meaning}\n")
        say("tui-eval help command-line has all options")
        return 0
    found = sections(topic)
    if not found:
        raise CommandError(f"no help page {topic!r}; there are: {', '.join(known)}")
    if found[0].is_about:
        for one in found:
            say(f"tui-eval help {one.page}:\n\n{one.text}")
        return 0
    say(f"no page is called {topic}, and no section; it is mentioned in:\n")
    width = max(len(one.page) for one in found[:_SECTIONS])
    for one in found[:_SECTIONS]:
        say(f"  tui-eval help {one.page:<{width}}  {one.heading}")
    return 0


@cli.command(name="completion")
@click.argument("shell", required=False, type=click.Choice(completion.SHELLS))
def completion_command(shell: str | None) -> int:
    """What makes your shell complete commands, options and names."""
    from tui_eval.commands.output import say

    say(completion.script(shell, cli))
    return 0


def main(arguments: list[str] | None = None) -> None:
    """The program's entry: exits with the codes of design.md (Command line)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us (`>&-`): no file of ours gets its number
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    before = _end_in_order()
    try:
        code = _run(arguments) if _may_open_files() else _EXIT_USAGE
    except KeyboardInterrupt:  # before there was anything to interrupt
        code = 128 + signal.SIGINT
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code > 128:
        threading.Thread(target=_leave, args=(code,), name="leave", daemon=True).start()
    sys.exit(code)


def _may_open_files() -> bool:
    """Whether this process may have as many files open as it needs to import what it uses; where it may raise
    what it was given, it does. With fewer something would fail late, and with whatever words."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed < _OPEN_FILES and (most == resource.RLIM_INFINITY or most > allowed):
        allowed = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    if allowed >= _FEWEST_FILES:
        return True
    print(
        f"only {allowed} files may be open at once, and {_FEWEST_FILES} are needed at least: ulimit -n {_OPEN_FILES}",
        file=sys.stderr,
    )
    return False


def _end_in_order() -> dict[int, Any]:
    """SIGTERM and SIGHUP end the program as an exception does, so that no half of a file is left; what they did before.
    Who has a loop handles them itself, and who ignores them (nohup) goes on to."""
    if threading.current_thread() is not threading.main_thread():
        return {}

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    usual = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    return {number: signal.signal(number, end) for number in usual}


def _leave(code: int) -> None:
    """End an interrupted process though a thread is still at something that no signal reaches."""
    time.sleep(_LEAVING_SECONDS)
    os._exit(code)


def _run(arguments: list[str] | None) -> int:
    from tui_eval.commands.output import EXIT_FAILED, EXIT_NOTHING, CommandError, all_printed, warn_line

    try:
        code = cli.main(args=arguments, prog_name="tui-eval", standalone_mode=False)
        code = code if isinstance(code, int) else 0
        return code if all_printed() or code not in (0, EXIT_FAILED, EXIT_NOTHING) else _EXIT_USAGE
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path.removesuffix(" app") if context is not None else ""
        where = f" ({path} --help says more)" if path else ""
        warn_line(f"{error.format_message()}{where}")
        return _EXIT_USAGE
    except CommandError as error:
        warn_line(str(error))
        return error.code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as error:
        from tui_eval.guard.crash_report import leaves

        if "_TUI_EVAL_COMPLETE" in os.environ and isinstance(error.code, int):
            return error.code  # so click ends what it tells a shell
        # Any other is of code that somebody brought, which says 0 though nothing was done.
        return error.code if leaves(error) and isinstance(error.code, int) else _internal_error(error)
    except Exception as error:
        from tui_eval.config.project import ConfigError
        from tui_eval.store.run_folders import StoreError

        # a run that cannot be read, noticed in the middle; a configuration that is named and not there
        if isinstance(error, (StoreError, ConfigError)):
            warn_line(str(error))
            return _EXIT_USAGE
        if (
            isinstance(error, PermissionError) and error.filename
        ):  # in a folder that is another person's alone
            warn_line(f"{os.fsdecode(error.filename)}: {error.strerror}")
            return _EXIT_USAGE
        if isinstance(error, FileNotFoundError) and _nowhere():
            warn_line("the current folder does not exist any more: change to one that does (cd)")
            return _EXIT_USAGE
        if isinstance(error, FileNotFoundError) and _no_temporary_folder():
            warn_line(
                "no folder for temporary files can be written: mount one at /tmp, or name one with TMPDIR (a container: "
                "--tmpfs /tmp)"
            )
            return _EXIT_USAGE
        return _internal_error(error)


def _no_temporary_folder() -> bool:
    """Whether nothing can be written where files for a while go: a container whose root is read-only."""
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return True
    return False


def _nowhere() -> bool:
    """Whether the folder that this process works in was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _internal_error(error: BaseException) -> int:
    """One line for the person; the traceback, without variables, into a file to report."""
    from tui_eval.commands.output import warn_line
    from tui_eval.guard.crash_report import crash_line

    if os.environ.get("TUI_EVAL_TRACEBACK"):
        traceback.print_exception(error)
    warn_line(crash_line(error))
    return _EXIT_INTERNAL
