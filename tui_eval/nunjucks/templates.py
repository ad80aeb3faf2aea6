"""Templates as promptfoo suites write them: nunjucks, rendered on jinja2's sandbox.

How a prompt and its variables are filled in stands in `prompt_templates`. jinja2 is imported only
where a template is more than plain `{{name}}`.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust
from tui_eval.javascript.values import MAX_TEXT, UNDEFINED, ScriptValueError, looked_through, text
from tui_eval.nunjucks.members import member

Filters = Mapping[str, Callable[..., Any]]

TIME_LIMIT = 10.0
"""Seconds that one rendering may take."""

MAX_TEMPLATE = 5_000_000
"""Characters of the longest template that is compiled."""

MAX_TAGS = 20_000
"""Tags of the largest template that is compiled (a second or two)."""

INCLUDED = re.compile(r"""\{%-?\s{0,20}(?:include|import|from|extends)\s{1,20}["']([^"']{1,500})["']""")
"""Where a template names a file that it takes in."""
MOST_INCLUDED = 100
"""Files that one rendering may include, one in another too."""

_PLAIN = re.compile(
    r"\{\{\s{0,40}([A-Za-z_$][\w$]{0,200}(?:\.[A-Za-z_$][\w$]{0,200}){0,20})\s{0,40}\}\}", re.ASCII
)
_RAW = re.compile(r"\{%-?\s{0,40}(?:raw|verbatim)\s{0,40}-?%\}")
_VERBATIM = re.compile(r"\{%(-?)\s{0,40}(end)?verbatim\s{0,40}(-?)%\}")
_WORDS = frozenset({"true", "false", "none", "null", "undefined", "True", "False", "None"}) | frozenset(
    {
        "and",
        "or",
        "not",
        "in",
        "is",
        "if",
        "else",
        "range",
        "cycler",
        "joiner",
        "super",
        "self",
        "loop",
        "caller",
    }
)


_find_include: ContextVar[Callable[[str], str | None] | None] = ContextVar("find_include", default=None)
"""Gives the text of a file that a template includes, None where there is none; set by `including`."""


@contextmanager
def including(base: Path, root: Path, trust: Trust) -> Iterator[None]:
    """While this lasts, templates may include files: by their paths from `base`, a suite's folder. A file
    outside `root` needs trust, and whatever is not text is as good as missing."""

    asked = 0

    def find(name: str) -> str | None:
        nonlocal asked
        asked += 1
        if asked > MOST_INCLUDED:
            raise ScriptValueError(f"more than {MOST_INCLUDED} files are included")
        try:
            path = confine(root, name, trust, base)
            usable = path.is_file() and path.stat().st_size <= MAX_TEMPLATE
            return path.read_text("utf-8-sig") if usable else None
        except (OSError, ValueError):
            return None

    token = _find_include.set(find)
    try:
        yield
    finally:
        _find_include.reset(token)


class TemplateError(Exception):
    """A template could not be rendered; the text is one line."""


def render(
    template: str,
    vars: Mapping[str, Any],  # noqa: A002
    *,
    env: Mapping[str, str] | None = None,
    filters: Filters | None = None,
    whole: bool = False,
) -> str:
    """Render one template.

    Args:
        template: nunjucks; one with an unclosed tag on a line is given back as it is, as of a prompt.
        vars: The variables; one that is missing prints as nothing.
        env: What `{{ env.NAME }}` finds.
        filters: Filters of the suite by name, beside the built-in ones.
        whole: A tag may go over several lines, and one that is not closed is an error: of all but prompts.

    Raises:
        TemplateError: it is not a template, calls what is not there, or grows too large.
    """
    if "{" not in template or templating_disabled():
        return template
    if not whole and is_partial(template):
        return template
    if "{{" not in template and "{%" not in template and "{#" not in template:
        return template
    try:
        plain = _render_plain(template, vars, env)
        return _render_jinja(template, vars, env, filters) if plain is None else plain
    except ScriptValueError as error:
        raise TemplateError(one_line(error)) from None


def templating_disabled() -> bool:
    """Whether the person switched templates off for this shell (`PROMPTFOO_DISABLE_TEMPLATING`)."""
    return flag("PROMPTFOO_DISABLE_TEMPLATING")


def flag(name: str) -> bool:
    """Whether one of promptfoo's own switches is on in the environment of this process."""
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "yup", "yeppers")


def is_partial(template: str) -> bool:
    """Whether a tag is opened and not closed on its line; such a text is printed as it is.

    promptfoo's rule: `{{` with no `}`, `{%` with no `%`, or `{#` with no `#` before the end of its
    line, unless the text uses `{% raw %}`.
    """
    for opener, closer in (("{{", "}"), ("{%", "%"), ("{#", "#")):
        at, closed, end = template.find(opener), -1, -1
        while at >= 0:
            if end < at:
                end = template.find("\n", at)
                end = len(template) if end < 0 else end
            if closed < at + 2:
                closed = template.find(closer, at + 2, end)
            if closed < 0 or closed > end:
                return not _RAW.search(template)
            at = template.find(opener, at + 1)
    return False


