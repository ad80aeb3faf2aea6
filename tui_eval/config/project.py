"""`tui_eval.yaml`: where the project is, which agents, judge and databases it has, how runs behave.

What other parts ask of the configuration; `config_schema` has its shape, `config_file` and `nao_config` do the
reading, `config_values` the environment variables (loaded when they are needed: the app starts without them).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.config.config_schema import (
    CONFIG_NAME,
    NAO_CONFIG_NAME,
    AgentSpec,
    AgentType,
    Config,
    ConfigError,
    DatabaseSpec,
    DatabaseType,
    NaoProject,
    RunSettings,
    SuiteRule,
    VariableNotSet,
    refused_agent,
)
from tui_eval.guard.masker import Masker
from tui_eval.guard.paths import leads_out
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Problem

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = [
    "CONFIG_NAME",
    "AgentSpec",
    "AgentType",
    "Config",
    "ConfigError",
    "DatabaseSpec",
    "DatabaseType",
    "NaoProject",
    "RunSettings",
    "SuiteRule",
    "VariableNotSet",
    "common_folder",
    "database",
    "fill",
    "find_root",
    "load",
    "passed_over",
    "read_withheld",
    "refused_agent",
    "rule_for",
    "secrets",
    "state_dir",
    "unused_rules",
]

NEURO_SAN_URL = "http://localhost:8080"
JUDGE_NETWORK = "gist"
"""neuro-san's own, which its driver asks."""
NAO_URL = "http://localhost:5005"


def find_root(
    paths: Sequence[str | Path] = (), config_file: str | Path | None = None
) -> tuple[Path, Path | None]:
    """The project root and its `tui_eval.yaml`, if it has one.

    The root is the folder of `config_file` if given, else of the nearest `tui_eval.yaml` at or above
    the common parent of the paths, else the git root above it, else the current folder.

    Raises:
        ConfigError: `config_file` is no file.
    """
    if config_file is not None:
        file = Path(os.path.abspath(config_file))
        if not file.is_file():
            wrong = "is no plain file" if file.exists() else "no such file"
            wrong = "is a folder: name the file in it" if file.is_dir() else wrong
            raise ConfigError(f"--config {config_file}: {wrong}")
        return file.parent, file
    start = common_folder(paths)
    for folder in (start, *start.parents):
        if os.path.isfile(folder / CONFIG_NAME) and not _anybodys(folder / CONFIG_NAME, start):
            return folder, folder / CONFIG_NAME
    for folder in (start, *start.parents):
        if os.path.exists(folder / ".git") and not _anybodys(folder / ".git", start):
            return folder, None
    return Path.cwd(), None


def _anybodys(file: Path, start: Path) -> bool:
    """Whether somebody else has put a file into a folder above that all may write (`/tmp`): it says nothing
    of what is below, unless that is the same person's (a volume of a container, whose folders are often for
    all)."""
    if file.parent == start:
        return False
    try:
        if not os.stat(file.parent).st_mode & stat.S_IWOTH:
            return False
        there = next(one for one in (start, *start.parents) if os.path.lexists(one))
        return os.lstat(file).st_uid not in (os.geteuid(), 0, os.stat(there).st_uid)
    except OSError:
        return True


def common_folder(paths: Sequence[str | Path]) -> Path:
    """The folder that holds all the paths (a folder given alone is itself it); absolute."""
    folders = []
    for path in paths or (".",):
        absolute = Path(os.path.abspath(path))
        folders.append(absolute if os.path.isdir(absolute) else absolute.parent)
    return Path(os.path.commonpath(folders))


