"""The expected query and the agent's own beside each other, and which of the two steps went wrong.

Pure: the caller runs the queries (`frames.sql.execute`: read-only, limited).
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.query_words import changes_each_time, limits_rows
from tui_eval.frames.sql_faults import SqlFault
from tui_eval.guard.spelling import some_of

if TYPE_CHECKING:
    import polars as pl

    from tui_eval.frames.compare import FrameComparison
    from tui_eval.frames.databases import SqlResult
    from tui_eval.frames.mended_queries import MendedQuery
    from tui_eval.model import DataDetails

T = TypeVar("T")
Asking = Generator[str, "SqlResult | None", T]
"""Queries that the caller runs one after the other, each sent its rows (None: it gives nothing here), and what comes of
all of them."""
Blame = Literal["query", "retold", "both", "lucky", "neither", "ties", "unknown"]
_LONGEST = 20_000
"""Characters of a query that is formatted; a longer one stays as it is."""
_WIDE = 80


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Whether the query was wrong or what the agent made of its rows.

    `blame` is `query` (its rows are not the expected ones, and the answer has them), `retold` (its rows are
    right, the answer has others), `both` (the answer has what is wrong of its rows, and more is wrong),
    `lucky` (the query is wrong, the answer is right), `neither`, `ties` (the answer is as right as what is
    expected, whose LIMIT cuts through rows that tie: `CutTies`), or `unknown`: it cannot be run or compared
    here, or nothing shows that the answer was made of its rows as they are; `line` says why. `renamed` are
    the query's columns that were read as expected ones of other names, `cause` the mistake that was found in
    it. Of a query that failed `place` is its line and the caret under it, as the database shows them.
    """

    blame: Blame
    line: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    cause: str = ""
    place: Sequence[str] = ()

    @property
    def short(self) -> str:
        """The line for a narrow screen, the step that went wrong first."""
        if self.cause:
            return f"{_VERIFIED if self.line.startswith(_VERIFIED) else _WRONG}{self.cause}"
        if self.line.startswith((_WRONG, _RIGHT)):
            return _SHORT.get(self.blame) or self.line
        return next((words for begins, words in _SHORTER if self.line.startswith(begins)), self.line)

    def caused_by(self, query: MendedQuery) -> Conclusion:
        """The same, and the mistake without which the query gives the expected rows, in place of what differs."""
        rest = self.line.rpartition("; ")[2] if self.blame == "query" else _OTHERS
        blame: Blame = "query" if self.blame == "query" else "both"
        words = f"{query.mistake} ({query.instead}, it gives the expected rows)"
        return replace(self, blame=blame, line=f"{_WRONG}{words}; {rest}", cause=query.mistake)

    @property
    def accuses(self) -> bool:
        """Whether a query is called wrong."""
        return self.line.startswith(_WRONG)

    @property
    def by_rows_alone(self) -> bool:
        """Whether a query is called wrong, and which mistake it has is not known."""
        return self.accuses and not self.cause

    @property
    def settled(self) -> bool:
        """Whether it was concluded for good, not for want of a database or of a query that can be run."""
        return not self.line.startswith(NOT_RUN)

    def over_chance(self, words: str) -> Conclusion:
        """The same where the expected query takes any of several rows (`chance_in`): others of them may be as right."""
        return replace(self, blame="unknown", line=f"{words}: whether the agent's is wrong cannot be said")

    def of_verification(self, *, right: bool) -> Conclusion:
        """The same of a query with which the agent's server made the answer of what the agent's own queries gave: it is
        not theirs. `right`: one of these gives the expected rows."""
        if right:
            line = f"{_RIGHT}the verification query makes others of them"
            return replace(self, blame="retold", line=line, cause="")
        return replace(self, line=self.line.replace(_WRONG, _VERIFIED, 1))


NOT_RUN = "the agent's query cannot be run here: "
_WRONG = "its query is wrong: "
_VERIFIED = "its query, or the one that verifies it, is wrong: "
_RIGHT = "its query gives the right rows: "
_OTHERS = "the answer has other rows than it, too"
_UNSAID = "its query gives other rows than expected ("
_FINER = "its query gives finer rows ("
_INSIDE, _IN = "inside of the expected query ", "in the expected query "
_THEN = "its query gives the expected rows here, others when the agent ran it"
_TIES_UNKNOWN = (
    "the expected query takes a part of its rows, and which of them tie is not known without its database"
)
_SHORTER = (
    (_UNSAID, "cannot be said: its query gives other rows, the answer others again"),
    (_FINER, "its query gives finer rows, which add up to the expected ones"),
    (_VERIFIED, "its query, or the one that verifies it, is wrong"),
    (_THEN, "its query gave the agent other rows than it gives here"),
    (_INSIDE, "cannot be said: inside of the expected query ties are cut through"),
    (_IN, "cannot be said: the expected query takes any of rows that tie"),
    (_TIES_UNKNOWN, "cannot be said: which of the expected query's rows tie is not known"),
)
"""Shorter words for the lines that begin so."""
_SHORT: dict[Blame, str] = {
    "query": "its query is wrong, the answer has its rows",
    "retold": "retold wrongly: its query gives the right rows",
    "both": "its query is wrong, and the answer differs from it",
}