def _render_plain(template: str, vars: Mapping[str, Any], env: Mapping[str, str] | None) -> str | None:  # noqa: A002
    """The text, where the template holds nothing but `{{name}}` and `{{name.member}}`; else None."""
    if "{%" in template or "{#" in template:
        return None
    parts: list[str] = []
    at = length = 0
    for found in _PLAIN.finditer(template):
        between = template[at : found.start()]
        if "{{" in between or between.endswith("{"):  # `{{{name}}}` begins an object, which has no value
            return None
        names = found.group(1).split(".")
        if names[0] in _WORDS:
            return None
        value = vars.get(names[0], UNDEFINED)
        if names[0] == "env" and "env" not in vars:
            value = env if env is not None else {}
        for name in names[1:]:
            value = member(value, name)
        printed = text(value)
        length += len(between) + len(printed)
        if length > MAX_TEXT:
            raise ScriptValueError("the text would be too long")
        parts += (between, printed)
        at = found.end()
    rest = template[at:]
    if "{{" in rest:
        return None
    parts.append(rest)
    return "".join(parts)


@lru_cache(maxsize=8)
def _environment(filters: tuple[tuple[str, Callable[..., Any]], ...]) -> Any:
    from tui_eval.nunjucks.jinja_environment import NunjucksEnvironment

    return NunjucksEnvironment(dict(filters))


@lru_cache(maxsize=512)
def _compiled(template: str, filters: tuple[tuple[str, Callable[..., Any]], ...]) -> Any:
    if len(template) > MAX_TEMPLATE or template.count("{{") + template.count("{%") > MAX_TAGS:
        raise ScriptValueError("the template is too long")
    source = _VERBATIM.sub(r"{%\1 \2raw \3%}", template) if "verbatim" in template else template
    try:
        return _environment(filters).from_string(source)
    except RecursionError:
        raise ScriptValueError("the template is nested too deeply") from None


def _render_jinja(
    template: str,
    vars: Mapping[str, Any],  # noqa: A002
    env: Mapping[str, str] | None,
    filters: Filters | None,
) -> str:
    from jinja2 import TemplateError as JinjaError

    from tui_eval.nunjucks.grammar import OWN_WORDS
    from tui_eval.nunjucks.jinja_environment import Budget, budget

    known = tuple(sorted(filters.items(), key=lambda pair: pair[0])) if filters else ()
    context: dict[str, Any] = {"env": {} if env is None else env}
    context.update((key, _copied(value)) for key, value in vars.items() if isinstance(key, str))
    for name in OWN_WORDS & vars.keys():
        context[f"_{name}"] = context[name]
    spent = Budget(TIME_LIMIT, _find_include.get())
    token, told = budget.set(spent), looked_through.set(spent.look_through)
    try:
        return _compiled(template, known).render(context)
    except ScriptValueError:
        raise
    except JinjaError as error:
        raise TemplateError(one_line(error)) from None
    except (RecursionError, MemoryError):
        raise TemplateError("the template is nested too deeply") from None
    except (
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        SyntaxError,
        AssertionError,
    ) as error:
        raise TemplateError(one_line(error)) from None
    finally:
        budget.reset(token)
        looked_through.reset(told)


def fault(template: str) -> str | None:
    """Why a template cannot be rendered whatever its variables are (its syntax, a filter that does not exist)."""
    from jinja2 import TemplateError as JinjaError

    try:
        _compiled(template, ())
    except (JinjaError, ScriptValueError) as error:
        return one_line(error)
    except (RecursionError, MemoryError):
        return "the template is nested too deeply"
    return None


def _copied(value: Any) -> Any:
    """A copy of lists and objects: `push` in a template must not reach the case's own vars."""
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def one_line(error: BaseException) -> str:
    """What an exception says, in one line of at most 300 characters."""
    message = " ".join(str(error).split()) or type(error).__name__
    return message if len(message) <= 300 else message[:299] + "…"


def render_value(
    value: Any,
    vars: Mapping[str, Any],  # noqa: A002
    *,
    env: Mapping[str, str] | None = None,
    whole: bool = False,
) -> Any:
    """Render a text, or each text of a list; anything else (also an object) is given back untouched.

    Raises:
        TemplateError: as `render`.
    """
    if isinstance(value, str):
        return render(value, vars, env=env, whole=whole)
    if isinstance(value, list):
        return [render(v, vars, env=env, whole=whole) if isinstance(v, str) else v for v in value]
    return value


def render_deep(
    value: Any,
    vars: Mapping[str, Any],  # noqa: A002
    *,
    env: Mapping[str, str] | None = None,
    filters: Filters | None = None,
) -> Any:
    """Render every text in lists and objects, however deep.

    Raises:
        TemplateError: as `render`.
    """
    if isinstance(value, str):
        return render(value, vars, env=env, filters=filters)
    if isinstance(value, list):
        return [render_deep(v, vars, env=env, filters=filters) for v in value]
    if isinstance(value, dict):
        return {k: render_deep(v, vars, env=env, filters=filters) for k, v in value.items()}
    return value