def load(
    paths: Sequence[str | Path] = (),
    config_file: str | Path | None = None,
    *,
    root: Path | None = None,
) -> Config:
    """The configuration that holds for suites at these paths; that of `root` where it is known already, as for
    a run that was recorded (a `tui_eval.yaml` above it is another project's).

    Whatever is wrong in the files is in `Config.problems`, and the rest of them counts.

    Raises:
        ConfigError: `config_file` is no file.
    """
    from tui_eval.config import config_file as reading

    if root is not None and config_file is None:
        file = root / CONFIG_NAME if (root / CONFIG_NAME).is_file() else None
    else:
        root, file = find_root(paths, config_file)
    config = Config(root=root, file=file)
    config.nao, problems = _nao_project(common_folder(paths), root)
    config.problems = problems
    if file is not None and config_file is None and leads_out(root, file):
        config.problems = [_left_alone(file, root), *config.problems]
    elif file is not None:
        reading.read_into(config, file)
    else:
        config.problems = [*reading.misnamed(root), *config.problems]
    if config.nao is not None:
        config.databases = {**config.nao.databases, **config.databases}
    return config


def _nao_project(start: Path, root: Path) -> tuple[NaoProject | None, list[Problem]]:
    """The nearest nao project at or above `start`; not above the root where `start` is below it."""
    below = start.is_relative_to(root)
    for folder in (start, *start.parents):
        if below and not folder.is_relative_to(root):
            break
        file = folder / NAO_CONFIG_NAME
        if os.path.lexists(file) and _anybodys(file, start):
            continue
        if leads_out(root if below else folder, file):
            what = "a link that leaves the project is not followed"
            return None, [Problem(os.path.relpath(file, root), 0, "", what, "put the file itself there")]
        if os.path.isfile(file):
            from tui_eval.config import nao_config  # imported late: most projects have none

            return nao_config.read(file, os.path.relpath(file, root))
        if os.path.lexists(file):
            from tui_eval.config.config_file import no_file

            return None, [no_file(os.path.relpath(file, root))]
    return None, []


def read_withheld(config: Config, trust: Trust) -> None:
    """Read again what of nao_config.yaml waits for trust, as far as it has been given; the rest of it is wanted of
    `trust`."""
    old = config.nao
    if old is None or not old.withheld:
        return
    from tui_eval.config import nao_config

    wanted = [what for section in old.withheld.values() for what in section]
    for what in wanted:
        with suppress(NeedsTrust):
            trust.require(what)
    if not any(map(trust.covers, wanted)):
        return
    name = os.path.relpath(old.path, config.root)
    config.nao, problems = nao_config.read(Path(old.path), name, trust)
    config.problems = [*(one for one in config.problems if one.path != name), *problems]
    theirs = {id(spec) for spec in old.databases.values()}
    own = {key: spec for key, spec in config.databases.items() if id(spec) not in theirs}
    config.databases = {**(config.nao.databases if config.nao is not None else {}), **own}


def _left_alone(file: Path, root: Path) -> Problem:
    what, cure = (
        "a link that leaves the project is not followed",
        "name it with --config, or put the file itself there",
    )
    return Problem(os.path.relpath(file, root), 0, "", what, cure)


def fill(spec: AgentSpec, trust: Trust) -> AgentSpec:
    """The agent with `${NAME}` and `${NAME:-default}` replaced and its usual API key added.

    An agent that the person typed is trusted. Otherwise an environment variable is only read where it is the usual
    key of the provider at its own host; and a secret written in the file is only sent there, or to this machine
    (design.md, Safety rules).

    Raises:
        ConfigError: a variable is not set and has no default; names the key.
        NeedsTrust: it would read a variable or send a secret, in a folder that is not trusted.
    """
    from tui_eval.config import config_values

    return config_values.fill_agent(spec, trust)


def model_of(spec: AgentSpec, trust: Trust) -> str | None:
    """The model that an agent's entry names, filled in as `fill` does it: what its columns are called. As it stands
    where it may not be read or is not set; the attempts say so then."""
    from tui_eval.config import config_values

    return config_values.model_of(spec, trust)


