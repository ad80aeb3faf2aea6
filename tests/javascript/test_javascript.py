"""JavaScript in isolates: results, errors, limits."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tui_eval.javascript.isolate import (
    UNDEFINED,
    JavaScriptError,
    JavaScriptHost,
    JavaScriptTimeout,
    common_js,
    function_body,
)


@pytest.fixture(scope="module")
def host() -> Iterator[JavaScriptHost]:
    host = JavaScriptHost(2)
    yield host
    host.close()


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("output.length > 3", "return output.length > 3"),
        ("output.length > 3\n", "return output.length > 3"),
        ("  true  ", "return true"),
        ("return true\n", "return return true"),
        ("const a = 1; a > 0", "const a = 1; return a > 0"),
        ("let a = ';'; a === ';';", "let a = ';'; return a === ';'"),
        ("var f = () => { x; y }; f()", "var f = () => { x; y }; return f()"),
        ("const a = 1; return a", "const a = 1; return return a"),
        ("constant > 1", "return constant > 1"),
        ("const a = 1", "const a = 1"),
        ("const a = 1;\nreturn a;", "const a = 1;\nreturn a;"),
    ],
)
def test_body(code: str, body: str) -> None:
    assert function_body(code) == body


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("output === 'hi'", True),
        ("output.length", 2),
        ("1/2", 0.5),
        ("null", None),
        ("undefined", UNDEFINED),
        ("void 0\n", UNDEFINED),
        ("const x = 1;\nx;", UNDEFINED),
        ("({pass: true, score: 0.5, reason: output})", {"pass": True, "score": 0.5, "reason": "hi"}),
        ("context.vars.list.map(x => x * 2)", [2, 4]),
        ("const n = context.vars.list.length; n === 2", True),
        ("if (output) {\n  return 'yes';\n}\nreturn 'no';", "yes"),
        ("Promise.resolve(7)", 7),
        ("(async () => { await null; return output })()", "hi"),
        ("console.log('x'), 3", 3),
        ("missing === undefined", True),
        ("'\\ud800' + 'é😀' + context.vars.odd", "\ud800é😀\udfff"),
        ("({'\\udc00': 1})", {"\udc00": 1}),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("[NaN, undefined]", [None, None]),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("2**53", 2**53),
        ("typeof require + typeof process + typeof fetch + typeof __start", "undefined" * 4),
    ],
)
async def test_results(host: JavaScriptHost, code: str, value: Any) -> None:
    context = {"vars": {"list": [1, 2], "odd": "\udfff", "nan": math.nan}}
    result = await host.evaluate(
        code, {"output": "hi", "context": context, "missing": UNDEFINED, "no name": 1}
    )
    assert result == value and type(result) is type(value)


async def test_not_a_number(host: JavaScriptHost) -> None:
    assert math.isnan(await host.evaluate("0/0", {}))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("output.nothing.more", "TypeError: .*nothing|TypeError: cannot read"),
        ("nothere", "ReferenceError: nothere is not defined"),
        ("1 +", "SyntaxError"),
        ("return true\n", "SyntaxError"),
        ("await 1", "SyntaxError"),
        ("require('fs')", "ReferenceError: require is not defined"),
        ("(() => { throw new Error('one\\ntwo') })()", "^Error: one$"),
        ("(() => { throw {a: 1} })()", '{"a":1}'),
        ("(() => { throw null })()", "^null$"),
        ("Promise.reject(new RangeError('no'))", "^RangeError: no$"),
        ("new Promise(() => {})", "never settles"),
        ("() => 1", "gives a function"),
        ("new Boolean(false)", "gives a Boolean object"),
        ("Object(output.length)", "gives a Number object"),
        ("Promise.resolve(new String('x'))", "gives a String object"),
        ("10n", "TypeError"),
        ("(() => { const a = {}; a.a = a; return a })()", "TypeError: circular"),
        ("(function f() { return f() })()", "RangeError|InternalError"),
        ("import('fs')", "."),
        ("JSON.parse = JSON.stringify = null, Promise = 0, nope", "ReferenceError"),
        ("Object.defineProperty(Error.prototype, 'name', {get() { throw 1 }}), x.y", "."),
    ],
)
async def test_errors(host: JavaScriptHost, code: str, message: str) -> None:
    with pytest.raises(JavaScriptError, match=message) as caught:
        await host.evaluate(code, {"output": "hi"})
    assert "\n" not in str(caught.value)


@pytest.mark.usually(2)
@pytest.mark.parametrize(
    "code",
    [
        "(() => { while (true); })()",
        "(async () => { while (true) await null })()",
        "(() => { while (true) { try { while (true); } catch {} } })()",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "'x'.repeat(1 << 28).split('').sort()",
        "Array.from({length: 1e9}).fill(0).length",
        "new Array(1e9).indexOf(1)",
    ],
)
async def test_endless_code_is_stopped(host: JavaScriptHost, code: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(JavaScriptError):
        await host.evaluate(code, {}, timeout=0.5)
    assert time.perf_counter() - begun < 30
    assert await host.evaluate("1", {}) == 1


@pytest.mark.real
@pytest.mark.parametrize(
    "code",
    [
        "(() => { const a = []; while (true) a.push('x'.repeat(1e6) + a.length) })()",
        "(() => { let s = 'x'; while (true) s += s })()",
        "new ArrayBuffer(1e10)",
    ],
)
async def test_memory_bombs(host: JavaScriptHost, code: str) -> None:
    with pytest.raises(JavaScriptError):
        await host.evaluate(code, {}, timeout=5)
    assert await host.evaluate("1", {}) == 1


async def test_nothing_stays_for_the_next_one(host: JavaScriptHost) -> None:
    for _ in range(6):
        assert await host.evaluate("typeof kept", {}) == "undefined"
        await host.evaluate("globalThis.kept = 1, Array.prototype.map = null", {})


@pytest.mark.real
async def test_deep_and_large_values(host: JavaScriptHost) -> None:
    deep: Any = 1
    for _ in range(200):
        deep = {"d": [deep]}
    assert await host.evaluate("output", {"output": deep}) == deep
    large = "ü" * 3_000_000
    assert await host.evaluate("output", {"output": large}) == large
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(JavaScriptError, match="cannot be given"):
        await host.evaluate("1", {"output": endless})
    with pytest.raises(JavaScriptError, match="cannot be given"):
        await host.evaluate("1", {"output": object()})


async def test_cancelled(host: JavaScriptHost) -> None:
    tasks = [
        asyncio.create_task(host.evaluate("/(a+)+$/.test('a'.repeat(40) + 'b')", {}, timeout=60))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    async with asyncio.timeout(60):
        assert await host.evaluate("2", {}) == 2


async def test_a_run_with_a_thousand_connections_has_javascript_still() -> None:
    """select() takes no descriptor above 1,023: every assertion in JavaScript said that its process had ended."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        host = JavaScriptHost(1)
        try:
            assert await host.evaluate("1 + 1", {}) == 2
        finally:
            host.close()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_time_limit_says_so(host: JavaScriptHost) -> None:
    with pytest.raises(JavaScriptTimeout, match=r"did not end within 0.3 s"):
        await host.evaluate("(() => { while (true); })()", {}, timeout=0.3)