def conclude(
    expected: SqlResult | pl.DataFrame | Sequence[dict[str, Any]],
    own: SqlResult | pl.DataFrame | Sequence[dict[str, Any]] | SqlFault | None,
    answer: Sequence[dict[str, Any]] | pl.DataFrame | SqlResult | None,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    *,
    reference: bool = False,
) -> Conclusion:
    """One line about where the answer went wrong, from the rows of the expected query, of the agent's own and
    of its answer.

    Args:
        own: the rows of the agent's query, or why it could not be run; None: it is not known.
        columns: the expected columns (default: all of `expected`).
        reference: by the rules of nao itself, as a case is judged under `compat: reference`.
    """
    if own is None:
        return Conclusion("unknown", "the agent's query is not in the record")
    if isinstance(own, SqlFault):
        why = own.told or "no reason given"
        return Conclusion("unknown", f"{NOT_RUN}{why}", place=own.shown_place)
    compare = _by_reference if reference else _by_documents
    wanted, given = _frame(expected), _frame(own)
    names = list(columns or _names(wanted))
    best: FrameComparison | None = None
    renamed: dict[str, str] = {}
    for mapping in _mappings(names, _names(given)):
        found = compare(
            _typed(own, mapping) if reference else _renamed(given, mapping), expected, settings, columns
        )
        if found.passed is None:
            return Conclusion("unknown", f"the agent's query cannot be judged: {found.message}")
        best, renamed = found, mapping
        if found.passed:
            break
    assert best is not None
    right = compare(answer, expected, settings, columns)
    if best.passed:
        if right.passed:
            return Conclusion("neither", "the agent's query and its answer give the expected rows", renamed)
        if renamed and compare(answer, _typed(own, {}), settings, _names(given)).passed:
            names = some_of([f"{wanted} as {name}" for name, wanted in renamed.items()], 3)
            line = f"its query gives the right rows but for names ({names}); the answer has its rows"
            return Conclusion("query", line, renamed)
        return Conclusion("retold", f"{_RIGHT}the answer retold them wrongly", renamed)
    if right.passed:
        return Conclusion(
            "lucky", f"its query gives other rows ({best.message}), the answer is right all the same", renamed
        )
    told = set(_names(_frame(answer)))
    for mapping in _mappings(names, _names(given)):
        kept = [name for name in names if name in mapping.values() or name in _names(given)]
        if not kept or not told.intersection(names) <= {*kept}:
            continue  # what the answer has beyond it comes from elsewhere
        if compare(answer, _typed(own, mapping), settings, kept).passed:
            if _adds_up(expected, _typed(own, mapping), settings, columns):
                line = f"{_FINER}{best.message}), which add up to the expected ones; the answer has them"
                return Conclusion("query", line, mapping)
            return Conclusion("query", f"{_WRONG}{best.message}; the answer has its rows", mapping)
    if any(
        _comes_of(expected, _typed(own, mapping), answer, settings, names)
        for mapping in _mappings(names, _names(given))
    ):
        return Conclusion("both", f"{_WRONG}{best.message}; {_OTHERS}", renamed)
    if _adds_up(expected, _typed(own, renamed), settings, columns):
        line = f"{_FINER}{best.message}), which add up to the expected ones; the answer has others"
        return Conclusion("unknown", line, renamed)
    line = f"{_UNSAID}{best.message}), the answer others again: which of both went wrong cannot be said"
    return Conclusion("unknown", line, renamed)


def as_it_was_given(
    found: Conclusion,
    expected: Any,
    given: Sequence[dict[str, Any]] | None,
    answer: Any,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    *,
    reference: bool = False,
) -> Conclusion:
    """What was concluded of a query's rows here, where the answer has those that it gave the agent (`given`, None: the
    record does not have them) and they were others: nothing was retold wrongly."""
    if given is None or found.blame not in ("retold", "both", "unknown"):
        return found
    then = conclude(expected, given, answer, settings, columns, reference=reference)
    if then.blame != "query":
        return found
    if found.blame == "retold":
        return replace(found, blame="unknown", line=f"{_THEN}: rows that tie, or other data")
    return then


