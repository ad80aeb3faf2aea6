"""The request of a promptfoo HTTP provider: method, URL, headers and body from its templates.

Rules as recorded from promptfoo 0.121.20 (formats/promptfoo.md 12): the method is GET by default and
then no body is sent; a JSON body is rendered leaf by leaf, and leaves that are JSON become values.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.promptfoo.promptfoo_env import template_variables
from tui_eval.guard.paths import confine
from tui_eval.javascript import values as js

# -- `tools` and `tool_choice` of a promptfoo HTTP provider in the shape that its endpoint wants
# (`transformToolsFormat`); they are given in OpenAI's.


_NOT_GOOGLES = frozenset(("additionalProperties", "$schema", "default", "$id", "$ref"))

_CHOICES: dict[str, dict[str, Any]] = {
    "auto": {
        "anthropic": {"type": "auto"},
        "bedrock": {"auto": {}},
        "google": {"functionCallingConfig": {"mode": "AUTO"}},
    },
    "none": {
        "anthropic": {"type": "none"},
        "bedrock": None,
        "google": {"functionCallingConfig": {"mode": "NONE"}},
    },
    "required": {
        "anthropic": {"type": "any"},
        "bedrock": {"any": {}},
        "google": {"functionCallingConfig": {"mode": "ANY"}},
    },
}


def tool_values(config: Mapping[str, Any], prompt: Mapping[str, Any] | None) -> dict[str, Any]:
    """`tools` and `tool_choice` for the templates: the prompt's own before the provider's, lists and objects as
    JSON."""
    own = (prompt or {}).get("config")
    wanted = config.get("transformToolsFormat")
    found: dict[str, Any] = {}
    for name, shaped in (("tools", shaped_tools), ("tool_choice", shaped_choice)):
        value = own.get(name) if isinstance(own, dict) else None
        value = config.get(name) if value is None else value
        if value is None:
            continue
        value = shaped(value, wanted)
        if value is None:  # Bedrock has no word for "none"
            continue
        found[name] = encode(value).decode() if isinstance(value, dict | list) else value
    return found


def shaped_tools(tools: Any, wanted: Any) -> Any:
    """Tools in a format; what is not in OpenAI's stays as it is."""
    first = tools[0] if isinstance(tools, list) and tools else None
    if not isinstance(first, dict) or first.get("type") != "function" or not _named(first):
        return tools
    functions = [tool["function"] for tool in tools if isinstance(tool, dict) and _named(tool)]
    if wanted == "anthropic":
        return [{**_head(each), "input_schema": _schema(each)} for each in functions]
    if wanted == "bedrock":
        return [{"toolSpec": {**_head(each), "inputSchema": {"json": _schema(each)}}} for each in functions]
    if wanted == "google":
        return [{"functionDeclarations": [_googles(each) for each in functions]}]
    return tools


def shaped_choice(choice: Any, wanted: Any) -> Any:
    """Which tool may be called, in a format; what is not in OpenAI's stays as it is."""
    if isinstance(choice, dict) and choice.get("type") == "function" and _named(choice):
        name = choice["function"]["name"]
        if wanted == "anthropic":
            return {"type": "tool", "name": name}
        if wanted == "bedrock":
            return {"tool": {"name": name}}
        if wanted == "google":
            return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
    elif isinstance(choice, str) and choice in _CHOICES and wanted in _CHOICES[choice]:
        return _CHOICES[choice][wanted]
    return choice


def _named(tool: Mapping[str, Any]) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _head(function: Mapping[str, Any]) -> dict[str, Any]:
    return {key: function[key] for key in ("name", "description") if function.get(key)}


def _schema(function: Mapping[str, Any]) -> Any:
    return function.get("parameters") or {"type": "object", "properties": {}}


