"""Where an answer is right and the case is wrong: the change to the suite file that makes it pass.

`propose` only reads. A change touches the characters of one value; everything else of the file stays as it
is. What cannot be changed without guessing is said in `unable` instead.
"""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tui_eval.formats import format_of
from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK, in_addresses, secret_pair, secret_values
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, shown
from tui_eval.yaml.yaml_edit import EditError, ValueNotThere
from tui_eval.yaml.yaml_lines import load_all

if TYPE_CHECKING:
    from tui_eval.formats.format import Editor


class Change(NamedTuple):
    """One value of a file that would become another. `before` and `after` are shown to people, `path` is
    from the project root, `line` counts from 1, `diff` is unified."""

    path: str
    line: int
    before: str
    after: str
    diff: str


class Proposal(NamedTuple):
    """What accepting an attempt comes to: its changes in order, what cannot be changed and why, for
    each file (absolute) its text before and after all changes, and what else to know of the changes."""

    changes: list[Change]
    unable: list[str]
    texts: dict[str, tuple[str, str]]
    notes: list[str]

    @property
    def diff(self) -> str:
        """All changes as one unified diff."""
        names = dict.fromkeys(change.path for change in self.changes)
        return "".join(diff_of(name, *texts) for name, texts in zip(names, self.texts.values(), strict=True))


def propose(case: Case, attempt: Attempt, root: Path) -> Proposal:
    """The changes after which this attempt's answer passes.

    Args:
        case: the case as its file has it now.
        attempt: the recorded answer, with what was judged of it.
        root: the project root.
    """
    proposal = Proposal([], [], {}, [])
    files: dict[str, _File] = {}
    for name in format_of(case.format).files_to_change(case):
        try:
            files[name] = _File(Path(os.path.abspath(root / name)))
        except (OSError, UnicodeDecodeError) as error:
            proposal.unable.append(f"{name}: {getattr(error, 'strerror', None) or 'not UTF-8'}")
            return proposal
    proposal.notes.extend(_asked_otherwise(case, attempt))
    lines = _LinesNow(case)
    # From the end, so that the lines before keep their numbers.
    placed = [msgspec.structs.replace(v, line=lines.of(v)) for v in attempt.verdicts]
    for verdict in sorted(placed, key=lambda verdict: -verdict.line):
        if not _can_be_mended(verdict) or verdict.type in ("assert-set", "suite"):
            continue
        if verdict.line < 0:
            proposal.unable.append(
                f"{verdict.type}: the case does not ask for this any more: run it again (r)"
            )
            continue
        problem: EditError | None = None
        for name, file in files.items():
            try:
                edited = _editor(file.path, case)(file.new, case, verdict, attempt)
                if edited.text.count(MASK) > file.new.count(MASK):
                    raise EditError(f"the record has {MASK} for a secret in it: edit the case (e)")
            except ValueNotThere as why:
                problem = problem or why
                continue
            except EditError as why:
                problem = why
                break
            problem = None
            if edited.text != file.new:
                diff = diff_of(name, file.new, edited.text)
                proposal.changes.append(Change(name, edited.line, edited.before, edited.after, diff))
                if edited.note and edited.note not in proposal.notes:
                    proposal.notes.append(edited.note)
                file.new = edited.text
            break
        if problem is not None:
            proposal.unable.append(f"{verdict.type}: {problem}")
    order = list(files)
    proposal.changes.sort(key=lambda change: (order.index(change.path), change.line))
    for file in files.values():
        if file.new != file.old:
            proposal.texts[str(file.path)] = (file.whole, with_line_ends(file.whole, file.old, file.new))
    return proposal


