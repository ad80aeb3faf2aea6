"""The request of a promptfoo HTTP provider: method, URL, headers and body from its templates.

Rules as recorded from promptfoo 0.121.20 (formats/promptfoo.md 12): the method is GET by default and
then no body is sent; a JSON body is rendered leaf by leaf, and leaves that are JSON become values.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from tui_eval.agents.base import AgentError
from tui_eval.agents.wire import decode, encode, one_line, text_of
from tui_eval.javascript import values as js

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
TEXT_TYPE = "text/plain;charset=UTF-8"
"""What a body is sent as whose request does not say."""
_VARIABLE = re.compile(r"\{\{[\s\S]*?\}\}")


@dataclass(slots=True)
class HttpRequest:
    """What is sent."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


def filled(text: str, values: Mapping[str, Any]) -> str:
    """A template with its values.

    Raises:
        AgentError: it cannot be rendered.
    """
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    from tui_eval.scripting.templates import TemplateError, render

    try:
        return render(text, values)
    except TemplateError as error:
        raise AgentError(f"the template {one_line(text, 80)}: {one_line(str(error))}") from None


def filled_headers(given: Any, values: Mapping[str, Any]) -> dict[str, str]:
    """Headers with templates filled in, names in lower case as promptfoo sends them."""
    items = given.items() if isinstance(given, dict) else ()
    return {str(name).lower(): filled(text_of(item), values).strip() for name, item in items}


def configured(
    url: str, config: Mapping[str, Any], values: dict[str, Any], prompt: Any, reference: bool = False
) -> HttpRequest:
    """The request of a provider with `url`, `method`, `headers`, `body` and `queryParams`; the body of a `multipart`
    one is added by who has its files.

    Args:
        prompt: the prompt after `transformRequest`; a mapping is laid over a JSON body.
        reference: leave the templates of such a body as they are, as promptfoo does.

    Raises:
        AgentError: a template cannot be rendered, or the body is missing or does not fit its type.
    """
    form = isinstance(config.get("multipart"), dict)
    method = filled(str(config.get("method") or ("POST" if form else "GET")), values).upper()
    headers = filled_headers(config.get("headers"), values)
    body = config.get("body")
    if form:
        headers.pop("content-type", None)
        if method in ("GET", "HEAD"):
            raise AgentError(f"config.multipart: a {method} request has no body")
        if body is not None:
            raise AgentError("config has both body and multipart")
    request = HttpRequest(method, with_query(filled(url, values), _query(config, values)), headers)
    if form:
        return request
    if body is None and method in ("POST", "PUT", "PATCH") and not isinstance(prompt, dict):
        raise AgentError(f"config.body is missing: a {method} request needs one")
    structured = isinstance(body, dict | list) or (body is None and isinstance(prompt, dict))
    if "content-type" not in headers and config.get("method") != "GET" and (structured or body is not None):
        headers["content-type"] = JSON_TYPE if structured else FORM_TYPE
    is_json = JSON_TYPE in headers.get("content-type", "")
    if isinstance(body, dict | list) and not is_json and "content-type" in headers:
        raise AgentError(
            f"config.body is an object or a list, but content-type is {headers['content-type']}: a body of another "
            f"type than {JSON_TYPE} must be text"
        )
    if method == "GET" or (body is None and not structured):
        return request
    if is_json:
        found = _json_body(body, values, prompt, reference)
        request.body = found.encode("utf-8", "replace") if isinstance(found, str) else encode(found)
    else:
        given = {**values, "prompt": prompt if isinstance(prompt, str) else text_of(prompt)}
        request.body = filled(text_of(body), given).strip().encode("utf-8", "replace")
    return request


def _query(config: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    query = config.get("queryParams")
    items = query.items() if isinstance(query, dict) else ()
    return {str(key): filled(text_of(item), values) for key, item in items}


def with_query(url: str, pairs: Mapping[str, str]) -> str:
    """A URL with more in its query, written as browsers write forms (WHATWG URL, `searchParams`)."""
    if not pairs:
        return url
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), *pairs.items()]
    return urlunsplit(
        parts._replace(query=urlencode(query, safe="*").replace("~", "%7E"), path=parts.path or "/")
    )


