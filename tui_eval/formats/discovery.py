"""Finding suites below a folder, quickly: thousands of files are looked at, few are parsed.

What counts in a folder the formats say. Hidden folders, `node_modules`, virtual environments and `outputs` are skipped,
other files ignored; but what was meant as a suite and is none by a slip (`near_miss`) is an error, so is what the
tool of a format would refuse, and other YAML below a `tests/` folder that is not taken is a note.
Links to folders are followed within the project, each folder once.
A file named outright must be a suite.
"""

from __future__ import annotations

import codecs
import errno
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from tui_eval.formats import added_formats, all_formats, not_loaded
from tui_eval.formats.format import Format
from tui_eval.formats.near_miss import PassedOver
from tui_eval.guard.paths import confine, inside, leads_out, read_file, resolve
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Problem

SKIPPED = frozenset({"node_modules", "outputs", "__pycache__", "site-packages"})
OWN_FILES = frozenset({"tui_eval.yaml", "tui_eval.yml", "nao_config.yaml", "nao_config.yml"})

LARGEST = 64 * 2**20
"""Bytes; a larger file is only read when it is named outright."""


class LookedInto(NamedTuple):
    """A folder that a search has looked into: its time, size and number then, and the names in it that could be suites
    or hold some."""

    stamp: tuple[int, int, int]
    names: set[str]


Looked = dict[str, LookedInto]
"""The folders that a search has looked into, by their absolute paths."""


def looks_for() -> str:
    """What a suite is, for somebody whose file is none."""
    kinds = [one.looks_for for one in all_formats() if one.looks_for]
    return (
        f"a suite is {', '.join(kinds[:-1])}, or {kinds[-1]}" if len(kinds) > 1 else f"a suite is {kinds[0]}"
    )


def discover(
    paths: Sequence[Path],
    root: Path,
    configs: Collection[str] = (),
    trust: Trust | None = None,
    looked: Looked | None = None,
) -> tuple[list[Path], list[Problem]]:
    """The suite files that `paths` name or hold, absolute, each once, sorted by path. `configs` are suites because
    the person says so (`-c`). The folders below are added to `looked`.

    A link in a folder that leads out of the project is only followed with `trust`; one that is named outright is.
    Relative paths are relative to the current folder. Returned problems: a path that does not
    exist or cannot be read, a folder below that cannot be read, a file named outright that is no
    suite, one below a folder that was meant as a suite, broken or empty YAML where nao expects a test; and notes of
    files that were passed over although people may count on them (see `remaining`).
    """
    found: set[Path] = set()
    cure = "mend or uninstall the package: its suites are passed over"
    problems = [Problem("", 0, "", line, cure, "note") for line in not_loaded()]
    for path in paths:
        absolute = Path(os.path.abspath(path))
        shown = suite_path(absolute, root)
        try:
            if absolute.is_dir():
                problems += _search(absolute, root, found, trust or Trust(), looked)
            elif not absolute.exists():
                problems.append(
                    Problem(shown, 0, "", "there is no such file or folder", _what_there_is(absolute))
                )
            elif str(absolute) in configs:
                found.add(absolute)
            else:
                data = _as_utf8(read_file(absolute))
                if _is_suite(absolute, data, root, named=True):
                    found.add(absolute)
                else:
                    problems += why_none(shown, data.decode("utf-8-sig", "replace"), root)
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(Problem(shown, 0, "", f"cannot be read: {text}"))
    return sorted(found, key=lambda file: file.parts), problems


def new_in(folders: Iterable[str], looked: Looked, root: Path, trust: Trust) -> tuple[list[Path], list[Path]]:
    """What is new in folders that a search has looked into, and in folders that are new there: suites (and what was
    meant as one), and other files that may become one when they are saved again. They are looked into then."""
    suites: list[Path] = []
    others: list[Path] = []
    for folder in folders:
        for file in _walk(Path(folder), root, [], looked):
            (suites if is_or_was_meant(file, root, trust) else others).append(file)
    return suites, others


def is_or_was_meant(file: Path, root: Path, trust: Trust) -> bool:
    """Whether a search takes this file for a suite, or says what is wrong with it."""
    found: set[Path] = set()
    return any(one.level == "error" for one in _look_at(file, file.parent, root, found, trust)) or bool(found)


def _what_there_is(missing: Path) -> str:
    """What somebody who named a path that does not exist may have meant."""
    folder = missing.parent
    suite, colons, case = str(missing).partition("::")
    if colons and case and os.path.exists(suite):  # as pytest has it, and as a case's id reads
        shown = os.path.relpath(suite)
        return f"a case is chosen with -s: {shlex.quote(shown)} -s {shlex.quote(case)}"
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return f"there is no folder {folder} either"
    slip = close_to(missing.name, names)
    if slip:
        return f"did you mean {slip}?"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"there are: {', '.join(names[:8])}{more}" if names else "its folder is empty"


