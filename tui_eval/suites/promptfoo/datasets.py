"""Tests from datasets of Hugging Face: each row's columns are variables (formats/promptfoo.md 4.5)."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tui_eval.guard.trust import NeedsTrust
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief
from tui_eval.suites.promptfoo.tests import Test

SERVER = "https://datasets-server.huggingface.co"
"""Where rows of datasets are fetched from."""

BEGINNING = "huggingface://datasets/"
PAGE = 100
"""Rows that the server gives at once."""
MOST_ROWS = 100_000
LARGEST_PAGE = 64 * 2**20
TIME_LIMIT = 30.0
"""Seconds that fetching a page may take."""
TOKENS = ("HF_TOKEN", "HF_API_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def rows(reading: Reading, address: str, line: int) -> list[Test]:
    """The tests of `huggingface://datasets/OWNER/NAME?split=test&config=default&limit=N`. Lists among
    the values are not expanded.

    Raises:
        Missing: it needs trust (fetching while a suite is loaded), or cannot be fetched.
    """
    try:
        reading.trust.require(f"fetch {address}")
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    name, _, query = address.removeprefix(BEGINNING).partition("?")
    if name.count("/") != 1 or not all(name.split("/")):
        raise Missing(f"{brief(address)} is no dataset; write {BEGINNING}OWNER/NAME")
    asked = {"split": "test", "config": "default", **dict(parse_qsl(query))}
    limit = _limit(asked.get("limit"), address)
    found: list[Test] = []
    while len(found) < limit:
        wanted = {**asked, "offset": str(len(found)), "length": str(min(PAGE, limit - len(found)))}
        page = _page(f"{SERVER}/rows?{urlencode({'dataset': name, **wanted})}", address)
        new = [entry["row"] for entry in page.get("rows") or () if isinstance(entry, dict) and "row" in entry]
        found += (
            Test(reading.name, line, row, options={"disableVarExpansion": True})
            for row in new
            if isinstance(row, dict)
        )
        total = page.get("num_rows_total")
        if not new or (isinstance(total, int) and len(found) >= total):
            break
    return found


def _limit(given: str | None, address: str) -> int:
    if given is None:
        return MOST_ROWS
    if not (given.isascii() and given.isdigit()):
        raise Missing(f"{brief(address)}: limit must be a number")
    return min(int(given[:9]), MOST_ROWS)


def _page(url: str, address: str) -> dict[str, Any]:
    request = urllib.request.Request(url)
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIME_LIMIT) as answer:
            page = json.loads(answer.read(LARGEST_PAGE))
    except urllib.error.HTTPError as error:
        hint = "; give a token in HF_TOKEN" if error.code in (401, 403) else ""
        raise Missing(f"{address} cannot be fetched (HTTP {error.code}){hint}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Missing(f"{address} cannot be fetched: {' '.join(str(reason).split())}") from None
    if not isinstance(page, dict):
        raise Missing(f"{address}: the server's answer holds no rows")
    return page
