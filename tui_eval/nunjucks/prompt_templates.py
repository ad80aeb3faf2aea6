"""A prompt and its variables, filled in as promptfoo does it (formats/promptfoo.md 7.2).

Variables that name other variables are filled in (`resolve_vars`); the prompt with what stands before and
after it is rendered with them (`render_prompt`). Assertions see the variables as `resolve_vars` leaves them, with the
answers that these name (`with_answers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from tui_eval.javascript.values import ScriptValueError, json_text, parse_json, text
from tui_eval.nunjucks.templates import (
    Filters,
    TemplateError,
    flag,
    is_partial,
    one_line,
    render,
    render_deep,
    templating_disabled,
)

ROUNDS = 5
"""How often the variables are gone through; each time one name in each of them is filled in."""

MAX_FILLED = 1_000_000
"""Characters that a variable may grow to by filling in others."""

_BARE = re.compile(r"\{\{\s{0,40}(\w{1,200})\s{0,40}\}\}", re.ASCII)
_JSON = re.compile(r'[ \t\n\r]*[\[{"0-9tfn-]')
_DOLLAR = re.compile(r"\$[$&`']")
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_NAMED = re.compile(
    r"\{\{\s{0,40}([^{}\s|]{1,1000})\s{0,40}(?:\|[^}]{1,10000})?\}\}|\{%\s{0,40}(?:if|for)\s{1,40}([^{}\s]{1,1000})"
)
_LOOP = re.compile(r"\{%\s{0,40}for\s{1,40}(\w{1,200})\s{1,40}in\s{1,40}(\w{1,200})\s{0,40}%\}", re.ASCII)
_ROOT = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TAG = re.compile(r"\{[{%#]")


class StoredAnswer(str):
    """What an agent said, as a variable of a later prompt: text, whatever it names. Rendered as a template, or read as
    the file that it names, it would take what the agent asks for out of the project and the environment."""

    __slots__ = ()


class StoredList(list[Any]):
    """As `StoredAnswer`, of an answer that is a list: filled in, it is the texts in it."""

    __slots__ = ()


def stored_answer(value: Any) -> Any:
    """An answer as a variable of a later prompt."""
    if isinstance(value, str):
        return StoredAnswer(value)
    return StoredList(value) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A variable that may be a stored answer, as what does not fill it in gets it."""
    if isinstance(value, StoredAnswer):
        return str(value)
    return list(value) if isinstance(value, StoredList) else value


def _templates_said(vars: Mapping[str, Any]) -> list[str]:  # noqa: A002
    """The stored answers among variables that would be templates, the longest first; without the space around them,
    which code often takes away."""
    said: set[str] = set()
    for value in vars.values():
        if isinstance(value, StoredAnswer):
            said.add(value.strip())
        elif isinstance(value, StoredList):
            said.update(one.strip() for one in value if isinstance(one, str))
    return sorted((one for one in said if _TAG.search(one)), key=len, reverse=True)


def retold(made: Any, vars: Mapping[str, Any]) -> Any:  # noqa: A002
    """What code of the suite made a variable of: where it repeats a stored answer that would be a template, that is
    text as the answer is, also in a list."""
    if isinstance(made, str | list) and (known := _templates_said(vars)):
        told = text(made)
        if any(one in told for one in known):
            return stored_answer(made)
    return made


