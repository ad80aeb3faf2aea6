"""Where the project is, and what surrounds it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_eval.config import project as config
from tui_eval.config.nao_config import price_of
from tui_eval.config.project import ConfigError
from tui_eval.guard.trust import NeedsTrust, Trust

Project = Callable[..., config.Config]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cwd")
    monkeypatch.chdir(folder)
    return folder


def test_the_nearest_file_then_git_then_here(tmp_path: Path, elsewhere: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    suite = deep / "s.yaml"
    suite.write_text("")
    assert config.find_root([suite]) == (elsewhere, None)
    (tmp_path / ".git").mkdir()
    assert config.find_root([suite]) == (tmp_path, None)
    (tmp_path / "a" / "tui_eval.yaml").write_text("")
    assert config.find_root([suite]) == (tmp_path / "a", tmp_path / "a" / "tui_eval.yaml")
    assert config.find_root([deep, tmp_path / "a"]) == (tmp_path / "a", tmp_path / "a" / "tui_eval.yaml")
    assert config.find_root([deep, tmp_path]) == (tmp_path, None)
    assert config.find_root([deep / "none.yaml"])[0] == tmp_path / "a"
    other = elsewhere / "my.yaml"
    other.write_text("")
    assert config.find_root([suite], "my.yaml") == (elsewhere, other)
    assert config.find_root() == (elsewhere, None)


def test_the_store_goes_elsewhere_where_the_root_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.state_dir(tmp_path) == tmp_path / ".tui-eval"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    folder = config.state_dir(tmp_path)
    assert folder.parent == tmp_path / "state" / "tui-eval" / "projects"
    assert folder == config.state_dir(tmp_path) != config.state_dir(tmp_path / "other")


NAO = """
project_name: shop
databases:
- {name: shop, type: duckdb, path: ./shop.duckdb}
- {name: duck, type: duckdb, path: "md:my_db"}
- {name: lake, type: bigquery, project_id: x}
- {name: pg, type: postgres, host: db.example, port: 5433, database: sales, user: me, password: "{{ env('PGPW') }}"}
llm:
  provider: openai
  models: [{id: gpt-x, costs: {inputNoCache: 2, output: 8, odd: x}}]
test:
  models: ["openai:gpt-4.1", "broken"]
  threads: 3
  k: 0
  comparison: {rtol: 1e-3, decimals: 4}
"""


def test_what_nao_charges_for_a_model(project: Project) -> None:
    """By its own entry, whatever alias its provider is called by, else by the older form's one price of all."""
    loaded = project(
        "{}",
        nao_config__yaml="""
project_name: shop
llm:
  providers:
  - {provider: google, models: [{id: g, costs: {output: 1}}]}
  - {provider: openai-compatible/mine, models: [{id: "l:8b", costs: {output: 2}}]}
  meta: {costs: {input_no_cache: 3, output: 4}}
""",
    )
    assert loaded.nao is not None
    costs = loaded.nao.costs
    assert price_of(costs, "google", "g") == price_of(costs, "gemini", "g") == {"output": 1}
    for name in ("openai-compatible/mine", "openaiCompatible/mine"):
        assert price_of(costs, name, "l:8b") == {"output": 2}
    assert price_of(costs, "openai", "gpt-4.1") == {"inputNoCache": 3, "output": 4}
    assert price_of({}, "openai", "gpt-4.1") is None


