"""Whom a case asks where its suite, the configuration and the command line leave it open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config import project
from tui_eval.formats import format_of


def loaded_from(folder: Path, text: str) -> project.Config:
    (folder / "tui_eval.yaml").write_text(text, "utf-8")
    return project.load([folder])


def test_agents_by_convention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKEND_URL", raising=False)
    loaded = loaded_from(
        tmp_path,
        "agents: {music: {type: neuro-san, url: 'http://h:1'}, s: {type: echo}}\nproviders: {'bedrock:x': s}",
    )

    def url(kind: str, name: str | None) -> object:
        spec = format_of(kind).default_agent(name, loaded)
        return spec and spec.options.get("url")

    assert url("neuro_san", "music") == "http://h:1"
    assert url("neuro_san", "other") == "http://localhost:8080"
    assert url("nao", None) == "http://localhost:5005"
    monkeypatch.setenv("BACKEND_URL", "http://nao.example")
    assert url("nao", None) == "http://nao.example"
    assert format_of("start_to_agent").default_agent("s", loaded) is loaded.agents["s"]
    assert format_of("start_to_agent").default_agent("none", loaded) is None
    assert format_of("promptfoo").default_agent("bedrock:x", loaded) is loaded.agents["s"]
    assert format_of("promptfoo").default_agent("openai:x", loaded) is None
    named = loaded_from(tmp_path, "agents: {neuro-san: {type: neuro-san, url: 'http://n:1'}}")
    spec = format_of("neuro_san").default_agent("any", named)
    assert spec is named.agents["neuro-san"]
