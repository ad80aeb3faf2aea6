"""A conversation saved as a neuro-san test."""

from __future__ import annotations

import json

from tui_eval.suites.saved_talk import Talk, facts


def neuro_san(talk: Talk) -> str:
    """A neuro-san test."""

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    blocks: list[str] = []
    for turn in talk.turns:
        lines = [f"            text: {quoted(turn.asked)}"]
        said = facts(turn.answered)
        if said:
            lines.append(
                f"            response: {{ text: {{ keywords: [{', '.join(map(quoted, said))}] }} }}"
            )
        blocks.append("        {\n" + "\n".join(lines) + "\n        }")
    name = " ".join(talk.name.split())
    return (
        f"# {name if name.isprintable() else 'a saved conversation'}\n{{\n"
        f"    agent: {quoted(talk.agent)}\n"
        f"    connections: {quoted(talk.connection or 'http')}\n"
        "    interactions: [\n" + ",\n".join(blocks) + "\n    ]\n}\n"
    )
