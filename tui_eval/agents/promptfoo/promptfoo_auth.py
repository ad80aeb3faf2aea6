"""How a promptfoo HTTP provider signs in: bearer, basic, API key, OAuth, or a file of the suite (`config.auth`); and
what it signs its requests with (`config.signatureAuth`)."""

from __future__ import annotations

import base64
import math
import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_call import HttpCall, HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.key_files import Identity, KeyFileError, from_java, from_pem, from_pkcs12
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo.promptfoo_request import FORM_TYPE, HttpRequest, basic, filled, with_query
from tui_eval.config.project import ConfigError
from tui_eval.guard.once import Once

_EARLY = 60.0
"""Seconds before its end at which a token is not used any more."""
_LASTS = 3600.0
_KEPT = 256
"""Tokens that are kept at once."""
_NEEDED = {
    "bearer": ("token",),
    "basic": ("username", "password"),
    "api_key": ("value", "keyName"),
    "oauth": ("tokenUrl",),
    "file": ("path",),
}


class Authorization:
    """Adds what signs a request in; tokens are kept until shortly before they end. Secrets that it gets to know are
    masked wherever something is kept.

    Raises:
        ConfigError: the settings are not complete; one line.
    """

    def __init__(
        self,
        settings: Any,
        services: Services,
        scripts: Scripts,
        provider: str,
        context: ssl.SSLContext | None,
        led_to: Callable[[str, Any], None] | None = None,
    ) -> None:
        """`led_to` is told the address that a token is asked of and what it gets, and raises where it may not."""
        self._led_to = led_to
        self.settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self.kind = str(self.settings.get("type", "")).replace("-", "_").lower().replace("oauth2", "oauth")
        self._services = services
        self._scripts = scripts
        self._context = context
        self._client: HttpClient | None = None
        self._tokens: dict[bytes, tuple[str, float | None, float]] = {}
        self._asking: dict[bytes, Once[tuple[str, float | None, float]]] = {}
        if self.settings and self.kind not in _NEEDED:
            raise ConfigError(
                f"provider {provider}: config.auth.type {self.settings.get('type')!r} is not known: "
                f"{', '.join(_NEEDED)}"
            )
        for key in _NEEDED.get(self.kind, ()):
            if self.settings.get(key) is None:
                raise ConfigError(f"provider {provider}: config.auth.{key} is missing")

    async def prepare(self, values: dict[str, Any], asking: Mapping[str, Any]) -> None:
        """Have a token where one must be asked for, and put it among the values of the templates (`token`, of a file
        also `expiration`). `asking` is what a file's function is given.

        Raises:
            AgentError: there is no token to be had.
            NeedsTrust: the file is code of a folder that is not trusted.
        """
        if self.kind not in ("oauth", "file"):
            return
        form = self._form(values) if self.kind == "oauth" else {}
        key = encode(
            [self._text("tokenUrl", values), form] if form else [self.settings["path"], dict(asking)]
        )
        kept = self._tokens.get(key)
        if kept is None or time.monotonic() >= kept[2]:

            async def made() -> tuple[str, float | None, float]:
                token = await (self._from_server(form, values) if form else self._from_file(asking))
                self._services.conceal(token[0])
                if len(self._tokens) >= _KEPT:
                    del self._tokens[next(iter(self._tokens))]
                self._tokens[key] = token
                return token

            # Tests that are given tokens of their own do not wait for each other's.
            asked = self._asking.setdefault(key, Once())
            try:
                kept = await asked.get(made)
            finally:
                if self._asking.get(key) is asked and not asked.waited_for:
                    del self._asking[key]
        values["token"] = kept[0]
        if self.kind == "file":
            values["expiration"] = kept[1]

    def add(self, request: HttpRequest, values: Mapping[str, Any]) -> None:
        """Sign the request in, in place. A file's token goes only where the templates name `{{token}}`.

        Raises:
            AgentError: a template cannot be rendered.
        """
        if self.kind == "bearer":
            request.headers["authorization"] = f"Bearer {self._secret('token', values)}"
        elif self.kind == "oauth":
            request.headers["authorization"] = f"Bearer {values['token']}"
        elif self.kind == "basic":
            user, password = self._text("username", values), self._secret("password", values)
            request.headers["authorization"] = basic(user, password)
        elif self.kind == "api_key":
            name, value = self._text("keyName", values), self._secret("value", values)
            if str(self.settings.get("placement", "header")) == "query":
                request.url = with_query(request.url, {name: value})
            else:
                request.headers[name.lower()] = value

    def _form(self, values: Mapping[str, Any]) -> dict[str, str]:
        grant = str(self.settings.get("grantType") or "client_credentials")
        form = {"grant_type": grant}
        theirs = {"clientId": "client_id", "clientSecret": "client_secret"}
        if grant == "password":
            theirs |= {"username": "username", "password": "password"}
        for ours, name in theirs.items():
            if self.settings.get(ours):
                form[name] = self._text(ours, values)
        scopes = self.settings.get("scopes", self.settings.get("scope"))
        if scopes:
            listed = scopes if isinstance(scopes, list) else [scopes]
            form["scope"] = " ".join(filled(text_of(scope), values) for scope in listed)
        return form

    async def _from_server(
        self, form: Mapping[str, str], values: Mapping[str, Any]
    ) -> tuple[str, float | None, float]:
        url = self._text("tokenUrl", values)
        if self._led_to is not None:
            self._led_to(url, form)
        for name in ("client_secret", "password"):
            self._services.conceal(form.get(name, ""))
        if self._client is None:
            self._client = HttpClient(context=self._context)
        call = self._client.call(
            "POST", url, body=urlencode(form).encode(), headers={"content-type": FORM_TYPE}, any_status=True
        )
        text = await answered(call, url, "config.auth: no token,", "no token")
        try:
            answer = decode(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not answer.get("access_token"):
            raise AgentError(
                f"config.auth: {url} did not answer with a token (access_token)",
                code="not-signed-in",
                said="no access_token in the answer",
                place=place_of(url),
            )
        lasts = answer.get("expires_in")
        lasts = float(lasts) if isinstance(lasts, int | float) and lasts else _LASTS
        return str(answer["access_token"]), None, time.monotonic() + lasts - _EARLY

    async def _from_file(self, asking: Mapping[str, Any]) -> tuple[str, float | None, float]:
        path = self.settings["path"]
        found = await self._scripts.file(str(path), [dict(asking)], "config.auth", "get_auth")
        token = found.get("token") if isinstance(found, dict) else None
        ends = found.get("expiration") if isinstance(found, dict) else None
        if not isinstance(token, str) or not token or not isinstance(ends, int | float | None):
            raise AgentError(
                f"config.auth: {path} must return {{token, expiration}}, the end in milliseconds since 1970 (or none)",
                code="bad-setting",
                said=f"{path} must return {{token, expiration}}",
            )
        if ends is None:
            return token, None, float("inf")
        return token, ends, time.monotonic() + ends / 1000 - time.time() - _EARLY

    async def close(self) -> None:
        """Close the connections to the token's server."""
        if self._client is not None:
            await self._client.close()

    def _secret(self, key: str, values: Mapping[str, Any]) -> str:
        value = self._text(key, values)
        self._services.conceal(value)
        return value

    def _text(self, key: str, values: Mapping[str, Any]) -> str:
        return filled(text_of(self.settings.get(key)), values)


async def answered(call: HttpCall, url: str, whose: str, said: str) -> str:
    """The text of an answer that the agent's own requests need. `whose` begins the message if there is none, `said`
    its short form.

    Raises:
        AgentError: the server refuses.
    """
    text = (await call.whole()).decode("utf-8", "replace")
    if not 200 <= (call.status or 0) < 300:
        why = explain(text, call.headers)
        message = f"{whose} HTTP {call.status} from {url}: {why}"
        raise AgentError(message, status=call.status, said=f"{said}: {why}", place=place_of(url))
    return text


# -- `config.signatureAuth`: a timestamp signed with a private key, with the algorithm names that node's `createSign`
# knows. The signature is no header by itself: it is there for templates as `{{signature}}`, its time as
# `{{signatureTimestamp}}` (milliseconds).


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