def database(config: Config, name: str | None, trust: Trust) -> DatabaseSpec:
    """The database to use: the one named, else the only one there is; variables replaced.

    Raises:
        ConfigError: there is none of that name, or several and none named, or it lacks a variable, or
            it is of a type that cannot be queried (nao knows more of them).
        NeedsTrust: it reads a variable or a file outside the root, in a folder that is not trusted.
    """
    from tui_eval.config import config_values

    # Suites named from outside of any project have the nao project around them for one.
    roots = [config.root] + ([Path(config.nao.path).parent] if config.nao else [])
    if name is None and len(config.databases) == 1:
        name = next(iter(config.databases))
    nao = config.nao
    if nao is not None and (
        name not in config.databases or config.databases[name] is nao.databases.get(name)
    ):
        for what in nao.withheld.get("databases", ()):  # what it is called, or of which type it is
            trust.require(what)
    known = ", ".join(config.databases) or "none"
    if name is None:
        raise ConfigError(f"no database named, and there is not exactly one to take (configured: {known})")
    if name not in config.databases:
        raise ConfigError(f"no database called {name!r} is configured (there is: {known})")
    return config_values.fill_database(config.databases[name], roots, trust)


def case_database(config: Config, named: str | None, suite: str | Path, trust: Trust) -> DatabaseSpec:
    """The database that a case is asked of: the one that it names, else the one that `suites:` says, else the only
    one (which nao takes whatever the test calls it).

    Raises:
        ConfigError, NeedsTrust: as `database`.
    """
    rule = rule_for(config, suite)
    name = named or (rule.database if rule else None)
    spec = database_spec(config, name)
    return database(config, name if spec is None else spec.name, trust)


def database_spec(config: Config, name: str | None) -> DatabaseSpec | None:
    """The entry that a case or a tool means by a name, as it stands: the one named, else the only one there
    is; nao takes its only one whatever the test calls it (nao-core 0.3.29). None: there is none, or several
    and none is named."""
    known = config.databases
    only = next(iter(known.values())) if len(known) == 1 else None
    return known.get(name or "") or (only if name is None or config.nao is not None else None)


def rule_for(config: Config, suite_path: str | Path) -> SuiteRule | None:
    """The first entry of `suites:` whose pattern matches a suite's path from the root."""
    for rule in config.suites:
        if _pattern(rule.path).match_file(str(suite_path)):
            return rule
    return None


def passed_over(config: Config, suite_paths: Iterable[str]) -> list[Problem]:
    """A note for each `tui_eval.yaml` between the root and one of these suites (paths from the root): the
    suite runs by the root's, with other agents and limits than its own folder says."""
    above = {folder for path in suite_paths for folder in Path(path).parents} - {Path(".")}
    notes: list[Problem] = []
    for folder in sorted(above):
        if not folder.is_absolute() and os.path.isfile(config.root / folder / CONFIG_NAME):
            text = f"not read: the root of the project is {config.root}"
            cure = f"where its agents, limits and settings are meant, run {folder} by itself"
            notes.append(Problem(str(folder / CONFIG_NAME), 0, "", text, cure, level="note"))
    return notes


def unused_rules(config: Config, suite_paths: Iterable[str], whole: bool = False) -> list[Problem]:
    """A note for each entry of `suites:` that matches some of these suites (paths from the root), of which
    entries before it take all. `whole`: these are all suites of the project, and what matches none of them is
    noted, too; else it is said of what can have no others alone."""
    if config.file is None:
        return []
    came: dict[int, set[int]] = {}
    paths = list(suite_paths)
    for number, rule in enumerate(config.suites):
        if not rule.line:
            continue  # none of the file
        takers = {_first_match(config, path) for path in paths if _pattern(rule.path).match_file(path)}
        if number not in takers and (takers or (whole and paths)):
            came[number] = takers
    notes: list[Problem] = []
    for number, takers in came.items():
        pattern = config.suites[number].path
        before = [config.suites[one].path for one in sorted(takers)]
        if not whole and not any(_takes_all_of(one, pattern) for one in before):
            continue
        takes = "no suite has such a path"
        if before:
            takes = f"{some_of(before, 3)} before it take{'s' if len(before) == 1 else ''} all its files"
        notes.append(
            Problem(
                os.path.relpath(config.file, config.root),
                config.suites[number].line,
                "suites",
                f"entry {number + 1} ({pattern}) is never used: {takes}",
                "write it before" if before else "mend its path: it is from the folder of this file",
                level="note",
            )
        )
    return notes


