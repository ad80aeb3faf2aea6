"""The request of a promptfoo HTTP provider: method, URL, headers and body from its templates.

Rules as recorded from promptfoo 0.121.20 (formats/promptfoo.md 12): the method is GET by default and
then no body is sent; a JSON body is rendered leaf by leaf, and leaves that are JSON become values.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.wire import decode, encode, one_line, text_of
from tui_eval.guard.paths import confine

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"


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
    if "{{" not in text and "{%" not in text:
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


def configured(url: str, config: Mapping[str, Any], values: dict[str, Any], prompt: Any) -> HttpRequest:
    """The request of a provider with `url`, `method`, `headers`, `body` and `queryParams`.

    Args:
        prompt: the prompt after `transformRequest`; a mapping is laid over a JSON body.

    Raises:
        AgentError: a template cannot be rendered, or a body is missing.
    """
    method = str(config.get("method") or "GET").upper()
    headers = filled_headers(config.get("headers"), values)
    body = config.get("body")
    address = filled(url, values)
    query = config.get("queryParams")
    if isinstance(query, dict) and query:
        pairs = {str(key): filled(text_of(item), values) for key, item in query.items()}
        address += ("&" if urlsplit(address).query else "?") + urlencode(pairs)
    request = HttpRequest(method, address, headers)
    if method == "GET" or (body is None and not isinstance(prompt, dict)):
        if method in ("POST", "PUT", "PATCH") and "multipart" not in config:
            raise AgentError(f"config.body is missing: a {method} request needs one")
        return request
    is_json = JSON_TYPE in headers.get("content-type", "")
    if "content-type" not in headers:
        is_json = isinstance(body, dict | list) or body is None
        headers["content-type"] = JSON_TYPE if is_json else FORM_TYPE
    if is_json:
        request.body = encode(_json_body(body, values, prompt))
    else:
        given = {**values, "prompt": prompt if isinstance(prompt, str) else text_of(prompt)}
        text = body if isinstance(body, str) else text_of(leaves(body, given))
        request.body = filled(text, given).encode("utf-8", "replace")
    return request


def _json_body(body: Any, values: dict[str, Any], prompt: Any) -> Any:
    if isinstance(prompt, dict):
        own = _json_body(body, values, text_of(prompt)) if body is not None else {}
        return {**own, **prompt} if isinstance(own, dict) else prompt
    given = {**values, "prompt": prompt}
    if not isinstance(body, str):
        return leaves(body, given)
    return leaves_of_text(body, given)


def leaves(value: Any, values: Mapping[str, Any]) -> Any:
    """A body leaf by leaf; what is JSON after rendering becomes the value it is."""
    if isinstance(value, str):
        text = filled(value, values)
        return _value(text) if text != value or text[:1] in "{[" else text
    if isinstance(value, list):
        return [leaves(item, values) for item in value]
    if isinstance(value, dict):
        return {filled(str(key), values): leaves(item, values) for key, item in value.items()}
    return value


def _value(text: str) -> Any:
    if text.strip()[:1] not in ("{", "["):
        return text
    try:
        return decode(text)
    except ValueError:
        return text


def leaves_of_text(body: str, values: Mapping[str, Any]) -> Any:
    """A JSON body given as text; where the variables break it, they are escaped and it is made again."""
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


def raw(text: str, config: Mapping[str, Any], values: dict[str, Any], prompt: Any) -> HttpRequest:
    """A request given as it goes over the wire: request line, headers, a blank line, the body.

    Raises:
        AgentError: it has no request line or no Host.
    """
    given = {**values, "prompt": prompt if isinstance(prompt, str) else text_of(prompt)}
    head, _, body = text.replace("\r\n", "\n").lstrip("\n").partition("\n\n")
    first, *lines = filled(head, given).strip().split("\n")
    words = first.split()
    if len(words) < 2 or not words[1].startswith(("/", "http")):
        raise AgentError(f"config.request: {one_line(first, 80)} is not a request line (POST /path HTTP/1.1)")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    host = headers.pop("host", "")
    headers.pop("content-length", None)
    if not host:
        raise AgentError("config.request: it needs a Host header")
    scheme = "https" if config.get("useHttps") is True else "http"
    url = words[1] if words[1].startswith("http") else f"{scheme}://{host}{words[1]}"
    body = body.strip()
    sent: bytes | None = None
    if body:
        if JSON_TYPE in headers.get("content-type", "") or body[:1] in "{[":
            value = leaves_of_text(body, given)
            sent = value.encode("utf-8", "replace") if isinstance(value, str) else encode(value)
        else:
            sent = filled(body, given).encode("utf-8", "replace")
    return HttpRequest(words[0].upper(), url, headers, sent)


def multipart(
    parts: Any, request: HttpRequest, values: Mapping[str, Any], services: Services, base: Path
) -> None:
    """Make the body of a request a form of fields and files, in place.

    Raises:
        AgentError: a part is neither, or its file cannot be read.
        NeedsTrust: a file lies outside the root.
    """
    boundary = f"tui-eval-{secrets.token_hex(12)}"
    chunks: list[bytes] = []
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict) or not part.get("name"):
            raise AgentError("config.multipart.parts: each part needs a name")
        name = _quoted(filled(str(part["name"]), values))
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if part.get("kind") == "file":
            data, file, kind = _file(part, values, services, base)
            head += f'; filename="{_quoted(file)}"\r\nContent-Type: {kind}'
        else:
            data = filled(text_of(part.get("value")), values).encode("utf-8", "replace")
        chunks.append(f"{head}\r\n\r\n".encode("utf-8", "replace") + data + b"\r\n")
    chunks.append(f"--{boundary}--\r\n".encode())
    request.body = b"".join(chunks)
    request.headers["content-type"] = f"multipart/form-data; boundary={boundary}"
    if request.method == "GET":
        request.method = "POST"


def _file(
    part: dict[str, Any], values: Mapping[str, Any], services: Services, base: Path
) -> tuple[bytes, str, str]:
    source = part.get("source")
    if not isinstance(source, dict) or source.get("type", "path") != "path" or not source.get("path"):
        raise AgentError("config.multipart: a file needs source: {type: path, path: file://FILE}")
    given = filled(str(source["path"]), values).removeprefix("file://")
    path = confine(services.root, given, services.trust, base)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AgentError(f"config.multipart: cannot read {given}: {error.strerror or error}") from None
    name = filled(str(part.get("filename") or path.name), values)
    kind = part.get("contentType") or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return data, name, str(kind)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")


def basic(user: str, password: str) -> str:
    """The value of an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
