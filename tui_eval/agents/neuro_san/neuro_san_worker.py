"""Runs agent networks with an installed neuro-san package, in whichever Python has one.

Run as a script by `neuro_san_library`: `python neuro_san_worker.py FD MANIFEST TOOLS`; imported only for
`network_files`. Requests and answers are JSON lines on the socket FD, as `scripting.script_process` speaks them.
Only the standard library and neuro-san: the interpreter need not have tui-eval, nor be of its version.
"""

from __future__ import annotations

import contextvars
import copy
import json
import os
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import Any

STUCK_AFTER = 1.5
"""Seconds after which a cancelled request whose work was called off is reported as one that will not end."""
FOLLOWED = 2000
"""Files of networks and tools whose edits are looked for."""
MOST = 20_000
"""Files of a folder that are looked at, and files that networks name."""
NETWORKS = (".hocon", ".json")
"""How a network is named that is asked by its file."""
_LARGEST = 4_000_000
_PRINTING = Path(__file__).parents[2] / "scripting" / "python"
"""Where what keeps the prints of people's code apart lies, which needs the standard library only."""
_INFO = ("AGENT_LLM_INFO_FILE", "AGENT_TOOLBOX_INFO_FILE", "MCP_SERVERS_INFO_FILE")
_LISTED = re.compile(r'"([^"\n]+\.(?:hocon|json))"')
_STARS = 8
"""More of them in a pattern are not looked for."""
_INCLUDED = re.compile(
    r"""(?i)\binclude\b[\s(a-z]{0,60}"([^"\n]+)"|\b(?:llm|toolbox)_info_file"?[ \t]*[:=]\s*"?([^"\n,}\#]+)"""
)

_ELSEWHERE = re.compile(r"""\$\{|(?<!["'])\binclude\s*(?:\w+\s*\(\s*){0,2}["']""")
"""What makes a HOCON text mean something else at another time: a variable, another file."""


# -- What networks and coded tools are made of: for this process, and for `engine.agent_files`.


def network_files(manifest: str, tools: str, root: Path, named: Iterable[str] = ()) -> Iterator[Path]:
    """The files that the library reads where it runs in `root`: what lies in the folders of the manifests and of the
    tools (several are separated as on a path), the networks that a manifest lists and those that are `named`, and
    what these include, also by way of each other. One may come twice."""
    networks: list[Path] = []
    for place in (root / name for name in several(manifest)):
        inside = (place if place.is_dir() else place.parent).rglob("*.hocon")
        networks += (path for path in islice(inside, MOST) if path.is_file())
        for file in _with_included([place], root):
            networks += (place.parent / name for name in _names_in(file, _LISTED))
        networks.append(place)
    for place in (root / name for name in several(tools)):
        # They may also be named as a module.
        folder = place if place.is_dir() else place.parent.joinpath(*place.name.split("."))
        yield from (path for path in islice(folder.rglob("*.py"), MOST) if path.is_file())
    networks += (root / name for name in (*named, *(os.environ.get(name) for name in _INFO)) if name)
    yield from _with_included(networks, root)


def several(paths: str) -> list[str]:
    """The manifests, or the folders of tools, that are named in one text."""
    return [one for one in map(str.strip, paths.split(os.pathsep)) if one]


def _with_included(files: Iterable[Path], root: Path) -> Iterator[Path]:
    """Those of the files that are there, then what they include, also by way of each other."""
    waiting: list[Path] = []
    found: set[str] = set()
    while files and len(found) < MOST:
        for path in files:
            name = os.path.normpath(path)  # one file may be named in several ways
            if name not in found and path.is_file():
                found.add(name)
                waiting.append(path)
                yield path
        files = _included(waiting.pop(), root) if waiting else ()


def _included(file: Path, root: Path) -> Iterator[Path]:
    """pyhocon looks from where it runs, and for what an included file includes beside that."""
    for given in _names_in(file, _INCLUDED):
        name = given.strip().removeprefix("file://")
        for folder in dict.fromkeys((root, file.parent)):
            places = [folder / name, folder / name.replace(":", os.sep)]  # that of a package, too
            if "*" in name or "?" in name:
                places = list(_matching(folder, name))
            with suppress(OSError, ValueError):
                yield from (path for path in places if path.is_file())