def _search(
    folder: Path, root: Path, found: set[Path], trust: Trust, looked: Looked | None = None
) -> list[Problem]:
    """Add the suites below a folder; a file that could be one and cannot be read is a problem, since
    a run without it would be green."""
    problems: list[Problem] = []
    for file in _walk(folder, root, problems, looked):
        problems += _look_at(file, folder, root, found, trust)
    return problems


def _look_at(file: Path, folder: Path, root: Path, found: set[Path], trust: Trust) -> list[Problem]:
    """Add one file below a folder to `found` if it is a suite; else what is wrong with it."""
    try:
        if leads_out(root, file) and leads_out(folder, file):
            confine(root, file, trust)
        data = _as_utf8(read_file(file))
        if _is_suite(file, data, root):
            found.add(file)
            return []
        shown, text = suite_path(file, root), data.decode("utf-8-sig", "replace")
        return _refused(file, shown) or _meant(shown, text, root) or _not_taken(file, shown)
    except NeedsTrust as error:
        # Whether it is a suite is not known: nothing of it has been read.
        what = f"a link that leaves the project is not followed: {error}"
        return [Problem(suite_path(file, root), 0, "", what, "or name the file outright")]
    except FileNotFoundError:  # gone since the folder was listed
        return []
    except OSError as error:
        return [Problem(suite_path(file, root), 0, "", f"cannot be read: {error.strerror}")]


def _refused(file: Path, shown: str) -> list[Problem]:
    """What a format's own tool would refuse the file for, so that it is not passed over."""
    return next((found for one in all_formats() if (found := one.refused(file, shown))), [])


def _meant(shown: str, text: str, root: Path) -> list[Problem]:
    """Why a file is none of the suites that it was meant as, by the first format that knows it; empty: by none."""
    if shown.rpartition("/")[2] in OWN_FILES:
        return []
    file = PassedOver(shown, text, root)
    for one in all_formats():
        with suppress(Exception):  # another package's format must not hide the rest
            if found := one.meant(file):
                return found
    return []


def why_none(shown: str, text: str, root: Path) -> list[Problem]:
    """Why a file that is named outright is no suite."""
    meant = [replace(one, level="error", passed_over=False) for one in _meant(shown, text, root)]
    return meant or [Problem(shown, 0, "", "not recognised as a suite", looks_for())]


def _not_taken(file: Path, shown: str) -> list[Problem]:
    """A note for YAML below a `tests/` folder that is no suite: people keep their tests there, and one
    that is not run would otherwise not be missed. Whether something else reads it is not known yet."""
    ending = file.suffix.lower()
    below_tests = "/tests/" in f"/{shown}"
    if not below_tests or ending not in (".yaml", ".yml") or file.name in OWN_FILES:
        return []
    likely = (one.looks_for for one in all_formats() if ending in one.endings)
    cure = f"a suite of such a name is {' or '.join(likely)}"
    return [Problem(shown, 0, "", "not taken: it is no suite", cure, "note", passed_over=True)]


def _walk(folder: Path, root: Path, problems: list[Problem], looked: Looked | None = None) -> Iterator[Path]:
    """Files that could be suites by their name. Folders below that cannot be read, and links that lead nowhere or are
    not followed, are added to `problems`. In a folder that has been `looked` into only what is new since counts."""
    waiting, links, seen = [str(folder)], list[str](), set[tuple[int, int]]()
    while waiting or links:
        # What a link leads to may lie below the folder itself, and has its own name then.
        linked = not waiting
        current = links.pop() if linked else waiting.pop()
        try:
            status = os.stat(current)
            if (status.st_dev, status.st_ino) in seen:
                continue
            if linked and (why := _not_followed(Path(current), folder, root)):
                problems.append(_of_link(Path(current), root, why))
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(current) as entries:
                listed = list(entries)
        except FileNotFoundError:  # gone since its folder was listed
            continue
        except OSError as error:
            shown = suite_path(current, root)
            cure = "make it readable, or name the folders that are meant"
            problems.append(Problem(shown, 0, "", f"the folder cannot be read: {error.strerror}", cure))
            continue
        known, names = set[str](), set[str]()
        if looked is not None:
            known = looked[current].names if current in looked else known
            looked[current] = LookedInto((status.st_mtime_ns, status.st_size, status.st_ino), names)
        for entry in listed:
            name = entry.name
            try:
                if looked is not None and (entry.is_dir() or _could_be(name)):
                    names.add(name)
                if name in known:
                    continue
                if entry.is_dir():
                    if not name.startswith(".") and name not in SKIPPED and not _is_venv(entry.path):
                        (links if entry.is_symlink() else waiting).append(entry.path)
                elif _could_be(name) and entry.is_file():
                    if entry.stat().st_size <= LARGEST:
                        yield Path(entry.path)
                        continue
                    what, cure = f"not read: larger than {LARGEST >> 20} MB", "name it outright to read it"
                    # What is a suite by its name would be missed; another one may be data.
                    claimed = _claimed(name)
                    level = "error" if claimed else "note"
                    shown = suite_path(entry.path, root)
                    problems.append(Problem(shown, 0, "", what, cure, level, passed_over=not claimed))
                elif _could_be(name) and entry.is_symlink():
                    what = "cannot be read: it is a link, and leads to no file"
                    problems.append(
                        Problem(suite_path(entry.path, root), 0, "", what, "mend or remove the link")
                    )
                elif _could_be(name) and entry.stat():  # unless it is gone since its folder was listed
                    what, cure = "cannot be read: it is no ordinary file", "rename or remove it"
                    problems.append(Problem(suite_path(entry.path, root), 0, "", what, cure))
            except OSError as error:
                # In a circle, or into a folder that is closed; or in one whose names alone can be read.
                if (entry.is_symlink() or error.errno == errno.EACCES) and _could_be(name):
                    what = f"cannot be read: {error.strerror}"
                    problems.append(Problem(suite_path(entry.path, root), 0, "", what))


