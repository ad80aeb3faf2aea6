"""`config.tls` of a promptfoo HTTP provider: whom to trust, and which certificate to show.

PEM is what Python's own TLS reads; PKCS#12 (`pfx`) and Java keystores need the extra `certificates`.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_eval.agents.base import Services
from tui_eval.agents.http.http_connections import trusting, usual_authorities
from tui_eval.agents.loose_json import one_line
from tui_eval.agents.promptfoo.key_files import Identity, KeyFileError, from_java, from_pkcs12
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.config.project import ConfigError
from tui_eval.guard.trust import in_folder

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_KNOWN = frozenset(
    ("ca", "caPath", "cert", "certPath", "key", "keyPath", "passphrase", "rejectUnauthorized", "ciphers",
     "minVersion", "maxVersion", "pfx", "pfxPath", "servername", "secureProtocol", "jksPath", "jksContent",
     "keystorePassword", "keyAlias")
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
        raise ConfigError(f"{where}.{unknown[0]} is not supported; known: {', '.join(sorted(_KNOWN))}")
    reading = _Reading(settings, SettingsFiles(services, base, where))
    try:
        context = _trusting(reading.text("ca", "caPath"))
        if settings.get("rejectUnauthorized") is False:
            folder = in_folder(base, services.root)
            services.trust.require(f"speak to a server without checking its certificate ({where}{folder})")
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        reading.certificate(context)
        if isinstance(settings.get("ciphers"), str):
            context.set_ciphers(settings["ciphers"])
        _set_versions(context, settings, where)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{where}: {one_line(str(error))}") from None
    except KeyFileError as error:
        raise ConfigError(f"{where}: {error}") from None
    return context


def server_name(settings: Any) -> str | None:
    """The name that the server's certificate must be for, where it is not the URL's (`servername`)."""
    name = settings.get("servername") if isinstance(settings, dict) else None
    return name if isinstance(name, str) and name else None


def _trusting(authorities: str) -> ssl.SSLContext:
    """A context that trusts these authorities and no others; without any, the usual ones."""
    if not authorities:
        return usual_authorities()
    return trusting(authorities)


def _set_versions(context: ssl.SSLContext, settings: Mapping[str, Any], where: str) -> None:
    """Limit the versions; `secureProtocol` is node's old way to name a single one (`TLSv1_2_method`)."""
    method = settings.get("secureProtocol")
    if isinstance(method, str) and method not in ("TLS_method", "TLS_client_method", "SSLv23_method"):
        only = method.removesuffix("_method").removesuffix("_client").replace("_", ".")
        settings = {"minVersion": only, "maxVersion": only, **settings}
    for key, attribute in (("minVersion", "minimum_version"), ("maxVersion", "maximum_version")):
        if (version := settings.get(key)) is not None:
            if version not in _VERSIONS:
                raise ConfigError(f"{where}.{key}: {version!r} is none of {', '.join(_VERSIONS)}")
            setattr(context, attribute, _VERSIONS[version])


class _Reading:
    """What the settings name, read from the suite or its files."""

    def __init__(self, settings: Mapping[str, Any], files: SettingsFiles) -> None:
        self._settings = settings
        self._files = files

    def text(self, inline: str, path: str) -> str:
        """PEM text; empty where neither key is there."""
        given = self._settings.get(inline)
        if isinstance(given, list):
            given = "\n".join(map(str, given))
        if isinstance(given, str):
            return given
        file = self._settings.get(path)
        return self._files.text(file, path) if isinstance(file, str) else ""

    def certificate(self, context: ssl.SSLContext) -> None:
        """Have the context show the client's certificate, if there is one."""
        identity = self._keystore() or self._bundle()
        if identity is not None:
            if not identity.certificates:
                raise ConfigError(f"{self._files.where}: there is no certificate with the key")
            text, password = identity.pem()
            _load(context, text, password)
            return
        certificate, key = self.text("cert", "certPath"), self.text("key", "keyPath")
        if not certificate and not key:
            return
        if not certificate:
            raise ConfigError(f"{self._files.where}: a key without a certificate (cert or certPath)")
        passphrase = self._settings.get("passphrase")
        # An empty passphrase keeps OpenSSL from asking the terminal for one.
        _load(context, f"{certificate}\n{key}\n", "" if passphrase is None else str(passphrase))

    def _bundle(self) -> Identity | None:
        data = self._packed("pfx", "pfxPath")
        passphrase = self._settings.get("passphrase")
        return None if data is None else from_pkcs12(data, None if passphrase is None else str(passphrase))

    def _keystore(self) -> Identity | None:
        data = self._packed("jksContent", "jksPath")
        if data is None:
            return None
        passwords = [
            str(self._settings[key]) for key in ("keystorePassword", "passphrase") if self._settings.get(key)
        ]
        passwords = passwords or [os.environ.get("PROMPTFOO_JKS_PASSWORD", "")]
        if not passwords[0]:
            raise ConfigError(f"{self._files.where}: keystorePassword is missing")
        alias = self._settings.get("keyAlias")
        return from_java(data, passwords, str(alias) if alias else None)

    def _packed(self, inline: str, path: str) -> bytes | None:
        if isinstance(given := self._settings.get(inline), str) and given:
            return self._files.unpacked(given, inline)
        file = self._settings.get(path)
        return self._files.data(file, path) if isinstance(file, str) and file else None


def _load(context: ssl.SSLContext, text: str, password: str) -> None:
    """OpenSSL reads certificates from files only; nobody else may read this one, and it goes at once."""
    with tempfile.NamedTemporaryFile("w", prefix="tui-eval-", suffix=".pem") as file:
        file.write(text)
        file.flush()
        context.load_cert_chain(file.name, password=password)
