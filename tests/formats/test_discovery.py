"""Which files of a folder are suites, what a path named outright gets, and what tui_eval.yaml fills in."""

import os
from pathlib import Path

import pytest

from tests.support.work import calls_of
from tui_eval import formats
from tui_eval.config.project import AgentSpec, Config, SuiteRule
from tui_eval.config.project import load as load_config
from tui_eval.formats.discovery import LARGEST, Looked, new_in
from tui_eval.formats.reading import SuiteCache, discover, load, load_all, problems_of
from tui_eval.guard.trust import Trust

GUIDE = "agent: a\ntest_cases:\n  - name: n\n    input: i\n"
NAO = "name: n\nprompt: p\nsql: SELECT 1\n"
NEURO = "agent = net\ninteractions = [ { text = hi } ]\n"


@pytest.fixture
def project(tmp_path):
    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    write("evals/support.yaml", GUIDE)
    write("evals/flow.yml", "{test_cases: [{name: n, input: i}]}")
    write("evals/broken.yaml", "test_cases:\n  - name: a: b\n")
    write("tests/total.yml", NAO)
    write("tests/deep/prompt_only.yaml", "prompt: p\n")
    write("tests/outputs/results.yml", NAO)
    write("other/nao.yaml", NAO)
    write("other/prompt_only.yaml", "prompt: p\n")
    write("fixtures/math.hocon", NEURO)
    write("fixtures/network.hocon", 'tools = [{ name = "interactions" }]\n')
    write("fixtures/http.hocon", 'include "math.hocon"\nconnections = http\n')
    write(".hidden/support.yaml", GUIDE)
    write("node_modules/x/support.yaml", GUIDE)
    write("myenv/pyvenv.cfg", "")
    write("myenv/lib/support.yaml", GUIDE)
    write("tui_eval.yaml", "test_cases: [{input: x}]\n")
    write("nao_config.yaml", "prompt: x\nsql: y\n")
    write("docs/list.yaml", "- test_cases: [x]\n")
    write("docs/scalar.yaml", "test_cases: 3\n")
    write("docs/compose.yml", "services: {}\n")
    write("README.md", "test_cases:\n  - x\n")
    write("results.json", '{"results": []}')
    return tmp_path


def names(found, root):
    return [str(file.relative_to(root)) for file in found]


def test_what_a_folder_holds(project):
    found, problems = discover([project], project)
    assert not problems
    assert names(found, project) == [
        "evals/broken.yaml",
        "evals/flow.yml",
        "evals/support.yaml",
        "fixtures/http.hocon",
        "fixtures/math.hocon",
        "other/nao.yaml",
        "tests/deep/prompt_only.yaml",
        "tests/total.yml",
    ]


def test_files_count_once_and_folders_named_outright_are_read_whatever_their_name(project):
    found, problems = discover(
        [project / "evals", project / "evals/support.yaml", project / ".hidden"], project
    )
    assert not problems
    assert names(found, project) == [
        ".hidden/support.yaml",
        "evals/broken.yaml",
        "evals/flow.yml",
        "evals/support.yaml",
    ]


def test_paths_that_are_no_suites_are_problems(project, monkeypatch):
    monkeypatch.chdir(project)
    wanted = [
        Path("README.md"),
        Path("gone.yaml"),
        Path("tui_eval.yaml"),
        Path("docs/scalar.yaml"),
        Path("a\x00b"),
    ]
    found, problems = discover(wanted, project)
    assert not found and [p.path for p in problems][:4] == [
        "README.md",
        "gone.yaml",
        "tui_eval.yaml",
        "docs/scalar.yaml",
    ]
    assert "not recognised" in problems[0].message and "test_cases" in problems[0].cure
    assert "no such file" in problems[1].message
    assert all(p.level == "error" and "\n" not in str(p) for p in problems)


