"""Which scripts of a suite give the same whatever is answered, told without running them."""

from __future__ import annotations

import pytest

from tui_eval.vacuity import constant, passes

CONSTANT = [
    ("javascript", "true", True),
    ("javascript", " false ", False),
    ("javascript", "(1)", 1.0),
    ("javascript", "!!0", False),
    ("javascript", "!0", True),
    ("javascript", "-0.5;", -0.5),
    ("javascript", "true\n", True),
    ("javascript", "// what for\nreturn true", True),
    ("javascript", "/* return output */\nconst a = 'x';\nreturn 1;\n", 1.0),
    ("javascript", "const ok = output.toLowerCase().includes('x');\nconsole.log('q');\nreturn true;", True),
    ("python", "True", True),
    ("python", "0.5", 0.5),
    ("python", "'true'", True),
    ("python", "import json\nok = 'x' in output.lower()\nreturn True", True),
    ("ruby", "true", True),
]
LOOKS = [
    ("javascript", "return true"),  # a syntax error behind another return
    ("javascript", "output"),
    ("javascript", "output.length > 0"),
    ("javascript", "if (output) return false;\nreturn true"),
    ("javascript", "if (!output) throw new Error('x')\nreturn true"),
    ("javascript", "JSON.parse(output);\nreturn true"),
    ("javascript", "const a = output.match(/x/)[0];\nreturn true"),
    ("javascript", "const a = b;\nreturn true"),
    ("javascript", "const a = 1;\nreturn a"),
    ("javascript", "true\nfalse"),
    ("javascript", "{{x}}"),
    ("javascript", "file://true.js"),
    ("python", "True\n"),  # a body that returns nothing
    ("python", "output == 'x'"),
    ("python", "assert output\nreturn True"),
    ("python", "import json\njson.loads(output)\nreturn True"),
    ("python", "import gone\nreturn True"),
    ("python", "x = missing\nreturn True"),
    ("python", "return True return"),
    ("ruby", "!0"),
]


@pytest.mark.parametrize(("kind", "code", "value"), CONSTANT)
def test_a_constant_script_is_seen(kind: str, code: str, value: bool | float) -> None:
    found = constant(kind, code)
    assert found == value and isinstance(found, type(value))


@pytest.mark.parametrize(("kind", "code"), LOOKS)
def test_what_may_look_at_the_answer_or_fail_is_not_called_constant(kind: str, code: str) -> None:
    assert constant(kind, code) is None


@pytest.mark.parametrize(
    ("value", "threshold", "inverse", "held"),
    [
        (True, None, False, True),
        (True, 2.0, False, True),
        (False, 0.0, False, False),
        (False, None, True, True),
        (0.0, None, False, False),
        (0.0, 0.0, False, True),
        (-1.0, -1.0, False, True),
        (1.0, 2.0, False, False),
        (1.0, 2.0, True, True),
    ],
)
def test_truth_counts_as_it_is_and_a_number_from_the_threshold_on(
    value: bool | float, threshold: float | None, inverse: bool, held: bool
) -> None:
    assert passes(value, threshold, inverse) is held
