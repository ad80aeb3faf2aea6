"""promptfoo's results file (`promptfoo eval -o out.json`) as one of ours, so that it opens as a run.

What it does not say is left open. Cases get the ids that the suite's own would have where the file says enough:
the config that lies beside it, descriptions or vars, the provider, the number or the label of the prompt.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tui_eval.config.project import ConfigError, find_root
from tui_eval.formats.format import OurResults
from tui_eval.formats.promptfoo.imported_cases import (
    cases_of,
    described,
    ids_of,
    in_plain_file,
    line_of_text,
    names_of,
    read_suite,
    whole,
    word,
)
from tui_eval.formats.promptfoo.promptfoo_words import mapping
from tui_eval.formats.promptfoo.read.suite_file import ENDINGS, is_pattern
from tui_eval.javascript import values as js
from tui_eval.suites import identity

_CONFIGS = "promptfooconfig*"
_USUAL = "promptfooconfig.yaml"
_ERROR = 2
"""`failureReason` of a row that could not be run or judged."""
OURS = "tuiEval"
"""The member of a result that holds what only a results file of ours could say."""
_FILE = re.compile(r"^[^\n]*\.\w+(?::[\w.]+)?\Z")
_CARRIED = {
    "metadata": "metadata",
    "guardrails": "guardrails",
    "finish_reason": "finishReason",
    "log_probs": "logProbs",
    "raw": "raw",
}
"""What an answer carries beside its text, by our words."""


def as_ours(document: Any, path: Path) -> OurResults | None:
    """As `Format.as_ours`. The ids depend on what lies beside the file."""
    if not is_promptfoo(document):
        return None
    made = converted(document, path)
    # What the files beside it say is in the ids of its cases.
    return OurResults(made, "\n".join(str(row["case_id"]) for row in made["results"]))


def is_promptfoo(document: Any) -> bool:
    """Whether this is a results file of promptfoo."""
    results = document.get("results") if isinstance(document, dict) else None
    rows = results.get("results") if isinstance(results, dict) else None
    if not isinstance(rows, list) or not (rows or "evalId" in document):
        return False
    return all(isinstance(row, dict) and "success" in row for row in rows)


def converted(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same as a document of ours."""
    results = document["results"]
    prompts = [mapping(prompt) for prompt in results.get("prompts") or [] if isinstance(prompt, dict)]
    labels = labels_of(prompts, mapping(document.get("config")).get("prompts"))
    suite, file = _suite(path, mapping(document.get("config")))
    given = sorted(
        results["results"], key=lambda row: (whole(row.get("testIdx")), whole(row.get("promptIdx")))
    )
    if listed := _listed_ids(prompts, mapping(document.get("config")), (file or path).absolute().parent):
        prompts = [
            {**one, "provider": listed.get(str(one.get("provider")), one.get("provider"))} for one in prompts
        ]
        given = [_by_listed_id(row, listed) for row in given]
    names = names_of(given, prompts, document.get("config"), file)
    rows = [_whole_row(row, suite, labels, prompts, own) for row, own in zip(given, names, strict=True)]
    providers_transform = _may_transform(mapping(document.get("config")))
    for row, ours in zip(given, rows, strict=True):
        if OURS not in row and (providers_transform or _transforms(row)):
            ours["details"]["transformed"] = True
    ids = ids_of([row["case_id"] for row in rows], cases_of(given, names, document))
    for row, source, case_id in zip(rows, given, ids, strict=True):
        row["case_id"] = mapping(source.get(OURS)).get("case_id", case_id)
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["case_id"], row["agent"])
        seen[key] = seen.get(key, 0) + 1
        row.setdefault("attempt", seen[key])
    name = str(document.get("evalId") or path.stem)
    ours = mapping(mapping(document.get("metadata")).get(OURS))
    run = {"id": name, "state": "finished", "note": f"read from {path.name}, a file of promptfoo"}
    run |= _times(results)
    return {
        "timestamp": results.get("timestamp"),
        "results": rows,
        "cases": _cases(rows),
        "not_run": ours.get("not_run"),
        "metrics": ours["metrics"]
        if isinstance(ours.get("metrics"), list)
        else _metrics(given, prompts, suite),
        "run": mapping(ours.get("run")) or run,
    }


