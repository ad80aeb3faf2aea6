"""Pictures of the running app on the sample suites: `python screenshots/make.py` (SVG, and PNG where
`rsvg-convert` is installed). Every picture is of the real app, run by the real engine."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "sample_suites"
SIZES = ((80, 24), (120, 40))


async def _until(condition: Callable[[], bool], seconds: float = 90) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the app has no event for it
            await asyncio.sleep(0.05)


def _case_of(app, words: str) -> str:
    return next(item.case_id for item in app.state.rows if words in item.case_id)


async def _take(width: int, height: int) -> None:
    from tui_eval.tui.app import EvalApp
    from tui_eval.tui.pointer import CasePointer

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "sample_suites"
        shutil.copytree(SAMPLES, root, ignore=shutil.ignore_patterns(".tui-eval", "outputs"))
        app = EvalApp([root])
        async with app.run_test(size=(width, height)) as pilot:

            async def picture(name: str, settle: float = 0.5) -> None:
                await pilot.pause(settle)
                _save(app.export_screenshot(title="tui-eval"), f"{name}-{width}x{height}")

            async def keys(*names: str) -> None:
                await pilot.press(*names)
                await pilot.pause(0.4)

            await _until(lambda: len(app.state.rows) >= 60)
            await pilot.pause(1.0)
            await keys("a")
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
    """Take every picture at both sizes."""
    for width, height in SIZES:
        asyncio.run(_take(width, height))


if __name__ == "__main__":
    main()