def _first_match(config: Config, path: str) -> int:
    return next(at for at, rule in enumerate(config.suites) if _pattern(rule.path).match_file(path))


def _takes_all_of(pattern: str, later: str) -> bool:
    """Whether a pattern plainly matches whatever another one does: all there is, or all of a folder that it
    begins with."""
    pattern, later = _from_root(pattern), _from_root(later)
    if pattern in ("*", "**", "/**"):
        return True
    folder = pattern.removeprefix("/").removesuffix("**")
    plain = folder.endswith("/") and not set(folder) & set("*?[\\!")
    return pattern.endswith("/**") and plain and later.removeprefix("/").startswith(folder)


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([_from_root(pattern)])


def _from_root(pattern: str) -> str:
    """A pattern without the `.` of the folder that it is from, with which gitignore's matches nothing: `./evals` is
    the root's own `evals`, as a shell has it, and `.` all there is."""
    plain = re.sub(r"^(?:\./+)+", "/", pattern)
    return "**" if plain in (".", "/.") or (plain == "/" != pattern) else plain


def secrets(config: Config) -> list[str]:
    """Every secret value known from the configuration and the environment, for a `Masker`."""
    from tui_eval.config import config_values

    return config_values.known_secrets(config)


def masker(config: Config) -> Masker:
    """What masks every secret that is known (`secrets`), those that were typed with their own rule."""
    made = Masker(secrets(config))
    made.add_typed(config.typed.get("vars"))
    return made


def kept_by_link(root: Path) -> bool:
    """Whether a link stands where the store of a root would be: nothing is written through it."""
    folder = root / ".tui-eval"
    if folder.is_symlink():
        return True
    # Nobody looks into a folder that is another person's alone.
    return os.access(folder, os.X_OK) and (folder / "runs").is_symlink()


def state_dir(root: Path) -> Path:
    """The store's folder, in which what is new is written: `.tui-eval` under the root, or, where the root cannot be
    written or a link stands in its place, one of its own under the user's state folder (the caller then says so). It is
    not made here."""
    folder = root / ".tui-eval"
    place = next(one for one in (folder / "runs", folder, root) if os.path.exists(one) or one == root)
    if (
        not kept_by_link(root)
        and _can_be_written(place)
        and (place != folder / "runs" or _can_be_written(folder))
    ):
        return folder
    return _persons_dir(root)


def also_read(root: Path, written: Path) -> Path | None:
    """The store's other folder, where that is there and may be looked into: `.tui-eval` of a root that cannot
    be written, or what was kept elsewhere while it could not be. `written` is the one of `state_dir`."""
    folder = root / ".tui-eval"
    other = _persons_dir(root) if written == folder else folder
    if (other == folder and kept_by_link(root)) or not _can_be_read(other):
        return None
    return other


def closed_to_us(root: Path) -> Path | None:
    """The folder of a root's runs where it is there and another person's alone: of these nobody knows anything."""
    if kept_by_link(root):
        return None
    runs = root / ".tui-eval" / "runs"
    closed = next(
        (one for one in (runs.parent, runs) if os.path.lexists(one) and not _can_be_read(one)), None
    )
    if closed is not None or not os.path.isdir(runs):
        return closed
    with suppress(OSError), os.scandir(runs) as entries:  # root's among a person's, of a container
        names = sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
        return next((runs / name for name in reversed(names) if not _can_be_read(runs / name)), None)
    return None


def _can_be_read(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


def _can_be_written(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _persons_dir(root: Path) -> Path:
    from tui_eval.guard.trust_store import state_home

    digest = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    return state_home() / "projects" / f"{root.name or 'root'}-{digest}"