def _json_body(body: Any, values: dict[str, Any], prompt: Any, reference: bool) -> Any:
    if isinstance(body, str):
        with suppress(ValueError):
            body = decode(body)
    if isinstance(prompt, list) and reference:
        prompt = {str(index): item for index, item in enumerate(prompt)}
    if isinstance(prompt, dict):
        own = body if isinstance(body, dict) else {}
        return {**(own if reference else leaves(own, values)), **prompt}
    given = {**values, "prompt": text_of(prompt) if isinstance(prompt, list) else prompt}
    return leaves_of_text(body, given) if isinstance(body, str) else leaves(body, given)


def leaves(value: Any, values: Mapping[str, Any]) -> Any:
    """A body leaf by leaf; what is a JSON object or list after rendering becomes one."""
    if isinstance(value, str):
        return _value(filled(value, values))
    if isinstance(value, list):
        return [leaves(item, values) for item in value]
    if isinstance(value, dict):
        return {str(key): leaves(item, values) for key, item in value.items()}
    return value


def rendered(value: Any, values: Mapping[str, Any]) -> Any:
    """A body leaf by leaf; what is text stays text."""
    if isinstance(value, str):
        return filled(value, values)
    if isinstance(value, list):
        return [rendered(item, values) for item in value]
    if isinstance(value, dict):
        return {str(key): rendered(item, values) for key, item in value.items()}
    return value


def _value(text: str) -> Any:
    if js.trim(text)[:1] not in ("{", "["):
        return text
    try:
        return decode(text)
    except ValueError:
        return text


def leaves_of_text(body: str, values: Mapping[str, Any]) -> Any:
    """A JSON body that is text because its templates stand outside quotes; where the variables break it, they are
    escaped and it is made again."""
    text = filled(body, values)
    try:
        return decode(text)
    except ValueError:
        pass
    try:
        return decode(filled(body, _escaped(values)))
    except ValueError:
        return text


def _escaped(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else value
        for name, value in values.items()
    }


def raw(text: str, config: Mapping[str, Any], url: str, values: dict[str, Any], prompt: Any) -> HttpRequest:
    """A request given as it goes over the wire: request line, headers, a blank line, the body. Only `{{…}}` is filled
    in, with texts escaped for JSON; a `url` of https (or `useHttps`) says that it goes over TLS.

    Raises:
        AgentError: it has no request line or no Host.
    """
    given = _escaped({**values, "prompt": prompt})
    text = _VARIABLE.sub(lambda found: filled(found[0], given), text.replace("\r\n", "\n").strip())
    head, _, body = js.trim(text).partition("\n\n")
    first, *lines = head.split("\n")
    method, _, rest = js.trim(first).partition(" ")
    target, _, version = js.trim(rest).rpartition(" ")
    if not method.isupper() or not js.trim(target) or not version.upper().startswith("HTTP"):
        raise AgentError(f"config.request: {one_line(first, 80)} is not a request line (POST /path HTTP/1.1)")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[js.trim(name).lower()] = js.trim(value)
    host = headers.pop("host", "")
    headers.pop("content-length", None)
    if not host:
        raise AgentError("config.request: it needs a Host header")
    scheme = "https" if config.get("useHttps") is True or url.startswith("https") else "http"
    parts = urlsplit(urljoin("http://placeholder/", js.trim(target)))
    query = f"?{parts.query}" if parts.query else ""
    body = js.trim(body)
    if body and "content-type" not in headers:
        headers["content-type"] = TEXT_TYPE
    sent = body.replace("\n", "\r\n").encode("utf-8", "replace") if body else None
    return HttpRequest(method, f"{scheme}://{host}{parts.path or '/'}{query}", headers, sent)


def basic(user: str, password: str) -> str:
    """The value of an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
