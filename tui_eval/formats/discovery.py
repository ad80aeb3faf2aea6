"""Finding suites below a folder, quickly: thousands of files are looked at, few are parsed.

What counts in a folder the formats say. Hidden folders, `node_modules`, virtual environments and `outputs` are skipped,
other files ignored; but YAML below a `tests/` folder that is not taken is a note, and an error where
the tool of a format would refuse it.
A file named outright must be a suite.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from tui_eval.formats import added_formats, all_formats, not_loaded
from tui_eval.guard.paths import confine, leads_out, read_file
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Problem

SKIPPED = frozenset({"node_modules", "outputs", "__pycache__", "site-packages"})
OWN_FILES = frozenset({"tui_eval.yaml", "tui_eval.yml", "nao_config.yaml", "nao_config.yml"})

LARGEST = 64 * 2**20
"""Bytes; a larger file is only read when it is named outright."""


def looks_for() -> str:
    """What a suite is, for somebody whose file is none."""
    kinds = [one.looks_for for one in all_formats() if one.looks_for]
    return (
        f"a suite is {', '.join(kinds[:-1])}, or {kinds[-1]}" if len(kinds) > 1 else f"a suite is {kinds[0]}"
    )


def discover(
    paths: Sequence[Path], root: Path, configs: Collection[str] = (), trust: Trust | None = None
) -> tuple[list[Path], list[Problem]]:
    """The suite files that `paths` name or hold, absolute, each once, sorted by path. `configs` are suites because
    the person says so (`-c`).

    A link in a folder that leads out of the project is only followed with `trust`; one that is named outright is.
    Relative paths are relative to the current folder. Returned problems: a path that does not
    exist or cannot be read, a folder below that cannot be read, a file named outright that is no
    suite, broken or empty YAML where nao expects a test; and notes (see `not_read`) of files that
    were passed over although people may count on them.
    """
    from tui_eval.formats.reading import from_root

    found: set[Path] = set()
    cure = "mend or uninstall the package: its suites are passed over"
    problems = [Problem("", 0, "", line, cure, "note") for line in not_loaded()]
    for path in paths:
        absolute = Path(os.path.abspath(path))
        shown = from_root(absolute, root)
        try:
            if absolute.is_dir():
                problems += _search(absolute, root, found, trust or Trust())
            elif not absolute.exists():
                problems.append(
                    Problem(shown, 0, "", "there is no such file or folder", _what_there_is(absolute))
                )
            elif str(absolute) in configs or _is_suite(absolute, root, named=True):
                found.add(absolute)
            else:
                problems.append(Problem(shown, 0, "", "not recognised as a suite", looks_for()))
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(Problem(shown, 0, "", f"cannot be read: {text}"))
    return sorted(found, key=lambda file: file.parts), problems


def _what_there_is(missing: Path) -> str:
    """What somebody who named a path that does not exist may have meant."""
    folder = missing.parent
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return f"there is no folder {folder} either"
    slip = close_to(missing.name, names)
    if slip:
        return f"did you mean {slip}?"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"there are: {', '.join(names[:8])}{more}" if names else "its folder is empty"


def _search(folder: Path, root: Path, found: set[Path], trust: Trust) -> list[Problem]:
    """Add the suites below a folder; a file that could be one and cannot be read is a problem, since
    a run without it would be green."""
    from tui_eval.formats.reading import from_root

    problems: list[Problem] = []
    for file in _walk(folder, root, problems):
        try:
            if leads_out(root, file) and leads_out(folder, file):
                confine(root, file, trust)
            if _is_suite(file, root):
                found.add(file)
            elif file.suffix in (".yaml", ".yml"):
                shown = from_root(file, root)
                problems += _refused(file, shown) or _not_taken(file, shown)
        except NeedsTrust as error:
            # Whether it is a suite is not known: nothing of it has been read.
            what = f"a link that leaves the project is not followed: {error}"
            problems.append(Problem(from_root(file, root), 0, "", what, "or name the file outright"))
        except FileNotFoundError:  # gone since the folder was listed
            continue
        except OSError as error:
            problems.append(Problem(from_root(file, root), 0, "", f"cannot be read: {error.strerror}"))
    return problems


def _refused(file: Path, shown: str) -> list[Problem]:
    """What a format's own tool would refuse the file for, so that it is not passed over."""
    return next((found for one in all_formats() if (found := one.refused(file, shown))), [])


def _not_taken(file: Path, shown: str) -> list[Problem]:
    """A note for YAML below a `tests/` folder that is no suite: people keep their tests there, and one
    that is not run would otherwise not be missed. Whether something else reads it is not known yet."""
    relative = Path(shown)
    if "tests" not in relative.parts[:-1] or file.name in OWN_FILES:
        return []
    text = read_file(file).decode("utf-8-sig", "replace")
    named = next((cure for one in all_formats() if (cure := one.cure_if_passed_over(relative, text))), "")
    likely = (one.looks_for for one in all_formats() if relative.suffix in one.endings)
    cure = named or f"a suite of such a name is {' or '.join(likely)}"
    return [Problem(shown, 0, "", "not taken: it is no suite", cure, "note")]


def _walk(folder: Path, root: Path, problems: list[Problem]) -> Iterator[Path]:
    """Files that could be suites by their name; links to folders are not followed. A folder below
    that cannot be read is added to `problems`."""
    from tui_eval.formats.reading import from_root

    waiting = [str(folder)]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(current) as entries:
                listed = list(entries)
        except FileNotFoundError:  # gone since its folder was listed
            continue
        except OSError as error:
            shown = from_root(Path(current), root)
            cure = "make it readable, or name the folders that are meant"
            problems.append(Problem(shown, 0, "", f"the folder cannot be read: {error.strerror}", cure))
            continue
        for entry in listed:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not name.startswith(".") and name not in SKIPPED and not _is_venv(entry.path):
                        waiting.append(entry.path)
                elif _could_be(name) and entry.is_file():
                    if entry.stat().st_size <= LARGEST:
                        yield Path(entry.path)
                        continue
                    shown = from_root(Path(entry.path), root)
                    what, cure = f"not read: larger than {LARGEST >> 20} MB", "name it outright to read it"
                    # What is a suite by its name would be missed; another one may be data.
                    level = "error" if _claimed(name) else "note"
                    problems.append(Problem(shown, 0, "", what, cure, level))
            except OSError:
                continue


def _could_be(name: str) -> bool:
    if _claimed(name):
        return True
    wanted = name.endswith(_endings()) or _added(name)
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


def _is_suite(file: Path, root: Path, *, named: bool = False) -> bool:
    from tui_eval.formats.reading import from_root, reader_for

    if file.name in OWN_FILES:
        return False
    data = _as_utf8(read_file(file))
    if (
        not named
        and not _claimed(file.name)
        and not _added(file.name)
        and not any(hint in data for hint in _hints())
    ):
        return False
    text = data.decode("utf-8-sig", "replace")
    return reader_for(from_root(file, root), text, root, by_name=not named) is not None