def test_a_nao_project(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = project("databases: {lake: {type: sqlite, path: x.db}}", nao_config__yaml=NAO)
    assert [str(problem) for problem in loaded.problems] == [
        "nao_config.yaml:12: test.models.1: 'broken' is no model; write provider:model, as openai:gpt-4.1",
        "nao_config.yaml:14: test.k: must be a whole number of at least 1, not 0",
    ]
    nao = loaded.nao
    assert nao is not None
    assert (nao.models, nao.threads, nao.k, nao.comparison) == (
        ["openai:gpt-4.1"],
        3,
        None,
        {"rtol": 1e-3, "decimals": 4},
    )
    assert nao.costs == {"openai:gpt-x": {"inputNoCache": 2, "output": 8}}
    assert loaded.databases["shop"].path == str(tmp_path / "shop.duckdb")
    with pytest.raises(ConfigError, match="databases of type motherduck cannot be queried"):
        config.database(loaded, "duck", Trust(True))
    assert nao.databases["lake"].type == "bigquery" and loaded.databases["lake"].type == "sqlite"
    monkeypatch.setenv("PGPW", "geheim12345")
    with pytest.raises(NeedsTrust, match="PGPW"):
        config.database(loaded, "pg", Trust())
    assert (
        config.database(loaded, "pg", Trust(True)).url == "postgresql://me:geheim12345@db.example:5433/sales"
    )
    assert "geheim12345" in config.secrets(loaded)


def test_a_password_of_a_nao_project_is_any_text(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """nao hands it to the driver as it is; put into an address as it was, its end was taken for a host and shown."""
    entry = "- {name: %s, type: postgres, host: db.example, database: d, user: me, password: %s}\n"
    given = {"var": "\"{{ env('PG_PW') }}\"", "some": "\"x@{{ env('PG_PW') }}/\"", "text": "'p@s/s#w rd1%2'"}
    loaded = project(
        "{}",
        nao_config__yaml="databases:\n" + "".join(entry % pair for pair in given.items()),
    )
    monkeypatch.setenv("PG_PW", "p@s/s#w rd1%2")
    urls = {name: config.database(loaded, name, Trust(True)).url for name in given}
    word = "p%40s%2Fs%23w%20rd1%252"
    assert urls == {
        "var": f"postgresql://me:{word}@db.example:5432/d",
        "some": f"postgresql://me:x%40{word}%2F@db.example:5432/d",
        "text": f"postgresql://me:{word}@db.example:5432/d",
    }
    assert {"p@s/s#w rd1%2", "x@p@s/s#w rd1%2/"} <= set(config.secrets(loaded))


def test_a_nao_projects_schema(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "- {name: %s, type: %s, schema_name: %s}\n"
    given = {"pg": "sales", "own": "\"{{ env('PGSCHEMA') }}\"", "none": '""', "unset": "null"}
    entries = "".join(entry % (name, "postgres", schema) for name, schema in given.items())
    loaded = project(
        "agents: {}", nao_config__yaml="databases:\n" + entries + entry % ("duck", "duckdb", "x")
    )
    monkeypatch.setenv("PGSCHEMA", "my_own")
    with pytest.raises(NeedsTrust, match="PGSCHEMA"):
        config.database(loaded, "own", Trust())
    found = {name: config.database(loaded, name, Trust(True)).schema for name in (*given, "duck")}
    assert found == {"pg": "sales", "own": "my_own", "none": "", "unset": "", "duck": ""}


def test_of_two_databases_of_one_name_in_nao_config_neither_is_asked(project: Project) -> None:
    """nao's server executes nothing then; the last one was asked here, and what it gave was expected."""
    entry = "  - {name: %s, type: duckdb, path: %s.db}\n"
    text = "databases:\n" + entry % ("shop", "a") + entry % ("rest", "b") + entry % ("shop", "c")
    loaded = project("agents: {}", nao_config__yaml=text)
    assert list(loaded.databases) == ["rest"]
    (problem,) = loaded.problems
    said = "nao_config.yaml:4: databases.2.name: a second database 'shop' (the first on line 2); rename one"
    assert str(problem) == said and problem.level == "error"


def test_a_nao_project_found_from_its_tests_and_from_outside(tmp_path: Path) -> None:
    tests = tmp_path / "analytics" / "tests"
    tests.mkdir(parents=True)
    (tmp_path / "analytics" / "nao_config.yaml").write_text(
        "databases: [{name: d, type: duckdb, path: d.duckdb}]"
    )
    loaded = config.load([tests])
    assert loaded.nao is not None
    assert config.database(loaded, None, Trust()).path == str(tmp_path / "analytics" / "d.duckdb")
    (tmp_path / ".git").mkdir()
    assert config.load([tests]).nao is not None
    (tmp_path / "analytics" / "tests" / "tui_eval.yaml").write_text("")
    assert config.load([tests]).nao is None


UNQUOTED = """\
project_name: {{ env('PROJECT') }}   # {{ env('UNSET') }}
databases:
  - name: {{ env("DB_NAME") }}
    type: postgres
    host: {{ env('PGHOST') }}
    port: {{env('PGPORT')}}
    database: sales
    user: ${{ env('PGUSER') }}
    password: {{ env('PGPASSWORD') }}
  - {name: files, type: duckdb, path: {{ env('DATA') }}/shop.duckdb}
  - {name: vault, type: postgres, password: {{ aws('shop/password') }}}
llm:
  provider: openai
  api_key: {{ env('OPENAI_API_KEY') }}
test:
  threads: {{ env('THREADS') }}
  k: {{
     env('K') }}
  models: [{{ env('MODEL') }}, openai:{{ env('SECRET_TOKEN') }}, broken]
"""


def test_a_nao_project_whose_templates_stand_without_quotes(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"DB_NAME": "pg", "PGHOST": "db.example", "PGPORT": "5433", "PGUSER": "me: &x [", "PGPASSWORD": "ge:heim # 12",
              "DATA": "data", "THREADS": "7", "K": "2", "MODEL": "openai:gpt-x", "SECRET_TOKEN": "abc"}  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET", raising=False)
    loaded = project("", nao_config__yaml=UNQUOTED)
    config.read_withheld(loaded, Trust(True))
    assert [(problem.line, problem.level) for problem in loaded.problems] == [(11, "note"), (19, "error")]
    assert "aws(…)" in loaded.problems[0].message and "'broken' is no model" in loaded.problems[1].message
    nao = loaded.nao
    assert nao is not None
    assert (nao.threads, nao.k) == (7, 2)
    assert nao.models == [
        "openai:gpt-x",
        "openai:${SECRET_TOKEN:-}",
    ]  # what its name calls a secret is not read
    assert list(nao.databases) == ["pg", "files", "vault"]
    with pytest.raises(NeedsTrust, match="PG"):
        config.database(loaded, "pg", Trust())
    url = config.database(loaded, "pg", Trust(True)).url
    assert url == "postgresql://me%3A%20%26x%20%5B:ge%3Aheim%20%23%2012@db.example:5433/sales"
    assert config.database(loaded, "files", Trust(True)).path == str(tmp_path / "data" / "shop.duckdb")
    with pytest.raises(NeedsTrust, match="DATA"):
        config.database(loaded, "files", Trust())


def test_nothing_of_the_environment_is_read_into_a_nao_project_without_trust(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [
        "DB_NAME",
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGPASSWORD",
        "DATA",
        "THREADS",
        "K",
        "MODEL",
        "SECRET_TOKEN",
    ]
    for name in values:
        monkeypatch.setenv(name, f"{'openai:' * (name == 'MODEL')}held-{name.lower()}")
    text = UNQUOTED.replace("models: [", "comparison: {rtol: {{ env('K') }}}\n  models: [").replace(
        "  provider: openai", "  provider: {{ env('MODEL') }}\n  costs: {gpt-x: {output: {{ env('K') }}}}"
    )
    loaded = project("", nao_config__yaml=text)
    assert "held-" not in repr(loaded)
    nao = loaded.nao
    assert nao is not None and nao.models[0] == "${MODEL}" and next(iter(nao.databases)) == "${DB_NAME}"
    assert (nao.threads, nao.k, nao.comparison) == (None, None, {})
    asked = "read the environment variable {} (nao_config.yaml: {})".format
    assert nao.withheld == {
        "databases": [asked("DB_NAME", "databases")],
        "llm": [asked("MODEL", "llm"), asked("K", "llm")],
        "test.threads": [asked("THREADS", "test.threads")],
        "test.k": [asked("K", "test.k")],
        "test.comparison": [asked("K", "test.comparison")],
        "test.models": [asked("MODEL", "test.models")],
    }  # and no word of what nobody reads (PROJECT)
    with pytest.raises(NeedsTrust, match="DB_NAME"):
        config.database(loaded, "held-db_name", Trust())
    with pytest.raises(NeedsTrust, match="DB_NAME"):
        config.database(loaded, "${DB_NAME}", Trust())

    trust = Trust(agreed=frozenset({asked("MODEL", "test.models")}))
    config.read_withheld(loaded, trust)
    assert loaded.nao is not None and loaded.nao.models[0] == "openai:held-model"
    assert asked("MODEL", "llm") in trust.wanted and asked("MODEL", "test.models") not in trust.wanted
    assert {"held-model"} == set(re.findall(r"held-[a-z_]+", repr(loaded)))


def test_a_database_of_tui_eval_yaml_stays_when_a_nao_project_is_read_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAME", "shop")
    nao = "databases: [{name: {{ env('NAME') }}, type: sqlite, path: theirs.db}]"
    loaded = project("databases: {shop: {type: duckdb, path: ours.db}}", nao_config__yaml=nao)
    assert sorted(loaded.databases) == ["${NAME}", "shop"]
    config.read_withheld(loaded, Trust(True))
    assert {name: one.type for name, one in loaded.databases.items()} == {"shop": "duckdb"}
    assert loaded.problems == []


@pytest.mark.parametrize(
    "text", ["", "- a", "databases: 3", "databases: [3, {type: 4}]", "test: []", "llm: [1, {models: 3}]"]
)
def test_odd_nao_files_do_not_raise(project: Project, text: str) -> None:
    project("", nao_config__yaml=text)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_persons_store_is_none_to_look_into() -> None:
    """On a shared server everything ended with `internal error: PermissionError`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o777)
        (root / ".tui-eval").mkdir(mode=0o700)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                os.setuid(65534)
                found = config.state_dir(root)
                code = 0 if found != root / ".tui-eval" and not config.kept_by_link(root) else 2
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
@pytest.mark.parametrize("name", ["tui_eval.yaml", "nao_config.yaml", ".git"])
def test_what_another_user_put_into_a_folder_for_all_says_nothing_of_those_below(
    tmp_path: Path, elsewhere: Path, name: str
) -> None:
    """`/tmp/tui_eval.yaml` of a neighbour named the agents that a project in `/tmp/mine` asked."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / name).write_text("project_name: x\n" if name == "nao_config.yaml" else "")
    os.chown(tmp_path / name, 12345, 12345)

    def known() -> bool:
        found = config.load([mine / "s.yaml"])
        return found.root == tmp_path or found.nao is not None

    assert known()  # of somebody who shares the folder with the person
    tmp_path.chmod(0o1777)
    assert not known()
    os.chown(tmp_path / name, 0, 0)
    assert known()
    os.chown(tmp_path / name, 12345, 12345)
    os.chown(mine, 12345, 12345)
    assert known()  # all of a container's volume is somebody's whom it does not run as
