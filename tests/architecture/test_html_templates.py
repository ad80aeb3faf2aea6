"""HTML is made by templates alone, and nothing foreign gets past their environment's filter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.attempts import HOSTILE
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.reports.html_templates import TEMPLATES, environment

REPORTS = TEMPLATES.parent
SOURCES = sorted(TEMPLATES.glob("*.j2"))


def test_the_reports_modules_make_no_html() -> None:
    made = re.compile(
        r"</?(?:div|span|table|tr|td|th|p|pre|h[1-6]|ul|li|a|svg|details|html|nav|form)[ >]|Markup"
    )
    # A Markdown file may fold its list of what passed; that is its own format's markup.
    modules = [path for path in REPORTS.glob("*.py") if path.name not in ("tabular.py", "html_templates.py")]
    assert [path.name for path in modules if made.search(path.read_text("utf-8"))] == []
    assert "import Markup" not in (REPORTS / "html_templates.py").read_text("utf-8")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_template_goes_around_the_filter(path: Path) -> None:
    code = " ".join(re.findall(r"\{[{%].*?[%}]\}", path.read_text("utf-8"), re.S))
    assert not re.search(r"\b(safe|autoescape|Markup|xmlattr|tojson|urlize|striptags)\b", code)
    environment().get_template(path.name)  # it is read


@pytest.mark.parametrize(
    "source",
    [
        "{{ x }}",
        "{{ x ~ '' }}",
        "{{ [x, x]|join(x) }}",
        "{% macro m(y) %}<p>{{ y }}</p>{% endmacro %}{{ m(x) }}{{ m(x)|replace('p', x) }}{{ [m(x), x]|join }}",
        "{% macro m(y) %}{{ y }}{% endmacro %}{{ m(x) ~ x }}{{ '%s' % x }}{{ m('%s') % x }}",
        "{% set y %}<p>{{ x }}{% endset %}{{ y + x }}",
        '<a href="{{ x }}">{% for part in x %}{{ part }}{% endfor %}</a>',
    ],
)
def test_whatever_a_template_puts_out_is_text_without_controls(source: str) -> None:
    bad = f"<script>\"'&{HOSTILE}</script>"
    shown = environment().from_string(source).render(x=bad)
    assert "<script" not in shown and "</script" not in shown
    assert not ({chr(code) for code in CONTROL_TABLE} - {"\n", "\t"}) & set(shown)


def test_a_name_that_is_not_given_is_a_mistake() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()
