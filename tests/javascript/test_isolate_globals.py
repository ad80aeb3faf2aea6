"""What isolates have beyond JavaScript itself: the same answers as node, which was asked for them where noted."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript.inline import better_in_node, evaluate, needs_node
from tui_eval.javascript.isolate import JavaScriptError, JavaScriptHost, JavaScriptTimeout
from tui_eval.javascript.node_host import NodeHost

node_needed = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture(scope="module")
def host() -> Iterator[JavaScriptHost]:
    host = JavaScriptHost(1)
    yield host
    host.close()


CODE = [
    "new URL('http://Example.com:80/a/../b?x=1 2#f').href",
    "new URL('../c?d', 'https://h.com/a/b/c').href",
    "['//x.y/z', '?q', '#q', '', '/abs', 'e/f'].map((text) => new URL(text, 'https://u:p@h.com:81/a/b?z#h').href)",
    "new URL('https://üñí.com/ä?ö=ü#ß').href + new URL('http://faß.de').host",
    "['nope', 'http://', 'http://a b/', 'http://h:99999/', 'x'].map((text) => URL.canParse(text))",
    "(() => { try { new URL('nope') } catch (e) { return [e.name, e.message, e.code] } })()",
    "['mailto:a@b.c', 'data:text/plain,hi there', 'file:///a/../b', 'http://[::1]:3000/x'].map((u) => new URL(u).href)",
    "['http://0x7f.1/', 'http://1.2.3/', 'http://h.com./', 'HTTP:\\\\\\\\h.com\\\\a'].map((u) => new URL(u).host)",
    "(() => { const u = new URL('https://h.com/?a=1&b=2&a=3'); u.searchParams.append('c', 'x y&z');"
    " u.searchParams.delete('b'); u.hash = 'top'; u.pathname = 'new path'; u.port = '99';"
    " return [u.href, u.searchParams.getAll('a'), u.search, JSON.stringify({u})] })()",
    "(() => { const u = new URL('https://h.com/p'); u.search = '?q=1'; u.protocol = 'http'; u.host = 'y.org:81';"
    " u.username = 'me'; return [u.href, u.searchParams.get('q'), u.origin] })()",
    "new URLSearchParams({a: 1, b: 'x y', c: 'é&='}).toString() + new URLSearchParams([['a', '1'], ['a', '2']])",
    "[...new URLSearchParams('?a=1&b=%20+c&d&%zz=1').entries()]",
    "(() => { const p = new URLSearchParams('b=2&a=1&b=3'); p.sort(); p.set('b', 9);"
    " return [String(p), p.has('a'), p.get('z'), p.size] })()",
    "Buffer.from('héllo').toString('base64') + Buffer.from('aMOpbGxv', 'base64') + Buffer.from('68c3a9', 'hex')",
    "[Buffer.from([104, 105]) + '', Buffer.concat([Buffer.from('a'), Buffer.from('b')]) + '', Buffer.byteLength('é')]",
    "[JSON.stringify(Buffer.from('hi')), Buffer.from('ab').equals(Buffer.from('ab')), Buffer.isBuffer(Buffer.alloc(2))]",
    "[btoa('hello'), atob('aGVsbG8='), btoa(''), btoa('a'), btoa('ab'), Buffer.from('??>').toString('base64url')]",
    "(() => { const a = {d: new Date(0), m: new Map([[1, {x: 1}]]), s: new Set([1]), r: /x/g, n: [1, , 3], u: undefined};"
    " a.self = a; const c = structuredClone(a);"
    " return [c !== a, c.self === c, +c.d, c.m.get(1).x, c.s.has(1), String(c.r), c.n.length, 'u' in c] })()",
    "(() => { try { structuredClone(() => 1) } catch { return 'refused' } })()",
    "[...new TextEncoder().encode('é😀')] + new TextDecoder().decode(new Uint8Array([240, 159, 152, 128, 255, 195]))",
    "new Promise((done) => setTimeout(done, 5, 'late'))",
    "new Promise((done) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); done(n) } }, 1) })",
    "new Promise((done) => { const seen = []; setTimeout(() => seen.push('b'), 5); setTimeout(() => done(seen + ''), 9);"
    " setImmediate(() => seen.push('a')); queueMicrotask(() => seen.push('0'));"
    " clearTimeout(setTimeout(() => seen.push('x'), 1)) })",
    "(() => { console.log('x'); console.table([]); console.group('a'); console.timeEnd(); return 1 })()",
    "typeof global.URL",
]


@node_needed
async def test_as_node_answers(host: JavaScriptHost) -> None:
    program = (
        "const code = JSON.parse(require('fs').readFileSync(0)); (async () => { const found = [];"
        "for (const one of code) found.push(await new Function('return ' + one)()); return found })()"
        ".then((found) => require('fs').writeFileSync(2, '\\n@@' + JSON.stringify(found)))"
    )
    child = await asyncio.create_subprocess_exec(
        "node", "-e", program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, answered = await child.communicate(json.dumps(CODE).encode())
    for code, wanted in zip(
        CODE, json.JSONDecoder().raw_decode(answered.decode().rpartition("@@")[2])[0], strict=True
    ):
        assert json.loads(json.dumps(await host.evaluate(code, {}))) == wanted, code


async def test_a_timer_ends_with_the_time_and_reaches_nothing(host: JavaScriptHost) -> None:
    for code in (
        "new Promise(() => setInterval(() => 1, 10))",
        "new Promise((done) => setTimeout(done, 60000))",
    ):
        with pytest.raises(JavaScriptTimeout):
            await host.evaluate(code, {}, timeout=0.3)
    with pytest.raises(JavaScriptError, match="never settles"):
        await host.evaluate("new Promise(() => clearTimeout(1))", {})
    with pytest.raises(JavaScriptError, match="fetch is not defined"):
        await host.evaluate("fetch(new URL('http://x'))", {})


def outside(root: Path, trusted: bool) -> dict[str, Any]:
    trust = Trust(trusted)
    return {"require": lambda name: trust.require(f"run it in node ({name})"), "base": root}


@node_needed
async def test_what_only_node_has_is_asked_there_with_trust(host: JavaScriptHost, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"k": "from a file"}', "utf-8")
    node = NodeHost(tmp_path)
    try:
        for code, wanted in (
            ("process.env.HOME === undefined ? 0 : output.length", 3),
            ("require('./data.json').k", "from a file"),
            ("process.mainModule.require('./data.json').k", "from a file"),
            ("const fs = require('fs');\nreturn fs.readdirSync('.').length;", 1),
            ("import('node:path').then((path) => path.basename('/a/b'))", "b"),
            ("typeof fetch === 'function' ? 1 : fetch('x')", 1),
        ):
            assert await evaluate(code, {"output": "abc"}, host, node, **outside(tmp_path, True)) == wanted
            with pytest.raises(NeedsTrust, match="run it in node"):
                await evaluate(code, {"output": "abc"}, host, node, **outside(tmp_path, False))
        # What fails for another reason is not tried again.
        with pytest.raises(JavaScriptError, match="nothing is not defined"):
            await evaluate("nothing", {}, host, node, **outside(tmp_path, False))
    finally:
        node.close()


def test_files_that_could_run_in_either() -> None:
    assert not needs_node(Path("a.js"), "module.exports = (o) => Buffer.from(o).toString('base64')")
    assert better_in_node("module.exports = (o) => Buffer.from(o).toString('base64')")
    assert not better_in_node("module.exports = (output) => output.length")
    assert needs_node(Path("a.js"), "const x = require('x')")
