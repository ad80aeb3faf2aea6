"""`config.signatureAuth` of a promptfoo HTTP provider: a timestamp signed with a private key.

The signature is no header by itself: it is there for templates as `{{signature}}`, its time as
`{{signatureTimestamp}}` (milliseconds).
"""

from __future__ import annotations

import base64
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.loose_json import one_line
from tui_eval.agents.promptfoo.key_files import Identity, KeyFileError, from_java, from_pem, from_pkcs12
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo.promptfoo_request import filled
from tui_eval.config.project import ConfigError

# -- Signing text with a private key, with the algorithm names that node's `createSign` knows.


_AROUND = ("rsa-", "id-rsassa-pkcs1-v1_5-with-", "sha2-")
_DIGESTS = {
    "md5": "MD5",
    "ssl3-md5": "MD5",
    "sha1": "SHA1",
    "sha1-2": "SHA1",
    "sha-1": "SHA1",
    "ssl3-sha1": "SHA1",
    **{f"sha{bits}": f"SHA{bits}" for bits in (224, 256, 384, 512)},
    **{f"sha-{bits}": f"SHA{bits}" for bits in (224, 256, 384, 512)},
    **{str(bits): f"SHA{bits}" for bits in (224, 256, 384, 512)},
    **{name: f"SHA512_{bits}" for bits in (224, 256) for name in (f"sha512-{bits}", f"sha512/{bits}", f"512/{bits}")},
    **{f"sha3-{bits}": f"SHA3_{bits}" for bits in (224, 256, 384, 512)},
    "sm3": "SM3",
}  # fmt: skip
"""OpenSSL's name, without what stands around it → cryptography's."""


def digest(name: str) -> Any:
    """The hash that a name like `SHA256`, `RSA-SHA512` or `sha256WithRSAEncryption` means.

    Raises:
        KeyFileError: there is no such algorithm here.
    """
    from cryptography.hazmat.primitives import hashes

    plain = name.lower().removesuffix("withrsaencryption")
    for around in _AROUND:
        plain = plain.removeprefix(around)
    found = _DIGESTS.get(plain)
    if found is None:
        raise KeyFileError(
            f"there is no algorithm {one_line(name, 40)!r}; for example SHA256, RSA-SHA512, SHA3-256"
        )
    return getattr(hashes, found)()