async def test_files(host: JavaScriptHost) -> None:
    source = "module.exports = (output, context) => output + context.n;"
    assert await host.call(source, None, ["a", {"n": 1}]) == "a1"
    assert await host.call("module.exports = {f: () => 2, default: () => 3}", "f", []) == 2
    module = (
        "export default async function (x) { return helper(x) }\nexport function helper(x) { return x + 1 }"
    )
    assert await host.call(module, None, [1]) == 2
    assert await host.call(module, "helper", [5]) == 6
    assert common_js("const a = 1") == "const a = 1"
    with pytest.raises(JavaScriptError, match="exports no function g"):
        await host.call(source, "g", [])


@pytest.mark.benchmark
async def test_warm_evaluation_is_quick(host: JavaScriptHost) -> None:
    await host.evaluate("1", {})
    times = []
    for number in range(100):
        begun = time.perf_counter()
        assert (
            await host.evaluate("output + 1", {"output": number, "context": {"vars": {"a": "b"}}})
            == number + 1
        )
        times.append(time.perf_counter() - begun)
    assert sorted(times)[10] < 0.002, "the machine may be busy during the other ninety"


async def test_closed() -> None:
    host = JavaScriptHost(1)
    waiting = asyncio.create_task(host.evaluate("(() => { while (true); })()", {}, timeout=60))
    await asyncio.sleep(0)
    await asyncio.to_thread(host.close)
    with pytest.raises((JavaScriptError, asyncio.CancelledError)):
        await waiting
    with pytest.raises(JavaScriptError, match="closed"):
        await host.evaluate("1", {})
    host.close()