def _not_followed(link: Path, folder: Path, root: Path) -> str:
    """Why a link to a folder is not followed below `folder`; empty: it is."""
    if not inside(root, link):
        return "leads out of the project"
    return "leads to a folder above" if resolve(folder, root).is_relative_to(resolve(link, root)) else ""


def _of_link(link: Path, root: Path, why: str) -> Problem:
    """A note: nobody knows whether there are suites behind it."""
    what = f"not looked into: a link that {why}"
    cure = "name the folder itself if its suites are meant"
    return Problem(suite_path(link, root), 0, "", what, cure, "note", passed_over=True)


def suite_path(path: str | Path, root: Path) -> str:
    """A file's path from the project root, with forward slashes, also where a link leads into it."""
    relative = os.path.relpath(path, root)
    if relative.startswith(os.pardir):
        followed = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
        relative = relative if followed.startswith(os.pardir) else followed
    return Path(relative).as_posix()


def _could_be(name: str) -> bool:
    if _claimed(name):
        return True
    wanted = name.lower().endswith(_endings()) or _added(name)
    return wanted and name not in OWN_FILES and not name.startswith(".")


def _claimed(name: str) -> bool:
    return any(one.claims(name) for one in all_formats())


@cache
def _endings() -> tuple[str, ...]:
    """The endings of files that are looked at below a folder."""
    return tuple(dict.fromkeys(ending for one in all_formats() for ending in one.endings))


@cache
def _hints() -> tuple[bytes, ...]:
    """Texts of which a suite of ours holds at least one."""
    return tuple(dict.fromkeys(hint for one in all_formats() for hint in one.hints))


def _added(name: str) -> bool:
    """Whether another package reads files with this ending, and says no text that they hold."""
    return any(name.endswith(ending) for one in added_formats() if not one.hints for ending in one.endings)


def _is_venv(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def _as_utf8(data: bytes) -> bytes:
    """A text in UTF-16 or UTF-32, as some editors and shells save it, is known for what it is: whoever reads the
    suite then says that it is not UTF-8, where it would otherwise not be missed."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        kind = "utf-32"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        kind = "utf-16"
    elif b"\0" in data[:2]:
        kind = "utf-16-be" if data[0] == 0 else "utf-16-le"
    else:
        return data
    return data.decode(kind, "replace").encode("utf-8", "replace")


def _is_suite(file: Path, data: bytes, root: Path, *, named: bool = False) -> bool:
    if file.name in OWN_FILES:
        return False
    if (
        not named
        and not _claimed(file.name)
        and not _added(file.name)
        and not any(hint in data for hint in _hints())
    ):
        return False
    text = data.decode("utf-8-sig", "replace")
    return reader_for(suite_path(file, root), text, root, by_name=not named) is not None


def reader_for(path: str, text: str, root: Path, *, by_name: bool = False) -> Format | None:
    """The format of a file, None where it is no suite.

    Args:
        path: the file from the project root.
        by_name: formats whose suites have names of their own count for such files only.
    """
    relative = Path(path)
    formats = all_formats()
    # Another package's format must not hide the rest.
    if not any(one.claims(relative.name) for one in formats):
        for one in formats:
            with suppress(Exception):
                if one.recognises_surely(relative, text):
                    return one
    for one in formats:
        if by_name and one.by_name_only and not one.claims(relative.name):
            continue
        with suppress(Exception):
            if one.recognises(relative, text):
                return one
    for one in formats:
        with suppress(Exception):
            if one.recognises_by_includes(path, text, root):
                return one
    return None
