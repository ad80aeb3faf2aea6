"""Types are learnt before threads read: two that read a type first at once ended the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

READ = """
import sys, threading
sys.setswitchinterval(1e-6)
import msgspec
{imported}
gate = threading.Barrier(8)
def read():
    gate.wait()
    try:
        msgspec.json.decode({body!r}, type={kind})
    except msgspec.ValidationError:
        pass
threads = [threading.Thread(target=read) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
KINDS = {
    "Attempt": ("from tui_eval.model import Attempt", b'{"case_id": "c", "attempt": 1, "outcome": "passed", "replies": [{"turn": 1}]}'),
    "Case": ("from tui_eval.model import Case", b'{"id": "c"}'),
    "RunInfo": ("from tui_eval.store.schema import RunInfo", b'{"id": "c"}'),
    "RunRequest": ("from tui_eval.engine.request import RunRequest", b"{}"),
    "Event": ("from tui_eval.events import Event", b'{"type": "text"}'),
}  # fmt: skip


@pytest.mark.usually(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_type_may_be_read_first_by_several_threads_at_once(kind: str) -> None:
    imported, body = KINDS[kind]
    code = READ.format(imported=imported, body=body, kind=kind)
    for _ in range(6):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        assert ended.returncode == 0, (ended.returncode, ended.stderr[-300:])
