"""Networks of agents: which entries of a transcript belong to which hand-off, whatever ran beside what.

A hand-off names whom it calls, and what a helper says or calls carries the helper's name; where helpers run at the
same time their entries come mixed. Here each stands below the hand-off that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tui_eval.model import Entry
from tui_eval.tui.state.case.tool_pairing import in_reading_order


@dataclass(slots=True, eq=False)
class AgentNode:
    """A hand-off and what its helper did, in order: entries by their places, and its own hand-offs. `index` is the
    hand-off's place (-1: the agent in front, to whom nothing was handed); `answer` the place of the helper's last
    words, which are not among `children`."""

    index: int = -1
    depth: int = 0
    children: list[int | AgentNode] = field(default_factory=list)
    answer: int | None = None
    caller: AgentNode | None = None
    """Whose hand-off it is; None: the agent's in front."""


class HandOffs:
    """The hand-offs of a turn so far, and whose work is whose."""

    def __init__(self) -> None:
        self._called: list[tuple[str, str, AgentNode]] = []

    def add(self, caller: str, name: str, index: int) -> AgentNode:
        """A hand-off by `caller` to the agent `name`, at a place in the transcript."""
        owner = self.owner(caller)
        node = AgentNode(index, owner.depth + 1 if owner is not None else 1, caller=owner)
        self._called.append((name, caller, node))
        return node

    def owner(self, agent: str) -> AgentNode | None:
        """The newest hand-off to an agent: by its own name, by its caller's and its own, else to one that it is part
        of; None: to the agent in front nothing was handed."""
        if not agent:
            return None
        for name, caller, node in reversed(self._called):
            if agent in (name, f"{caller}.{name}"):
                return node
        return next(
            (
                node
                for name, caller, node in reversed(self._called)
                if agent.startswith((f"{name}.", f"{caller}.{name}."))
            ),
            None,
        )


def agent_tree(entries: Sequence[tuple[int, Entry]]) -> AgentNode:
    """The entries of one turn, with their places, as a tree. What no hand-off of the turn accounts for belongs to the
    agent in front."""
    root = AgentNode()
    handed = HandOffs()
    nodes: list[AgentNode] = []
    said: dict[int, list[int]] = {}
    again = said_again(entries)
    for index, entry in entries:
        if index == again:
            continue
        owner = handed.owner(entry.agent) or root
        if entry.kind == "hand_off" and entry.name:
            node = handed.add(entry.agent, entry.name, index)
            owner.children.append(node)
            nodes.append(node)
            continue
        owner.children.append(index)
        if entry.kind == "assistant" and entry.text and owner is not root:
            said.setdefault(owner.index, []).append(index)
    for node in nodes:
        answers = [index for index in said.get(node.index, ()) if index in node.children]
        if answers:
            node.answer = answers[-1]
            node.children.remove(node.answer)
    return root


def said_again(entries: Sequence[tuple[int, Entry]]) -> int | None:
    """The place of a turn's last text where it is all those before it: a reply that was streamed with calls between
    its parts is recorded as a whole, too. It is read once, in parts."""
    said = [(index, entry) for index, entry in entries if entry.kind == "assistant"]
    if len(said) < 3 or said[-1][1] is not entries[-1][1]:
        return None
    place, whole = said.pop()
    parts = (entry.text for _, entry in said if entry.agent == whole.agent)
    return place if "".join(parts) == whole.text else None


def reading_order(
    entries: Sequence[tuple[int, Entry]], *, answers: bool = False
) -> list[tuple[int, Entry, AgentNode]]:
    """The entries of one turn as they are read, each with the node it belongs to: what a helper did below its
    hand-off, each result right after its call. `answers`: helpers' answers too, each after all that it did."""
    known = dict(entries)

    def of(node: AgentNode) -> Iterator[tuple[int, Entry, AgentNode]]:
        below = {child.index: child for child in node.children if isinstance(child, AgentNode)}
        places = [child.index if isinstance(child, AgentNode) else child for child in node.children]
        for index, entry in in_reading_order([(place, known[place]) for place in places]):
            yield index, entry, below.get(index, node)
            if index in below:
                yield from of(below[index])
                if answers and (answer := below[index].answer) is not None:
                    yield answer, known[answer], below[index]

    return list(of(agent_tree(entries)))


def answer_to(entries: Sequence[Entry], index: int) -> Entry | None:
    """What the helper of a hand-off, by its place in the transcript, answered."""
    turn = entries[index].turn
    of_turn = [(place, entry) for place, entry in enumerate(entries) if entry.turn == turn]
    node = next((node for place, _, node in reading_order(of_turn) if place == index), None)
    return entries[node.answer] if node is not None and node.answer is not None else None


def short_name(agent: str) -> str:
    """A helper's name without its callers', who stand above it; the dot of a version (`gpt-4.1`) is part of a name."""
    last = agent.rsplit(".", 1)[-1]
    return agent if not last or last.removeprefix("v")[:1].isdigit() else last
