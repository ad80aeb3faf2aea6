"""Tool calls with their results: paired by call id, or by order where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_eval.model import Entry


@dataclass(slots=True, eq=False)
class PairedCall:
    """One tool call of a transcript. `call` and `result` are the entries' places in it (None where
    there is no such entry); `apart` says that other things happened between them."""

    entry: Entry
    call: int | None
    result_entry: Entry | None = None
    result: int | None = None
    apart: bool = False

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.entry.name or (self.result_entry.name if self.result_entry else "")

    @property
    def error(self) -> str | None:
        """What the tool failed with."""
        return self.entry.error or (self.result_entry.error if self.result_entry else None)

    @property
    def duration_ms(self) -> float | None:
        """Milliseconds from the call to its result, as far as the agent let us see."""
        call, result = self.entry, self.result_entry
        if call.duration_ms is not None:
            return call.duration_ms
        if result is None:
            return None
        if result.duration_ms is not None:
            return result.duration_ms
        if call.started_at and result.started_at and result.started_at >= call.started_at:
            return (result.started_at - call.started_at) * 1000
        return None


def pair(entries: Sequence[Entry]) -> list[PairedCall]:
    """All calls in order. A result without a call stands as a call of its own."""
    calls: list[PairedCall] = []
    open_calls: list[PairedCall] = []
    for index, entry in enumerate(entries):
        if entry.kind == "tool_call":
            calls.append(PairedCall(entry, index))
            open_calls.append(calls[-1])
        elif entry.kind == "tool_result":
            call = _call_for(entry, open_calls)
            if call is None:
                calls.append(PairedCall(entry, None, entry, index, apart=True))
                continue
            open_calls.remove(call)
            call.result_entry, call.result = entry, index
            between = entries[(call.call or 0) + 1 : index]
            call.apart = any(e.kind not in ("tool_call", "tool_result") for e in between)
    return calls


def _call_for(result: Entry, open_calls: list[PairedCall]) -> PairedCall | None:
    if result.call_id:
        return next((call for call in open_calls if call.entry.call_id == result.call_id), None)
    unnamed = [call for call in open_calls if not call.entry.call_id and call.entry.turn == result.turn]
    return next((call for call in unnamed if call.entry.name == result.name or not result.name), None)


def calls_of(entries: Sequence[Entry]) -> dict[int, PairedCall]:
    """The call that each call's and each result's entry belongs to, by the entry's place."""
    found: dict[int, PairedCall] = {}
    for call in pair(entries):
        for index in (call.call, call.result):
            if index is not None:
                found[index] = call
    return found


def in_reading_order(entries: Sequence[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """Entries with each result right after its call where only calls and results lie between."""
    by_index = dict(entries)
    calls = [call for call in pair([entry for _, entry in entries]) if not call.apart]
    places = [index for index, _ in entries]
    follows = {places[c.call]: places[c.result] for c in calls if c.call is not None and c.result is not None}
    moved = set(follows.values())
    ordered: list[tuple[int, Entry]] = []
    for index, entry in entries:
        if index in moved:
            continue
        ordered.append((index, entry))
        if index in follows:
            ordered.append((follows[index], by_index[follows[index]]))
    return ordered