def _adds_up(
    expected: Any, own: Any, settings: ComparisonSettings | None, columns: Sequence[str] | None
) -> bool:
    """Whether the expected rows are sums of a query's."""
    from tui_eval.frames.diagnosis import granularity
    from tui_eval.frames.difference import align

    found = align(expected, own, settings, columns)
    if found.missing_columns or found.lengths[0] >= found.lengths[1]:
        return False
    coarse = granularity.granularity(found)
    return coarse is not None and coarse.explained == coarse.total


def _comes_of(
    expected: Any, own: Any, answer: Any, settings: ComparisonSettings | None, names: Sequence[str]
) -> bool:
    """Whether an answer was made of a query's rows as they are: it has most of what is wrong among them, or lacks what
    they lack. Else that query may have been a look at something else, or one of which the answer was worked out."""
    import polars as pl

    from tui_eval.frames.difference import align

    known = set(_names(_frame(own)))
    shared = [name for name in names if name in known.intersection(_names(_frame(answer)))]
    if not shared:
        return False
    wanted, taken = align(expected, own, settings, shared), align(own, answer, settings, shared)
    e_rows, own_rows = wanted.aligned()
    taken_rows = taken.aligned()[0]
    alike = (
        taken.same_cells().with_columns(taken_rows.alias("\0")).filter(taken_rows.is_not_null()).sort("\0")
    )
    differs = wanted.same_cells().select(pl.all().not_())
    there = own_rows.is_not_null()
    both = e_rows.is_not_null() & there
    at = own_rows.filter(both)
    wrong = kept = 0
    for name in shared:
        apart = at.filter(differs.get_column(name).filter(both))
        wrong += len(apart)
        kept += int(alike.get_column(name).gather(apart).sum())
    extra = own_rows.filter(there & e_rows.is_null())
    wrong += len(extra)
    whole = alike.select(pl.all_horizontal(shared)).to_series()
    kept += int(whole.gather(extra).sum())
    if wrong:
        return kept * 2 > wrong
    lacking = e_rows.filter(own_rows.is_null())
    if not len(lacking) or int(whole.sum()) * 2 <= len(whole):
        return False
    e_told, a_told = align(expected, answer, settings, shared).aligned()
    return int(e_told.filter(a_told.is_null()).is_in(lacking.implode()).sum()) * 2 > len(lacking)


def changing_conclusion(expected: str | None) -> Conclusion | None:
    """What is said of an expected query that gives other rows each time: nobody can be blamed; None: it does not."""
    if not changes_each_time(expected):
        return None
    return Conclusion("unknown", "the expected query does not give the same rows each time")


def over_ties(
    sql: str | None,
    expected: SqlResult,
    own: SqlResult | SqlFault | None,
    answer: Any,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    *,
    reference: bool = False,
) -> Asking[Conclusion | None]:
    """What is concluded where the LIMIT of the expected query `sql` cuts through rows that tie: nobody is to blame for
    others of these, and a query that gives others of them is right; None: it does not, or neither the answer nor its
    query gives such rows."""
    from tui_eval.frames.tied_rows import cut_ties, query_of_ties

    asked = query_of_ties(sql, expected, expected.dialect) if sql else None
    every = (yield asked.sql) if asked is not None else None
    ties = cut_ties(asked, every) if asked is not None and every is not None else None
    if ties is None or not ties.allow(expected, settings, columns):
        return None
    if ties.allow(answer, settings, columns):
        return Conclusion("ties", ties.line)
    if own is None or isinstance(own, SqlFault) or not ties.allow(own, settings, columns):
        return None
    return conclude(own, own, answer, settings, columns, reference=reference)