def answers_apart(prompt: str, vars: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:  # noqa: A002
    """A prompt that code of the suite made of variables, with variables of their own in the place of stored answers
    that would be templates, also where it is JSON; and the variables with these."""
    known = dict(vars)
    pieces = [prompt]  # each second one names an answer: another answer that is in that is none of it
    for number, said in enumerate(_templates_said(vars)):
        name = f"__answer_{number}"
        for shown in dict.fromkeys((said, json_text(said)[1:-1])):
            if any(shown in piece for piece in pieces[::2]):
                known[name] = StoredAnswer(said)
                pieces = _apart(pieces, shown, "{{ " + name + " }}")
    return "".join(pieces), known


def _apart(pieces: Sequence[str], said: str, named: str) -> list[str]:
    apart: list[str] = []
    for place, piece in enumerate(pieces):
        if place % 2:
            apart.append(piece)
            continue
        first, *more = piece.split(said)
        apart.append(first)
        for other in more:
            apart += (named, other)
    return apart


def resolve_vars(
    vars: Mapping[str, Any],  # noqa: A002
    *,
    reference: bool = False,
) -> dict[str, Any]:
    """Variables with the variables that they name: one trailing newline dropped, then, in five rounds,
    the first bare `{{name}}` of each text filled in. A name that is not there is left standing, with
    whatever follows it. Templates of any other kind are rendered with the prompt.

    With `reference`, `$$`, `$&`, `` $` `` and `$'` in what is filled in mean what they mean to
    JavaScript's `replace`, which the tool uses here.
    """
    result = {k: type(v)(v[:-1]) if isinstance(v, str) and v.endswith("\n") else v for k, v in vars.items()}
    if templating_disabled():
        return result
    for _ in range(ROUNDS):
        changed = False
        for key, value in result.items():
            found = _next_bare(value, result)
            if found is not None and (filled := _filled(value, found, result, reference)) is not None:
                result[key] = filled
                changed = True
        if not changed:
            break
    return result


def with_answers(vars: Mapping[str, Any], *, reference: bool = False) -> dict[str, Any]:  # noqa: A002
    """Variables that have been through `resolve_vars`, as plain texts: also those answers are filled in that are no
    part of a template. For what does not render them again."""
    result = {key: plain(value) for key, value in vars.items()}
    if not any(isinstance(value, StoredAnswer | StoredList) for value in vars.values()):
        return result
    for key, value in vars.items():
        if isinstance(value, str) and not isinstance(value, StoredAnswer) and not templating_disabled():
            # As far as `resolve_vars` comes; from the last, so that what is filled in is not looked through.
            known = takewhile(lambda found: found[1] in vars, _BARE.finditer(value))
            for found in reversed([*known]):
                if _is_apart(vars.get(found[1])):
                    filled = _filled(result[key], found, vars, reference)
                    result[key] = result[key] if filled is None else filled
    return result


def _next_bare(value: Any, vars: Mapping[str, Any]) -> re.Match[str] | None:  # noqa: A002
    """The first bare name in a text that is to be filled in."""
    if not isinstance(value, str) or "{{" not in value or isinstance(value, StoredAnswer):
        return None
    for found in _BARE.finditer(value):
        if found[1] not in vars:
            return None
        if not _is_apart(vars[found[1]]):
            return found
    return None


def _is_apart(value: Any) -> bool:
    """An answer that would be a template: it stands there when the prompt is rendered, and is no part of one."""
    return (isinstance(value, StoredAnswer) and "{" in value) or (
        isinstance(value, StoredList) and "{" in text(value)
    )


def _filled(value: str, found: re.Match[str], vars: Mapping[str, Any], reference: bool) -> str | None:  # noqa: A002
    """A text with one name filled in; None where it would be too long."""
    other = vars[found[1]]
    filled = "null" if other is None else text(other)
    if len(value) + len(filled) > MAX_FILLED:
        return None
    before, after = value[: found.start()], value[found.end() :]
    if reference and "$" in filled:
        parts = {"$$": "$", "$&": found[0], "$`": before, "$'": after}
        filled = _DOLLAR.sub(lambda mark: parts[mark[0]], filled)
    return before + filled + after


def render_prompt(
    prompt: str,
    vars: Mapping[str, Any],  # noqa: A002
    prefix: str = "",
    suffix: str = "",
    filters: Filters | None = None,
    *,
    env: Mapping[str, str] | None = None,
    reference: bool = False,
) -> str:
    """The prompt as it is sent. `vars` have been through `resolve_vars`.

    A prompt that is JSON is parsed, each of its texts rendered, and written again with two spaces,
    so that quotes and line breaks in vars do no harm (unless `PROMPTFOO_DISABLE_JSON_AUTOESCAPE`).
    In any other prompt a variable is a template of its own, unless it names what is not there.
    With `reference`, a JSON prompt that uses the suite's own filters is rendered as text, as in the tool.

    Raises:
        TemplateError: the prompt, or a variable that names only what is there, cannot be rendered.
    """
    whole = f"{prefix}{prompt}{suffix}"
    answered = with_answers(vars, reference=reference)
    if _JSON.match(whole) and not flag("PROMPTFOO_DISABLE_JSON_AUTOESCAPE"):
        try:
            value = parse_json(whole)
            return _render_json(value, answered, env, None if reference else filters)
        except (ValueError, RecursionError, TemplateError):
            pass  # it is taken for text, as the tool does
    own = {name: _rendered(value, answered[name], vars, env, filters) for name, value in vars.items()}
    return render(whole, own, env=env, filters=filters)


def _render_json(
    value: Any,
    vars: Mapping[str, Any],  # noqa: A002
    env: Mapping[str, str] | None,
    filters: Filters | None,
) -> str:
    if not templating_disabled() and _unclosed(value):
        raise TemplateError("a tag is not closed")
    try:
        return json_text(render_deep(value, vars, env=env, filters=filters), 2)
    except ScriptValueError as error:
        raise TemplateError(one_line(error)) from None


def _unclosed(value: Any) -> bool:
    if isinstance(value, str):
        return is_partial(value)
    if isinstance(value, list):
        return any(map(_unclosed, value))
    return isinstance(value, dict) and any(map(_unclosed, value.values()))


def _rendered(
    value: Any,
    answered: Any,
    vars: Mapping[str, Any],  # noqa: A002
    env: Mapping[str, str] | None,
    filters: Filters | None,
) -> Any:
    if not isinstance(value, str) or isinstance(value, StoredAnswer) or "{" not in value:
        return value
    return answered if _names_undefined(value, vars) else render(value, vars, env=env, filters=filters)


def _names_undefined(template: str, vars: Mapping[str, Any]) -> bool:  # noqa: A002
    """Whether a text seems to name a variable that is not there: found by a pattern, not by a parser,
    as in the tool; so `{{ true }}` names one and `{{ nowhere + 1 }}` does not."""
    plain = _COMMENT.sub("", template)
    names = {found[1] or found[2] for found in _NAMED.finditer(plain)}
    for found in _LOOP.finditer(plain):
        names.discard(found[1])
        names.add(found[2])
    roots = (_ROOT.match(name) for name in names)
    return any(root is not None and root[0] != "env" and root[0] not in vars for root in roots)
