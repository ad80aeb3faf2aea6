"""JavaScript files run by node: all kinds of exports, errors, time limits, edits."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.waiting import until
from tui_eval.javascript import node_host
from tui_eval.javascript.node_host import NodeHost, NodeMissing, ScriptError, ScriptTimeout
from tui_eval.scripting.script_host import printed

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NodeHost]:
    made = NodeHost(tmp_path)
    yield made
    made.close()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "function", "value"),
    [
        ("a.js", "module.exports = (a, b) => a + b", "", 3),
        ("a.cjs", "module.exports = async (a, b) => ({ sum: a + b, gone: undefined })", "", {"sum": 3}),
        ("a.js", "module.exports = { f: (a) => [a, null], o: { g: (a, b) => b } }", "f", [1, None]),
        ("a.js", "module.exports = { f: 1, o: { g: (a, b) => b } }", "o.g", 2),
        ("a.mjs", "export default (a) => 'd' + a; export const f = (a) => 'f' + a", "", "d1"),
        ("a.mjs", "export default (a) => 'd' + a; export const f = (a) => 'f' + a", "f", "f1"),
        ("a.mjs", "export function f() { return NaN }", "f", None),
        ("a.cjs", "exports.default = { f: () => 5n }", "f", "5"),
        ("a.js", "const { join } = require('path'); module.exports = () => join('a', 'b')", "", "a/b"),
        ("a.js", "module.exports = () => undefined", "", None),
    ],
)
async def test_exports(
    host: NodeHost, tmp_path: Path, name: str, text: str, function: str, value: object
) -> None:
    result = await host.call(write(tmp_path, name, text), function, [1, 2])
    assert result.value == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "#!/usr/bin/env node\nconst { join } = require('path');\nmodule.exports = (a) => join(__dirname, 'x', String(a)).slice(-3)",
            "x/1",
        ),
        (
            "exports.f = 1;\nmodule.exports = async (a) => (await import('node:path')).join('y', String(a))",
            "y/1",
        ),
        ("export default (a) => 'm' + a", "m1"),
    ],
)
async def test_a_file_for_require_runs_in_a_package_of_es_modules_too(
    host: NodeHost, tmp_path: Path, text: str, says: str
) -> None:
    write(tmp_path, "package.json", '{"type": "module"}')
    assert (await host.call(write(tmp_path, "a.js", text), "", [1])).value == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import 'node:fs';\nexport default () => require('fs')\nrequire('fs')", "require is not defined"),
        ("module.exports = () => 1;\n\nnothing.at.all", "nothing is not defined"),
    ],
)
async def test_what_fails_there_says_why(host: NodeHost, tmp_path: Path, text: str, says: str) -> None:
    write(tmp_path, "package.json", '{"type": "module"}')
    with pytest.raises(ScriptError, match=says):
        await host.call(write(tmp_path, "a.js", text), "", [])


@pytest.mark.real
@pytest.mark.parametrize(
    ("text", "function", "says"),
    [
        ("module.exports = () => { throw new TypeError('no\\nluck') }", "", "TypeError: no luck"),
        ("module.exports = () => Promise.reject('plain')", "", "plain"),
        ("module.exports = 5", "", "a.js must export a function"),
        ("module.exports = {}", "f", "a.js must export a function f"),
        ("module.exports = (", "", "SyntaxError"),
        (
            "require('not-there-at-all'); module.exports = () => 1",
            "",
            "Cannot find module 'not-there-at-all'",
        ),
        ("module.exports = () => { const a = {}; a.a = a; return a }", "", "circular"),
        ("module.exports = () => process.exit(7)", "", "the node process ended (exit code 7)"),
        ("module.exports = () => new Boolean(false)", "", "gives a Boolean object"),
    ],
)
async def test_errors_are_one_line(
    host: NodeHost, tmp_path: Path, text: str, function: str, says: str
) -> None:
    with pytest.raises(ScriptError) as caught:
        await host.call(write(tmp_path, "a.js", text), function)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    good = write(tmp_path, "b.js", "module.exports = () => 'still here'")
    assert (await host.call(good)).value == "still here"


async def test_what_a_call_prints_is_known_before_it_ends(host: NodeHost, tmp_path: Path) -> None:
    """As of Python: of a provider that hung nothing of what it had printed was to be seen."""
    file = tmp_path / "p.mjs"
    file.write_text(
        "import fs from 'node:fs';\n"
        "export async function hang() { console.log('waiting'); await new Promise(() => {}); }\n"
        "export async function long(go) {\n"
        "  console.log('one');\n"
        "  while (!fs.existsSync(go)) await new Promise((done) => setTimeout(done, 10));\n"
        "  console.log('two');\n"
        "  return 'done';\n"
        "}\n"
    )
    kept: list[str] = []
    token = printed.set(kept.append)
    hanging = asyncio.ensure_future(host.call(file, "hang"))
    going = asyncio.ensure_future(host.call(file, "long", [str(tmp_path / "go")]))
    await until(lambda: set(kept) == {"waiting\n", "one\n"})
    (tmp_path / "go").touch()
    result = await going
    hanging.cancel()
    with suppress(asyncio.CancelledError):
        await hanging
    printed.reset(token)
    assert (result.value, result.stdout, kept[2:]) == ("done", "one\ntwo\n", ["two\n"])


async def test_what_is_printed_belongs_to_its_call(host: NodeHost, tmp_path: Path) -> None:
    file = write(
        tmp_path, "a.js",
        "module.exports = async (n) => { console.log('a', n); await new Promise(r => setTimeout(r, 20)); console.error('b', n); return n }",
    )  # fmt: skip
    heard: list[str] = []
    token = printed.set(heard.append)
    first, second = await asyncio.gather(host.call(file, "", [1]), host.call(file, "", [2]))
    printed.reset(token)
    assert (first.stdout, second.stdout) == ("a 1\nb 1\n", "a 2\nb 2\n")
    assert sorted(heard) == ["a 1\nb 1\n", "a 2\nb 2\n"]


@pytest.mark.parametrize("body", ["while (true) {}", "return new Promise(() => {})"])
async def test_a_call_out_of_time_is_ended(host: NodeHost, tmp_path: Path, body: str) -> None:
    stuck = write(tmp_path, "stuck.js", f"module.exports = () => {{ {body} }}")
    began = time.monotonic()
    with pytest.raises(ScriptTimeout, match=r"stuck\.js:default did not end within 0\.4 s"):
        await host.call(stuck, timeout=0.4)
    with pytest.raises(ScriptTimeout):
        host.call_sync(stuck, timeout=0.4)
    assert time.monotonic() - began < 30
    process = host._all[-1]
    async with asyncio.timeout(60):
        await asyncio.to_thread(process.wait)
    assert process.ended


async def test_edits_count(host: NodeHost, tmp_path: Path) -> None:
    helper = write(tmp_path, "helper.mjs", "export const n = 1")
    file = write(tmp_path, "a.mjs", "import { n } from './helper.mjs'; export default () => n")
    assert (await host.call(file)).value == 1
    write(tmp_path, "helper.mjs", "export const n = 22")
    assert (await host.call(file)).value == 22
    os.utime(helper)


def test_values_and_their_functions(host: NodeHost, tmp_path: Path) -> None:
    file = write(
        tmp_path, "c.js",
        "module.exports = async () => ({ a: [1, (x) => x + 1], when: new Date(0), b: { f: (x) => x * 2 } })",
    )  # fmt: skip
    found = host.value_sync(file, reference="c.js").value
    assert found == {
        "a": [1, "file://c.js:__fn_0"], "when": "1970-01-01T00:00:00.000Z", "b": {"f": "file://c.js:__fn_1"},
    }  # fmt: skip
    assert host.call_sync(file, "__fn_1", [21]).value == 42
    other = NodeHost(tmp_path)
    try:
        assert other.call_sync(file, "__fn_0", [21]).value == 22
    finally:
        other.close()
    with pytest.raises(ScriptError, match="contains itself"):
        host.value_sync(write(tmp_path, "d.js", "const a = {}; a.a = a; module.exports = a"))
    with pytest.raises(ScriptError, match="exports no missing"):
        host.value_sync(file, "missing")


async def test_providers(host: NodeHost, tmp_path: Path) -> None:
    file = write(
        tmp_path, "p.js",
        "module.exports = class { constructor(o) { this.o = o; this.n = 0 } id() { return this.o.id }\n"
        "async callApi(prompt, context) { this.n++; return { output: prompt + context.vars.q + this.o.config.c + this.n } } }",
    )  # fmt: skip
    options = {"id": "p", "config": {"c": "!"}}
    for n in (1, 2):
        result = await host.provider(file, "", options, "hi ", {"vars": {"q": "you"}})
        assert result.value == {"output": f"hi you!{n}"}
    plain = write(tmp_path, "f.mjs", "export default async (prompt) => ({ output: prompt })")
    assert (await host.provider(plain, "", {}, "x", {})).value == {"output": "x"}
    wrong = write(tmp_path, "w.js", "module.exports = 5")
    with pytest.raises(ScriptError, match="must export a provider"):
        await host.provider(wrong, "", {}, "x", {})


async def test_lenient_names_and_the_current_folder(host: NodeHost, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = write(tmp_path / "sub", "a.js", "module.exports = () => process.cwd()")
    assert (await host.call(file, "hook", lenient=True)).value == str(tmp_path / "sub")
    assert (await host.call(file, cwd=tmp_path)).value == str(tmp_path)


async def test_typescript_or_why_not(host: NodeHost, tmp_path: Path) -> None:
    file = write(tmp_path, "t.ts", "export default (a: number): number => a + 1\n")
    version = node_host.node_version(shutil.which("node") or "")
    if version >= (22, 6):
        assert (await host.call(file, "", [1])).value == 2
    else:
        with pytest.raises(NodeMissing, match=r"TypeScript files need node 22\.6 or later"):
            await host.call(file, "", [1])


@pytest.mark.parametrize(
    ("version", "flags"), [((22, 6), 1), ((22, 18), 0), ((23, 0), 1), ((23, 6), 0), ((26, 1), 0)]
)
def test_flags_for_typescript(tmp_path: Path, version: tuple[int, int], flags: int) -> None:
    assert len(node_host.typescript_flags("node", version, tmp_path)) == flags


def test_tsx_of_the_project(tmp_path: Path) -> None:
    loader = tmp_path / "node_modules" / "tsx" / "dist" / "loader.mjs"
    loader.parent.mkdir(parents=True)
    loader.write_text("")
    node = str(tmp_path / "usr" / "bin" / "node")
    assert node_host.typescript_flags(node, (20, 1), tmp_path / "sub") == ["--import", loader.as_uri()]
    common = (
        tmp_path
        / "usr"
        / "lib"
        / "node_modules"
        / "promptfoo"
        / "node_modules"
        / "tsx"
        / "dist"
        / "loader.mjs"
    )
    common.parent.mkdir(parents=True)
    common.write_text("")
    assert node_host.typescript_flags(node, (20, 1), tmp_path.parent) == ["--import", common.as_uri()]


async def test_without_node(host: NodeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeMissing, match="there is no node on PATH"):
        await host.call(write(tmp_path, "a.js", "module.exports = () => 1"))
