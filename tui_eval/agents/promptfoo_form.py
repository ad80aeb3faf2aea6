"""`config.multipart` of a promptfoo HTTP provider: a form of fields and files."""

from __future__ import annotations

import base64
import secrets
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.promptfoo_request import HttpRequest, filled
from tui_eval.agents.wire import text_of
from tui_eval.guard.paths import confine

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
        raise AgentError("config.multipart.parts must be a list of fields and files")
    for part in parts:
        if not isinstance(part, dict) or not part.get("name"):
            raise AgentError("config.multipart.parts: each part needs a name")
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
        raise AgentError("config.multipart: a file needs source: {type: path, path: file://FILE}")
    if kind == "generated":
        data, name = _made(source, values)
    else:
        given = filled(str(source.get("path") or ""), values).removeprefix("file://")
        path = confine(services.root, given, services.trust, base)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise AgentError(f"config.multipart: cannot read {given}: {error.strerror or error}") from None
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
    raise AgentError(f"config.multipart: a document of format {form!r} cannot be made; give pdf, png or jpeg")


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
