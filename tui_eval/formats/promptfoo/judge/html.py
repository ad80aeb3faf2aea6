"""is-html and contains-html."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.javascript import values as js

_LONGEST = 2_000_000
_SECONDS = 10.0
"""Of reading HTML; of the thread's own time, so that a busy machine changes no verdict."""
_EVERY = 50
"""Characters that a reader asks for between two looks at the time."""
_WRAPPERS = {name: re.compile(rf"<{name}(?=[\s>/])", re.IGNORECASE) for name in ("html", "head", "body")}
# Elements of today's HTML; what it has given up (font, center, frameset) does not count.
_KNOWN_LIST = """title base link meta style article section nav aside h1 h2 h3 h4 h5 h6 header footer address p hr pre
    blockquote ol ul li dl dt dd figure figcaption main div a em strong small s cite q dfn abbr ruby rt rp data time
    code var samp kbd sub sup i b u mark bdi bdo span br wbr img iframe embed object param picture source video
    audio track map area svg math script noscript canvas ins del table caption colgroup col tbody thead tfoot tr td
    th form label input button select datalist optgroup option textarea output progress meter fieldset legend
    details summary dialog menu slot template"""
_KNOWN = frozenset(_KNOWN_LIST.split())
_TAG_NAME = "[a-zA-Z][a-zA-Z0-9-]{0,200}"
_SIGNS = (
    (re.compile(r"<!doctype\s+html", re.IGNORECASE), 2),
    (re.compile(r"&(?:[a-zA-Z]{1,100}|#[0-9]{1,100}|#x[0-9a-fA-F]{1,100});"), 1),
    (re.compile(r"\s[a-zA-Z-]{1,100}=\s{0,100}[\"'][^\"']{0,5000}[\"']"), 1),
    (re.compile(r"<!--(?:[^-]|-(?=[^-]))*+-->"), 1),
    (re.compile(rf"</{_TAG_NAME}\s{{0,100}}>"), 1),
    (
        re.compile(
            r"<(?:html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|"
            r"link|meta|br|hr)\b",
            re.IGNORECASE | re.ASCII,
        ),
        2,
    ),
)
_OPENED = re.compile(rf"<{_TAG_NAME}(?=\s|/?>)")
_LONGEST_TAG = 5000


def is_html(call: AssertionCall) -> Result:
    """An HTML reader finds elements that HTML knows, and no text beside them."""
    fault = _fault(call.text)
    told = seen.rule("is-html") if fault is None else seen.rule("not-html", fault)
    if (fault is None) != call.inverse:
        told = seen.rule("holds")
    return call.result(fault is None, fault or "", "Output is valid HTML", evidence=[told])


def _fault(text: str) -> str | None:
    stripped = js.trim(text)
    if not stripped:
        return "Output is empty"
    if stripped[:5].lower() == "<?xml":
        return "Output appears to be XML, not HTML"
    if len(stripped) > _LONGEST:
        raise CannotJudge("is-html: the output is longer than 2,000,000 characters")
    document = _parsed(stripped, scripting=True)
    if _text_in(document.find("body")) and not _body_is_written(stripped):
        return "Output must be wrapped in HTML tags"
    if not any(_counts(element.tag, stripped) for element in document.iter() if isinstance(element.tag, str)):
        return "Output does not contain recognized HTML elements"
    return None


def _parsed(text: str, *, scripting: bool = False) -> Any:
    """The document that a browser makes of a text.

    Raises:
        CannotJudge: it takes too long.
    """
    import html5lib

    reader = _reader()(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    return reader.parse(text, scripting=scripting)


@cache
def _reader() -> Any:
    """html5lib's reader, ended where it takes too long: what it costs grows with the square of how deeply elements are
    nested, of formatting that is never closed and of a tag's attributes."""
    import html5lib

    class Reader(html5lib.HTMLParser):
        def mainLoop(self) -> None:
            stream: Any = self.tokenizer.stream
            read, asked, until = stream.char, 0, time.thread_time() + _SECONDS

            def char() -> Any:
                nonlocal asked
                asked += 1
                if asked % _EVERY == 0 and time.thread_time() > until:
                    raise CannotJudge("is-html: the output takes too long to read: it is nested too deeply")
                return read()

            stream.char = char
            super().mainLoop()

    return Reader


def _body_is_written(text: str) -> bool:
    """Whether the body begins with its tag, not with something that stands before it and belongs into it."""
    tag = _WRAPPERS["body"].search(text)
    if tag is None:
        return False
    body = _parsed(text[: tag.start()]).find("body")
    return body is None or not (len(body) or js.trim(body.text or ""))


def _counts(tag: str, text: str) -> bool:
    """Whether an element is one that HTML knows; a reader adds html, head and body where none are written."""
    name = tag.rpartition("}")[2].lower()
    if name in _WRAPPERS:
        return _WRAPPERS[name].search(text) is not None
    return name in _KNOWN or "-" in name


def _text_in(body: Any) -> bool:
    """Whether a reader puts text directly into the body."""
    if body is None:
        return False
    pieces = [body.text, *(child.tail for child in body)]
    return any(piece and js.trim(piece) for piece in pieces)


def contains_html(call: AssertionCall) -> Result:
    """Signs of HTML add up to two points or more."""
    holds = sum(worth for sign, worth in _SIGNS if sign.search(call.text)) + sum(tags_in(call.text)) >= 2
    code = "holds" if holds != call.inverse else "has-html" if holds else "not-html"
    return call.result(
        holds,
        "Expected output to contain HTML content",
        "Expected output to not contain HTML content",
        evidence=[seen.rule(code)],
    )


def tags_in(text: str) -> tuple[bool, bool]:
    """Whether an element that ends itself stands in it (`<br />`), and whether a start tag: `<NAME(?:\\s[^>]*)?/>`, and
    the same with `>`, of up to 5,000 characters. In one pass: as patterns they look that far from each `<a ` again."""
    ends_itself = opens = False
    found = _OPENED.finditer(text)
    tag = next(found, None)
    while tag is not None and not (ends_itself and opens):
        following, begins = next(found, None), tag.end()
        if following is None:
            until = len(text)
        elif text[following.end()] == "/":
            until = following.end() + 2
        else:  # a bracket beyond it is nearer to that one
            until = following.start()
        end = text.find(">", begins, min(until, begins + _LONGEST_TAG + 3))
        if end >= 0:
            ends_itself = ends_itself or text[end - 1] == "/"
            opens = opens or (text[begins] != "/" and end <= begins + _LONGEST_TAG + 1)
        tag = following
    return ends_itself, opens
