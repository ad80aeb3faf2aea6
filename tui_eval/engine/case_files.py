"""The files and the variables that a case names: in its texts, variables, assertions and options, in the templates that
these take in, and in the settings of its suite."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.agents import of_templates
from tui_eval.config.config_values import texts_in, variables_in
from tui_eval.engine.agent_files import IN_FOLDERS, names_network_file, network_and_included, program_files
from tui_eval.engine.grader_choice import graders_named
from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.guard.paths import inside, read_plain
from tui_eval.guard.trust import CODE_ENDINGS
from tui_eval.model import Case
from tui_eval.store.encoding import encode_json

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is looked into."""
_CODE = frozenset((*CODE_ENDINGS, ".sh"))
_PREFIX = "file://"
_ENDS = r"[\s:*?\"'<>|,;)\]}`]"
"""Where a name in a text may end. Any of them may also be a part of it: which it is, the files say."""
_MOST_ENDS = 24
_MOST_NAMES = 1_000  # after `file://` in one text
_LONGEST = 4096  # of a path
_WORD = r"(?<![\w./-])[\w.-][\w./-]*\.\w{1,5}(?=$|[\s:])"


def case_files(case: Case, base: Path, root: Path, texts: set[str] | None = None) -> set[Path]:
    """All files that a case names, with the code beside them. `texts` takes what names them."""
    if not _may_name_files(case):
        return set()
    found = question_files(case, base, root, texts) | verdict_files(case, base, root, texts)
    return set(with_code(sorted(found)))


def _may_name_files(case: Case) -> bool:
    """Whether anything of a case is as what names a file; of most nothing is, and it is looked at only once."""
    body = encode_json(case)
    return b"file://" in body or b"{%" in body or any(_prompt_code(case)) or names_network_file(case.agent)


def question_files(case: Case, base: Path, root: Path, texts: set[str] | None = None) -> set[Path]:
    """The files that make what a case sends: those that its texts and the variables in them name, the code of its
    prompt, and the agent network that it asks by its file. `texts` takes what names them."""
    given = [(turn.text, turn.sly_data, turn.chat_filter) for turn in case.turns]
    variables = [case.vars[name] for name in sent_variables(case)]
    found = files_named([given, variables], case.format, base, root, texts)
    if format_of(case.format).network_is_agent and names_network_file(case.agent):
        found.update(network_and_included(case.agent, root))
        if texts is not None:
            texts.add(case.agent)
    for code in _prompt_code(case):
        if texts is not None:
            texts.add(code if isinstance(code, str) else os.path.relpath(root / code, root))
        found.update(program_files(code if isinstance(code, str) else root / code, base))
    return found


def verdict_files(case: Case, base: Path, root: Path, texts: set[str] | None = None) -> set[Path]:
    """The files that a case's assertions, options and variables that it does not send name. `texts` as above."""
    sent = sent_variables(case)
    variables = [value for name, value in case.vars.items() if name not in sent]
    return files_named([case.asserted, case.options, case.beside, variables], case.format, base, root, texts)


def sent_variables(case: Case) -> set[str]:
    """The variables that its texts name, what stands around these, and variables among them; code that makes the
    prompt gets them all."""
    if not case.vars:
        return set()
    if any(_prompt_code(case)):
        return set(case.vars)
    around = [format_of(case.format).sent_around(case), case.provider]
    texts = [*(turn.text or "" for turn in case.turns), *(text for text in texts_in(around) if "{{" in text)]
    found: set[str] = set()
    while texts:
        text = texts.pop()
        named = {name for name in case.vars.keys() - found if re.search(rf"\b{re.escape(name)}\b", text)}
        found |= named
        texts += [text for text in texts_in([case.vars[name] for name in named]) if "{{" in text]
    return found


MAY_NAME = re.compile(rb"\Ax|env|\$\{|file:|\{%")
"""What the bytes of a case hold that names a variable; of packed ones nobody can tell."""
_OF_NODE = ("process.env", "process?.env")


