"""What is small in YAML and stands for something huge is refused before anything is made of it."""

from __future__ import annotations

import pytest
import yaml

from tui_eval.yaml.yaml_lines import load
from tui_eval.yaml.yaml_scalars import UnfoldsTooFar, load_bounded

LAUGHS = "{a0: &a0 [x, x], " + ", ".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)) + "}"
MERGED = "m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}\n" for n in range(1, 40))
LONG = f"a: &a {'y' * 20_000}\nb: [{', '.join(['*a'] * 10_000)}]\n"


@pytest.mark.parametrize("text", [LAUGHS, MERGED, LONG, "&a [*a]"])
def test_a_bomb_is_refused(text: str) -> None:
    with pytest.raises(UnfoldsTooFar):
        load_bounded(text, yaml.CSafeLoader)


def test_deep_nesting_is_refused_and_not_the_stack_s_end() -> None:
    with pytest.raises(yaml.YAMLError, match="nested deeper"):
        load_bounded("[" * 900, yaml.CSafeLoader)


def test_anything_else_is_read_as_the_loader_does() -> None:
    text = "base: &b {a: 1, t: yes}\nown: {<<: *b, a: 2}\nlist: [*b, *b]\n"
    assert load_bounded(text, yaml.CSafeLoader) == yaml.safe_load(text)
    assert load_bounded("", yaml.CSafeLoader) is None


def test_a_long_text_that_many_aliases_name_is_refused_in_a_suite() -> None:
    """115 kB took half a gigabyte, 500 kB ten."""
    (problem,) = load(f"tests: [{{vars: {{{LONG.replace(chr(10), ', ')} c: 1}}}}]", "suite.yaml").problems
    assert "unfold to more than 100,000,000 characters" in problem.message
    (problem,) = load(
        LONG.replace("*a]", "*a, [*a, *a]]").replace("y" * 20_000, "y" * 60_000), "suite.yaml"
    ).problems
    assert "unfold to more than 500,000,000 characters" in problem.message
    one = f"doc: &a {'y' * 200_000}\ntests:\n" + "- vars: {doc: *a}\n" * 2_000
    assert not load(one, "suite.yaml").problems  # tests that name one document
    assert not load(f"a: &a {'y' * 20_000}\nb: [*a, *a]\n", "suite.yaml").problems