def _listed_ids(prompts: list[dict[str, Any]], config: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """By what a provider says its id is (code, `file://p.js`; a model, `openai:gpt-4o` for `openai:chat:gpt-4o`), what
    the configuration calls it, as its suite's cases do here; nothing where the columns are not the configuration's
    providers, one by one and in order."""
    given = config.get("providers") or config.get("targets")
    ours: list[str] = []
    for entry in given if isinstance(given, list) else [given]:
        named = word(entry)
        in_file = named.startswith("file://") and named.endswith(_PROVIDER_FILES)
        ours += map(_called_provider, in_plain_file(folder, named[7:]) if in_file else [entry])
    ours = list(dict.fromkeys(ours))
    theirs = list(dict.fromkeys(str(one.get("provider")) for one in prompts))
    if len(ours) != len(theirs):
        return {}
    other = {theirs: called for theirs, called in zip(theirs, ours, strict=True) if theirs != called}
    apart = other.keys().isdisjoint(ours) and all(_may_be_called(*pair) for pair in other.items())
    return other if apart else {}


def _may_be_called(theirs: str, called: str) -> bool:
    """Whether promptfoo may give that id to what the configuration calls so: code says what it likes, of a model how
    it is asked is left out or filled in (`ollama:llama3` is `ollama:completion:llama3`), an endpoint is its address."""
    if _PROVIDER_CODE.match(called) or (called in ("http", "https") and re.match(r"https?://", theirs)):
        return True
    family, _, model = called.partition(":")
    return theirs.startswith(f"{family}:") and theirs.rpartition(":")[2] == model.rpartition(":")[2] != ""


def _called_provider(entry: Any) -> str:
    """What a provider of a configuration is called: its label, else its id, which may be the key of its options."""
    options = _provider_options(mapping(entry))
    named = word(options.get("label")) or word(options.get("id")) or word(entry)
    return named or next(iter(mapping(entry)), "")


_PROVIDER_CODE = re.compile(r"file://.+\.(?:[cm]?[jt]s|py)(?::\w+)?\Z", re.DOTALL)


def _by_listed_id(row: dict[str, Any], listed: Mapping[str, str]) -> dict[str, Any]:
    provider = mapping(row.get("provider"))
    called = None if provider.get("label") or OURS in row else listed.get(word(provider.get("id")))
    return row if called is None else {**row, "provider": {**provider, "id": called}}


def _metrics(rows: list[dict[str, Any]], prompts: list[dict[str, Any]], suite: str) -> list[dict[str, Any]]:
    """The sums of the columns with the metrics derived from them: promptfoo writes both under one key, and what no
    row has a score of is derived."""
    scored: dict[int, set[str]] = {}
    for row in rows:
        scored.setdefault(whole(row.get("promptIdx")), set()).update(mapping(row.get("namedScores")))
    found: list[dict[str, Any]] = []
    for place, prompt in enumerate(prompts):
        metrics, own = mapping(prompt.get("metrics")), scored.get(place, set())
        sums = mapping(metrics.get("namedScores"))
        if not sums.keys() - own:
            continue
        found.append(
            {
                "suite": suite,
                "agent": str(prompt.get("provider") or ""),
                "prompt": prompt.get("label"),
                "score": metrics.get("score"),
                "count": sum(whole(row.get("promptIdx")) == place for row in rows),
                "named_scores": {key: value for key, value in sums.items() if key in own},
                "named_weights": mapping(metrics.get("namedScoreWeights")),
                "derived": {key: value for key, value in sums.items() if key not in own},
            }
        )
    return found


def _times(results: Mapping[str, Any]) -> dict[str, float]:
    """When the run began and ended, as far as the file says."""
    took = mapping(results.get("stats")).get("durationMs")
    try:
        began = datetime.datetime.fromisoformat(str(results.get("timestamp"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return {}
    if isinstance(took, bool) or not isinstance(took, int | float):
        return {"started_at": began}
    return {"started_at": began, "finished_at": began + took / 1000}


def _suite(path: Path, config: Mapping[str, Any]) -> tuple[str, Path | None]:
    """The configuration that the results are of, from the project's root, and where that is: the one beside
    the file, or in the nearest folder above it within the project; of several the one with their description.
    Else promptfoo's own name for one, whatever the file is called: results of one suite meet in a
    comparison."""
    place = path.absolute().parent
    try:
        root, _ = find_root([place])
    except ConfigError:
        root = place
    above = [place, *(one for one in place.parents if one.is_relative_to(root))]
    for folder in above:
        found = sorted(one for one in folder.glob(_CONFIGS) if one.suffix.lower() in ENDINGS)
        if len(found) > 1:
            found = [one for one in found if _description(one) == config.get("description")]
        if len(found) == 1:
            try:
                return found[0].relative_to(find_root([found[0]])[0]).as_posix(), found[0]
            except (ConfigError, ValueError):
                return found[0].name, found[0]
    return _USUAL, None


def _description(path: Path) -> Any:
    return read_suite(path).get("description")


def labels_of(prompts: list[dict[str, Any]], listed: Any = None) -> list[str]:
    """Of each column what its prompt is called in an id: what a person called it, else its number among the prompts.
    `listed` are the prompts as the configuration has them, where the file says it."""
    found: list[str] = []
    own, numbers = _called(prompts, listed), _numbers(prompts, listed)
    for prompt in prompts:
        raw, label = str(prompt.get("raw") or ""), str(prompt.get("label") or "")
        number = numbers[label, raw]
        if (label, raw) in own:
            found.append(own[label, raw] or f"prompt{number}")
            continue
        given = label and label != raw and not (raw and (label.endswith(raw[-200:]) or _begins(label, raw)))
        found.append(label if given and len(label) < 80 else f"prompt{number}")
    return found


def _begins(label: str, raw: str) -> bool:
    """Whether a label is a file and the beginning of its text, as promptfoo calls those of .md and .j2 files."""
    file, _, text = label.partition(": ")
    return bool(_FILE.search(file)) and text.endswith("...") and raw.startswith(text.removesuffix("..."))


def _numbers(prompts: list[dict[str, Any]], listed: Any) -> dict[tuple[str, str], int]:
    """By label and text of a prompt its number among them. Those of one pattern (`prompts/*.txt`) stand in
    the order of the disk, as promptfoo found them, and are counted in that of their paths, as the suite's
    reader does: the same number was another prompt's, and answers to one were compared with those to the
    other."""
    each = list(dict.fromkeys((str(one.get("label") or ""), str(one.get("raw") or "")) for one in prompts))
    paths = [label.partition(": ")[0] for label, _ in each]
    entries = [word(one).removeprefix("file://") for one in (listed if isinstance(listed, list) else ())]
    for pattern in filter(is_pattern, entries):
        before, _, after = pattern.removeprefix("./").partition("*")
        end = "" if is_pattern(after) else after
        places = [
            place
            for place, path in enumerate(paths)
            if path.startswith(before)
            and path.endswith(end)
            and path not in entries
            and path != each[place][1]
        ]
        ordered = sorted(places, key=lambda place: PurePosixPath(paths[place]).parts)
        moved = [(each[place], paths[place]) for place in ordered]
        for place, (one, path) in zip(places, moved, strict=True):
            each[place], paths[place] = one, path
    return {one: number for number, one in enumerate(each, 1)}


def _called(prompts: list[dict[str, Any]], listed: Any) -> dict[tuple[str, str], str]:
    """By label and text of a prompt what the configuration calls it (`suite_prompts`); empty where nobody called it
    anything. Prompts of which the configuration says nothing that is known here are left out."""
    if isinstance(listed, dict):
        listed = [{"id": path, "label": label} for path, label in listed.items()]
    columns = {(str(one.get("label") or ""), str(one.get("raw") or "")) for one in prompts}
    found: dict[tuple[str, str], str] = {}
    for entry in listed if isinstance(listed, list) else ():
        given = mapping(entry) or {"id": entry}
        raw, named, label = (word(given.get(key)) for key in ("raw", "id", "label"))
        source = raw or named
        plain = source.removeprefix("file://")
        if raw and not raw.startswith("file://"):
            if named and not label:
                found.setdefault((raw, raw), named)
            continue
        if not label and not _FILE.search(plain):
            continue
        if not label:
            found.update({one: "" for one in columns if one[0] == plain or one[0] == f"{plain}: {one[1]}"})
            continue
        own = [one for one in columns if one[0] == f"{label}: {plain}: {one[1]}"]
        for one in own:  # a text file with several
            found[one] = label if len(own) == 1 else f"{label}: {one[1]}"
    return found


def _whole_row(
    row: dict[str, Any], suite: str, labels: list[str], prompts: list[dict[str, Any]], own: str
) -> dict[str, Any]:
    """A result with what our own export says of it beside promptfoo's members."""
    found, more = row_of(row, suite, labels, prompts, own), mapping(row.get(OURS))
    if more.get("format", found["format"]) != found["format"]:
        del found["template"], found["provider"]  # such a case has its own text and no column
    details = {**found["details"], **mapping(more.get("details"))}
    return {**found, **more, "details": details}


def _transforms(row: Mapping[str, Any]) -> bool:
    """Whether a test has a transform: promptfoo writes what it left, and the answer itself nowhere (`raw` is
    whatever its provider says it is)."""
    options = mapping(mapping(row.get("testCase")).get("options"))
    return bool(options.get("transform") or options.get("postprocess"))


def _may_transform(config: Mapping[str, Any]) -> bool:
    """Whether a provider of the configuration has a transform, or may: one that stands in a file, or is not there."""
    listed = config.get("providers") or config.get("targets")
    return any(
        one.startswith("file://") and one.endswith(_PROVIDER_FILES)
        if isinstance(one, str)
        else not isinstance(one, dict) or bool(_provider_options(one).get("transform"))
        for one in (listed if isinstance(listed, list) else [listed])
    )


_PROVIDER_FILES = (".yaml", ".yml", ".json")


def _provider_options(entry: dict[str, Any]) -> dict[str, Any]:
    only = next(iter(entry.values()), None) if len(entry) == 1 else None
    return only if isinstance(only, dict) else entry


def _cases(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many attempts of a case had to pass, as far as the file says."""
    return [
        {
            "case_id": row["case_id"],
            "agent": row["agent"],
            "model": row.get("asked_model"),
            "required": row["required"],
        }
        for row in rows
        if "required" in row
    ]


def row_of(
    row: dict[str, Any],
    suite: str,
    labels: list[str],
    prompts: list[dict[str, Any]],
    own: str = "",
) -> dict[str, Any]:
    """A result of promptfoo as one of ours. `labels` are those of the columns (`labels_of`), `own` what its case is
    called among all rows (`names_of`)."""
    test, provider = mapping(row.get("testCase")), mapping(row.get("provider"))
    variables, response = mapping(row.get("vars")), mapping(row.get("response"))
    agent = str(provider.get("label") or provider.get("id") or "promptfoo")
    column = whole(row.get("promptIdx"))
    asked = test.get("provider")  # a test's own is asked in the place of its column's
    answering = asked if isinstance(asked, str) else mapping(asked).get("label") or mapping(asked).get("id")
    label = labels[column] if 0 <= column < len(labels) else f"prompt{column + 1}"
    name = line_of_text(test.get("description"))
    called = own or described(row) or identity.unnamed(variables)
    usage = mapping(row.get("tokenUsage")) or mapping(response.get("tokenUsage"))
    passed = row["success"] is True
    outcome = "passed" if passed else "error" if row.get("failureReason") == _ERROR else "failed"
    output, error = response.get("output"), row.get("error")
    text = "" if output is None else js.text_of(output)
    answered = bool(text) and not response.get("error")  # what failed then is the judging of it
    failure = str(error) if outcome == "error" and error and not answered else None
    told = mapping(row.get("gradingResult")).get("reason") or error
    sent = mapping(row.get("prompt")).get("raw")
    details = {"response_text": text, "output": None if isinstance(output, str) else output}
    if not text and isinstance(row.get("response"), dict) and (outcome != "error" or output == ""):
        details["empty_reply"] = "empty" if output == "" else "missing"
    carried = {ours: one for ours, theirs in _CARRIED.items() if (one := response.get(theirs))}
    if response.get("sessionId"):  # as a provider's answer is read
        carried["metadata"] = {"sessionId": response["sessionId"], **mapping(carried.get("metadata"))}
    if carried:
        details["reported"] = [{"turn": 1, **carried}]
    return {
        "name": name or f"Row #{whole(row.get('testIdx')) + 1}",
        "suite": suite,
        "format": "promptfoo",
        "case_id": f"{suite}::{called}::{agent}::{label}",
        "agent": str(answering) if answering else agent,
        "prompt": prompts[column].get("label") if 0 <= column < len(prompts) else label,
        "template": prompts[column].get("raw") if 0 <= column < len(prompts) else None,
        "provider": provider,
        "vars": variables,
        "metadata": mapping(test.get("metadata")),
        "passed": passed,
        "outcome": outcome,
        "message": "passed" if passed else str(told or "failed"),
        "error": failure,
        "score": row.get("score"),
        "named_scores": mapping(row.get("namedScores")),
        "named_weights": mapping(mapping(row.get("gradingResult")).get("namedScoreWeights")),
        "cost": row.get("cost"),
        "duration_ms": row.get("latencyMs", response.get("latencyMs")),
        "usage": _tokens(usage),
        "judging": _judging(usage.get("assertions"), OURS in row),
        "cached": response.get("cached") is True,
        "assertions": [_assertion(one, within) for one, within in _parts(row)],
        "details": details,
        "transcript": _transcript(sent, text, failure),
        **({"column": agent} if answering else {}),
    }  # fmt: skip


def _judging(given: Any, ours: bool) -> dict[str, Any] | None:
    """What graders took; None where none is known to have been asked: promptfoo writes zeros then, and that
    of every row that was judged at all one request."""
    counts = mapping(given)
    if not any(
        counts.get(key) for key in ("total", "prompt", "completion", "cached", *(["numRequests"] * ours))
    ):
        return None
    return {"calls": counts.get("numRequests") or 1, **_tokens(counts)}


def _tokens(given: Mapping[str, Any]) -> dict[str, Any]:
    """Counts by kind. Of one that has a sum alone all are input, as where nobody says more (`store.imported`); a sum of
    cached ones is none that was spent."""
    sent, answered, cached, total = (given.get(key) for key in ("prompt", "completion", "cached", "total"))
    if not sent and not answered and total and total != cached:
        sent = total
    return {"input_tokens": sent, "output_tokens": answered, "cached_tokens": cached}


def _parts(row: Mapping[str, Any]) -> list[tuple[dict[str, Any], int | None]]:
    """Every assertion's result in order, with the place of the set that it belongs to.

    promptfoo writes what a set or a script's answer consists of within it and once more behind it; what those of a
    script consist of, only within them.
    """
    found: list[tuple[dict[str, Any], int | None]] = []

    def add(listed: list[dict[str, Any]], within: int | None, depth: int = 0) -> None:
        at = 0
        while at < len(listed):
            part, inner = listed[at], _components(listed[at])
            again = listed[at + 1 : at + 1 + len(inner)]
            repeated = bool(inner) and [_seen(one) for one in again] == [_seen(one) for one in inner]
            place = len(found)
            found.append((part, within))
            if "assertion" not in part and depth < _DEEPEST:
                add(again if repeated else inner, place if within is None else within, depth + 1)
            at += 1 + (len(again) if repeated else 0)

    add(_components(row.get("gradingResult")), None)
    return found


_DEEPEST = 20


def _components(holder: Any) -> list[dict[str, Any]]:
    parts = mapping(holder).get("componentResults")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _seen(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repr(part.get(key)) for key in ("pass", "score", "reason"))


def _assertion(part: Mapping[str, Any], within: int | None) -> dict[str, Any]:
    given, more = mapping(part.get("assertion")), mapping(part.get("metadata"))
    of_set = mapping(more.get("assertionSet"))
    found = {
        "type": str(given.get("type") or "assert-set"),
        "target": "text",
        "expected": more.get("renderedAssertionValue", given.get("value")),
        "actual": None,
        "passed": part.get("pass") is True,
        "score": part.get("score"),
        "reason": str(part.get("reason") or ""),
        "weight": given.get("weight", of_set.get("weight")),
        "metric": given.get("metric", of_set.get("metric")),
        "threshold": given.get("threshold", of_set.get("threshold")),
    }
    if given and (parts := _components(part)):
        found["parts"] = parts
    return found if within is None else {**found, "set": within}


def _transcript(asked: Any, text: str, error: Any) -> list[dict[str, Any]]:
    entries = [("user", "" if asked is None else str(asked)), ("assistant", text)]
    found = [{"turn": 1, "kind": kind, "text": said} for kind, said in entries if said]
    return [*found, *([{"turn": 1, "kind": "error", "text": str(error)}] if error else [])]
