"""Several configurations read as one, as promptfoo does with several `-c` (formats/promptfoo.md 2.3).

Every test of any of them runs against the prompts and providers of all. The first one's folder is where
files are looked for, but for those that a `tests` or a prompt of another one names: there it is its own.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui_eval.formats.promptfoo.read.suite_file import ENDINGS, has_its_keys, recognises
from tui_eval.guard.paths import read_file

LAID_OVER = ("tags", "env", "evaluateOptions", "commandLineOptions", "metadata", "nunjucksFilters")
"""Mappings of which a later configuration's keys go over an earlier one's."""
ONE_AFTER_ANOTHER = ("scenarios", "derivedMetrics", "extensions", "outputPath")
OF_THE_FIRST = ("tracing", "sharing", "redteam")


def chosen(given: Sequence[str]) -> list[Path]:
    """The configurations that `-c` means: files, patterns, and folders with a promptfooconfig.* in them. What they are
    called and lack makes no difference, only what they are for certain: empty where one of them is a suite of another
    format, and then they are suites side by side."""
    files: list[Path] = []
    for text in given:
        path = Path(text)
        if path.is_dir():
            names = (path / f"promptfooconfig{ending}" for ending in ENDINGS)
            found = [file for file in names if file.is_file()][:1]
        elif path.is_file():
            found = [path]
        else:
            found = [Path(name) for name in sorted(glob.glob(text)) if name.lower().endswith(ENDINGS)]
        if not found or not all(_is_configuration(file) for file in found):
            return []
        files += found
    return list(dict.fromkeys(file.absolute() for file in files))


def _is_configuration(path: Path) -> bool:
    from tui_eval.formats.discovery import OWN_FILES, reader_for

    if path.name in OWN_FILES or path.suffix == ".hocon":
        return False
    try:
        text = read_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return path.is_file()  # what is wrong with it is said where it is read
    return recognises(path, text) or has_its_keys(text) or reader_for(path.name, text, path.parent) is None


def combined(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One configuration of several, but for `prompts` and `tests`, which are the first one's: those of
    the others are read apart."""
    result = dict(documents[0])
    for key in LAID_OVER:
        given = [document[key] for document in documents if isinstance(document.get(key), dict)]
        if given:
            result[key] = {name: value for mapping in given for name, value in mapping.items()}
    for key in ONE_AFTER_ANOTHER:
        given = [document[key] for document in documents if document.get(key) is not None]
        if given:
            result[key] = [
                item for value in given for item in (value if isinstance(value, list) else [value])
            ]
    for key in OF_THE_FIRST:
        given = [document[key] for document in documents if document.get(key)]
        if given:
            result[key] = given[0]
    described = [document["description"] for document in documents if document.get("description")]
    if described:
        result["description"] = ", ".join(map(str, described))
    providers: list[Any] = []
    for document in documents:
        value = document.get("targets") or document.get("providers")
        entries = value if isinstance(value, list) else [] if value is None else [value]
        providers += (entry for entry in entries if entry not in providers)
    result["providers"] = providers
    result.pop("targets", None)
    default = _defaults([document.get("defaultTest") for document in documents])
    if default is not None:
        result["defaultTest"] = default
    return result


def _defaults(given: Sequence[Any]) -> Any:
    """`defaultTest`s laid over one another, their assertions after one another; a file stands alone."""
    result: Any = None
    for value in given:
        if isinstance(value, str):
            result = value
        elif isinstance(value, dict) and not isinstance(result, str):
            under = result or {}
            merged = {**under, **value}
            for key in ("vars", "options", "metadata"):
                if isinstance(under.get(key), dict) and isinstance(value.get(key), dict):
                    merged[key] = {**under[key], **value[key]}
            before, after = under.get("assert"), value.get("assert")
            if isinstance(before, list) and isinstance(after, list):
                merged["assert"] = [*before, *after]
            result = merged
    return result
