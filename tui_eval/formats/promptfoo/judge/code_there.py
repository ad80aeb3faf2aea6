"""Whether the code that an assertion names may run and is there, without running it."""

from __future__ import annotations

import re

from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo.judge import registry
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import inline, script
from tui_eval.model import Assertion

_FILE = re.compile(r"file://(.+?\.(?:py|rb|[cm]?[jt]s))(?::[\w.$]+)?", re.DOTALL)


def check(assertion: Assertion, evidence: JudgeInput) -> None:
    """Raises `CannotJudge` where there is no such file, `NeedsTrust` where it may not run. What a template names is
    known only when it is judged."""
    value, services = assertion.value, evidence.services
    if not isinstance(value, str) or "{{" in value or "{%" in value:
        return
    kind = registry.split(assertion.type)[0]
    if (match := _FILE.fullmatch(value.strip())) is not None:
        try:
            path = confine(services.root, match[1], services.trust, services.base)
        except (OSError, ValueError) as error:
            raise CannotJudge(f"{assertion.type}: {error}") from None
        if not path.is_file():
            raise CannotJudge(f"{assertion.type}: there is no file {match[1]}")
        if path.suffix in (".py", ".rb"):
            services.trust.require(script(path, services.root))
    elif kind in ("python", "ruby") and not value.startswith("file://"):
        language = "Python" if kind == "python" else "Ruby"
        services.trust.require(f"run inline {language} of {evidence.case.suite}: {inline(value)}")
