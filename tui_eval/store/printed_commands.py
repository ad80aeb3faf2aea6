"""Commands that are printed for a person to run again: with what they need to do what they say.

What a person typed for a run (an agent that is code, `--trust`) is trusted for that run alone: its record is
a file like others, so that who goes on with it types it again, and the printed command says so.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_eval.config.config_values import is_loopback
from tui_eval.config.project import CONFIG_NAME, find_root
from tui_eval.guard.secrets import MASK
from tui_eval.guard.text import REPLACEMENT, storable_text, visible
from tui_eval.guard.trust import fingerprints
from tui_eval.store.schema import KEEPS_ANSWERS, PLACE_LOST, RunInfo

_ONCE = (("judge", "--judge"), ("compat", "--compat"), ("prompt_prefix", "--prompt-prefix"),
         ("prompt_suffix", "--prompt-suffix"), ("threshold", "--threshold"), ("timeout", "--timeout"), ("on", "--on"))  # fmt: skip
_ASKED_AGAIN = "asked again"
"""Among options that no record has: that nothing is taken of what is kept."""
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
_NAMED = re.compile(r"([\w.-]+)=$")
_SHELLS = {
    "CDPATH", "COLUMNS", "DISPLAY", "EDITOR", "ENV", "EUID", "FUNCNAME", "GROUPS", "HOME", "HOST", "HOSTNAME",
    "HOSTTYPE", "IFS", "LANG", "LINENO", "LINES", "LOGNAME", "MACHTYPE", "MAIL", "OLDPWD", "OPTARG", "OPTIND",
    "OSTYPE", "PAGER", "PATH", "PPID", "PWD", "RANDOM", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL",
    "TERM", "TMPDIR", "TTY", "TZ", "UID", "USER", "USERNAME", "_", "STATUS", "ARGV", "PIPESTATUS", "PS1", "PS2",
    "PS4",
}  # fmt: skip
"""Variables that a shell has set itself, or that mean something to it: as a secret's name they would stand for that."""
_SHELLS_OWN = ("BASH", "LC_", "LD_", "ZSH", "SSH_", "XDG_")


class AsShown(str):
    """A word that is meant as a record shows it, masks and all: `-s` finds a case by that."""


def resume_command(
    reference: str | Path, options: Mapping[str, Any], *, unnamed: Collection[str] = ("here", "ray")
) -> str:
    """Goes on with a run; `options` are those it was started with (`RunInfo.options`). `unnamed` are places
    that the run's record names well enough."""
    words = ["tui-eval", "resume", str(reference), *_env_files(options)]
    words += [word for agent in _texts(options, "agents") if by_typing(agent) for word in ("--agent", agent)]
    given = options.get("vars")
    for name, value in given.items() if isinstance(given, dict) else ():
        if MASK in str(value):
            words += ["--var", f"{name}={value}"]
    judge = options.get("judge")
    if isinstance(judge, str) and by_typing(judge):
        words += ["--judge", judge]
    on = options.get("on")
    if isinstance(on, str) and on not in unnamed:  # a cluster is trusted where it is typed
        words += ["--on", on]
    return shell_line([*words, *_trust(options)])


def way_on(reference: str | Path, info: RunInfo) -> str:
    """Goes on with a run that has ended without all of its results: where it was, but here where that was lost."""
    if PLACE_LOST not in info.provenance:
        return resume_command(reference, info.options)
    return resume_command(reference, {**info.options, "on": "here"}, unnamed=())


def other_way_on(info: RunInfo) -> str:
    """What else than `way_on` there is for a run whose cluster was lost; empty: nothing."""
    return "on a cluster: the same with --on HOST:PORT (or ray, ray://HOST:PORT)" * (
        PLACE_LOST in info.provenance
    )


