"""Results in a browser: a list of runs and a page of each, read-only, for this machine only.

Needs the extra `web` (starlette, uvicorn). Requests with a foreign Host or Origin are refused, so that
another site's page cannot read results through the person's browser.
"""

from __future__ import annotations

import html
import json
import time
from collections.abc import Sequence
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
    name = _safe(run)
    above = f'<nav><a href="/">All runs</a> · <a href="/api/runs/{name}" download="{name}.json">Results as JSON</a></nav>'
    try:
        return "".join(page.pieces(reader, above)).encode("utf-8", "replace").decode()
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
    runs = Index(root).runs()
    heading = f"<h1>Runs</h1><p class=muted>{_safe(str(root))}</p>"
    if not runs:
        return page.document("Runs", f"{heading}<p>No runs yet: <code>tui-eval run PATH</code></p>")
    names = ("Passed", "Failed", "Errors", "Rate", "Cost")
    head = "<th>When<th>Run<th>What<th>Agent" + "".join(f'<th class="number">{name}' for name in names)
    rows = "".join(_row(run) for run in runs)
    table = f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
    return page.document("Runs", f"{heading}{_trend(runs)}{table}")


def _rate(run: RunSummary) -> float | None:
    judged = run.passed + run.failed + run.errors
    return run.passed / judged if judged else None


def _trend(runs: Sequence[RunSummary]) -> str:
    """The pass rate of whole runs as bars, oldest at the left."""
    rates = [
        (run.id, rate) for run in reversed(runs) if not run.linked_to and (rate := _rate(run)) is not None
    ]
    if len(rates) < 2:
        return ""
    bars = "".join(
        f'<rect x="{index}.1" y="{100 - rate * 100:.1f}" width=".8" height="{max(rate * 100, 1):.1f}"'
        f' fill="currentColor"><title>{_safe(run_id)}: {rate:.0%}</title></rect>'
        for index, (run_id, rate) in enumerate(rates)
    )
    label = f"Pass rate of {len(rates)} runs, oldest at the left; the last {rates[-1][1]:.0%}"
    return (
        f'<p class="muted">{label}</p><svg viewBox="0 0 {len(rates)} 100" preserveAspectRatio="none" role="img"'
        f' aria-label="{label}">{bars}</svg>'
    )


def _row(run: RunSummary) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    rate = _rate(run)
    cells = (
        f"{run.passed:,}",
        f"{run.failed:,}",
        f"{run.errors:,}",
        "" if rate is None else f"{rate:.0%}",
        "" if run.cost is None else f"${run.cost:,.4f}",
    )
    figures = "".join(f'<td class="number">{value}' for value in cells)
    name = _safe(run.id)
    state = "" if run.state == "finished" else f' <span class="error">{_safe(run.state)}</span>'
    linked = f' <span class="muted">adds to {_safe(run.linked_to)}</span>' if run.linked_to else ""
    return (
        f'<tr><td>{when}<td><a href="/runs/{name}">{name}</a>{state}{linked}<td>{_safe(run.what)}'
        f"<td>{_safe(run.agents)}{figures}"
    )


def _safe(text: str) -> str:
    return html.escape(visible(text))