def with_cause(
    found: Conclusion,
    sql: str | None,
    own: str | None,
    expected: SqlResult,
    dialect: str,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    *,
    reference: bool = False,
) -> Asking[Conclusion]:
    """The same with its cause: a usual mistake of the agent's query `own`, else what in the expected one, `sql`, takes
    any of several rows, else a clause that is not the expected query's. Without `own`, whose rows nobody has, the
    second alone."""
    from tui_eval.frames.tied_rows import chance_in

    def mended(clauses: bool) -> Asking[Conclusion]:
        from tui_eval.frames.mended_queries import MENDING_SECONDS

        began = time.monotonic()
        for query in to_mend(found, sql, own, dialect, clauses=clauses) if own is not None else ():
            if time.monotonic() - began > MENDING_SECONDS:
                break
            given = yield query.sql
            if given is not None and gives_expected(given, expected, settings, columns, reference=reference):
                return found.caused_by(query)
        return found

    found = yield from mended(False)
    if found.by_rows_alone and sql and (words := (yield from chance_in(sql, expected, expected.dialect))):
        return found.over_chance(words)
    # After it: a clause may be what takes any of several rows.
    return (yield from mended(True))


def to_mend(
    found: Conclusion, expected: str | None, own: str, dialect: str = "duckdb", *, clauses: bool = False
) -> list[MendedQuery]:
    """The agent's query without its usual mistakes, or with clauses of the expected one, where it is wrong: the first
    that `gives_expected` was the cause."""
    if found.cause or not found.line.startswith((_WRONG, _UNSAID)) or not expected:
        return []
    from tui_eval.frames.compare import OUT_OF_ORDER
    from tui_eval.frames.mended_queries import mended, with_clauses

    if clauses:
        # A query of other rows, of which the answer shows nothing, may have been a look at them: it is not called
        # wrong for having looked at more of them, or at fewer.
        return with_clauses(own, expected, dialect) if found.accuses else []
    return mended(own, expected, dialect, ordered=OUT_OF_ORDER in found.line)


def gives_expected(
    own: SqlResult,
    expected: Any,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    *,
    reference: bool = False,
) -> bool:
    """Whether a query gives the expected rows, by `conclude`'s rules."""
    compare = _by_reference if reference else _by_documents
    names = list(columns or _names(_frame(expected)))
    given = (_typed(own, mapping) for mapping in _mappings(names, _names(_frame(own))))
    return any(compare(one, expected, settings, columns).passed for one in given)


def made_of(
    own: SqlResult,
    expected: Any,
    renamed: Mapping[str, str],
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
) -> bool:
    """Whether a right answer may have been made of the rows of a query that gives others: these have the expected ones
    among them, are finer, or are rounded, scaled and the like; or it lacks some of their columns. Else the answer does
    not come from it."""
    from tui_eval.frames.diagnosis import diagnosis_of
    from tui_eval.frames.difference import align

    found = align(expected, _typed(own, renamed), settings, columns)
    if found.missing_columns:
        return True
    e_rows, a_rows = found.aligned()
    apart = set(found.differing_cells())
    if not a_rows.null_count() and not apart:
        return True
    findings = diagnosis_of(found).findings
    if any(one.code == "granularity" for one in findings):
        return True
    whole = [one for one in findings if one.conclusive and one.explained == one.total]
    return (
        not e_rows.null_count()
        and not a_rows.null_count()
        and apart <= {n for one in whole for n in one.columns}
    )


def kept_conclusion(details: DataDetails) -> Conclusion | None:
    """What was concluded when an answer was judged, as its record has it; None: nothing was."""
    kept = details.settings.get("conclusion")
    if not isinstance(kept, Mapping) or kept.get("blame") not in get_args(Blame):
        return None
    line, cause = (" ".join(str(kept.get(name) or "").split()) for name in ("line", "cause"))
    place = kept.get("place")
    shown = [str(one) for one in place[:2]] if isinstance(place, list) else []
    return Conclusion(kept["blame"], line, cause=cause, place=shown)


def recorded_conclusion(
    details: DataDetails,
    own: str | None,
    rows: Sequence[dict[str, Any]] | None,
    *,
    ties_known: bool = False,
) -> Conclusion | None:
    """What was concluded when an answer was judged, else what its record alone lets one conclude; None: nothing. No
    query is run.

    Args:
        own: the agent's query.
        rows: what that gave when the agent ran it, all of it; None: the record does not have these.
        ties_known: the caller sees to rows that tie where the expected query takes a part of them: without a database
            these are not known, and no query is called wrong for others of them.
    """
    kept = kept_conclusion(details)
    if (kept is not None and kept.settled) or changes_each_time(details.reference_sql):
        return kept or changing_conclusion(details.reference_sql)
    if not own or not details.comparison or not details.expected or details.actual is None:
        return kept
    if details.settings.get("truncated"):
        return kept
    if rows is None and formatted(own) == formatted(details.reference_sql or ""):
        rows = details.expected
    if rows is None:
        return kept
    found = conclude(
        details.expected,
        list(rows),
        details.actual,
        ComparisonSettings.kept(details.settings),
        details.columns or None,
        reference=details.settings.get("compat") == "reference",
    )
    if found.accuses and not ties_known and limits_rows(details.reference_sql):
        return kept or Conclusion("unknown", f"{_TIES_UNKNOWN}: whether the agent's is wrong cannot be said")
    return found if found.blame in ("query", "retold", "both") else kept


