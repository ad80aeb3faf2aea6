"""A conversation that took place as a new case of a format, with what it should hold proposed from what was said.

Nothing is written. Saved in the format of the case that it took place in, it keeps what that expects. Where there is
nothing to keep and the answer passed, numbers and marked words of it become expected texts, the tools called become
expected tools; a person is meant to look at them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from tui_eval import formats
from tui_eval.agent_query import agent_query
from tui_eval.case_names import is_unnamed, names_by_values
from tui_eval.config.project import CONFIG_NAME, Config, secrets
from tui_eval.formats import format_of
from tui_eval.formats.accepting import with_line_ends
from tui_eval.formats.discovery import suite_path
from tui_eval.guard.masker import forms
from tui_eval.guard.paths import read_file
from tui_eval.guard.secrets import MASK, SHORTEST, secret_name
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case
from tui_eval.suites.saved_talk import Original, SavedCall, SavedReply, Talk
from tui_eval.yaml.yaml_edit import EditError


def talk_of(case: Case, attempt: Attempt, name: str = "") -> Talk:
    """The conversation of a recorded (or stepped) attempt.

    Raises:
        EditError: nothing was asked, or nothing answered.
    """
    own = agent_query(attempt)
    sent: list[str] = []
    form = format_of(case.format)
    last = form.asked_in_turns(case)
    turns: list[SavedReply] = []
    answered = {reply.turn for reply in attempt.replies}
    before = 0
    for reply in attempt.replies:
        if last is not None and reply.turn > last:
            continue  # what was asked for the rows afterwards
        # One reply may answer several turns: a conversation that is sent whole, or one that went on after a turn broke.
        for event in attempt.transcript:
            if event.kind == "user" and before < event.turn < reply.turn and event.turn not in answered:
                sent.append(event.text)
                turns.append(SavedReply(event.text, "", event.turn))
        before = max(before, reply.turn)
        asked = [e.text for e in attempt.transcript if e.kind == "user" and e.turn == reply.turn]
        sent += asked
        messages = _chat(asked[-1]) if asked else None
        if messages is not None:
            asked = messages
        turns += [SavedReply(text, "") for text in asked[:-1]]
        turns.append(SavedReply(asked[-1] if asked else "", reply.text, reply.turn))
    if not any(turn.answered for turn in turns):
        raise EditError("there is no answered conversation to save")
    # The turn at which the agent broke has no reply, and is what the case is saved for.
    told = max(reply.turn for reply in attempt.replies)
    for event in attempt.transcript:
        if event.kind == "user" and event.turn > told and (last is None or event.turn <= last):
            sent.append(event.text)
            turns.append(SavedReply(event.text, "", event.turn))
    if not any(turn.asked.strip() for turn in turns):
        raise EditError("the conversation has no message of a user")
    calls = [SavedCall(e.name, e.arguments) for e in attempt.transcript if e.kind == "tool_call" and e.name]
    agent = form.talk_agent(case, attempt)
    return Talk(
        name or f"{_called(case)} (saved)", agent or case.agent or "my_agent", turns, calls,
        own.sql if own is not None else None, case.connection, case.database, case,
        sent == [attempt.prompt_sent] and _same_variables(case, attempt), not found_wrong(attempt),
    )  # fmt: skip


def _same_variables(case: Case, attempt: Attempt) -> bool:
    """Whether the case, as it is today, would be asked with what this attempt was; a value that is made when a case
    runs says nothing."""
    told = {name: attempt.vars[name] for name in case.vars.keys() & attempt.vars.keys()}
    return all(
        value == case.vars[name] or MASK in str(value) or _MADE.search(str(case.vars[name]))
        for name, value in told.items()
    )


_MADE = re.compile(r"\{[{%]|file://|package:")


def _fitted(form: str, talk: Talk) -> Talk:
    """The conversation as a case of this format: with the expectations of the case, if it is of this format; else,
    and only from an answer that passed, with what it says."""
    case = talk.case if talk.case is not None and _is_of(form, talk.case) else None
    if talk.proposes and (case is None or not expectations(case)):
        return talk._replace(case=case)
    return talk._replace(case=case, proposes=False, calls=[], sql=None)


def found_wrong(attempt: Attempt) -> bool:
    """Whether an answer did not pass; one of a conversation led by hand (skipped) was judged, but is no result."""
    if attempt.outcome == "skipped":
        return any(not verdict.passed for verdict in attempt.verdicts)
    return attempt.outcome != "passed"


def _is_of(form: str, case: Case) -> bool:
    return format_of(case.format) is format_of(form)


def expectations(case: Case) -> int:
    """How many assertions a case has."""
    return len(case.asserted)


def unread(form: str, case: Case) -> list[str]:
    """What the case states that could not be read, a line each for the person: the new case does not have it, and would
    pass where this one is an error. What is kept as it stands (an assertion of an unknown type) is as wrong there."""
    if not _is_of(form, case):
        return []
    kept = {one.type for one in case.asserted}
    return [
        f"left out: {problem}"
        for problem in case.problems
        if problem.level == "error"
        and not any(f"'{name}'" in problem.message or f'"{name}"' in problem.message for name in kept)
    ]


def left_out(form: str, case: Case, attempt: Attempt) -> str:
    """Why the new case expects nothing, in a line for the person; empty where it expects something."""
    many = expectations(case)
    if not found_wrong(attempt) or (many and _is_of(form, case)):
        return ""
    if not many:
        return "it expects nothing yet: this answer did not pass, so nothing is proposed from it"
    kinds = ", ".join(dict.fromkeys(one.type for one in case.asserted))
    return f"it expects nothing yet: {case.name} is of another format ({kinds}), and this answer did not pass"


def _chat(text: str) -> list[str] | None:
    """The user's texts of a prompt that is a list of chat messages."""
    if not text.lstrip().startswith("["):
        return None
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = [
        message["content"]
        for message in messages
        if isinstance(message, dict)
        and message.get("role") == "user"
        and isinstance(message.get("content"), str)
    ]
    return found or None


