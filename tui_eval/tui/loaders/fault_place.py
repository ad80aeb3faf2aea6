"""Where an expected query failed, looked for in its file as it is now."""

from __future__ import annotations

from pathlib import Path

from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.data.data_view import fault_of
from tui_eval.yaml.scalar_places import place_in_file


def place_of_fault(content: CaseContent, root: Path) -> tuple[str, int] | None:
    """The file (from `root`) and the line in which the expected query of an attempt failed; None: it did not, or that
    is not known. Where the file has another query by now, the line that was recorded."""
    details = content.attempt.data if content.attempt is not None else None
    fault = fault_of(details) if details is not None else None
    if details is None or fault is None or content.case is None:
        return None
    name = (
        content.case.file or content.case.suite
    )  # the record may be somebody else's: it names no file to open
    if fault.get("file") != name:
        return None
    recorded = fault.get("file_line")
    try:
        text = (root / name).read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
    line, column = fault.get("line"), fault.get("column")
    if isinstance(line, int) and isinstance(column, int):
        found = place_in_file(text, "sql", details.reference_sql or "", line, column)
        recorded = found[0] if found is not None else recorded
    return (name, recorded) if isinstance(recorded, int) else None
