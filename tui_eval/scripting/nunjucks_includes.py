"""Files that templates name: `{% include %}`, `{% import %}`, `{% extends %}`.

Imports jinja2: only `nunjucks_environment` imports this. Who renders says where files are sought
(`templates.including`); without that, none is found.
"""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import BaseLoader, Environment, TemplateNotFound

from tui_eval.scripting.templates import find_include


class IncludeLoader(BaseLoader):
    """Reads what a template names by the finder of the rendering under way."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        find = find_include.get()
        found = find(template) if find is not None else None
        if found is None:
            what = "cannot be included here" if find is None else "is not there to be included"
            raise TemplateNotFound(template, f"{template} {what}")
        return found, None, None