def run_command(places: Iterable[Path], root: Path, options: Mapping[str, Any]) -> str:
    """Runs anew what a run of these places of the project at `root` ran; `options` are those it was started with."""
    places = list(places)
    words = ["tui-eval", "run", *(configs_of(options) or map(from_here, places))]
    words += project_option(places, root, options)
    for name, option in (("agents", "--agent"), ("models", "-m"), ("select", "-s")):
        for value in _texts(options, name):
            words += [option, AsShown(value) if name == "select" else value]
    return shell_line([*words, *run_options(options)])


def asked_again(info: RunInfo) -> dict[str, Any]:
    """The options of a run for who runs a case of it once more: what it answered may be kept, and is no
    answer to that; and a cluster that was lost is no place for it."""
    changed: dict[str, Any] = {}
    if info.provenance.get(KEEPS_ANSWERS) is True:
        changed[_ASKED_AGAIN] = True
    if PLACE_LOST in info.provenance:
        changed["on"] = "here"
    return {**info.options, **changed}


def are_known(options: Mapping[str, Any]) -> bool:
    """Whether it is known what a run was asked with: a results file does not say it, whatever `asked_again` adds."""
    return bool(options.keys() - {_ASKED_AGAIN, "on"})


def rescore_command(reference: str | Path, options: Mapping[str, Any]) -> str:
    """Judges a run's answers again; `options` are those of the run that did it."""
    words = ["tui-eval", "rescore", str(reference), *_env_files(options)]
    judge = options.get("judge")
    if isinstance(judge, str):
        words += ["--judge", judge]
    return shell_line([*words, *_trust(options)])


def run_options(options: Mapping[str, Any]) -> list[str]:
    """What else a case needs to be run as it was in a run, beside its place and its column."""
    words = _env_files(options)
    if isinstance(file := options.get("config_file"), str):
        words += ["--config", from_here(file)]
    if isinstance(attempts := options.get("attempts"), int) and attempts > 1:
        words += ["--attempts", str(attempts)]
    for name, option in _ONCE:
        value = options.get(name)
        if isinstance(value, str | float | int) and not isinstance(value, bool):
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    if isinstance(kept := options.get("cache"), bool):
        words.append("--cache" if kept else "--no-cache")
    if options.get(_ASKED_AGAIN) is True:
        words.append("--anew")
    given = options.get("vars")
    for name, value in given.items() if isinstance(given, dict) else ():
        words += ["--var", f"{name}={value}"]
    return [*words, *_trust(options)]


def project_option(places: Sequence[Path], root: Path, options: Mapping[str, Any]) -> list[str]:
    """`--config` with the configuration of the project at `root`, where these places alone would be another's: a
    `tui_eval.yaml` lies nearer to them."""
    file = root / CONFIG_NAME
    if isinstance(options.get("config_file"), str) or not places or not file.is_file():
        return []
    return ["--config", from_here(file)] if _elsewhere(places, root) else []


def by_root_alone(suite: str, root: Path, options: Mapping[str, Any]) -> bool:
    """Whether a suite would be of another project by its own path, and this one has no configuration to name: then the
    root is, with the whole id of a case."""
    named = isinstance(options.get("config_file"), str) or (root / CONFIG_NAME).is_file()
    # Others are not found from the root.
    below = not os.path.isabs(suite) and Path(suite).parts[:1] != ("..",)
    # One found in its own folders: where none is, the current folder is the root, and that is this one for who runs it.
    return below and not named and Path(os.path.abspath(root)) in find_root([root / suite])[0].parents


def _elsewhere(places: Sequence[Path], root: Path) -> bool:
    return find_root(places)[0] != Path(os.path.abspath(root))


def configs_of(options: Mapping[str, Any]) -> list[str]:
    """promptfoo's configurations (`-c`) as a run was given them; none where the suite stands for itself. Named
    so, a file need not be called as a suite is."""
    return [word for path in _texts(options, "configs") for word in ("-c", from_here(path))]