def _googles(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters")
    return {**_head(function), **({"parameters": _googles_schema(parameters)} if parameters else {})}


def _googles_schema(schema: Any) -> Any:
    """A schema as Google takes it: types in capitals, without what it does not know."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOT_GOOGLES:
            continue
        if key == "type" and isinstance(value, str):
            value = value.upper()
        elif key == "properties" and isinstance(value, dict):
            value = {name: _googles_schema(item) for name, item in value.items()}
        elif key == "items":
            value = _googles_schema(value)
        found[key] = value
    return found


# -- `config.multipart` of a promptfoo HTTP provider: a form of fields and files.


_TYPES = {
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".webp": "image/webp",
    ".txt": "text/plain",
    ".json": "application/json",
}
"""By ending, as promptfoo knows them; the rest is application/octet-stream."""
_TEXT = "A document made for this request."
_LONGEST = 800
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////"
    "////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AR//Z"
)
"""One white dot, as Pillow writes it."""


def add_form(
    parts: Any, request: HttpRequest, values: Mapping[str, Any], services: Services, base: Path
) -> None:
    """Make the body of a request a form of fields and files, in place (RFC 7578).

    Raises:
        AgentError: a part is neither, or its file cannot be read.
        NeedsTrust: a file lies outside the root.
    """
    boundary = f"tui-eval-{secrets.token_hex(12)}"
    chunks: list[bytes] = []
    if not isinstance(parts, list) or not parts:
        raise AgentError("config.multipart.parts must be a list of fields and files", code="bad-setting")
    for part in parts:
        if not isinstance(part, dict) or not part.get("name"):
            raise AgentError("config.multipart.parts: each part needs a name", code="bad-setting")
        name = _quoted(filled(str(part["name"]), values))
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if part.get("kind") == "file":
            data, file, kind = _file(part, values, services, base)
            head += f'; filename="{_quoted(file)}"\r\nContent-Type: {kind}'
        else:
            text = filled(text_of(part.get("value")), values)
            data = "\r\n".join(text.replace("\r\n", "\n").split("\n")).encode("utf-8", "replace")
        chunks.append(f"{head}\r\n\r\n".encode("utf-8", "replace") + data + b"\r\n")
    chunks.append(f"--{boundary}--\r\n".encode())
    request.body = b"".join(chunks)
    request.headers["content-type"] = f"multipart/form-data; boundary={boundary}"


def _file(
    part: dict[str, Any], values: Mapping[str, Any], services: Services, base: Path
) -> tuple[bytes, str, str]:
    source = part.get("source")
    kind = source.get("type", "path") if isinstance(source, dict) else None
    if not isinstance(source, dict) or kind not in ("path", "generated"):
        raise AgentError(
            "config.multipart: a file needs source: {type: path, path: file://FILE}", code="bad-setting"
        )
    if kind == "generated":
        data, name = _made(source, values)
    else:
        given = filled(str(source.get("path") or ""), values).removeprefix("file://")
        path = confine(services.root, given, services.trust, base)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise AgentError(
                f"config.multipart: cannot read {given}: {error.strerror or error}", code="bad-setting"
            ) from None
        name = path.name
    usual = _TYPES.get(Path(name).suffix.lower(), "application/octet-stream")
    name = filled(str(part.get("filenameTemplate") or part.get("filename") or name), values)
    return data, name, str(part.get("contentType") or usual).lower()


def _quoted(text: str) -> str:
    """A name as browsers write it (HTML, multipart/form-data encoding)."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _made(source: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[bytes, str]:
    """A document that the suite has no file of: a page with its text, or a picture of one dot."""
    form = str(source.get("format") or "pdf")
    text = filled(str(source.get("text") or _TEXT), values)
    if form == "pdf":
        return _pdf(text), "promptfoo-document.pdf"
    if form in ("png", "jpg", "jpeg"):
        return _png() if form == "png" else _JPEG, f"promptfoo-document.{form}"
    raise AgentError(
        f"config.multipart: a document of format {form!r} cannot be made; give pdf, png or jpeg",
        code="bad-setting",
    )


def _pdf(text: str) -> bytes:
    """One page with one line (PDF 1.4, ISO 32000)."""
    line = " ".join(text.split())[:_LONGEST].encode("latin-1", "replace")
    for mark in (b"\\", b"(", b")"):
        line = line.replace(mark, b"\\" + mark)
    stream = b"BT /F1 16 Tf 72 720 Td (%s) Tj ET" % line
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        b"/Resources << /Font << /F1 4 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    )
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    made += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(made)


def _png() -> bytes:
    """One white dot (PNG, ISO 15948)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\xff"))
        + chunk(b"IEND", b"")
    )


JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
TEXT_TYPE = "text/plain;charset=UTF-8"
"""What a body is sent as whose request does not say."""
_VARIABLE = re.compile(r"\{\{[\s\S]*?\}\}")


class HttpRequest(msgspec.Struct):
    """What is sent."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: bytes | None = None


def filled(text: str, values: Mapping[str, Any]) -> str:
    """A template with its values.

    Raises:
        AgentError: it cannot be rendered.
        NeedsTrust: it reads a variable of the person's environment, or of a file that may not be read.
    """
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    from tui_eval.nunjucks.templates import TemplateError, render

    try:
        return render(text, values, env=template_variables.get())
    except TemplateError as error:
        raise AgentError(
            f"the template {one_line(text, 80)}: {one_line(str(error))}", code="bad-setting"
        ) from None


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
            raise AgentError(f"config.multipart: a {method} request has no body", code="bad-setting")
        if body is not None:
            raise AgentError("config has both body and multipart", code="bad-setting")
    request = HttpRequest(method, with_query(filled(url, values), _query(config, values)), headers)
    if form:
        return request
    if body is None and method in ("POST", "PUT", "PATCH") and not isinstance(prompt, dict):
        raise AgentError(f"config.body is missing: a {method} request needs one", code="bad-setting")
    structured = isinstance(body, dict | list) or (body is None and isinstance(prompt, dict))
    if "content-type" not in headers and config.get("method") != "GET" and (structured or body is not None):
        headers["content-type"] = JSON_TYPE if structured else FORM_TYPE
    is_json = JSON_TYPE in headers.get("content-type", "")
    if isinstance(body, dict | list) and not is_json and "content-type" in headers:
        raise AgentError(
            f"config.body is an object or a list, but content-type is {headers['content-type']}: a body of another "
            f"type than {JSON_TYPE} must be text",
            code="bad-setting",
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
        raise AgentError(
            f"config.request: {one_line(first, 80)} is not a request line (POST /path HTTP/1.1)",
            code="bad-setting",
        )
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[js.trim(name).lower()] = js.trim(value)
    host = headers.pop("host", "")
    headers.pop("content-length", None)
    if not host:
        raise AgentError("config.request: it needs a Host header", code="bad-setting")
    scheme = _scheme(config, url)
    parts = urlsplit(urljoin("http://placeholder/", js.trim(target)))
    query = f"?{parts.query}" if parts.query else ""
    body = js.trim(body)
    if body and "content-type" not in headers:
        headers["content-type"] = TEXT_TYPE
    sent = body.replace("\n", "\r\n").encode("utf-8", "replace") if body else None
    return HttpRequest(method, f"{scheme}://{host}{parts.path or '/'}{query}", headers, sent)


def raw_address(text: str, config: Mapping[str, Any], url: str) -> str:
    """The address that a request given so leads to, whatever its `url` says, before its templates are filled in; `url`
    where it has no Host."""
    head = text.replace("\r\n", "\n").strip().partition("\n\n")[0]
    hosts = [
        line.partition(":")[2]
        for line in head.split("\n")[1:]
        if js.trim(line.partition(":")[0]).lower() == "host"
    ]
    return f"{_scheme(config, url)}://{js.trim(hosts[-1])}/" if hosts else url


def _scheme(config: Mapping[str, Any], url: str) -> str:
    return "https" if config.get("useHttps") is True or url.startswith("https") else "http"


def basic(user: str, password: str) -> str:
    """The value of an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
