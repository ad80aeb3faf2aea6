"""Which files count for `--changed` and `--cache`: those outside the project, those that are gone, and
whatever their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Cli


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def ran(cli: Cli, *arguments: str) -> list[str]:
    result = cli("run", ".", "--changed", "--display", "json", *arguments)
    assert result.code in (0, 1, 5), result.err
    return sorted(
        json.loads(line)["case_id"].partition("::")[2].partition("::")[0] for line in result.out.splitlines()
    )


def pass_once(cli: Cli) -> None:
    """All cases pass, and none has changed since."""
    first = cli("run", ".", "--trust")
    assert first.code == 0, first.out + first.err
    assert ran(cli, "--trust") == []


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project beside the code that it tests."""
    write(
        tmp_path,
        {
            "evals/tui_eval.yaml": 'agents: {bot: {type: python, function: "../src/bot.py:answer", files: [../data], cache: true}}\n',
            "evals/suite.yaml": "agent: bot\ntest_cases:\n"
            "  - {name: a, input: hi, expected: {should_contain: [hi]}}\n",
            "evals/promptfooconfig.yaml": "prompts: ['{{a}}']\nproviders: [echo]\ntests:\n"
            "  - {description: judged, vars: {a: hi}, assert: [{type: python, value: 'file://../checks/check.py'}]}\n",
            "src/bot.py": "from parts.text import said\ndef answer(message):\n    return said(message)\n",
            "src/parts/text.py": "import shared_words\ndef said(message):\n    return message\n",
            "lib/shared_words.py": "",
            "data/words.txt": "hi",
            "checks/check.py": "def get_assert(output, context):\n    return output == 'hi'\n",
        },
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "evals")
    return tmp_path


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("src/bot.py", "a"),
        ("src/parts/text.py", "a"),
        ("lib/shared_words.py", "a"),
        ("data/words.txt", "a"),
        ("checks/check.py", "judged"),
    ],
)
def test_files_outside_the_project_count_like_others(
    cli: Cli, beside: Path, edited: str, expected: str
) -> None:
    assert cli("run", ".", "--trust").code == 0
    assert ran(cli, "--trust") == []
    with (beside / edited).open("a") as file:
        file.write("\nmore = 1\n")
    result = cli("run", ".", "--changed", "--trust", "--display", "json")
    (line,) = map(json.loads, result.out.splitlines())
    assert line["case_id"].partition("::")[2].startswith(expected) and "cached" not in line


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def longer(name: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write(" ")

    return edit


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (gone("data/t.csv"), "rows"),
        (gone("checks/helper.py"), "code"),
        (gone("rules/length.py"), "code"),
        (gone("checks/my check.py"), "code"),
        (gone("expected text.txt"), "text"),
        (longer("expected text.txt"), "text"),
        (longer("checks/my check.py"), "code"),
    ],
)
def test_a_file_that_is_gone_and_one_with_a_blank_in_its_name_count(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], expected: str
) -> None:
    write(
        tmp_path,
        {
            "tui_eval.yaml": "agents: {bot: {type: python, function: 'bot.py:answer'}}\n"
            "databases: {shop: {type: files, path: data}}\nsuites: [{path: 'tests/**', agent: bot, database: shop}]\n",
            "bot.py": "def answer(message):\n    return '[{\"amount\": 1}]'\n",
            "data/t.csv": "amount\n1\n",
            "data/u.csv": "amount\n2\n",
            "tests/rows.yaml": "name: rows\nprompt: the total?\nsql: select 1 as amount\n",
            "promptfooconfig.yaml": "prompts: ['{{a}}']\nproviders: [echo]\ntests:\n"
            "  - {description: text, vars: {a: one}, assert: [{type: contains, value: 'file://expected text.txt'}]}\n"
            "  - {description: code, vars: {a: two}, assert: [{type: python, value: 'file://checks/my check.py'}]}\n"
            "  - {description: plain, vars: {a: three}, assert: [{type: contains, value: three}]}\n",
            "expected text.txt": "one",
            "checks/my check.py": "try:\n    import rules.length\nexcept ImportError:\n    pass\n"
            "def get_assert(output, context):\n    return True\n",
            "checks/helper.py": "",
            "rules/length.py": "",
        },
    )
    monkeypatch.chdir(tmp_path)
    pass_once(cli)
    change(tmp_path)
    assert ran(cli, "--trust") == [expected]


@pytest.mark.real
@pytest.mark.parametrize("file", ["hook.py", "louder.js"])
def test_the_hooks_and_filters_of_a_suite_count_for_all_its_cases(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    write(
        tmp_path,
        {
            "promptfooconfig.yaml": "prompts: ['{{a | louder}}']\nproviders: [echo]\n"
            "extensions: ['file://hook.py:extension_hook']\nnunjucksFilters: {louder: louder.js}\n"
            "tests: [{description: one, vars: {a: hi}, assert: [{type: icontains, value: hi}]}]\n",
            "hook.py": "def extension_hook(name, context):\n    return context\n",
            "louder.js": "module.exports = (text) => text.toUpperCase()\n",
        },
    )
    monkeypatch.chdir(tmp_path)
    pass_once(cli)
    with (tmp_path / file).open("a") as code:
        code.write("\n")
    assert ran(cli, "--trust") == ["one"]


def test_a_merged_run_knows_the_files_of_its_shards(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        {
            "promptfooconfig.yaml": "prompts: ['{{a}}']\nproviders: [echo]\ntests:\n"
            + "".join(
                f"  - {{description: t{n}, vars: {{a: v{n}}}, assert: [{{type: equals, value: 'file://w{n}.txt'}}]}}\n"
                for n in range(4)
            ),
            **{f"w{n}.txt": f"v{n}" for n in range(4)},
        },
    )
    monkeypatch.chdir(tmp_path)
    for shard in ("1/2", "2/2"):
        assert cli("run", ".", "--shard", shard).code == 0
    runs = [Path(".tui-eval/runs") / one["id"] for one in json.loads(cli("runs", "--json").out)]
    merged = cli("merge", *map(str, runs))
    assert merged.code == 0, merged.err
    assert ran(cli) == []
    Path("w2.txt").unlink()
    assert ran(cli) == ["t2"]


@pytest.mark.parametrize(
    ("prompt", "edited"),
    [
        ("exec:sh prompts/make.sh", "prompts/make.sh"),
        ("exec:sh prompts/make.sh", "prompts/words.txt"),
        ("exec:sh -c 'cat prompts/words.txt'", "prompts/words.txt"),
        ("file://prompts/make.sh", "prompts/words.txt"),
    ],
)
def test_what_a_program_that_makes_the_prompt_is_made_of_counts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str, edited: str
) -> None:
    """Only the name of the program did: an edited one was `nothing to run`."""
    files = {
        "promptfooconfig.yaml": f'prompts: ["{prompt}"]\nproviders: [echo]\ntests:\n'
        "  - {description: made, vars: {a: hi}, assert: [{type: contains, value: hello}]}\n",
        "prompts/make.sh": "cat prompts/words.txt\n",
        "prompts/words.txt": "hello",
    }
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    pass_once(cli)
    (tmp_path / edited).write_text(f"{files[edited]}\n# edited")
    assert ran(cli, "--trust") == ["made"]