def saved_formats() -> list[str]:
    """The names of the formats in which a conversation can be saved, as people are offered them."""
    return [name for name in formats.names() if format_of(name).saves]


def appended(form: str, text: str, talk: Talk) -> str:
    """The text of an existing suite with the case as its last.

    Raises:
        EditError: the format has one case to a file, or the list of cases is not a block in this file.
    """
    kind = format_of(form)
    if not kind.adds_to_files:
        raise EditError("a file of this format holds one case: give the name of a new file")
    old = text.replace("\r\n", "\n")
    return with_line_ends(text, old, kind.add_to(old, talk))


def proposed_path(form: str, case: Case, root: Path) -> str:
    """A name for the new file, from the root, beside the case's own file; one that is free."""
    kind = format_of(form)
    stem = re.sub(r"[^A-Za-z0-9]+", "_", _called(case)).strip("_").lower()[:40] or "saved"
    folder = kind.saved_folder(Path(case.suite).parent)
    name, ending = kind.saved_name(stem), kind.saved_ending
    for number in range(1, 1000):
        path = folder / f"{name}{'' if number == 1 else f'_{number}'}{ending}"
        if not (root / path).exists():
            return path.as_posix()
    return (folder / f"{name}{ending}").as_posix()


def proposed_name(case: Case, names: Collection[str]) -> str:
    """A name for the new case beside those that there are."""
    called = _called(case)
    name = f"{called} (saved)"
    return next(
        (one for one in (name, *(f"{called} (saved {n})" for n in range(2, 1000))) if one not in names),
        name,
    )


def _called(case: Case) -> str:
    """The case's name, of a row without one its first variable, as in lists; what is masked there has no mark that a
    new case could not be called by."""
    return (names_by_values([case])[0] if is_unnamed(case) else case.name).replace(MASK, "secret")