def named_variables(jobs: Iterable[Job], root: Path) -> set[str]:
    """The variables of the person's environment that suites name: `env.NAME` in templates, also in those that
    are taken in or stand in a file that a case names, and in JavaScript; `${NAME}` in the entries of agents
    and graders. Not those that a suite has itself."""
    found: set[str] = set()
    files: dict[Path, set[str]] = {}
    seen: set[tuple[int, ...]] = set()
    for job in jobs:
        own = job.settings.get("env") or {}
        shared = id(job.spec), id(job.settings)
        if shared not in seen:
            seen.add(shared)
            entry = encode_json(job.spec).decode() if job.spec is not None else ""
            bodies = (
                [
                    text_of(path, root)
                    for path in files_in_texts(job.spec.options, Path(job.spec.base or root), plain=False)
                ]
                if job.spec is not None and of_templates(job.spec)
                else []
            )
            found |= {*variables_read([job.settings, job.spec, bodies]), *variables_in(entry)} - own.keys()
        if (id(job.held), id(job.settings)) in seen:
            continue
        seen.add((id(job.held), id(job.settings)))
        if not MAY_NAME.search(job.held if isinstance(job.held, bytes) else encode_json(job.held)):
            continue
        case = job.case
        named = {*variables_read(case), *variables_in(encode_json(list(graders_named(case))).decode())}
        for path in question_files(case, job.base, root) | verdict_files(case, job.base, root):
            if path not in files:
                files[path] = set(variables_read(text_of(path, root)))
            named |= files[path]
        # What an assertion names is the person's, whatever the suite's own `env` says.
        found |= (named - own.keys()) | set(variables_read([case.asserted, case.options]))
    return found - {UNNAMED}


UNNAMED = ""
"""Stands for variables that are read by names which the template does not say."""


def variables_read(value: Any, own: bool = False) -> Iterator[str]:
    """Those that templates and JavaScript in a value name; `own`: `env` in templates is a variable of the case."""
    for text in texts_in(msgspec.json.decode(encode_json(value))):
        if "env" in text and any(part in text for part in ("{{", "{%", *_OF_NODE)):
            from tui_eval.nunjucks.suite_environment import reads_unnamed, variables_named

            yield from variables_named(text)
            if reads_unnamed(text, own):
                yield UNNAMED


def text_of(path: Path, root: Path) -> str:
    """A file of the project; empty where it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        if inside(root, path):
            return read_plain(path.resolve(), LARGEST).decode("utf-8", "replace")
    return ""


def _prompt_code(case: Case) -> Iterator[Path | str]:
    """What makes its prompt: a file, from the root, or a command (`exec:`)."""
    for made in (case.beside or {}).values():
        if isinstance(made, dict) and isinstance(path := made.get("path"), str):
            yield Path(path)
        elif isinstance(made, dict) and isinstance(command := made.get("command"), str):
            yield command


def files_named(
    values: list[Any], kind: str, base: Path, root: Path, said: set[str] | None = None
) -> set[Path]:
    """The files that values of a case name, and that their templates take in; `said` takes the texts that name them."""
    body = encode_json(values)
    found: set[Path] = set()
    if b"file://" in body:  # in few
        given = msgspec.json.decode(body)
        found.update(files_in_texts(given, base, plain=False))
        if said is not None:
            said.update(text for text in texts_in(given) if _PREFIX in text)
    if format_of(kind).templates and b"{%" in body:
        found |= _included(body.decode().replace("\\", ""), base, root, said)
    return found


def _included(text: str, base: Path, root: Path, said: set[str] | None) -> set[Path]:
    """The files that templates take in, and those that these do."""
    from tui_eval.nunjucks.templates import INCLUDED, MOST_INCLUDED

    found: set[Path] = set()
    texts = [text]
    while texts:
        names = {match[1] for match in INCLUDED.finditer(texts.pop())}
        if said is not None:
            said |= names
        for path in (base / name for name in names):
            if path not in found and len(found) < MOST_INCLUDED:
                with contextlib.suppress(OSError, ValueError):
                    if path.is_file():
                        found.add(path)
                        if inside(root, path):
                            texts.append(read_plain(path.resolve(), LARGEST).decode("utf-8", "replace"))
    return found


def files_in_texts(value: Any, base: Path, *, plain: bool) -> Iterator[Path]:
    """The files that texts in a value name: after `file://` and the like, and, where `plain`, any word that is one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from files_in_texts(one, base, plain=plain)
    elif isinstance(value, str):
        names: Iterable[str] = _after_prefix(value) if _PREFIX in value else ()
        if plain and not names and len(value) < _LONGEST:
            names = [value, *re.findall(_WORD, value)]
        for name in dict.fromkeys(names):
            with contextlib.suppress(OSError, ValueError):
                if name and (base / name).is_file():
                    yield base / name


def _after_prefix(text: str) -> Iterator[str]:
    """What may be the name after each `file://` of a text: a name may hold blanks, and a text go on after one."""
    for piece in text.split(_PREFIX, _MOST_NAMES)[1:]:
        line = piece[:_LONGEST].partition("\n")[0].rstrip()
        yield from (line[: end.start()] for end in islice(re.finditer(_ENDS, line), _MOST_ENDS))
        yield line


def with_code(files: Iterable[Path]) -> Iterator[Path]:
    """The files, and of code what lies beside it in its language: it may be a part of it."""
    for file in files:
        yield file
        if file.suffix in _CODE:
            with contextlib.suppress(OSError):
                beside = islice(file.parent.iterdir(), IN_FOLDERS)
                yield from (one for one in beside if one.suffix == file.suffix and os.path.isfile(one))
