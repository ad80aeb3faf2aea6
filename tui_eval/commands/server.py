"""`tui-eval server`: results in a browser, on this machine only."""

from __future__ import annotations

import secrets
import signal
import socket
from pathlib import Path

from tui_eval.commands.output import EXIT_OK, CommandError, say
from tui_eval.config.project import find_root
from tui_eval.extensions import adding
from tui_eval.reports.web_server import HOST, PORT, application


def serve(port: int = PORT) -> int:
    """Serve the runs of the current project until Ctrl-C.

    Raises:
        CommandError: the extra is not installed, or the port is taken.
    """
    try:
        import uvicorn

        root, _ = find_root([Path.cwd()])
        token = secrets.token_urlsafe(24)
        app = application(root, port, token=token)
    except ImportError:
        raise CommandError(f"the results page needs the extra `web`: {adding('web')}") from None
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError):
        raise CommandError(f"port {port} of {HOST} cannot be used; give another with --port") from None
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    code = EXIT_OK

    def hang_up(number: int, _: object) -> None:  # uvicorn looks after the other signals
        nonlocal code
        server.should_exit, code = True, 128 + number

    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hang_up)
    with listening:
        say(f"results of {root} at http://{HOST}:{port}/?token={token} (Ctrl-C ends it)")
        server.run(sockets=[listening])
    return code
