"""`tracing` in a promptfoo configuration: slips are errors, what has no effect is a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config.project import load
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust


def problems(tmp_path: Path, tracing: str) -> list[str]:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        f"providers: [echo]\nprompts: [x]\ntests: [{{vars: {{x: 1}}}}]\ntracing: {tracing}\n", "utf-8"
    )
    found = reading.load(path, load([tmp_path]), Trust()).problems
    return [f"{problem.level}: {problem.key}: {problem.message}" for problem in found]


@pytest.mark.parametrize(
    ("tracing", "told"),
    [
        (
            "{enabled: true, otlp: {http: {enabled: true, port: 4318, host: 127.0.0.1, acceptFormats: [json]}}}",
            [],
        ),
        ("{enabled: false}", []),
        ("5", ["error: tracing: must be a mapping"]),
        ("{enabled: yes please}", ["error: tracing.enabled: must be true or false"]),
        ("{enabeld: true}", ["error: tracing.enabeld: unknown key"]),
        ("{otlp: {http: {prot: 1}}}", ["error: tracing.otlp.http.prot: unknown key"]),
        ("{otlp: {http: {port: 99999}}}", ["error: tracing.otlp.http.port: must be a port"]),
        ("{otlp: {http: {port: '4318'}}}", ["error: tracing.otlp.http.port: must be a port"]),
        (
            "{otlp: {http: {acceptFormats: [xml]}}}",
            ["error: tracing.otlp.http.acceptFormats: must be json or"],
        ),
        ("{commandToolNames: Bash}", ["error: tracing.commandToolNames: must be a list of texts"]),
        ("{enabled: true}", ["note: tracing: no spans are received: write otlp"]),
        (
            "{enabled: true, otlp: {http: {}, grpc: {enabled: true}}, forwarding: {enabled: true, endpoint: x}}",
            ["note: tracing.otlp.grpc: is ignored", "note: tracing.forwarding: is ignored"],
        ),
    ],
)
def test_what_is_said(tmp_path: Path, tracing: str, told: list[str]) -> None:
    found = problems(tmp_path, tracing)
    assert len(found) == len(told), found
    for given, expected in zip(found, told, strict=True):
        assert given.startswith(expected)