def _by_documents(
    actual: Any, expected: Any, settings: ComparisonSettings | None, columns: Sequence[str] | None
) -> FrameComparison:
    from tui_eval.frames.compare import compare

    return compare(actual, expected, settings, columns)


def _by_reference(
    actual: Any, expected: Any, settings: ComparisonSettings | None, columns: Sequence[str] | None
) -> FrameComparison:
    from tui_eval.frames.nao_reference import compare

    names = columns or _names(_frame(expected))
    types, dialect = getattr(expected, "types", None), getattr(expected, "dialect", "duckdb")
    return compare(_records(actual), _records(expected) or [], settings, names, types=types, dialect=dialect)


def _records(side: Any) -> list[dict[str, Any]] | None:
    """A side as the rows that nao would have been sent."""
    from tui_eval.frames.sql import SqlResult, rows

    if getattr(side, "frame", None) is not None:
        return rows(side)
    return rows(SqlResult(list(side.columns), side), finite=False) if hasattr(side, "to_dicts") else side


def _frame(side: Any) -> Any:
    frame = getattr(side, "frame", None)
    return side if frame is None else frame


def _names(side: Any) -> list[str]:
    from tui_eval.frames.typed_columns import column_names

    return column_names(side)


def _mappings(wanted: list[str], given: list[str]) -> list[dict[str, str]]:
    """Ways to read an answer's columns as the expected ones (from its name to theirs): as they are called,
    then, what is left, by their order."""
    lower = {name.casefold(): name for name in wanted}
    same = {
        name: lower[name.casefold()]
        for name in given
        if name not in wanted and name.casefold() in lower and lower[name.casefold()] not in given
    }
    left_wanted = [name for name in wanted if name not in given and name not in same.values()]
    left_given = [name for name in given if name not in wanted and name not in same]
    found = [same]
    if left_wanted and len(left_given) >= len(left_wanted):
        found.append(same | dict(zip(left_given, left_wanted, strict=False)))
    return found


def _renamed(side: Any, mapping: Mapping[str, str]) -> Any:
    if not mapping:
        return side
    if hasattr(side, "rename"):
        return side.rename(dict(mapping))
    return [{mapping.get(name, name): value for name, value in row.items()} for row in side]


def _typed(own: Any, mapping: Mapping[str, str]) -> Any:
    """The rows of a query with columns renamed, its types with them: a date is kept as one."""
    if getattr(own, "frame", None) is None:
        return _renamed(own, mapping)
    return replace(
        own,
        columns=[mapping.get(name, name) for name in own.columns],
        frame=_renamed(own.frame, mapping),
        types={mapping.get(name, name): kind for name, kind in own.types.items()},
        order_columns=tuple(mapping.get(name, name) for name in own.order_columns),
    )


def formatted(sql: str, dialect: str = "duckdb") -> str:
    """A query as sqlglot prints it, keywords large, one clause a line, so that two can be compared line by
    line; one that cannot be parsed stays as it is, without what all its lines are indented by."""
    plain = textwrap.dedent(sql.expandtabs(4)).strip().rstrip(";").rstrip()
    if len(plain) > _LONGEST:
        return plain
    import sqlglot
    from sqlglot import errors

    try:
        made = sqlglot.transpile(plain, read=dialect, write=dialect, pretty=True, max_text_width=_WIDE)
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return plain
    return ";\n".join(one for one in made if one) or plain


@dataclass(frozen=True, slots=True)
class QueryLine:
    """A line of both queries: None where that side has none; `same` where they do not differ."""

    expected: str | None
    actual: str | None
    same: bool


def beside(expected: str, actual: str, dialect: str = "duckdb") -> list[QueryLine]:
    """Both queries, formatted alike, line beside line."""
    left, right = formatted(expected, dialect).splitlines(), formatted(actual, dialect).splitlines()
    lines: list[QueryLine] = []
    for kind, e_from, e_to, a_from, a_to in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for index in range(max(e_to - e_from, a_to - a_from)):
            e = left[e_from + index] if e_from + index < e_to else None
            a = right[a_from + index] if a_from + index < a_to else None
            lines.append(QueryLine(e, a, kind == "equal"))
    return lines
