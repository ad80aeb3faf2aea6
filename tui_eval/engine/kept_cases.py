"""Cases as a run keeps them: secrets that a suite's providers and graders are given do not reach the disk
(design.md, point 8).

Who goes on with such a run takes them from the suite again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.case_names import without_number
from tui_eval.engine.plan import Job
from tui_eval.formats import format_of, reading
from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK
from tui_eval.model import Case, Problem, Suite
from tui_eval.store.encoding import encode_json
from tui_eval.store.planned_cases import held
from tui_eval.store.schema import StoredCase

if TYPE_CHECKING:
    from tui_eval.engine.run_context import RunContext

_AT_ONCE = 256
"""Cases that are looked through together."""


class KeptCases:
    """Takes the secrets out of cases. Cheap where there are none, and for many cases of one provider."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._known: dict[str, list[Any]] = {}
        self._before: tuple[Any, Case | bytes] = None, b""

    def held(self, job: Job) -> Case | bytes:
        """A job's case as `kept`, packed where the job holds it so."""
        if job.held is not self._before[0]:  # the columns of a case follow one another
            case = job.case
            kept = self.kept(case)
            packed = isinstance(job.held, bytes)
            self._before = job.held, job.held if kept is case else held(kept) if packed else kept
        return self._before[1]

    def kept(self, case: Case) -> Case:
        """The case without secrets, those of its own provider and of its graders included."""
        self.learn(case)
        masker = self._masker
        if not masker:
            return case
        body = encode_json(case).decode()
        if masker.text(body) == body:
            return case
        return msgspec.convert(masker.value(msgspec.json.decode(body)), Case)

    def kept_all(self, cases: Sequence[Case]) -> list[Case]:
        """As `kept`, the secrets of all of them taken out of each; quick where hardly any has one."""
        for case in cases:
            self.learn(case)
        found: list[Case] = []
        for start in range(0, len(cases) if self._masker else 0, _AT_ONCE):
            some = cases[start : start + _AT_ONCE]
            body = encode_json(some).decode()
            found += some if self._masker.text(body) == body else map(self.kept, some)
        return found if self._masker else list(cases)

    def learn(self, case: Case) -> None:
        """Have the secrets of a case's own provider and of its graders masked from now on."""
        its_format = format_of(case.format)
        given = [one for one in its_format.providers(case) if isinstance(one, dict)]
        # Cases of one provider follow one another, and those of several take turns.
        name = f"{case.suite} {case.agent}"
        if not given or self._known.get(name) == given:
            return
        self._known[name] = given
        for provider in given:
            self._masker.add_values(provider)
            for value in its_format.secrets(provider):
                self._masker.add(value)


def of_today(recorded: Iterable[Case | StoredCase], today: Iterable[Case]) -> dict[tuple[str, str], Case]:
    """Of recorded cases, by id and content hash, what they are today. Cases that differ in nothing but a secret are
    told apart in their ids by a number alone, which is another's where one was added or taken out: such a case is the
    one of the same content, else the one of its id where no other of them came or went. Of one run, all of whose cases
    are known: stricter than `store.case_state.by_content`, by which lists show what of many runs may be a case's, since
    a secret is taken, and an answer judged, by what is found here."""
    now: dict[str, list[Case]] = {}
    for one in today:
        now.setdefault(_without_number(one.case_id), []).append(one)
    then: dict[str, dict[tuple[str, str], None]] = {}
    for case in recorded:
        then.setdefault(_without_number(case.case_id), {})[case.case_id, case.content_hash] = None
    found: dict[tuple[str, str], Case] = {}
    for name, keys in then.items():
        left = list(now.get(name, ()))
        for key in keys:
            same = [one for one in left if one.content_hash == key[1]]
            if same:
                found[key] = next((one for one in same if one.case_id == key[0]), same[0])
                left.remove(found[key])
        open_keys = [key for key in keys if key not in found]
        by_id = {one.case_id: one for one in left}
        if MASK not in name or len(open_keys) == len(left):
            found.update((key, by_id[key[0]]) for key in open_keys if key[0] in by_id)
    return found


def _without_number(case_id: str) -> str:
    return without_number(case_id) if MASK in case_id else case_id


def is_masked(case: Case) -> bool:
    """Whether something is masked in a case, apart from its id and what lists call it, which never hold a secret."""
    return MASK.encode() in encode_json(msgspec.structs.replace(case, case_id="", variant="", prompt=None))


def restored(case: Case, today: Case, masker: Masker) -> Case:
    """A recorded case with what is masked in it taken from the case as it is today, where that is the same
    otherwise."""
    now = msgspec.json.decode(encode_json(today))
    hidden = msgspec.json.decode(encode_json(KeptCases(masker).kept(today)))
    found = _restored_value(msgspec.json.decode(encode_json(case)), hidden, now)
    return msgspec.convert(found, Case)


def _restored_value(recorded: Any, hidden: Any, now: Any) -> Any:
    if isinstance(recorded, str):
        return now if MASK in recorded and recorded == hidden else recorded
    if isinstance(recorded, dict) and isinstance(hidden, dict) and isinstance(now, dict):
        return {key: _restored_value(value, hidden.get(key), now.get(key)) for key, value in recorded.items()}
    lists = isinstance(recorded, list) and isinstance(hidden, list) and isinstance(now, list)
    if lists and len(recorded) == len(hidden) == len(now):
        return [_restored_value(*three) for three in zip(recorded, hidden, now, strict=True)]
    return recorded


def with_secrets(
    cases: dict[int, Case], rows: Iterable[StoredCase], loaded: Mapping[str, Suite], environment: RunContext
) -> dict[int, Case]:
    """The recorded cases with the secrets in them, which are not recorded, from today's suites. One that cannot be had
    whole is an error: asked and judged with the mask it would be another case, which may pass."""
    wanted = {ref: case for ref, case in cases.items() if is_masked(case)}
    if not wanted:
        return cases
    suites = {path: loaded[path] for path in {case.suite for case in wanted.values()} if path in loaded}
    config, trust, masker = environment.config, environment.trust, environment.masker
    for case in wanted.values():
        if case.suite not in suites:
            suites[case.suite] = reading.load(config.root / case.suite, config, trust)
    ids = {case.case_id for case in wanted.values()}
    in_an_id = any(MASK in one for one in ids)
    of_suites = reading.all_cases(suites.values()) if in_an_id else reading.with_ids(suites.values(), ids)
    today = of_today((row for row in rows if row.suite in suites), of_suites)
    whole = {
        ref: _whole(case, today.get((case.case_id, case.content_hash)), masker)
        for ref, case in wanted.items()
    }
    return {**cases, **whole}


def _whole(case: Case, now: Case | None, masker: Masker) -> Case:
    """A recorded case with its secrets, from what it is today; else with the problem that it lacks them."""
    if now is not None:
        found = restored(case, now, masker)
        if not is_masked(found) or is_masked(now):  # it may be the case's own text
            return found
        if now.content_hash == case.content_hash:
            return now
    problem = Problem(
        case.suite, case.line, case.name, "a secret in it is in no record, and the suite does not have it as it was",
        "run the case anew",
    )  # fmt: skip
    return msgspec.structs.replace(case, problems=[*case.problems, problem])
