"""is-html and contains-html."""

from __future__ import annotations

import re
from typing import Any

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo.call import Call, Result

_LONGEST = 2_000_000
_OPENING = re.compile(r"<([a-zA-Z][a-zA-Z0-9-]{0,100})(?=[\s/>])")
_BODY = re.compile(r"<body(?=[\s/>])", re.IGNORECASE)
_KNOWN_LIST = """a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption cite
    code col colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map mark
    menu meta meter nav noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp
    script search section select slot small source span strong style sub summary sup svg table tbody td template
    textarea tfoot th thead time title tr track u ul var video wbr math acronym big center dir font frame frameset
    marquee nobr noframes strike tt"""
_KNOWN = frozenset(_KNOWN_LIST.split())
_COMMON_LIST = """html head body div span p a img h1 h2 h3 h4 h5 h6 ul ol li table tr td th form input button select
    option script style link meta br hr strong em b i section article header footer nav main"""
_COMMON = frozenset(_COMMON_LIST.split())
_SIGNS = (
    (re.compile(r"<!doctype\s+html", re.IGNORECASE), 2),
    (re.compile(r"&(?:[a-zA-Z]{2,31}\d{0,2}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});"), 1),
    (re.compile(r"<[a-zA-Z][a-zA-Z0-9-]{0,100}(?:\s[^<>]{0,5000})?/>"), 1),
    (re.compile(r"\s[a-zA-Z][\w:-]{0,100}=[\"'][^\"'<>]{0,2000}[\"']"), 1),
)
_OPEN = re.compile(r"<[a-zA-Z][a-zA-Z0-9-]{0,100}(?:\s[^<>]{0,5000})?(?<!/)>")
_CLOSE = re.compile(r"</[a-zA-Z][a-zA-Z0-9-]{0,100}\s{0,20}>")


def is_html(call: Call) -> Result:
    """An HTML reader finds elements that HTML knows, and no text beside them."""
    fault = _fault(call.text)
    return call.result(fault is None, fault or "", "Output is valid HTML")


def _fault(text: str) -> str | None:
    stripped = text.strip()
    if not stripped:
        return "Output is empty"
    if stripped.lower().startswith("<?xml"):
        return "Output appears to be XML, not HTML"
    if len(stripped) > _LONGEST:
        raise CannotJudge("is-html: the output is longer than 2,000,000 characters")
    written = {name.lower() for name in _OPENING.findall(stripped)}
    if not _BODY.search(stripped) and (not written or _text_beside(stripped)):
        return "Output must be wrapped in HTML tags" if _text_beside(stripped) else _UNKNOWN
    if not any(name in _KNOWN or "-" in name for name in written):
        return _UNKNOWN
    return None


_UNKNOWN = "Output does not contain recognized HTML elements"


def _text_beside(text: str) -> bool:
    """Whether a reader puts text directly into the body."""
    import html5lib

    document: Any = html5lib.parse(text, treebuilder="etree", namespaceHTMLElements=False)
    body = document.find("body")
    if body is None:
        return False
    pieces = [body.text, *(child.tail for child in body)]
    return any(piece and piece.strip() for piece in pieces)


def contains_html(call: Call) -> Result:
    """Signs of HTML add up to two points or more."""
    return call.result(
        _points(call.text) >= 2,
        "Expected output to contain HTML content",
        "Expected output to not contain HTML content",
    )


def _points(text: str) -> int:
    points = sum(worth for sign, worth in _SIGNS if sign.search(text))
    comment = text.find("<!--")
    points += comment >= 0 and text.find("-->", comment + 4) >= 0
    points += bool(_OPEN.search(text)) + bool(_CLOSE.search(text))
    if any(match.group(1).lower() in _COMMON for match in _OPENING.finditer(text)):
        points += 2
    return points