def test_load_all_reads_what_it_can(project):
    config = Config(root=project)
    loaded = load_all([project, project / "gone"], config, Trust())
    assert [s.path for s in loaded] == sorted((s.path for s in loaded), key=lambda p: Path(p).parts)
    by_path = {s.path: s for s in loaded}
    assert {s.path for s in loaded if not s.cases} == {"evals/broken.yaml", "gone"}
    assert str(problems_of(by_path["evals/broken.yaml"])[0]).startswith("evals/broken.yaml:2:")
    assert {s.format for s in loaded if s.cases} == {"nao", "start_to_agent", "neuro_san"}
    assert by_path["fixtures/http.hocon"].cases[0].connection == "http"
    assert len(by_path["fixtures/http.hocon"].files) == 2
    assert all(Path(f).is_absolute() for s in loaded for f in s.files)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe\x00", b"test_cases:\n  - input: \xe9\n", b"\x00" * 50, b"", b"\xef\xbb\xbf" + GUIDE.encode()],
)
def test_any_bytes(tmp_path, data):
    file = tmp_path / "x.yaml"
    file.write_bytes(data)
    suite = load(file, Config(root=tmp_path), Trust())
    assert suite.cases or suite.problems
    discover([file, tmp_path], tmp_path)
    if b"\xe9\n" in data:
        assert "not UTF-8" in suite.problems[0].message and suite.problems[0].line == 2


def test_a_reader_that_fails_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "x.yaml").write_text(GUIDE)
    from tui_eval.formats.start_to_agent import read_start_to_agent

    def fail(*_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(read_start_to_agent, "read", fail)
    suite = load(tmp_path / "x.yaml", Config(root=tmp_path), Trust())
    assert str(suite.problems[0]) == "x.yaml: could not be read (RuntimeError: two lines)"


def test_rules_fill_in_what_the_file_leaves_open(project):
    rules = [
        SuiteRule(
            "tests/**", "analyst", "m", "shop", None, {"rtol": 0.1, "ordered": True}, attempts=3, timeout=9.0
        ),
        SuiteRule("evals/", "other", attempts=2),
    ]
    (project / "tests/total.yml").write_text(NAO + "database: own\ncomparison: {rtol: 0.5}\n")
    config = Config(root=project, suites=rules)
    (case,) = load(project / "tests/total.yml", config, Trust()).cases
    assert (case.agent, case.model, case.database) == ("analyst", "m", "own")
    assert case.timeout is None, "a suite's own limit wins, which only the plan knows"
    assert case.comparison == {"rtol": 0.5, "ordered": True} and (case.attempts, case.required) == (3, 3)
    (case,) = load(project / "evals/support.yaml", config, Trust()).cases
    assert (case.agent, case.attempts) == ("a", 2)
    (case,) = load(project / "other/nao.yaml", config, Trust()).cases
    assert (case.agent, case.comparison, case.attempts) == (None, None, 1)
    (project / "fixtures/math.hocon").write_text(NEURO + "success_ratio = 1/2\n")
    (case,) = load(project / "fixtures/math.hocon", config, Trust()).cases
    assert (case.attempts, case.required) == (2, 1)


def test_a_rules_limit_of_an_attempt_is_none_of_a_neuro_san_case_for_all_of_them(project):
    """It was, and `--timeout` did not win over it."""
    rules = [SuiteRule("**", attempts=4, timeout=1.0)]
    config = Config(root=project, suites=rules)
    (case,) = load(project / "fixtures/math.hocon", config, Trust()).cases
    assert (case.attempts, case.timeout) == (4, None)
    (project / "fixtures/math.hocon").write_text(NEURO + "timeout_in_seconds = 9\n")
    (case,) = load(project / "fixtures/math.hocon", config, Trust()).cases
    assert case.timeout == 9.0


def test_the_suite_tells_what_is_wrong_with_its_cases(project):
    (project / "evals/slip.yaml").write_text(GUIDE + "    expected: {should_contian: x}\n")
    suite = load(project / "evals/slip.yaml", Config(root=project), Trust())
    assert suite.problems == suite.cases[0].problems == problems_of(suite)
    assert suite.problems[0].level == "error"


def test_a_linked_folder_keeps_its_path_from_the_root(project, tmp_path_factory):
    link = tmp_path_factory.mktemp("links") / "p"
    link.symlink_to(project)
    suite = load(link / "evals/support.yaml", Config(root=project), Trust())
    assert suite.path == "evals/support.yaml"


@pytest.mark.real
def test_of_thousands_of_files_few_are_parsed(tmp_path):
    for folder in range(20):
        (tmp_path / str(folder)).mkdir()
        for number in range(100):
            (tmp_path / str(folder) / f"{number}.yaml").write_text(
                "services:\n" + "  a: {b: c, d: [e]}\n" * 50
            )
    (tmp_path / "suite.yaml").write_text(GUIDE)
    (found, _), calls = calls_of(lambda: discover([tmp_path], tmp_path))
    assert len(found) == 1
    assert calls < 500 * 2_000, "each is opened, none is parsed"


def test_formats_are_registered():
    assert (
        {one.name for one in formats.our_formats()}
        == set(formats.names())
        == {"nao", "start_to_agent", "promptfoo", "neuro_san"}
    )
    for one in formats.our_formats():
        assert callable(one.recognises) and callable(one.read)


def test_a_folder_that_cannot_be_read_is_told(project, monkeypatch):
    scandir = os.scandir

    def refusing(path):
        if Path(path).name == "deep":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found, problems = discover([project], project)
    assert "tests/total.yml" in names(found, project)
    (problem,) = problems
    assert (problem.path, problem.level) == ("tests/deep", "error")
    assert "cannot be read: Permission denied" in problem.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("- a\n", "the file is no mapping"),
        ("\tprompt: x\n", "not valid YAML"),
        ("default: {text: hello}\n", None),
    ],
)
def test_what_nao_refuses_below_its_tests_is_not_passed_over(tmp_path, text, said):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yml").write_text(text)
    found, problems = discover([tmp_path], tmp_path)
    assert not found and [p.level for p in problems] == ["note"]
    (tmp_path / "nao_config.yaml").write_text("project_name: shop\n")
    found, problems = discover([tmp_path], tmp_path)
    (problem,) = problems
    assert not found and problem.path == "tests/a.yml"
    assert problem.level == ("note" if said is None else "error")
    assert (said or "not taken") in problem.message


