"""Where an answer sends a request on to, as browsers follow it (the Fetch standard, HTTP-redirect fetch), save
that nothing goes to another host but a plain GET without credentials, nor from https to http."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.http_call import SENSITIVE, HttpCall
from tui_eval.agents.loose_json import one_line
from tui_eval.agents.promptfoo.promptfoo_request import HttpRequest

MOST = 20
"""How often a request is sent on."""
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_OF_A_BODY = frozenset(("content-type", "content-length", "content-encoding"))


def next_request(request: HttpRequest, call: HttpCall) -> HttpRequest | None:
    """The request that a redirect asks for; None where the answer is none.

    Raises:
        AgentError: it leads where this request must not go.
    """
    status, place = call.status or 0, call.headers.get("location")
    if status not in _REDIRECTS or not place:
        return None
    url = urljoin(request.url, place)
    before, after = urlsplit(request.url), urlsplit(url)
    if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
        raise AgentError(
            f"{request.url} redirects to {one_line(url)}: that is not followed",
            status=status,
            code="redirected",
            said=one_line(url),
        )
    method, body, headers = request.method, request.body, dict(request.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() not in _OF_A_BODY}
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        if method != "GET":
            raise AgentError(
                f"{request.url} redirects to another host, {one_line(url)}: what is sent does not follow; "
                "write that URL into the provider if it is meant",
                status=status,
                code="redirected",
                said=one_line(url),
            )
        headers = {name: value for name, value in headers.items() if name.lower() not in SENSITIVE}
    return HttpRequest(method, url, headers, body)