def _matching(folder: Path, name: str) -> Iterator[Path]:
    """The files that a pattern means, in the first folders that it leads to: two links to their own folder are a
    trillion of them, and while none of their files matches nothing of `glob` ends."""
    plain = re.sub(r"(?:\*\*/){2,}", "**/", name)
    fixed = re.match(r"(?:[^*?/]*/)*", plain)
    at = fixed.end() if fixed is not None else 0
    top, rest = folder / plain[:at], plain[at:]
    if rest.count("*") > _STARS:
        return
    wanted = re.escape(rest).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    matches = re.compile(wanted.replace(r"\?", "[^/]")).fullmatch
    for where, folders, names in islice(os.walk(top, followlinks=True), FOLLOWED):
        within = os.path.relpath(where, top)
        if "**" not in rest and (within != ".") * (within.count(os.sep) + 1) >= rest.count("/"):
            folders.clear()
        found = (os.path.normpath(os.path.join(within, one)) for one in names)
        yield from (top / one for one in found if matches(one))


def _names_in(file: Path, pattern: re.Pattern[str]) -> list[str]:
    with suppress(OSError, ValueError):
        status = os.stat(file)
        if file.is_file() and status.st_size <= _LARGEST:
            return _names(str(file), pattern, status.st_mtime_ns, status.st_size)
    return []


@lru_cache(4 * FOLLOWED)
def _names(file: str, pattern: re.Pattern[str], changed: int, size: int) -> list[str]:
    """Read once as long as the file is as it was: it is asked for with every answer."""
    text = Path(file).read_text("utf-8", "replace")
    return list(dict.fromkeys(next(filter(None, found.groups())) for found in pattern.finditer(text)))


# -- The process.


