"""`config.tls` of a promptfoo HTTP provider: whom to trust, and which certificate to show.

What Python's own TLS reads is supported: PEM, in files or in the suite. A PKCS#12 file (`pfx`) needs a library
that this program does not bring, and says so.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tui_eval.agents.base import Services
from tui_eval.agents.wire import one_line
from tui_eval.config import ConfigError
from tui_eval.guard.paths import confine

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_KNOWN = frozenset(
    ("ca", "caPath", "cert", "certPath", "key", "keyPath", "passphrase", "rejectUnauthorized", "ciphers",
     "minVersion", "maxVersion")
)  # fmt: skip


def context_of(settings: Any, services: Services, base: Path, provider: str) -> ssl.SSLContext | None:
    """The context that the settings describe; None where there are none. Paths are relative to `base`.

    Raises:
        ConfigError: a key, file or value that cannot be used; one line.
        NeedsTrust: a file lies outside the root, or a server's certificate is not to be checked.
    """
    if settings is None:
        return None
    where = f"provider {provider}: config.tls"
    if not isinstance(settings, dict):
        raise ConfigError(f"{where}: expected a mapping")
    if unknown := sorted(settings.keys() - _KNOWN):
        raise ConfigError(
            f"{where}.{unknown[0]} is not supported; known: {', '.join(sorted(_KNOWN))} (make PEM files of a .pfx: "
            "openssl pkcs12)"
        )
    reading = _Reading(settings, services, base, where)
    try:
        context = httpx.create_ssl_context()
        if authorities := reading.text("ca", "caPath"):
            context.load_verify_locations(cadata=authorities)
        if settings.get("rejectUnauthorized") is False:
            services.trust.require(f"speak to a server without checking its certificate ({where})")
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        reading.certificate(context)
        if isinstance(settings.get("ciphers"), str):
            context.set_ciphers(settings["ciphers"])
        for key in ("minVersion", "maxVersion"):
            if (version := settings.get(key)) is not None:
                if version not in _VERSIONS:
                    raise ConfigError(f"{where}.{key}: {version!r} is none of {', '.join(_VERSIONS)}")
                setattr(
                    context, {"minVersion": "minimum_version"}.get(key, "maximum_version"), _VERSIONS[version]
                )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{where}: {one_line(str(error))}") from None
    return context


class _Reading:
    """What the settings name, read from the suite or its files."""

    def __init__(self, settings: Mapping[str, Any], services: Services, base: Path, where: str) -> None:
        self._settings = settings
        self._services = services
        self._base = base
        self._where = where

    def text(self, inline: str, path: str) -> str:
        """PEM text; empty where neither key is there."""
        given = self._settings.get(inline)
        if isinstance(given, list):
            given = "\n".join(map(str, given))
        if isinstance(given, str):
            return given
        file = self._settings.get(path)
        if not isinstance(file, str):
            return ""
        found = confine(self._services.root, file.removeprefix("file://"), self._services.trust, self._base)
        try:
            return found.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not PEM text"
            raise ConfigError(f"{self._where}.{path}: {file}: {reason}") from None

    def certificate(self, context: ssl.SSLContext) -> None:
        """Have the context show the client's certificate, if there is one."""
        certificate, key = self.text("cert", "certPath"), self.text("key", "keyPath")
        if not certificate and not key:
            return
        if not certificate:
            raise ConfigError(f"{self._where}: a key without a certificate (cert or certPath)")
        passphrase = self._settings.get("passphrase")
        # OpenSSL reads it from files only; nobody else may read this one, and it goes at once. An empty
        # passphrase keeps it from asking the terminal for one.
        with tempfile.NamedTemporaryFile("w", prefix="tui-eval-", suffix=".pem") as file:
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            context.load_cert_chain(file.name, password="" if passphrase is None else str(passphrase))
