"""Results in a browser: a list of runs and a page of each, read-only, for this machine only.

Needs the extra `web` (starlette, uvicorn). Requests with a foreign Host or Origin are refused, so that
another site's page cannot read results through the person's browser.
"""

from __future__ import annotations

import html
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.guard.text import storable, visible
from tui_eval.reports import page, results
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store, StoreError
from tui_eval.store.schema import RunSummary

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST, PORT = "127.0.0.1", 8765
_NAMES = ("127.0.0.1", "localhost", "[::1]")


def application(root: Path, port: int = PORT) -> Starlette:
    """The application for the runs of a project: `/`, `/runs/ID`, `/api/runs`, `/api/runs/ID`."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route

    allowed = {f"{name}:{port}" for name in _NAMES}

    async def home(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(_home, root))

    async def one(request: Request) -> Response:
        text = await run_in_threadpool(_page, root, request.path_params["run"])
        return HTMLResponse(text) if text else PlainTextResponse("no such run\n", 404)

    async def listed(request: Request) -> Response:
        return _json(Response, await run_in_threadpool(_listed, root))

    async def document(request: Request) -> Response:
        found = await run_in_threadpool(_document, root, request.path_params["run"])
        return _json(Response, found) if found else PlainTextResponse("no such run\n", 404)

    class OnlyThisMachine:
        """Refuses requests that another site's page made."""

        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = {
                    name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
                }
                origin = headers.get("origin")
                foreign = origin is not None and origin.partition("://")[2] not in allowed
                if headers.get("host") not in allowed or foreign:
                    await PlainTextResponse("refused: only for this machine\n", 403)(scope, receive, send)
                    return
            await self.app(scope, receive, send)

    return Starlette(
        routes=[
            Route("/", home),
            Route("/runs/{run}", one),
            Route("/api/runs", listed),
            Route("/api/runs/{run}", document),
        ],
        middleware=[Middleware(OnlyThisMachine)],
    )


def _json(response: Any, value: Any) -> Any:
    return response(json.dumps(storable(value), default=str), media_type="application/json")


def _reader(root: Path, run: str) -> RunReader | None:
    store = Store(root)
    if run not in {folder.name for folder in store.run_folders()}:
        return None
    try:
        return RunReader(store.runs_folder / run)
    except StoreError:
        return None


def _page(root: Path, run: str) -> str | None:
    reader = _reader(root, run)
    if reader is None:
        return None
    try:
        with tempfile.TemporaryDirectory() as folder:
            page.write(reader, Path(folder) / "run.html")
            return (Path(folder) / "run.html").read_text("utf-8")
    finally:
        reader.close()


def _document(root: Path, run: str) -> dict[str, Any] | None:
    reader = _reader(root, run)
    if reader is None:
        return None
    try:
        return results.build(reader)
    finally:
        reader.close()


def _listed(root: Path) -> list[dict[str, Any]]:
    import msgspec

    return [msgspec.to_builtins(run) for run in Index(root).runs()]


def _home(root: Path) -> str:
    rows = "".join(_row(run) for run in Index(root).runs())
    head = "".join(
        f"<th>{name}" for name in ("When", "Run", "What", "Agent", "Passed", "Failed", "Errors", "Cost")
    )
    body = (
        f"<table><tr>{head}{rows}</table>" if rows else "<p>No runs yet: <code>tui-eval run PATH</code></p>"
    )
    return page.document("Runs", f"<h1>Runs of {_safe(str(root))}</h1>{body}")


def _row(run: RunSummary) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    cost = "" if run.cost is None else f"${run.cost:.4f}"
    figures = "".join(f"<td class=number>{value}" for value in (run.passed, run.failed, run.errors, cost))
    name = _safe(run.id)
    return (
        f'<tr><td>{when}<td><a href="/runs/{name}">{name}</a> {_safe(run.state)}<td>{_safe(run.what)}'
        f"<td>{_safe(run.agents)}{figures}"
    )


def _safe(text: str) -> str:
    return html.escape(visible(text))