def signature(key: Any, text: str, algorithm: str) -> str:
    """The signature of a text in base64: PKCS#1 v1.5 of an RSA key, DER of an EC or DSA key.

    Raises:
        KeyFileError: the key or the algorithm cannot be used for this.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, padding, rsa

    chosen, data = digest(algorithm), text.encode("utf-8", "replace")
    try:
        if isinstance(key, rsa.RSAPrivateKey):
            made = key.sign(data, padding.PKCS1v15(), chosen)
        elif isinstance(key, ec.EllipticCurvePrivateKey):
            made = key.sign(data, ec.ECDSA(chosen))
        elif isinstance(key, dsa.DSAPrivateKey):
            made = key.sign(data, chosen)
        else:
            raise KeyFileError(f"a key of this kind ({type(key).__name__}) cannot sign with {algorithm}")
    except (UnsupportedAlgorithm, ValueError, TypeError) as error:
        raise KeyFileError(f"the key cannot sign with {algorithm}: {one_line(str(error), 120)}") from None
    return base64.b64encode(made).decode("ascii")


VALIDITY_MS = 300_000
DATA = "{{signatureTimestamp}}"
ALGORITHM = "SHA256"
_ENDINGS = {".pfx": "pfx", ".p12": "pfx", ".jks": "jks", ".pem": "pem", ".key": "pem"}
_TEXTS = (
    "type", "privateKey", "privateKeyPath", "pfxPath", "pfxContent", "pfxPassword", "certPath", "keyPath",
    "certContent", "keyContent", "keystorePath", "keystoreContent", "keystorePassword", "keyAlias", "keyPassword",
    "certificateContent", "certificatePassword", "certificateFilename", "signatureDataTemplate",
    "signatureAlgorithm",
)  # fmt: skip
_NUMBERS = ("signatureValidityMs", "signatureRefreshBufferMs")


class RequestSignature:
    """Signs for one provider; a signature serves all its requests until shortly before it is too old.

    `now` gives the time in seconds since 1970.

    Raises:
        ConfigError: the settings, or the key that they name, cannot be used; one line.
        NeedsTrust: a file lies outside the root.
    """

    def __init__(
        self,
        settings: Any,
        services: Services,
        base: Path,
        provider: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._where = f"provider {provider}: config.signatureAuth"
        if not isinstance(settings, dict):
            raise ConfigError(f"{self._where}: expected a mapping")
        self._settings = settings
        self._files = SettingsFiles(services, base, self._where)
        self._now = now
        self._check()
        self._template = self._text("signatureDataTemplate") or DATA
        self._algorithm = self._text("signatureAlgorithm") or ALGORITHM
        self._validity = float(settings.get("signatureValidityMs", VALIDITY_MS))
        early = settings.get("signatureRefreshBufferMs")
        self._early = math.floor(self._validity * 0.1) if early is None else float(early)
        self._made: tuple[int, str] | None = None
        given = self._text("privateKey")
        # A key may stand in a variable of the test; it is read when there is one.
        late = self._kind() == "pem" and not self._text("privateKeyPath") and "{{" in given
        self._late = given if late else ""
        self._key: Any = None
        try:
            if not self._late:
                self._key = self._identity().key
                digest(self._algorithm)
        except KeyFileError as error:
            raise ConfigError(f"{self._where}: {error}") from None

    def add(self, values: dict[str, Any]) -> None:
        """Put the signature and its time among the values of the templates.

        Raises:
            AgentError: it cannot be signed.
        """
        at = math.floor(self._now() * 1000)
        if self._made is None or at - self._made[0] + self._early >= self._validity:
            text = filled(self._template, {"signatureTimestamp": at}).replace("\\n", "\n")
            try:
                key = (
                    from_pem(filled(self._late, values), self._locked_with()).key if self._late else self._key
                )
                self._made = (at, signature(key, text, self._algorithm))
            except KeyFileError as error:
                raise AgentError(f"config.signatureAuth: {error}", code="bad-setting") from None
        values["signatureTimestamp"], values["signature"] = self._made

    def _check(self) -> None:
        for key in _TEXTS:
            if not isinstance(self._settings.get(key, ""), str | None):
                raise ConfigError(f"{self._where}.{key}: expected text")
        for key in _NUMBERS:
            value = self._settings.get(key, 0)
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise ConfigError(f"{self._where}.{key}: expected milliseconds")

    def _text(self, *keys: str) -> str:
        return next((str(self._settings[key]) for key in keys if self._settings.get(key)), "")

    def _kind(self) -> str:
        """Which form of a key the settings have: by their `type`, a file's ending, else by what is there."""
        if kind := self._text("type"):
            return kind
        if kind := _ENDINGS.get(os.path.splitext(self._text("certificateFilename").lower())[1], ""):
            return kind
        if self._text("privateKey", "privateKeyPath"):
            return "pem"
        if self._text("keystorePath", "keystoreContent"):
            return "jks"
        separate = self._text("certPath") and self._text("keyPath")
        if self._text("pfxPath", "pfxContent") or separate or self._text("keyContent"):
            return "pfx"
        return "pem"

    def _identity(self) -> Identity:
        kind = self._kind()
        if kind == "pem":
            return self._of_pem()
        if kind == "jks":
            return self._of_java()
        if kind == "pfx":
            return self._of_pkcs12()
        raise ConfigError(f"{self._where}.type: {kind!r} is none of pem, pfx, jks")

    def _locked_with(self) -> str:
        return self._text("keyPassword", "certificatePassword")

    def _of_pem(self) -> Identity:
        if path := self._text("privateKeyPath"):
            return from_pem(self._files.text(path, "privateKeyPath"), self._locked_with())
        if given := self._text("privateKey"):
            return from_pem(given, self._locked_with())
        if given := self._text("certificateContent"):
            text = self._files.unpacked(given, "certificateContent").decode("utf-8", "replace")
            return from_pem(text, self._locked_with())
        raise ConfigError(
            f"{self._where}: a private key is missing: privateKey, privateKeyPath, pfxPath or keystorePath"
        )

    def _of_java(self) -> Identity:
        password = self._text("keystorePassword", "certificatePassword") or os.environ.get(
            "PROMPTFOO_JKS_PASSWORD", ""
        )
        if not password:
            raise ConfigError(f"{self._where}: keystorePassword (or PROMPTFOO_JKS_PASSWORD) is missing")
        data = self._packed("keystoreContent", "keystorePath")
        if data is None:
            raise ConfigError(f"{self._where}: keystorePath or keystoreContent is missing")
        passwords = [password, *filter(None, [self._text("keyPassword")])]
        return from_java(data, passwords, self._text("keyAlias") or None)

    def _of_pkcs12(self) -> Identity:
        data = self._packed("pfxContent", "pfxPath")
        if data is not None:
            password = self._text("pfxPassword", "certificatePassword") or os.environ.get(
                "PROMPTFOO_PFX_PASSWORD", ""
            )
            if not password:
                raise ConfigError(f"{self._where}: pfxPassword (or PROMPTFOO_PFX_PASSWORD) is missing")
            return from_pkcs12(data, password)
        # A certificate and its key apart: only the key signs.
        if given := self._text("keyContent"):
            text = self._files.unpacked(given, "keyContent").decode("utf-8", "replace")
            return from_pem(text, self._locked_with())
        if path := self._text("keyPath"):
            return from_pem(self._files.text(path, "keyPath"), self._locked_with())
        raise ConfigError(
            f"{self._where}: pfxPath, pfxContent, certPath with keyPath, or certContent with keyContent is missing"
        )

    def _packed(self, content: str, path: str) -> bytes | None:
        given = self._text(content, "certificateContent")
        if given:
            return self._files.unpacked(given, content if self._text(content) else "certificateContent")
        return self._files.data(self._text(path), path) if self._text(path) else None


def signature_of(
    settings: Mapping[str, Any] | None, services: Services, base: Path, provider: str
) -> RequestSignature | None:
    """What signs for a provider with these settings; None where there are none. Raises as `RequestSignature`."""
    return None if settings is None else RequestSignature(settings, services, base, provider)