@pytest.mark.parametrize(
    "shared", ["interactions = [ { text = hi ${?question} } ]", "interactions = [ { text = ${question} } ]"]
)
def test_interactions_that_others_include_are_no_test_of_their_own(tmp_path, shared):
    """neuro-san runs the tests that it is given, and a part of them is none, whether or not it can be read alone."""
    (tmp_path / "shared.hocon").write_text(shared)
    (tmp_path / "b.hocon").write_text('agent = a, question = hi\ninclude "shared.hocon"\n')
    config = Config(root=tmp_path)
    for read in (load_all, lambda *given: SuiteCache().load(*given)):
        (suite,) = read([tmp_path], config, Trust())
        assert suite.path == "b.hocon" and len(suite.cases) == 1 and not suite.problems
        (suite,) = read([tmp_path / "shared.hocon"], config, Trust())
        assert suite.path == "shared.hocon" and [one.level for one in suite.problems] == ["error"]
    (tmp_path / "shared.hocon").write_text(f"{shared}\n]")
    assert "shared.hocon" in [one.path for one in load_all([tmp_path], config, Trust())]
    (tmp_path / "shared.hocon").write_text(
        f"question = x, agnet = a, {shared}\n"
    )  # a test that was to be run
    assert "shared.hocon" in [one.path for one in load_all([tmp_path], config, Trust())]