class Worker:
    """Answers the requests of one host, each in a thread of its own."""

    def __init__(self, connection: socket.socket, manifest: str, tools: str) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._making = threading.Lock()
        self._running: set[int] = set()
        self._left: set[int] = set()
        self._sessions: dict[str, Any] = {}
        self._chats: dict[int, Any] = {}
        self._returned: dict[str, dict[str, tuple[Any, Any]]] = {}
        """Of each conversation the sly data that are no JSON, by name: as they were sent, and what they are."""
        self._factory: Any = None
        self._printed: dict[int, Any] = {}
        self._package = ""
        self._models: set[str] = set()
        if manifest:
            os.environ["AGENT_MANIFEST_FILE"] = manifest
        if tools:
            os.environ["AGENT_TOOL_PATH"] = tools
        # Coded tools are imported by the name of their folder; neuro-san looks at PYTHONPATH to find it.
        paths = filter(None, os.environ.get("AGENT_TOOL_PATH", "").split(os.pathsep))
        above = list(dict.fromkeys(os.path.dirname(os.path.abspath(path)) for path in paths))
        sys.path[0:1] = above
        os.environ["PYTHONPATH"] = os.pathsep.join([*above, *filter(None, [os.environ.get("PYTHONPATH")])])
        sys.path.append(os.getcwd())
        sys.path.insert(0, str(_PRINTING))
        import python_worker_printing as printing  # pyright: ignore[reportMissingImports]

        del sys.path[0]
        self._printing = printing
        sys.stdout = printing.Stdout(self._only)
        ThreadPoolExecutor.submit = _submitted  # type: ignore[method-assign]  # tools that are not async run there

    def _only(self) -> Any:
        """What keeps the prints of code of which nothing tells whom it works for: the request, where there is one."""
        kept = list(self._printed.values())
        return kept[0] if len(kept) == 1 else None

    def run(self) -> None:
        """Work until the host goes away."""
        try:
            for line in self._connection.makefile("rb"):
                request = json.loads(line)
                if request["op"] == "cancel":
                    self._cancel(request["id"])
                    continue
                self._running.add(request["id"])
                threading.Thread(target=self._answer, args=(request,), daemon=True).start()
        finally:
            os.killpg(0, signal.SIGKILL)  # the host is gone; so is everything that was started here

    def _cancel(self, identity: int) -> None:
        self._left.add(identity)
        if (session := self._chats.get(identity)) is not None:
            # What it waits for (a model's answer, as a rule) is called off, so that this process goes on for others.
            threading.Thread(target=_closed, args=(session,), daemon=True).start()
        timer = threading.Timer(STUCK_AFTER, self._tell_stuck, (identity,))
        timer.daemon = True
        timer.start()

    def _tell_stuck(self, identity: int) -> None:
        if identity in self._running:
            self._send({"id": identity, "kind": "stuck"})

    def _answer(self, request: dict[str, Any]) -> None:
        identity = request["id"]
        answer: dict[str, Any] = {"id": identity, "kind": "result", "value": None}
        printed = self._printed[identity] = self._printing.Printed()
        self._printing.current.set(printed)  # this thread's, and of all that it has begun
        try:
            work = {"open": self._open, "stream": self._chat, "close": self._close}[request["op"]]
            work(identity, **request["kwargs"])
        except BaseException as error:  # whatever a network's code does ends its request only
            message = " ".join(str(error).split()) or "no reason given"
            if not isinstance(error, ValueError):
                message = f"{type(error).__name__}: {message}"
            answer |= {"kind": "error", "message": message, "traceback": traceback.format_exc()}
        self._told(identity, answer)

    def _told(self, identity: int, answer: dict[str, Any]) -> None:
        """Send what a request came to, once."""
        if (printed := self._printed.pop(identity, None)) is not None:
            self._running.discard(identity)
            self._send({**answer, "stdout": printed.take(), "files": self._files()})

    def thread_ended(self, ended: Any) -> None:
        """For `threading.excepthook`. What a coded tool raises that is no `Exception` (`sys.exit`) ends the loop in
        which its network runs: neuro-san tells nobody, and waits for ever for what that would have answered."""
        threading.__excepthook__(ended)
        if issubclass(ended.exc_type, Exception):
            return
        said = ": ".join(filter(None, (ended.exc_type.__name__, " ".join(str(ended.exc_value).split()))))
        answer = {"kind": "error", "message": f"a tool ended the network ({said})"}
        answer["traceback"] = "".join(traceback.format_exception(ended.exc_value))
        for identity, session in list(self._chats.items()):
            with suppress(AttributeError):  # of another version, or of a session that is just closed
                if not session.invocation_context.get_asyncio_executor().get_event_loop().is_running():
                    self._told(identity, {**answer, "id": identity})

    def _open(
        self, identity: int, key: str, network: str, metadata: dict[str, str], use_direct: bool, own: bool
    ) -> None:
        """Make the session of a conversation, which takes seconds: as neuro-san's driver does, one for all its turns.
        `own`: with the package's network of that name, as the driver asks its judge, whatever the manifest lists."""
        with self._making:
            library = self._library()
            file = os.path.join(self._package, "registries", f"{network}.hocon") if own else ""
            asked = file if os.path.isfile(file) else network
            session = library.create_session(asked, use_direct=use_direct, metadata=metadata)
            with suppress(Exception):  # where it cannot be done like this, the first turn does it
                self._import_models(session)
        if identity in self._left:
            session.close()
        else:
            self._sessions[key] = session

    def _import_models(self, session: Any) -> None:
        """Import the libraries that the network's models need, hundreds of modules: neuro-san does so when it first
        makes a model, in the first turn."""
        config = session.agent_network.get_config()
        given = [config.get("llm_config"), *(tool.get("llm_config") for tool in config.get("tools") or ())]
        for one in filter(None, given):
            if (known := json.dumps(one, default=str, sort_keys=True)) not in self._models:
                self._models.add(known)
                session.invocation_context.get_llm_factory().create_llm(one)

    def _chat(self, identity: int, key: str, body: dict[str, Any]) -> None:
        session = self._sessions[key]
        returned = self._returned.setdefault(key, {})
        if isinstance(given := body.get("sly_data"), dict):
            body["sly_data"] = {name: _itself(value, returned.get(name)) for name, value in given.items()}
        self._chats[identity] = session
        if hasattr(session, "reset"):
            session.reset()
        stream = session.streaming_chat(body)
        try:
            for message in stream:
                if identity in self._left:
                    break
                self._send({"id": identity, "kind": "item", "value": message})
                returned.update(_no_json(message))
        finally:
            self._chats.pop(identity, None)
            stream.close()

    def _close(self, identity: int, key: str) -> None:
        self._returned.pop(key, None)
        if (session := self._sessions.pop(key, None)) is not None:
            session.close()

    def _library(self) -> Any:
        """neuro-san's factory, made once: it reads the whole manifest, which takes seconds."""
        if self._factory is None:
            try:
                import neuro_san  # pyright: ignore[reportMissingImports]
                from neuro_san.client.direct_agent_session_factory import (  # pyright: ignore[reportMissingImports]
                    DirectAgentSessionFactory,
                )
            except ImportError as error:
                raise ValueError(
                    f"{sys.executable} cannot import neuro-san ({error}); install it there, or give another Python"
                ) from None
            # The package's own networks have their tools in it.
            with suppress(ImportError):
                _parse_once()
            self._package = os.path.dirname(os.path.abspath(neuro_san.__file__))
            place = os.path.dirname(self._package)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ["PYTHONPATH"], place]))
            self._factory = DirectAgentSessionFactory()
        return self._factory

    def _files(self) -> dict[str, list[int]]:
        """What networks and tools were read from, so that an edit starts a new process."""
        manifest, tools = (os.environ.get(name, "") for name in ("AGENT_MANIFEST_FILE", "AGENT_TOOL_PATH"))
        found: dict[str, list[int]] = {}
        with suppress(OSError, ValueError):
            for path in islice(network_files(manifest, tools, Path.cwd()), FOLLOWED):
                with suppress(OSError):
                    status = os.stat(path)
                    found[str(path)] = [status.st_mtime_ns, status.st_size]
        return found

    def _send(self, answer: dict[str, Any]) -> None:
        line = _encoded(answer).encode("ascii") + b"\n"
        with self._sending:
            self._connection.sendall(line)


