"""Pictures of the running app on the sample suites: `python screenshots/make.py [NAME...]` (SVG, and PNG
where `rsvg-convert` is installed; without names all). Every picture is of the real app, run by the real
engine."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "sample_suites"
SIZES = ((80, 24), (120, 40))
PAST = ("runs", "compare")
"""Pictures that need runs before the one that is watched."""
AGENT = "support/customer_support.script.yaml"
_CALM = {"escalated: true, escalation_priority: high": "escalated: false"}
_SHORT = {"output: 2847": "output: 184"}
EDITIONS: tuple[dict[str, str], ...] = (
    {**_CALM, **_SHORT, "€79": "€75", "ticket 4711": "a ticket"},
    {**_CALM, **_SHORT, "€79": "€75"},
    {**_CALM, **_SHORT},
    {},
)
"""What the support agent said before it was improved, edition by edition; the last is today's."""


async def _until(condition: Callable[[], bool], seconds: float = 90) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the app has no event for it
            await asyncio.sleep(0.05)


def _case_of(app, words: str) -> str:
    return next(item.case_id for item in app.state.rows if words in item.case_id)


def _earlier_runs(root: Path) -> None:
    """Runs of the support suites with each edition of their agent."""
    script = root / AGENT
    today = script.read_text("utf-8")
    for edition in EDITIONS:
        text = today
        for now, before in edition.items():
            text = text.replace(now, before)
        script.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "tui_eval", "run", "support", "--attempts", "3", "--display", "none"]
        subprocess.run(command, cwd=root, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script.write_text(today, encoding="utf-8")


async def _past(app, pilot, picture: Callable[..., Awaitable[None]]) -> None:
    """The list of runs with the figures of the newest, and it against the one before."""
    from tui_eval.tui.screens.compare_screen import CompareScreen
    from tui_eval.tui.screens.runs_screen import RunsScreen

    await pilot.press("H")
    await _until(lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.lines))
    await picture("runs", 1.5)
    await pilot.press("space", "space", "c")
    await _until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison is not None)
    await picture("compare", 1.0)
    await pilot.press("U")
    await pilot.pause(0.4)


async def _take(width: int, height: int, wanted: list[str]) -> None:
    from tui_eval.tui.app import EvalApp
    from tui_eval.tui.screens.dialogs import AskScreen
    from tui_eval.tui.screens.tour_screen import TourScreen
    from tui_eval.tui.state.app_state import CasePointer

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "sample_suites"
        shutil.copytree(SAMPLES, root, ignore=shutil.ignore_patterns(".tui-eval", "outputs"))
        if not wanted or set(PAST) & set(wanted):
            _earlier_runs(root)
        app = EvalApp([root])
        async with app.run_test(size=(width, height)) as pilot:

            async def picture(name: str, settle: float = 0.5) -> None:
                await pilot.pause(settle)
                if not wanted or name in wanted:
                    _save(app.export_screenshot(title="tui-eval"), f"{name}-{width}x{height}")

            async def keys(*names: str) -> None:
                await pilot.press(*names)
                await pilot.pause(0.4)

            await _until(lambda: len(app.state.rows) >= 60)
            await pilot.pause(1.0)
            if isinstance(app.screen, TourScreen):  # the first start of this person
                await keys("escape")
            if not wanted or set(PAST) & set(wanted):
                await _past(app, pilot, picture)
            if wanted and set(wanted) <= set(PAST):
                app.exit()
                return
            await keys("a")
            if isinstance(app.screen, AskScreen):  # what the earlier runs cost lets it ask
                await keys("y")
            await _until(lambda: app.state.run is not None and app.state.run.counts.done >= 12)
            if width < 100:
                await keys("tab")
            await picture("run")
            if width < 100:
                await keys("tab")
            await _until(lambda: app.state.run is not None and app.state.run.info.state == "finished")
            await picture("finished", 2.5)
            await _shot(app, pilot, CasePointer(_case_of(app, "remembers_the_allergy")), "1", "case", picture)
            await _shot(app, pilot, CasePointer(_case_of(app, "revenue_by_month")), "4", "data", picture)
            await keys("U", "j", "j", "j")
            await picture("suites")
            await keys("question_mark")
            await picture("help")
            await keys("escape")
            app.exit()


async def _shot(app, pilot, pointer, tab: str, name: str, picture: Callable[..., Awaitable[None]]) -> None:
    from tui_eval.tui.screens.case_screen import CaseScreen

    run = app.state.run
    ref = next(case.id for case in run.cases.values() if case.case_id == pointer.case_id)
    attempt = next(row.id for row in run.attempts.values() if row.case_ref == ref)
    from dataclasses import replace

    await app.push_screen(CaseScreen(replace(pointer, run_id=run.info.id, attempt_ref=attempt)))
    await pilot.pause(1.0)
    await pilot.press(tab)
    await picture(name, 1.0)
    app.pop_screen()
    await pilot.pause(0.3)


def _save(svg: str, name: str) -> None:
    # The picture's fonts must be those of the machine that shows it, not from the internet.
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono").replace("<text ", '<text xml:space="preserve" ')
    path = HERE / f"{name}.svg"
    path.write_text(svg, encoding="utf-8")
    if shutil.which("rsvg-convert"):
        subprocess.run(
            ["rsvg-convert", "-z", "1.4", str(path), "-o", str(path.with_suffix(".png"))], check=True
        )


def main() -> None:
    """Take every picture (or those named) at both sizes."""
    for width, height in SIZES:
        asyncio.run(_take(width, height, sys.argv[1:]))


if __name__ == "__main__":
    main()
