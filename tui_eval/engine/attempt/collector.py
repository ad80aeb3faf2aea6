"""From an agent's events to the transcript that is kept and the live text that viewers follow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from tui_eval import events
from tui_eval.agents.loose_json import split_metadata
from tui_eval.agents.models.finish_reasons import cut_off
from tui_eval.engine.places.attempt_place import AttemptLog
from tui_eval.guard import figures
from tui_eval.guard.masker import MaskedStream, Masker
from tui_eval.guard.text import clip, whole_characters
from tui_eval.model import Entry, EntryKind, Exchange, JudgeUse, Reply, Usage, Verdict
from tui_eval.store.encoding import encode_json
from tui_eval.store.schema import FOR_PERSON

CUT_OFF = "the answer was cut off at a limit of its length"
UNREADABLE = (
    "some bytes of the answer are no text and stand there as �: what must not be said may be among them"
)
COLOURED = (
    "the answer has a terminal's codes in it (colours): a word that they split is not found, nor is one that must not "
    "be said"
)
_PRINTED = 100_000  # characters kept of what people's code prints during one attempt
_LIVE_VALUE = 2000  # characters of arguments or a result shown live; all of it is in the transcript
_OF_TRIES = (events.Retrying, events.Exchanged)
_NO_ANSWER = (*_OF_TRIES, events.Held, events.Note)


class Collector:
    """Gathers one attempt. Its transcript is complete up to the last event, whatever happens next."""

    def __init__(self, writer: AttemptLog | None, attempt_ref: int, masker: Masker) -> None:
        self.entries: list[Entry] = []
        self.exchanges: list[Exchange] = []
        self.replies: list[Reply] = []
        self.stdout = ""
        self.retries = 0
        self.tool_calls = 0
        self.judging: JudgeUse | None = None
        self.verdicts: list[Verdict] = []
        """What had been judged when judging was cut off."""
        self.turn = 0
        self._writer = writer
        self._ref = attempt_ref
        self._masker = masker
        self._streams: dict[tuple[str, str], MaskedStream] = {}
        self._open: tuple[Entry, list[str]] | None = None
        self._calls: dict[str, Entry] = {}
        self._began = time.time() - time.perf_counter()
        self._turn_started = 0.0
        self._held_ms = 0.0
        self._last_text: Entry | None = None
        self._usage: dict[int, tuple[Usage, float | None]] = {}
        self._whole: tuple[Usage | None, float | None] | None = None
        """What `usage` last said; None since there is more."""
        self._spent_before: set[int] = set()
        self.spends = True
        """Whether what is answered now is spent now."""
        self._retrying = False
        self.asked_again = ""
        """Why the request of this turn was sent again, last; empty: it was not, or something of the answer has come."""
        self.unknown_figures: dict[str, str] = {}
        self._noted = 0

    def _now(self) -> float:
        """Seconds since the epoch, as if the machine's clock had not been set since the attempt began."""
        return self._began + time.perf_counter()

    def begin(self, turn: int, text: str | None) -> None:
        """A turn is sent: its user message enters the transcript."""
        self._close_text()
        self.turn = turn
        self._turn_started = self._now()
        self._held_ms = 0.0
        self._last_text = None
        self.asked_again = ""
        self.entries.append(Entry(turn=turn, kind="user", text=text or "", started_at=self._turn_started))
        if self._writer is not None:
            self._writer.turn(self._ref, turn)
            self._show("user", text or "")

    def adopt(
        self, entries: Sequence[Entry], replies: Sequence[Reply], *, spent_before: bool = False
    ) -> None:
        """Recorded turns become the beginning of this attempt. `spent_before`: their tokens are those of the attempt
        that they were recorded in."""
        if spent_before:
            self._spent_before.update(reply.turn for reply in replies)
            # That one of them came from the cache then is said there.
            replies = [msgspec.structs.replace(reply, cached=False) for reply in replies]
        self.entries.extend(entries)
        self.replies.extend(map(figures.reply, replies))
        self._whole = None
        self.tool_calls += sum(entry.kind == "tool_call" for entry in entries)
        self.turn = max((entry.turn for entry in entries), default=0)
        for entry in entries:
            if entry.kind == "note":
                figures.retell(entry.text)  # what was unknown then is unknown still
        self._noted = len(self.unknown_figures)
        for entry in entries:
            shown = entry.text or _shown(entry.arguments if entry.kind == "tool_call" else entry.result)
            self._show(entry.kind, shown, entry.agent, entry.name, entry.call_id or "")

    def judge_took(self, more: JudgeUse) -> None:
        """A model that judges has answered."""
        self.judging = figures.judge_use(self.judging, more)

    def limited(self, seconds: float | None) -> None:
        """So many seconds are left before the time limit ends the attempt (None: none does)."""
        if self._writer is not None:
            self._writer.limit(self._ref, None if seconds is None else self._now() + seconds)

    def unknown(self, name: str, line: str) -> None:
        """A figure from outside that could not be taken: a note after the turn, once for each kind."""
        self.unknown_figures.setdefault(name, line)

    def _note_unknown(self) -> None:
        if self._noted == len(self.unknown_figures):
            return
        for line in list(self.unknown_figures.values())[self._noted :]:
            self._add("note", text=line)
            self._show("note", line)
        self._noted = len(self.unknown_figures)

    def take(self, event: events.Event) -> None:
        """One event of the agent; its figures have been checked (`guard.figures`)."""
        if self._retrying and not isinstance(event, _OF_TRIES):
            self.goes_on()
        if self.asked_again and not isinstance(event, _NO_ANSWER):
            self.asked_again = ""
        match event:
            case events.TextDelta():
                self._text("assistant", event.text, event.agent)
            case events.Finished():  # what every attempt has comes before what few have
                self._finish(event.reply)
            case events.Exchanged():
                event.exchange.turn = event.exchange.turn or self.turn
                self.exchanges.append(event.exchange)
            case events.UsageReport():
                self._usage[self.turn] = (event.usage, event.cost)
                self._whole = None
                self._progress()
            case events.ReasoningDelta():
                self._text("reasoning", event.text, event.agent)
            case events.ToolCallStarted():
                self._close_text()
            case events.ToolCall():
                self._tool_call(event)
            case events.ToolResult():
                self._tool_result(event)
            case events.HandOff():
                self._add("hand_off", agent=event.agent, name=event.to, arguments=event.arguments)
                self._show("hand_off", _shown(event.arguments), event.agent, event.to)
            case events.Message():
                said = self._add("assistant", text=event.text, agent=event.agent)
                self._last_text = self._last_text if event.agent else said
                self._show("assistant", event.text, event.agent)
            case events.Note():
                self._add("note", text=event.text, agent=event.agent)
                self._show("note", event.text, event.agent, FOR_PERSON if event.for_person else "")
            case events.Retrying():
                self._retry(event)
            case events.Held():
                self._hold(event.seconds)

    def printed(self, text: str) -> None:
        """What people's code printed: shown while it runs, kept for the Raw tab."""
        text = text[: max(0, _PRINTED - len(self.stdout))]
        if text:
            self.stdout += text
            self._show("note", f"printed: {text.rstrip()}")

    def failed(self, message: str, answer: str = "") -> None:
        """The turn ended with an error; what was said so far stays."""
        self._close_text()
        answer = whole_characters(answer)
        if answer and not self._said(answer):
            self._add("assistant", text=answer)
        self._add("error", text=message, error=message)
        self._show("error", message)

    def close(self) -> None:
        """The attempt is over: the text that was still open enters the transcript."""
        self._close_text()
        self._note_unknown()

    def left_off(self) -> str:
        """What the agent had said itself in a turn that ended without a reply; nothing more of it comes."""
        self._close_text()
        if any(reply.turn == self.turn for reply in self.replies):
            return ""
        said = [
            entry.text
            for entry in self.entries
            if entry.turn == self.turn and entry.kind == "assistant" and not entry.agent and entry.text
        ]
        return said[-1] if said else ""

    @property
    def heard(self) -> bool:
        """Whether anything came of an agent, or was sent to a server."""
        said = any(entry.kind not in ("user", "note", "error") for entry in self.entries)
        return said or bool(self.replies or self.exchanges)

    @property
    def cached(self) -> list[Reply]:
        """The replies that came from the cache."""
        return [reply for reply in self.replies if reply.cached]

    def spent(self) -> tuple[Usage | None, float | None]:
        """As `usage`, of the turns that the agent was asked now; nothing where that takes nothing. Those of
        an earlier attempt count there; what came from the cache costs nothing, which is said where it is
        known that it had a price."""
        if not self.spends:
            return None, 0.0
        known = {reply.turn for reply in self.replies if reply.cached} | self._spent_before
        if not known:
            return self.usage()
        usage, cost = self._sums(known)
        if cost is None and len(known) == len(self.replies) and self.saved() is not None:
            cost = 0.0
        return usage, cost

    def saved(self) -> float | None:
        """What the replies from the cache cost when they were given (USD); None where that is not known."""
        return figures.total_amount([one.cost for one in self.cached], "cost saved")

    def usage(self) -> tuple[Usage | None, float | None]:
        """Tokens and cost (USD) of all turns; None where no turn said."""
        if self._whole is None:
            self._whole = self._sums(frozenset())
        return self._whole

    def _sums(self, without: AbstractSet[int]) -> tuple[Usage | None, float | None]:
        usages: list[Usage | None] = []
        costs: list[float | None] = []
        unanswered = self._usage.copy()
        for reply in self.replies:
            usage, cost = self._usage.get(reply.turn, (None, None))
            unanswered.pop(reply.turn, None)
            if reply.turn not in without:
                usages.append(reply.usage or usage)
                costs.append(cost if reply.cost is None else reply.cost)
        for usage, cost in unanswered.values():
            usages.append(usage)
            costs.append(cost)
        return figures.usage_sum(usages), figures.total_amount(costs, "cost of all requests")

    # One kind of event each

    def _text(self, kind: EntryKind, text: str, agent: str) -> None:
        if not text:
            return
        if self._open is not None:
            entry, pieces = self._open
            if entry.kind == kind and entry.agent == agent:
                pieces.append(text)
                self._show(kind, text, agent)
                return
            self._close_text()
        now = self._now()
        entry = Entry(turn=self.turn, kind=kind, agent=agent, started_at=now)
        entry.first_token_ms = round((now - self._turn_started) * 1000, 1)
        self.entries.append(entry)
        self._open = (entry, [text])
        self._show(kind, text, agent)

    def _close_text(self) -> None:
        if self._open is None:
            return
        entry, pieces = self._open
        self._open = None
        entry.text = whole_characters("".join(pieces))
        if entry.started_at is not None:
            entry.duration_ms = round((self._now() - entry.started_at) * 1000, 1)
        if entry.kind == "assistant":
            self._last_text = entry
        self._flush_stream(entry.kind, entry.agent)

    def _tool_call(self, event: events.ToolCall) -> None:
        entry = self._add(
            "tool_call", agent=event.agent, name=event.name, arguments=event.arguments, call_id=event.call_id
        )
        self._calls[event.call_id] = entry
        self.tool_calls += 1
        self._show("tool_call", _shown(event.arguments), event.agent, event.name, event.call_id)
        self._progress()

    def _tool_result(self, event: events.ToolResult) -> None:
        entry = self._add(
            "tool_result", agent=event.agent, name=event.name, result=event.result, error=event.error,
            call_id=event.call_id,
        )  # fmt: skip
        call = self._calls.get(event.call_id)
        if call is not None and call.started_at is not None and entry.started_at is not None:
            call.duration_ms = entry.duration_ms = round((entry.started_at - call.started_at) * 1000, 1)
        text = event.error if event.error is not None else _shown(event.result)
        self._show("tool_result", text, event.agent, event.name, event.call_id)

    def _retry(self, event: events.Retrying) -> None:
        self.retries += 1
        self.asked_again = event.reason
        wait = f"{event.seconds:.0f} s" if event.seconds >= 0.95 else f"{event.seconds * 1000:.0f} ms"
        again = f"again in {wait}" if event.seconds > 0 else "again"  # at once, or when a server pleases
        text = f"{event.reason}, {again}"
        self._add("note", text=f"retrying: {text}")
        self._retrying = True
        if self._writer is not None:
            status = event.reason.partition(" ")[0]
            short = status if len(status) == 3 and status.isdigit() else event.reason
            self._writer.retrying(self._ref, self._masker.text(f"{short}, {again}"))
        self._show("retry", text)

    def waits(self, detail: str) -> None:
        """What the attempt waits for before it asks, for those who look at it."""
        if self._writer is not None:
            self._retrying = True
            self._writer.waits(self._ref, detail)

    def goes_on(self) -> None:
        """It waits no more."""
        if self._retrying and self._writer is not None:
            self._writer.running_again(self._ref)
        self._retrying = False

    def waited(self, seconds: float) -> None:
        """So long it was not the agent's turn: its time in this turn is that much less."""
        self._turn_started += seconds
        self._held_ms += seconds * 1000

    def _hold(self, seconds: float) -> None:
        """The turn begins that much later; a short wait is not worth a word."""
        self.waited(seconds)
        if seconds >= 1 and self._writer is not None:
            self._retrying = True
            self._writer.retrying(self._ref, f"waits {seconds:.0f} s for the agent's rate")

    def _finish(self, reply: Reply) -> None:
        self._close_text()
        reply.text = whole_characters(reply.text)
        spent = max(0.0, (self._now() - self._turn_started) * 1000)
        # Measured from the turn's beginning it has what was waited in it; what an agent reports itself has not.
        if reply.latency_ms is None or spent < reply.latency_ms <= spent + self._held_ms + 1:
            reply.latency_ms = round(spent, 1)
        if reply.turn == 0:
            reply.turn = self.turn
        if reply.usage is None and reply.turn in self._usage:
            reply.usage = self._usage[reply.turn][0]
        if reply.text and not self._said(reply.text):
            # Nothing was streamed, or what was streamed is not the reply as the protocol states it.
            streamed = self._streamed_with(reply.text)
            if streamed is not None:
                streamed.text = reply.text
            else:
                seen = self._streamed_in_parts(reply.text)
                self._last_text = self._add("assistant", text=reply.text)
                if not seen:
                    self._show("assistant", reply.text)
        if self._last_text is not None:
            self._last_text.usage = reply.usage
        self.replies.append(reply)
        if cut_off(reply.finish_reason):
            # It is judged: what was to be found may be there. What must not be there could have come after the cut.
            self._add("note", text=f"{CUT_OFF} (finish reason {reply.finish_reason})")
            self._show("note", CUT_OFF)
        if "�" in reply.text:
            self._add("note", text=UNREADABLE)
            self._show("note", UNREADABLE)
        if "\x1b[" in reply.text:
            self._add("note", text=COLOURED)
            self._show("note", COLOURED)
        if reply.cached or self._usage.get(reply.turn) != (reply.usage, reply.cost):  # else it was reported
            self._whole = None
            self._progress()
        self._note_unknown()

    def _said(self, text: str) -> bool:
        return self._last_text is not None and not self._last_text.agent and self._last_text.text == text

    def _streamed_with(self, text: str) -> Entry | None:
        """What was streamed as a reply, blanks apart, or last of all with metadata at its end that its agent
        took out of it: it was said once."""
        last = self._last_text
        if last is None or last.agent or last.kind != "assistant":
            return None
        streamed, text = last.text.strip(), text.strip()
        if streamed == text or (self.entries[-1] is last and split_metadata(streamed)[0].strip() == text):
            return last
        return None

    def _streamed_in_parts(self, text: str) -> bool:
        """Whether viewers have seen a reply, with calls between its parts."""
        parts = (
            e.text for e in self.entries if e.turn == self.turn and e.kind == "assistant" and not e.agent
        )
        return "".join(parts) == text

    def _add(self, kind: EntryKind, **values: Any) -> Entry:
        self._close_text()
        entry = Entry(turn=self.turn, kind=kind, started_at=self._now(), **values)
        self.entries.append(entry)
        return entry

    # What viewers see meanwhile

    def _progress(self) -> None:
        if self._writer is not None:
            usage, _ = self.spent()
            tokens = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
            self._writer.progress(self._ref, tokens, self.tool_calls)

    def _show(self, kind: str, text: str, agent: str = "", name: str = "", call_id: str = "") -> None:
        if self._writer is None:
            return
        if self._masker:
            if kind in ("assistant", "reasoning"):
                # A secret may be cut between two pieces: what could be its beginning waits.
                stream = self._streams.get((kind, agent))
                if stream is None:
                    stream = self._streams[kind, agent] = self._masker.stream()
                text = stream.feed(text)
                if not text:
                    return
            else:
                text = self._masker.text(text)
        self._writer.live(self._ref, kind, text, agent, name, call_id)

    def _flush_stream(self, kind: str, agent: str) -> None:
        stream = self._streams.pop((kind, agent), None)
        if stream is not None and self._writer is not None:
            rest = stream.flush()
            if rest:
                self._writer.live(self._ref, kind, rest, agent)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else encode_json(value).decode()
    return clip(text, _LIVE_VALUE)
