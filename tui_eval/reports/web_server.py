"""Results in a browser: a list of runs and a page of each, read-only, for this machine only.

Needs the extra `web` (starlette, uvicorn). Requests with a foreign Host or Origin are refused, so that
another site's page cannot read results through the person's browser; and those without the token that the
printed address carries, so that nobody else who has an account on this machine can. The first visit turns the
address's token into a cookie, which the address bar and the browser's history then need not hold.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from tui_eval.guard.text import storable, visible
from tui_eval.model import Attempt
from tui_eval.reports import page, results, web_compare
from tui_eval.reports.html_templates import render
from tui_eval.reports.together import Piece, Together, pieces, together
from tui_eval.reports.web_compare import PageNotThere, Side, places, read
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import RunSummary
from tui_eval.store.summary import CaseSummary

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


Half = Sequence[Piece] | None


# -- The first page: every run, and how each set of suites came out over time.

CARDS = 6
"""Sets of suites whose pass rate is drawn, those that were run last."""
AGAIN = 5
"""Seconds after which the page is loaded again while a run goes on."""
NEWEST = 40
"""Runs that one drawing holds."""


def home_page(root: Path) -> str:
    """The page."""
    runs = Index(root).runs()
    going_on = any(run.state in ("running", "paused") for run in runs)
    rows = [(run, _rate_of(run)) for run in runs]
    return render("runs.html.j2", root=root, rows=rows, cards=_cards(runs), again=AGAIN if going_on else 0)


def _rate_of(run: RunSummary) -> float | None:
    """Share of judged attempts that passed; None where none was judged."""
    judged = run.passed + run.failed + run.errors
    return run.passed / judged if judged else None


def _cards(runs: Sequence[RunSummary]) -> list[tuple[str, list[tuple[str, float]]]]:
    """By set of suites the pass rates of its whole runs with their ids, oldest first, where there are several."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for run in runs:
        rate = _rate_of(run)
        if not (run.linked_to or run.part_of or run.stepped) and rate is not None:
            groups.setdefault(places(run), []).append((run.id, rate))
    return [(name, group[:NEWEST][::-1]) for name, group in groups.items() if len(group) > 1][:CARDS]


# -- Two attempts of a case side by side in a browser, with the words that differ. Only reads, without a script.


def case_page(root: Path, query: dict[str, str]) -> str:
    """Two attempts of a case side by side.

    Raises:
        NotThere: no such case, or only one side has it.
        StoreError: a run cannot be read.
    """
    both = read(root, query)
    wanted = (query.get("case"), query.get("agent", ""), query.get("model") or None)
    case = next(
        (
            one
            for one in both.comparison.cases
            if one.after is not None and (one.case_id, one.after.agent, one.after.model) == wanted
        ),
        None,
    )
    if case is None or case.before is None or case.after is None:
        raise PageNotThere("no such case in both runs")
    attempts = [_telling(side, one) for side, one in zip(both[:2], (case.before, case.after), strict=True)]
    first, second = attempts
    if first is None or second is None:
        raise PageNotThere("no finished attempt of this case in both runs")
    entries = together(first, second)
    return render(
        "case_comparison.html.j2",
        both=both, case=case, attempts=attempts, entries=entries, shown=[_halves(entry) for entry in entries],
    )  # fmt: skip


def _halves(entry: Together) -> tuple[Together, Half, Half]:
    """An entry with its texts in pieces, those that differ marked; None on a side that does not have it."""
    if entry.before is not None and entry.after is not None and entry.differs:
        return entry, *pieces(entry.before, entry.after)
    before, after = ([(text, True)] if text is not None else None for text in (entry.before, entry.after))
    return entry, before, after


def _telling(side: Side, one: CaseSummary) -> Attempt | None:
    """The first attempt of the case's outcome in the newest of the runs that has one."""
    other = None
    for folder in reversed(side.folders):
        with closing(RunReader(folder)) as reader:
            for case in reader.cases_of(one.case_id):
                if (case.agent, case.model) != (one.agent, one.model):
                    continue
                for row in reader.attempts(case.id):
                    if row.state == "done" and row.outcome == one.outcome:
                        return reader.attempt(row.id)
                    if row.state == "done" and other is None:
                        other = reader.attempt(row.id)
    return other


HOST, PORT = "127.0.0.1", 8765
_NAMES = ("127.0.0.1", "localhost", "[::1]")