def test_a_prompt_in_capitals_is_a_slip(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yml").write_text("Prompt: x\n")
    (suite,) = load_all([tmp_path], Config(root=tmp_path), Trust(False))
    assert not suite.cases and suite.problems[0].cure == "did you mean 'prompt'?"


FOREIGN = [
    "tests: [revenue]",
    "providers: [warehouse]",
    "prompts: 2",
    "test_cases: [a, b]",
    "prompts: [a]\nproviders: [b]\ntests: [{vars: {}}]",
]


@pytest.mark.parametrize("further", FOREIGN)
@pytest.mark.parametrize("data", ["sql: SELECT 1 AS n", "assertions: [{type: tool_call, tool: run_sql}]"])
def test_a_nao_test_with_words_of_other_formats_is_one_case(tmp_path, further, data):
    file = tmp_path / "tests/revenue/total.yml"
    file.parent.mkdir(parents=True)
    file.write_text(f"{further}\nname: total\nprompt: How much?\n{data}\n")
    (suite,) = load_all([tmp_path], Config(root=tmp_path), Trust())
    assert (suite.format, [case.name for case in suite.cases]) == ("nao", ["total"])
    assert all(problem.level == "note" for problem in suite.problems)
    assert discover([file], tmp_path) == ([file], [])


def test_outside_of_tests_a_prompt_with_sql_is_a_nao_test_too(tmp_path):
    (tmp_path / "a.yml").write_text(NAO + "tests: [x]\nproviders: [y]\n")
    assert names(discover([tmp_path], tmp_path)[0], tmp_path) == ["a.yml"]


def test_yaml_below_tests_that_is_not_taken_is_a_note(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("tests/fixture.yml", "rows: [1]\n")
    write("tests/prompt_only.yml", "prompt: p\ntests: [a]\n")
    write("tests/evals.yaml", "prompts: [a]\nproviders: [echo]\ntests: [{vars: {}}]\n")
    write("tests/rows.yaml", "- vars: {a: 1}\n")
    write("tests/agent.script.yaml", "default: {text: hello}\n")
    write("tests/outputs/results.yml", "a: 1\n")
    write("tests/.hidden.yml", "a: 1\n")
    write("other/fixture.yml", "rows: [1]\n")
    write("promptfooconfig.yaml", "prompts: [a]\nproviders: [echo]\ntests: file://tests/rows.yaml\n")
    config = Config(
        root=tmp_path, agents={"me": AgentSpec("me", "scripted", {"script": "tests/agent.script.yaml"})}
    )
    loaded = load_all([tmp_path], config, Trust())
    notes = {p.path: p for s in loaded for p in s.problems if p.message.startswith("not taken")}
    assert sorted(notes) == ["tests/evals.yaml", "tests/fixture.yml", "tests/prompt_only.yml"]
    assert all(note.level == "note" for note in notes.values())
    assert "promptfooconfig" in notes["tests/evals.yaml"].cure and "prompt" in notes["tests/fixture.yml"].cure
    assert [s.path for s in loaded if s.path] == ["promptfooconfig.yaml"]


def outside(tmp_path: Path) -> Path:
    """A project, and beside it what its links lead to."""
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "tui_eval.yaml").write_text("{}\n", "utf-8")
    (tmp_path / "suite.yaml").write_text("agent: a\ntest_cases:\n  - {name: n, input: secret}\n", "utf-8")
    (tmp_path / "nao.yaml").write_text("name: n\nprompt: secret\nsql: SELECT 1\n", "utf-8")
    (tmp_path / "promptfoo.yaml").write_text(
        "prompts: [secret]\nproviders: [echo]\ntests: [{vars: {a: b}}]\n", "utf-8"
    )
    (root / "linked.yaml").symlink_to(tmp_path / "suite.yaml")
    (root / "tests" / "n.yaml").symlink_to(tmp_path / "nao.yaml")
    (root / "promptfooconfig.yaml").symlink_to(tmp_path / "promptfoo.yaml")
    (root / "inside.yaml").write_text("agent: a\ntest_cases:\n  - {name: n, input: mine}\n", "utf-8")
    (root / "again.yaml").symlink_to(root / "inside.yaml")
    return root


def test_a_suite_that_is_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    root = outside(tmp_path)
    trust = Trust()
    loaded = load_all([root], load_config([root]), trust)
    assert {suite.path for suite in loaded if suite.cases} == {"again.yaml", "inside.yaml"}
    refused = {
        suite.path: [str(problem) for problem in suite.problems] for suite in loaded if not suite.cases
    }
    assert refused.keys() == {"linked.yaml", "promptfooconfig.yaml", "tests/n.yaml"}
    told = refused["linked.yaml"][0]
    assert "leaves the project" in told and f"needs trust: read {tmp_path / 'suite.yaml'} (" in told
    assert "secret" not in str(loaded)
    assert sorted(trust.wanted) == [
        f"read {tmp_path / name}" for name in ("nao.yaml", "promptfoo.yaml", "suite.yaml")
    ]


def test_it_is_read_with_trust_or_named_outright(tmp_path: Path) -> None:
    root = outside(tmp_path)
    trusted = load_all([root], load_config([root]), Trust(True))
    assert len([suite for suite in trusted if suite.cases]) == 5
    agreed = Trust(agreed=frozenset([f"read {tmp_path / 'suite.yaml'}"]))
    some = load_all([root], load_config([root]), agreed)
    assert "linked.yaml" in {suite.path for suite in some if suite.cases}
    typed = [root / "linked.yaml"]
    (named,) = load_all(typed, load_config(typed), Trust())
    assert len(named.cases) == 1 and not [p for p in named.problems if p.level == "error"]


def test_a_configuration_that_is_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    root = outside(tmp_path)
    for name in ("tui_eval.yaml", "nao_config.yaml"):
        (root / name).unlink(missing_ok=True)
        (tmp_path / name).write_text("project_name: secret\nagents: {secret: {type: echo}}\n", "utf-8")
        (root / name).symlink_to(tmp_path / name)
    config = load_config([root])
    told = [str(problem) for problem in config.problems]
    assert config.root == root and not config.agents and config.nao is None
    assert len(told) == 2 and all("leaves the project" in line for line in told), told
    assert "secret" in load_config([root], root / "tui_eval.yaml").agents


@pytest.mark.parametrize("kind", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_a_test_in_another_encoding_is_an_error_not_passed_over(kind: str, tmp_path: Path) -> None:
    """Windows' shells save text so; the run without it would be green."""
    for name, text in (("tests/guide.yaml", GUIDE), ("tests/nao.yml", NAO), ("net/a.hocon", NEURO)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode(kind))
    (tmp_path / "notes.yaml").write_bytes("some: other file\n".encode(kind))
    loaded = load_all([tmp_path], load_config([tmp_path], root=tmp_path), Trust())
    wrong = {suite.path for suite in loaded if any(p.level == "error" for p in suite.problems)}
    assert wrong == {"tests/guide.yaml", "tests/nao.yml", "net/a.hocon"}


@pytest.mark.parametrize("name", ["tui_eval.yaml", "nao_config.yaml"])
def test_a_configuration_that_is_no_file_is_an_error(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    for make in (place.mkdir, lambda: os.mkfifo(place), lambda: place.symlink_to("nowhere")):
        make()
        (told,) = load_config([tmp_path], root=tmp_path).problems
        assert told.level == "error" and name in str(told) and "no file" in str(told)
        place.rmdir() if place.is_dir() else place.unlink()


def test_what_is_too_large_to_look_into_is_an_error_where_its_name_says_that_it_is_a_suite(
    tmp_path: Path,
) -> None:
    """It would be missed otherwise; another file may be data, and is named by `check`."""
    for name in ("promptfooconfig.json", "data.yaml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(LARGEST + 1)
    found, problems = discover([tmp_path], tmp_path)
    assert found == []
    assert {(one.path, one.level) for one in problems} == {
        ("promptfooconfig.json", "error"),
        ("data.yaml", "note"),
    }
    assert {one.message for one in problems} == {"not read: larger than 64 MB"}


def test_what_is_no_file_is_an_error_where_a_suite_could_be(tmp_path: Path) -> None:
    """A run without it would be green; and nobody waits for it."""
    os.mkfifo(tmp_path / "odd.yaml")
    os.mkfifo(tmp_path / "odd")
    (tmp_path / "good.yaml").write_text(GUIDE)
    found, problems = discover([tmp_path], tmp_path)
    assert [file.name for file in found] == ["good.yaml"]
    (told,) = problems
    assert (told.path, told.level) == ("odd.yaml", "error") and "no ordinary file" in told.message


def test_only_what_is_new_in_a_folder_is_looked_at_again(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "old.yaml").write_text(GUIDE)
    looked: Looked = {}
    assert [file.name for file in discover([tmp_path], tmp_path, looked=looked)[0]] == ["old.yaml"]
    assert new_in(list(looked), looked, tmp_path, Trust()) == ([], [])
    (tmp_path / "new" / "deep").mkdir(parents=True)
    for place in ("sub/one.yaml", "new/deep/two.yaml", ".hidden.yaml", "sub/text.txt"):
        (tmp_path / place).write_text(GUIDE)
    (tmp_path / "sub" / "data.yaml").write_text("a: 1\n")
    suites, others = new_in(list(looked), looked, tmp_path, Trust())
    assert sorted(file.name for file in suites) == ["one.yaml", "two.yaml"]
    assert [file.name for file in others] == ["data.yaml"] and str(tmp_path / "new" / "deep") in looked
    assert new_in(list(looked), looked, tmp_path, Trust()) == ([], [])
