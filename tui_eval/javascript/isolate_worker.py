"""The child process in which JavaScript isolates live; started by `javascript`, run as a script.

Requests and answers are JSON lines on stdin and stdout. Each request gets an isolate of its own
without any access to the host; nothing stays for the next one. What is passed in and out is JSON
with every character beyond ASCII escaped, so lone surrogates survive the way.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import quickjs

_GLOBALS = Path(__file__).with_name("isolate_globals.js")
_MORE = re.compile(
    r"\b(?:URL|URLSearchParams|Buffer|structuredClone|TextEncoder|TextDecoder|atob|btoa|global|queueMicrotask"
    r"|(?:set|clear)(?:Timeout|Interval|Immediate))\b"
)

_THROWS = re.compile(r"throw|reject")
"""What code holds that can throw null itself."""

_globals = ""

_OURS = 100_000
"""The line from which on our own code stands: by it its places are told from those of the code that is evaluated."""
_ABOVE = "\n" * _OURS
_FRAME = re.compile(r"<input>:(\d+):(\d+)")

PRELUDE = r"""
(() => {
  const {stringify, parse} = JSON, Make = Function, Vow = Promise, text = String;
  const boxes = {boolean: Boolean, number: Number, string: String};
  const show = (error) => {
    if (error !== null && typeof error === 'object' && 'message' in error)
      return text(error.name || 'Error') + ': ' + text(error.message);
    return typeof error === 'object' ? stringify(error) : text(error);
  };
  let state = '';
  const fail = (error) => {
    let shown = 'an error that cannot be shown', stack = '';
    try { shown = show(error); stack = text(error.stack ?? ''); } catch {}
    state = stringify({kind: 'error', message: shown, stack});
  };
  const done = (value) => {
    try {
      if (value === undefined) state = stringify({kind: 'undefined'});
      else if (typeof value === 'number' && !isFinite(value)) state = stringify({kind: 'number', value: text(value)});
      else if (typeof value === 'function' || typeof value === 'symbol')
        state = stringify({kind: 'error', message: 'gives a ' + typeof value + ', which JSON cannot hold'});
      else {
        // JSON has it as what is in it, but `new Boolean(false)` is true, and no boolean.
        const [name, box] = Object.entries(boxes).find(([, one]) => value instanceof one) ?? [];
        if (name) fail(new TypeError('gives a ' + box.name + ' object (new ' + box.name + '), which is no ' + name));
        else state = stringify({kind: 'value', value});
      }
    } catch (error) { fail(error); }
  };
  const settle = (value) => {
    if (value !== null && typeof value === 'object' && typeof value.then === 'function')
      Vow.resolve(value).then(done, fail);
    else done(value);
  };
  // What goes by a locale, of which an isolate knows none: the answer would be another than node's, so there is none,
  // also where the code catches the error.
  let locales = '';
  const refuse = (name) => { locales ||= name; throw new ReferenceError(name + ' needs locales, which only node has'); };
  const byLocale = (owner, name) => Object.defineProperty(owner.prototype, name, {
    value: {[name]() { refuse(name); }}[name], writable: true, configurable: true,
  });
  for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) byLocale(Date, name);
  for (const owner of [Number, globalThis.BigInt ?? Number]) byLocale(owner, 'toLocaleString');
  byLocale(String, 'localeCompare');
  for (const name of ['toLocaleUpperCase', 'toLocaleLowerCase']) {
    const plain = String.prototype[name];
    Object.defineProperty(String.prototype, name, {
      value: {[name](locale) { return locale === undefined ? plain.call(this) : refuse(name); }}[name],
      writable: true, configurable: true,
    });
  }
  Object.defineProperty(globalThis, 'Intl', {get: () => refuse('Intl'), configurable: true});
  // Nobody reads it; whatever is called of it is there.
  globalThis.console = new Proxy({}, {get: () => () => {}});
  // What an assertion is given and the response that it is of are one object; a provider says its `id()`.
  const join = (output, context) => {
    const object = (value) => value !== null && typeof value === 'object', response = context?.providerResponse;
    if (object(output) && object(response?.output) && stringify(output) === stringify(response.output))
      response.output = output;
    const provider = context?.provider, id = provider?.id;
    if (typeof id === 'string') provider.id = () => id;
  };
  globalThis.__start = (request) => {
    try {
      const {names, body, input, source, pick, args} = parse(request);
      source === undefined ? join(input?.output, input?.context) : join(...args);
      if (source === undefined) return settle(new Make(...names, body)(...names.map((name) => input[name])));
      const module = {exports: {}};
      new Make('module', 'exports', source)(module, module.exports);
      const given = module.exports;
      const found = pick ? given[pick] ?? given.default?.[pick] : typeof given === 'function' ? given : given.default;
      if (typeof found !== 'function') throw new TypeError('exports no function' + (pick ? ' ' + pick : ''));
      settle(found(...args));
    } catch (error) { fail(error); }
  };
  globalThis.__state = () => {
    if (state && locales) {
      const {message, stack} = parse(state);
      const said = locales + ' needs locales, which only node has';
      const thrown = typeof message === 'string' && message.includes(said);
      return stringify({kind: 'error', message: 'ReferenceError: ' + said, ...(thrown && {stack})});
    }
    return state;
  };
})()
"""


def evaluate(request: dict[str, Any]) -> str:
    """The answer to one request, a JSON text."""
    seconds = request.pop("seconds")
    deadline = time.monotonic() + seconds
    context = quickjs.Context()
    try:
        context.set_memory_limit(request.pop("memory"))
        context.set_max_stack_size(_stack())
        context.eval(_ABOVE + PRELUDE)
        start, state = context.get("__start"), context.get("__state")
        context.eval("delete globalThis.__start; delete globalThis.__state")
        code = f"{request.get('body')}{request.get('source')}"
        clock = _with_globals(context) if _MORE.search(code) else None
        context.set_time_limit(seconds)
        start(json.dumps(request))
        while not (answer := state()):
            if not context.execute_pending_job() and not _wait(clock, deadline):
                return _error("gives a promise that never settles")
            if time.monotonic() > deadline:
                return _error("", timeout=True)
        if not answer.startswith('{"kind":"error"'):
            return answer
        if answer.startswith('{"kind":"error","message":"null"') and not _THROWS.search(code):
            return _error("InternalError: out of memory")  # no room was left to say even that
        return _placed(answer)
    except quickjs.JSException as error:
        message = str(error).strip().split("\n")[0]
        return _error(message, timeout=message == "InternalError: interrupted")
    except (MemoryError, RecursionError) as error:
        return _error(type(error).__name__)


def _placed(answer: str) -> str:
    """An error with the line and the column, from 1, of the code at which it was thrown, in place of where all of
    its frames are; neither where it was not thrown there."""
    fields = json.loads(answer)
    for found in _FRAME.finditer(fields.pop("stack", "")):
        line = int(found[1]) - 2  # above it stands what makes a function of it
        if 0 < line < _OURS - 2:
            return json.dumps(fields | {"at": [line, int(found[2])]})
    return json.dumps(fields)


def _with_globals(context: Any) -> Any:
    """Give an isolate what `isolate_globals.js` defines; returns the clock of its timers."""
    global _globals
    if not _globals:
        _globals = _GLOBALS.read_text("utf-8")
    return context.eval(
        f"{_ABOVE}(() => {{ const clock = ({_globals.strip().rstrip(';')})(); return (what) => clock[what](); }})()"
    )


def _wait(clock: Any, deadline: float) -> bool:
    """Wait for the next timer and let it act; False where there is none, or none in time."""
    if clock is None or (pause := clock("next")) < 0:
        return False
    left = deadline - time.monotonic()
    time.sleep(max(min(pause / 1000, left), 0))
    if pause / 1000 <= left:
        clock("fire")
    return True


def _error(message: str, timeout: bool = False) -> str:
    return json.dumps({"kind": "timeout" if timeout else "error", "message": message})


def _stack() -> int:
    """Bytes of stack for JavaScript: a part of what the process has."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return 2 << 20 if limit == resource.RLIM_INFINITY else min(2 << 20, limit // 4)


def main() -> None:
    """Say that it has started, then answer requests until stdin ends."""
    sys.stdout.buffer.write(b"{}\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        answer = evaluate(json.loads(line))
        try:
            data = answer.encode("ascii")
        except UnicodeEncodeError:
            data = json.dumps(json.loads(answer)).encode("ascii")
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