class _File:
    """A file as it is (`whole`), with line feeds alone (`old`; a table's cells may have either), and as it is to be
    (`new`).

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = path.read_bytes().decode("utf-8")
        table = path.suffix.lower() == ".csv"
        self.old = self.new = self.whole if table else self.whole.replace("\r\n", "\n")


def with_line_ends(whole: str, old: str, new: str) -> str:
    """The new text with the line ends of the file; where it has both kinds, each line that stays has its own
    and others have that of the line before."""
    if whole == old:
        return new
    if whole.count("\r\n") == old.count("\n"):
        return new.replace("\n", "\r\n")
    kept = [line.endswith("\r") for line in whole.split("\n")]
    lines, fresh = old.split("\n"), new.split("\n")
    # What a change leaves before and after it need not be compared; of lines that are found everywhere, as in every
    # suite, each would be compared with each.
    least = min(len(lines), len(fresh))
    before = next((at for at in range(least) if lines[at] != fresh[at]), least)
    least -= before
    after = next((at for at in range(least) if lines[~at] != fresh[~at]), least)
    compared = difflib.SequenceMatcher(
        None, lines[before : len(lines) - after], fresh[before : len(fresh) - after]
    )
    made: list[str] = []
    places = [
        ("equal", 0, before, 0, before),
        *((what, *(place + before for place in among)) for what, *among in compared.get_opcodes()),
        ("equal", len(lines) - after, len(lines), len(fresh) - after, len(fresh)),
    ]
    for _, i1, i2, j1, j2 in places:
        for offset, line in enumerate(fresh[j1:j2]):
            at = i1 + offset if i1 + offset < i2 else max(i2 - 1, 0)
            made.append(line + ("\r" if kept[at] else ""))
    made[-1] = made[-1].removesuffix("\r")
    return "\n".join(made)


class _LinesNow:
    """Where a case's assertions stand now; the file may have changed since they were judged, and another case stand
    where they were."""

    def __init__(self, case: Case) -> None:
        self._found: dict[tuple[str, str, int | None], list[int]] = {}
        self._all: dict[tuple[str, int | None], list[int]] = {}
        # Those whose value a verdict does not have: a limit alone, and templates, which it has filled in.
        self._open: dict[tuple[str, int | None], list[int]] = {}
        self._of_file = case.line > 0
        listed = [(None, one) for one in case.assertions]
        listed += [(number, one) for number, turn in enumerate(case.turns, 1) for one in turn.assertions]
        for number, one in listed:
            turn = one.turn or number
            value = shown(None if one.value is msgspec.UNSET else one.value)
            self._found.setdefault((one.type, value, turn), []).append(one.line)
            if one.value is msgspec.UNSET or "{{" in value or "{%" in value:
                self._open.setdefault((one.type, turn), []).append(one.line)
            self._all.setdefault((one.type, turn), []).append(one.line)

    def of(self, verdict: Verdict) -> int:
        """Its line; -1 where the case asks for nothing like it any more."""
        found = self._found.get(_key(verdict), [])
        if len(found) == 1 and found[0]:
            return found[0]
        unsaid = self._open.get((verdict.type, verdict.turn), [])
        if not found and len(unsaid) == 1 and unsaid[0]:
            return unsaid[0]
        # What was judged may be a template filled in: then its kind has to stand where it did.
        like = self._all.get((verdict.type, verdict.turn), [])
        there = not self._of_file or not verdict.line or verdict.line in (found or like)
        return verdict.line if there else -1


def _asked_otherwise(case: Case, attempt: Attempt) -> list[str]:
    """Says where the answer is one to another question than the case has now."""
    if attempt.outcome == "skipped" and attempt.message:
        return [attempt.message]  # turns were left out or edited by hand
    if not format_of(case.format).asks_as_written:
        return []
    said = {entry.turn: entry.text for entry in attempt.transcript if entry.kind == "user"}
    for number, turn in enumerate(case.turns, 1):
        was = said.get(number)
        if was is not None and turn.text is not None and was != turn.text and MASK not in was:
            return [f"turn {number} of the case reads otherwise than what was answered: r asks it"]
    return []


def _key(verdict: Verdict) -> tuple[str, str, int | None]:
    return verdict.type, shown(verdict.expected), verdict.turn


def _can_be_mended(verdict: Verdict) -> bool:
    """Whether a verdict failed, or could not be judged since the query of the case is wrong."""
    if verdict.passed is None:
        return any((one.kind, one.code) == ("sql", "query-failed") for one in verdict.evidence or ())
    return not verdict.passed


def write(proposal: Proposal) -> None:
    """Write the changed files, each at once or not at all.

    Raises:
        EditError: a file has changed since it was read, or cannot be written.
    """
    for name, (old, new) in proposal.texts.items():
        replace_file(Path(name), old, new)


def replace_file(path: Path, old: str | None, new: str) -> None:
    """Write a file in one step, its mode, owner, group and attributes kept; one that cannot be put in
    another's place with all of these (it has several names, is mounted by itself, lies in a folder that is
    closed) is written as it is. `old` is the text it must still have (None: it must not exist).

    Raises:
        EditError: it has another text by now, exists already, is read-only, or cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if old is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="") as file:
                file.write(new)
            return
        if target.read_bytes() != old.encode("utf-8"):
            raise EditError(f"{path.name} has changed meanwhile: look at the change again")
        if not os.access(target, os.W_OK):
            raise EditError(f"{path.name} is read-only")
        if not _put_in_place(target, new):
            _write_over(target, old, new)
    except FileExistsError:
        raise EditError(f"{path.name} exists already") from None
    except OSError as error:
        raise EditError(f"{path}: {error.strerror or error}") from None


