"""A page of the manual as paragraphs of a pane: headings, texts wrapped to its width, tables beside a column."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

Paragraphs = list[tuple[str, str]]


def manual_paragraphs(text: str) -> Paragraphs:
    """`(style, text)` of each heading, paragraph, list item, table row and piece of code; the first heading is
    left out, it is the title already."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    shown: Paragraphs = []
    cells: list[str] = []
    style, in_table = "text", False
    for number, token in enumerate(tokens):
        match token.type:
            case "heading_open":
                style = "title"
            case "heading_close":
                style = "text"
            case "list_item_open":
                style = "item"
            case "bullet_list_open" | "ordered_list_open":
                _space(shown)
            case "table_open":
                in_table = True
                _space(shown)
            case "table_close":
                in_table = False
            case "tr_open":
                cells = []
            case "tr_close":
                beside = " · ".join(cell for cell in cells[1:] if cell)
                shown.append(("key", f"{cells[0]}\x00{beside}") if beside else ("text", cells[0]))
            case "inline" if in_table:
                cells.append(_plain(token.children or ()))
            case "inline" if number > 2:
                words = _plain(token.children or ())
                if not words:
                    continue
                if style != "item":
                    _space(shown)
                shown.append((style, words))
                style = "text"
            case "code_block" | "fence":
                _space(shown)
                shown.append(("code", token.content.rstrip("\n")))
            case _:
                pass
    return shown


def _space(shown: Paragraphs) -> None:
    """An empty line before what follows, unless it is the first."""
    if shown and shown[-1][1]:
        shown.append(("text", ""))


def _plain(children: Sequence[Token]) -> str:
    """The words of a line of Markdown, a line break a space; pictures are left out."""
    words: list[str] = []
    for child in children:
        if child.type in ("text", "code_inline"):
            words.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return "".join(words).strip()
