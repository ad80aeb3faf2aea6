"""What a promptfoo suite says under `tracing`, and which of its assertions look at a trace."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tui_eval.engine.otlp import asks_for_traces
from tui_eval.model import Assertion, Case

PORT = 4318
"""OTLP over HTTP (IANA)."""
HOST = "127.0.0.1"
FORMATS = ("json", "protobuf")
_ASKED = frozenset(
    [
        "javascript",
        "python",
        "ruby",
        "skill-used",
        "trace-error-spans",
        "trace-span-count",
        "trace-span-duration",
        "trajectory:goal-success",
        "trajectory:step-count",
        "trajectory:tool-args-match",
        "trajectory:tool-sequence",
        "trajectory:tool-used",
    ]
)
"""Types that are judged on a trace; promptfoo waits for spans where there is one of them."""


class TracingSettings(msgspec.Struct, frozen=True):
    """`listens` says whether spans are received over HTTP at `host` and `port`, in `formats`.

    Attributes whose name holds one of `redact` are replaced. With `must_listen` (promptfoo's
    `failOnReceiverStartFailure`) nothing runs where that cannot be. `command_tools` are names of tools that
    run commands.
    """

    listens: bool = False
    host: str = HOST
    port: int = PORT
    formats: tuple[str, ...] = FORMATS
    redact: tuple[str, ...] = ()
    must_listen: bool = False
    command_tools: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def reached_from_outside(self) -> str:
        """What listening needs trust for; empty where only this machine reaches it, or nothing listens."""
        if not self.listens or self.local:
            return ""
        return f"receive spans at {self.host}:{self.port} from other machines"


def settings_of(case: Case, suite: Mapping[str, Any]) -> TracingSettings | None:
    """The settings for a case; None where nothing asks for traces."""
    if not asks_for_traces(case, suite):
        return None
    given = suite.get("tracing")
    tracing: dict[str, Any] = given if isinstance(given, dict) else {}
    otlp = tracing.get("otlp")
    http = otlp.get("http") if isinstance(otlp, dict) else None
    listens = isinstance(http, dict) and http.get("enabled", True) is True
    http = http if isinstance(http, dict) else {}
    port, host = http.get("port"), http.get("host")
    formats = tuple(name for name in FORMATS if name in _texts(http.get("acceptFormats")))
    return TracingSettings(
        listens=listens,
        host=host if isinstance(host, str) and host else HOST,
        port=port if isinstance(port, int) and 0 < port < 65536 else PORT,
        formats=formats or FORMATS,
        redact=tuple(name.lower() for name in _texts(http.get("redactAttributes"))),
        must_listen=tracing.get("failOnReceiverStartFailure") is True,
        command_tools=_texts(tracing.get("commandToolNames")),
    )


def looks_at_traces(assertions: Iterable[Assertion]) -> bool:
    """Whether one of the assertions may look at a trace."""
    return any(
        assertion.type.removeprefix("not-") in _ASKED
        or (isinstance(assertion.value, str) and assertion.value.startswith(("file://", "package:")))
        for assertion in assertions
    )


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(dict.fromkeys(item.strip() for item in items if isinstance(item, str) and item.strip()))