def by_typing(name: str) -> bool:
    """Whether an agent of that name (`--agent`, `--judge`), where it is no configured one, is trusted only
    because it is typed: code, a server elsewhere, or an address of which a part is in no record."""
    if MASK in name:
        return True
    if name.startswith(("http://", "https://")):
        return not is_loopback(name)
    before, colon, function = name.rpartition(":")
    if not colon or not function.isidentifier():
        return False
    return before.endswith(".py") or "." in before


def _trust(options: Mapping[str, Any]) -> list[str]:
    """The options for a trust that nobody remembers: all of it, or just what was agreed to for that time."""
    if options.get("trust") is True:
        return ["--trust"]
    agreed = _texts(options, "agreed")
    return ["--trust-only", fingerprints(agreed)] if agreed else []


def _env_files(options: Mapping[str, Any]) -> list[str]:
    return [word for path in _texts(options, "env_files") for word in ("--env-file", from_here(path))]


def _texts(options: Mapping[str, Any], name: str) -> list[str]:
    given = options.get(name)
    return [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []


def shell_line(words: Iterable[str]) -> str:
    """The words as one line, each quoted where a shell needs it; each secret that was masked has a name of its own."""
    taken: set[str] = set()
    return " ".join(quoted(word, taken) for word in words)


def quoted(word: str, taken: set[str] | None = None) -> str:
    """A word that a shell reads as it is, and in which the terminal's border (`visible`) has nothing to
    replace: control characters and bytes that are no text stand in `$'…'` (bash, zsh, ksh, POSIX 2024) in
    octal, which has the same three digits in all of these. No command can be given NUL or half a surrogate
    pair: a picture stands for these. A secret that was masked is a variable of the shell, which says so where
    it is not set; `taken` are the names of others."""
    if MASK in word and not isinstance(word, AsShown):
        return _with_variables(word, set() if taken is None else taken)
    try:
        word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        word = storable_text(word)
    if "\0" in word:
        word = visible(word, newlines=False)
    shown = visible(word, newlines=False)
    if shown == word:
        return shlex.quote(word)
    parts = (
        _escaped(one) if one != seen or one in "\\'" else one for one, seen in zip(word, shown, strict=True)
    )
    return f"$'{''.join(parts)}'"


def _with_variables(word: str, taken: set[str]) -> str:
    parts = word.split(MASK)
    line = quoted(parts[0]) if parts[0] else ""
    before = parts[0]
    for part in parts[1:]:
        wanted = name = _variable_after(before)
        number = 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        line += f'"${{{name}:?masked here, set it first}}"'
        line += quoted(part) if part else ""
        before = part
    return line


def _variable_after(text: str) -> str:
    """A name for what was masked behind a text: `api_token=` and `?api_token=` make it API_TOKEN."""
    named = _NAMED.search(text)
    if named is not None:
        name = re.sub(r"\W", "_", named[1], flags=re.ASCII).upper()
        if name in _SHELLS or name.startswith(_SHELLS_OWN):
            return f"SECRET_{name}"
        return f"_{name}" if name[0].isdigit() else name
    return "PASSWORD" if re.search(r"://[^/]*:$", text) else "SECRET"


def _escaped(character: str) -> str:
    return _ESCAPES.get(character) or "".join(
        f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape")
    )


def from_here(path: str | Path) -> str:
    """A file's path from the current folder, as its command is run there; never taken for an option."""
    found = os.path.relpath(_on_disk(Path(path)))
    return f"./{found}" if found.startswith("-") else found


def _on_disk(path: Path) -> Path:
    """The file that was recorded as this path: a record holds no bytes that are no text, a file's name may."""
    if REPLACEMENT not in str(path) or path.exists():
        return path
    folder = _on_disk(path.parent)
    try:
        there = [name for name in os.listdir(folder) if storable_text(name) == path.name]
    except OSError:
        return path
    return folder / there[0] if len(there) == 1 else path
