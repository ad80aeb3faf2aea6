"""Every HTML page against what it was: elements, attributes and texts, as a browser reads them.

`TUI_EVAL_WRITE_GOLDEN=1 pytest tests/reports/test_golden_pages.py` writes them anew, to be read as a diff.
"""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import page_runs
from tests.support.attempts import HOSTILE
from tests.support.page_meaning import meaning
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.reports.export import export
from tui_eval.reports.web_compare import comparison_page
from tui_eval.reports.web_server import _page, case_page, home_page
from tui_eval.store.reader import RunReader

GOLDEN = Path(__file__).parent / "golden_pages"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Every page of a project, by name."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    root = tmp_path_factory.mktemp("pages")
    (root / "tui_eval.yaml").write_text("{}\n", "utf-8")
    found = {"no_runs": home_page(root)}
    first, second = page_runs.pair(root)
    rich, both = page_runs.rich(root), page_runs.agents(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui_eval.reports.page.MOST_SPANS", 8)
        found["run"] = _exported(rich, root / "run.html")
        patch.setattr("tui_eval.reports.page.WHOLE", 1)
        found["run_of_very_many_attempts"] = _exported(both, root / "short.html")
    for name, folder in (("run_in_the_browser", both), ("run_of_one_agent_in_the_browser", second)):
        found[name] = _page(root, folder.name)
    asked = {"before": first.name, "after": second.name}
    found["comparison"] = comparison_page(root, asked)
    found["comparison_of_agents"] = comparison_page(
        root, {"before": both.name, "after": both.name, "left": "0", "right": "1"}
    )
    found["nothing_in_common"] = comparison_page(root, {"before": first.name, "after": both.name})
    for name, case in (("case", "worse"), ("case_of_hostile_name", page_runs.MARKUP)):
        who = {"case": f"suites/pair.yaml::{case}", "agent": "helper", "model": "m"}
        found[name] = case_page(root, asked | who)
    page_runs.run(root, "20260101-000005-live", [], state="running", paths=["suites"])
    broken = root / ".tui-eval" / "runs" / "20260102-000000-bad0"
    broken.mkdir()
    (broken / "run.db").write_bytes(b"garbage" * 500)
    found["runs"] = home_page(root)
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()
    yield {name: page.replace(str(root), "ROOT") for name, page in found.items()}


def _exported(folder: Path, path: Path) -> str:
    with closing(RunReader(folder)) as reader:
        export(reader, path)
    return path.read_text("utf-8")


NAMES = (
    "no_runs", "runs", "run", "run_of_very_many_attempts", "run_in_the_browser", "run_of_one_agent_in_the_browser",
    "comparison", "comparison_of_agents", "nothing_in_common", "case", "case_of_hostile_name",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_it_said(pages: dict[str, str], name: str) -> None:
    found = meaning(pages[name])
    # The look has one file of its own; it is told from the pages' content.
    found = re.sub(r"(<style>\n\s*)'.*'", r"\1STYLE", found)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TUI_EVAL_WRITE_GOLDEN"):
        path.write_text(found, "utf-8")
    difference = difflib.unified_diff(path.read_text("utf-8").splitlines(), found.splitlines(), n=2)
    assert found == path.read_text("utf-8"), "\n".join(list(difference)[:80])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_foreign_is_markup_or_control_on_any_page(pages: dict[str, str], name: str) -> None:
    page = pages[name]
    assert "<script" not in page and "<b " not in page and "</pre></style>" not in page
    assert not ({chr(code) for code in CONTROL_TABLE} - {"\n", "\t"}) & set(page)
    assert HOSTILE not in page and "49" not in re.findall(r"q\W{0,8} ([0-9]+) ", page)


def test_every_page_is_compared(pages: dict[str, str]) -> None:
    assert set(pages) == set(NAMES) == {path.stem for path in GOLDEN.iterdir()}