def _put_in_place(target: Path, text: str) -> bool:
    """Whether a new file could take the place of another one, with all that it is beside its text."""
    found = target.stat()
    if found.st_nlink > 1:
        return False
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tui-eval-")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        made = os.stat(temporary)
        if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
            os.chown(temporary, found.st_uid, found.st_gid)
        for name in _attributes(target):
            os.setxattr(temporary, name, os.getxattr(target, name))
        os.chmod(temporary, found.st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    finally:
        with suppress(OSError):  # nothing of that name is left where it went well
            os.unlink(temporary)
    return True


def _attributes(target: Path) -> list[str]:
    try:
        return os.listxattr(target) if hasattr(os, "listxattr") else []
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []  # its disk knows none (FAT, some of the network)


def _write_over(target: Path, old: str, new: str) -> None:
    try:
        target.write_bytes(new.encode("utf-8"))
    except OSError:
        with suppress(OSError):
            target.write_bytes(old.encode("utf-8"))
        raise


def _editor(path: Path, case: Case) -> Editor:
    suffix = path.suffix.lower()

    def refuse(*_: Any) -> EditedValue:
        raise EditError(f"a {suffix or 'file without ending'} cannot be changed from here: edit it (e)")

    return format_of(case.format).editor(suffix) or refuse


def diff_of(name: str, old: str, new: str) -> str:
    """What changes between two texts of a file, unified."""
    # Lines as editors count them: a text may hold the other ends that Unicode has.
    before, after = ([*io.StringIO(text, newline="\n")] for text in (old, new))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def shown_diff(texts: Mapping[str, tuple[str, str]], case: Case, known: Iterable[str]) -> str:
    """What changes in files, for a screen: as `diff_of` for each name with its texts, with secrets masked as in records
    (those `known`, those of the case's agents, values under names of secrets). May take long: call it in a thread."""
    found = list(known)
    form = format_of(case.format)
    for provider in form.providers(case):
        if isinstance(provider, dict):
            found += [*secret_values(provider), *form.secrets(provider)]
    for name, both in texts.items():
        if Path(name).suffix.lower() in (".yaml", ".yml", ".json"):
            for document in (each for text in both for each in load_all(text, name)):
                found += secret_values({"": document.value})
    masker = Masker(line for value in found for line in (value, *map(str.strip, value.splitlines())))
    diff = masker.text("".join(diff_of(name, *both) for name, both in texts.items()))
    return "".join(_ONE_VALUE.sub(_masked_value, in_addresses(line)) for line in diff.splitlines(True))


_ONE_VALUE = re.compile(r"""^([-+ ]\s*(?:-\s+)?["']?([\w.-]+)["']?\s*[:=]\s*)([^\s{\[|>&*#][^\r\n]*)""")
"""A line with a key and the value of it, in YAML, JSON and HOCON: masked whatever its length."""


def _masked_value(found: re.Match[str]) -> str:
    value = found[3].strip(" ,\"'")
    told = MASK in value or "{{" in value or "${" in value or not secret_pair(found[2], value)
    return found[0] if told else f"{found[1]}{MASK}"