def application(root: Path, port: int = PORT, *, token: str) -> Starlette:
    """The application for the runs of a project: `/`, `/runs/ID`, `/compare`, `/compare/case`, `/api/runs`,
    `/api/runs/ID`, `/api/compare`. It answers who shows the `token`: as `?token=`, as the cookie that this
    sets, or as `Authorization: Bearer`."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route

    async def home(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(home_page, root))

    async def one(request: Request) -> Response:
        found = await run_in_threadpool(_answer, _page, root, request.path_params["run"])
        return PlainTextResponse(found, 404) if isinstance(found, _Refusal) else HTMLResponse(found)

    async def listed(request: Request) -> Response:
        return _json(Response, await run_in_threadpool(_listed, root))

    async def document(request: Request) -> Response:
        found = await run_in_threadpool(_answer, _document, root, request.path_params["run"])
        return PlainTextResponse(found, 404) if isinstance(found, _Refusal) else _json(Response, found)

    def compared(answer: Callable[[Path, dict[str, str]], Any]) -> Any:
        async def respond(request: Request) -> Response:
            found = await run_in_threadpool(_answer, answer, root, dict(request.query_params))
            if isinstance(found, _Refusal):
                return PlainTextResponse(found, 404)
            if isinstance(found, str):
                return HTMLResponse(found.encode("utf-8", "replace").decode())
            return _json(Response, found)

        return respond

    return Starlette(
        routes=[
            Route("/", home),
            Route("/runs/{run}", one),
            Route("/compare", compared(web_compare.comparison_page)),
            Route("/compare/case", compared(case_page)),
            Route("/api/compare", compared(web_compare.api)),
            Route("/api/runs", listed),
            Route("/api/runs/{run}", document),
        ],
        middleware=[Middleware(_OnlyThisMachine, port=port, token=token)],
    )


class _OnlyThisMachine:
    """Refuses requests that another site's page made, or that do not show the token."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self.app, self._port, self._token = app, port, token
        self._allowed = {f"{name}:{port}" for name in _NAMES}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import PlainTextResponse, Response  # late: an extra

        port, token = self._port, self._token
        if scope["type"] == "http":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            origin = headers.get("origin")
            foreign = origin is not None and origin.partition("://")[2] not in self._allowed
            if headers.get("host") not in self._allowed or foreign:
                await PlainTextResponse("refused: only for this machine\n", 403)(scope, receive, send)
                return
            known = _shown(headers, scope["query_string"].decode("latin-1"), port)
            if not any(hmac.compare_digest(one.encode(), token.encode()) for one in known):
                text = "refused: open the address that `tui-eval server` printed, with its token\n"
                await PlainTextResponse(text, 401)(scope, receive, send)
                return
            given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            if given.pop("token", None) is not None and scope["method"] == "GET":
                query = urlencode(given)
                answer = Response(status_code=303, headers={"Referrer-Policy": "no-referrer"})
                # Only a path of this server, whatever it is: `//host` would lead elsewhere.
                path = "/" + quote(scope["path"].lstrip("/"))
                answer.headers["Location"] = f"{path}?{query}" if query else path
                answer.set_cookie(_cookie(port), token, httponly=True, samesite="strict", path="/")
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _cookie(port: int) -> str:
    """The cookie's name: cookies are told apart by host, not by port, and several servers may run."""
    return f"tui-eval-{port}"


def _shown(headers: dict[str, str], query: str, port: int) -> list[str]:
    """The tokens that a request shows."""
    known = [value for name, value in parse_qsl(query) if name == "token"]
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _cookie(port):
            known.append(value)
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        known.append(value.strip())
    return known


def _json(response: Any, value: Any) -> Any:
    return response(json.dumps(storable(value), default=str), media_type="application/json")


def _reader(root: Path, run: str) -> RunReader:
    store = Store(root)
    if run not in {folder.name for folder in store.run_folders()}:
        raise PageNotThere("no such run")
    return RunReader(store.folder_of(run))


def _page(root: Path, run: str) -> str:
    with closing(_reader(root, run)) as reader, reader.of_one_moment():
        return "".join(page.pieces(reader, run)).encode("utf-8", "replace").decode()


def _document(root: Path, run: str) -> dict[str, Any]:
    with closing(_reader(root, run)) as reader, reader.of_one_moment():
        return results.build(reader)


def _listed(root: Path) -> list[dict[str, Any]]:
    import msgspec

    return [msgspec.to_builtins(run) for run in Index(root).runs()]


def _answer(answer: Callable[..., Any], *asked: Any) -> Any:
    """What a page answers, or the line that says why there is none."""
    try:
        return answer(*asked)
    except (PageNotThere, StoreError) as error:
        return _Refusal(f"{visible(str(error), newlines=False)}\n")


class _Refusal(str):
    """Why there is no answer."""