def own_suite(form: str, case: Case, attempt: Attempt, config: Config, trust: Trust) -> str:
    """The suite that the case is of, from the root, where it can take one more case of this format; empty where it
    cannot."""
    path = config.root / case.suite
    if not _is_of(form, case) or not format_of(form).adds_to_files or not path.is_file():
        return ""
    try:
        save(form, path, talk_of(case, attempt), config, trust)
    except EditError:
        return ""
    return case.suite


def save(form: str, path: Path, talk: Talk, config: Config, trust: Trust) -> tuple[str | None, str]:
    """The text of the file as it is (None: there is none) and with the case; nothing is written.

    Raises:
        EditError: the file cannot be read or added to, would not be a suite of this format, or would hold a secret.
    """
    kind, source = format_of(form), talk.case
    talk = _fitted(form, talk)
    if wrong := kind.saved_place_problem(path, talk):
        raise EditError(wrong)
    if path.suffix not in kind.saved_endings:
        raise EditError(f"the file's name must end in {kind.saved_ending}")
    original = format_of(source.format).as_written(source, config, trust) if source is not None else None
    turns = [_unmasked(turn, source) for turn in talk.turns] if source is not None else talk.turns
    talk = talk._replace(
        turns=turns,
        original=original if talk.case is not None else None,
        file=suite_path(path, config.root),
    )
    try:
        old = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        old, new = None, kind.new_file(talk)
    except UnicodeDecodeError:
        raise EditError(f"{path.name} is not UTF-8 text") from None
    except OSError as error:
        raise EditError(f"{path.name}: {error.strerror or error}") from None
    else:
        new = appended(form, old, talk)
    _holds_no_secret(new, old or "", source, original, config)
    return old, new


def _unmasked(turn: SavedReply, case: Case) -> SavedReply:
    """A turn with the message that the case has, where what was recorded of it is that with secrets masked."""
    own = case.turns[turn.turn - 1].text if 0 < turn.turn <= len(case.turns) else None
    if own is None or MASK not in turn.asked or format_of(case.format).templates:
        return turn
    masked = ".+".join(map(re.escape, turn.asked.split(MASK)))
    return turn._replace(asked=own) if re.fullmatch(masked, own, re.DOTALL) else turn


def _holds_no_secret(
    new: str, old: str, case: Case | None, original: Original | None, config: Config
) -> None:
    """Raises an `EditError` where a file would be given what stands in none of the case's own in clear: a value of the
    environment that its templates name, a secret, or the mark that stands for one in a record."""
    there = [old]
    for name in {case.suite, case.path} if case is not None else ():
        with suppress(OSError):
            there.append(read_file(config.root / name).decode("utf-8", "replace"))
    if MASK in new and not any(MASK in text for text in there):
        raise EditError(
            f"it would hold {MASK}: a secret was sent there, which is in no record; write the case by hand"
        )
    env = {**os.environ, **(original.env if original is not None else {})}
    named = {name for text in there for found in _NAMED.findall(text) for name in found if name in env}
    lost = original is not None and original.written is None
    if lost:  # what it names is not known: any value that is no mere path may be filled in
        named |= {name for name, value in env.items() if not value.startswith("/")}
    values = {value: f"a secret of {CONFIG_NAME}" for value in secrets(config)}
    values |= {env[name]: f"${name}" for name in env if name in named or secret_name(name)}
    for value, said in values.items():
        if len(value) >= SHORTEST and any(form in new and not _stands(form, there) for form in forms(value)):
            why = f"{case.suite} does not have this case any more, and " if lost and case is not None else ""
            raise EditError(f"{why}it would hold the value of {said} in clear: write the case by hand")


def _stands(value: str, texts: Iterable[str]) -> bool:
    return any(value in text for text in texts)


_NAMED = re.compile(
    r"""\benv\.(\w+)|(?:\benv\s*\[|\benviron(?:\.get)?\s*[\[(]|\bgetenv\()\s*["']([^"'\]]+)|\$\{\??\s*(\w+)\s*\}"""
)
"""Variables of the environment that a suite names: of promptfoo's templates, of JavaScript and Python, of HOCON."""