def _parse_once() -> None:
    """neuro-san has all the models that it knows read for every session: pyhocon takes more than a second of CPU for
    that, which is most of what a conversation costs."""
    from pyhocon import ConfigFactory  # pyright: ignore[reportMissingImports]

    parse = ConfigFactory.parse_string
    kept = lru_cache(16)(parse)

    def parsed(content: str, *given: Any, **options: Any) -> Any:
        if _ELSEWHERE.search(content):
            return parse(content, *given, **options)
        return copy.deepcopy(kept(content, *given, **options))

    ConfigFactory.parse_string = staticmethod(parsed)


_submit = ThreadPoolExecutor.submit


def _submitted(self: ThreadPoolExecutor, work: Any, /, *args: Any, **options: Any) -> Future[Any]:
    """In place of `submit`: a thread of the pool works in the context of who asked, as asyncio's own do."""
    return _submit(self, contextvars.copy_context().run, work, *args, **options)


def _no_json(message: Any) -> dict[str, tuple[Any, Any]]:
    """What a message has as sly data that JSON makes something else of (a date, a tuple, keys that are numbers): as it
    is sent, and itself. neuro-san's driver hands the next turn the thing itself."""
    answer = message.get("response") if isinstance(message, dict) else None
    given = answer.get("sly_data") if isinstance(answer, dict) else None
    found: dict[str, tuple[Any, Any]] = {}
    for name, value in (given if isinstance(given, dict) else {}).items():
        with suppress(Exception):  # a value of somebody's own compares as it likes
            try:
                sent, plain = json.loads(json.dumps(value)), True
            except TypeError:
                sent, plain = json.loads(_encoded(value)), False
            found[name] = (sent, sent if plain and bool(sent == value) else value)
    return found


def _encoded(value: Any) -> str:
    try:
        return json.dumps(value, default=_as_json)
    except TypeError:  # of a key
        return json.dumps(_text_keys(value), default=_as_json)


def _as_json(value: Any) -> Any:
    """What JSON does not have, as what compares alike (a number of numpy's or a Decimal, an array, a set), else as
    text: neuro-san's driver judges the thing itself."""
    with suppress(Exception):
        if isinstance(value, (set, frozenset)):
            return sorted(value, key=repr)
        if callable(getattr(type(value), "tolist", None)):
            return value.tolist()
        if isinstance(value, Number) and (plain := float(value)) == value:  # type: ignore[arg-type]
            return int(plain) if plain == int(plain) else plain
    return str(value)


def _text_keys(value: Any) -> Any:
    """The same with keys that JSON can have."""
    if isinstance(value, dict):
        return {
            key if isinstance(key, (str, int, float)) or key is None else str(key): _text_keys(item)
            for key, item in value.items()
        }
    return [_text_keys(item) for item in value] if isinstance(value, (list, tuple)) else value


def _itself(value: Any, returned: tuple[Any, Any] | None) -> Any:
    return returned[1] if returned is not None and value == returned[0] else value


def _closed(session: Any) -> None:
    with suppress(Exception):
        session.close()


if __name__ == "__main__":
    worker = Worker(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], sys.argv[3])
    threading.excepthook = worker.thread_ended
    worker.run()
