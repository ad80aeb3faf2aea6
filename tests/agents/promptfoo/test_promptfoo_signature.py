"""Signed requests of promptfoo's HTTP provider: every form of a key, against a server that checks the signature."""

from __future__ import annotations

import base64
import builtins
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.support import TESTS
from tests.support.agents import services, talk
from tui_eval.agents import Agent, AgentError, Request, create, for_provider
from tui_eval.agents.promptfoo.promptfoo_auth import RequestSignature
from tui_eval.config.project import Config, ConfigError
from tui_eval.guard.trust import NeedsTrust

KEYS = TESTS / "data" / "keys"
WORD = "open-sesame"
PUBLIC = serialization.load_pem_public_key((KEYS / "rsa-public.pem").read_bytes())
PUBLIC_EC = serialization.load_pem_public_key((KEYS / "ec-public.pem").read_bytes())
SIGNED = {"method": "POST", "body": {"s": "{{signature}}", "t": "{{signatureTimestamp}}"}}


def packed(name: str) -> str:
    return base64.b64encode((KEYS / name).read_bytes()).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in KEYS.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


def provider(server: AnyServer, root: Path, settings: Any, trusted: bool = True, **config: Any) -> Agent:
    entry = {"id": f"{server.url}/chat", "config": {**SIGNED, **config, "signatureAuth": settings}}
    return create(for_provider(entry, Config(root), root), services(root, trusted))


async def sent(
    server: AnyServer, root: Path, settings: Any, values: Any = None, **config: Any
) -> dict[str, Any]:
    it = provider(server, root, settings, **config)
    try:
        await talk(it, Request(1, "hi", vars=values or {}))
    finally:
        await it.close()
    return server.requests[-1].body


def check(body: dict[str, Any], data: str | None = None, algorithm: Any = None) -> None:
    """Raises InvalidSignature where it is another one."""
    made, text = base64.b64decode(body["s"]), (body["t"] if data is None else data).encode()
    PUBLIC.verify(made, text, padding.PKCS1v15(), algorithm or hashes.SHA256())  # type: ignore[union-attr, call-arg]


@pytest.mark.parametrize(
    "settings",
    [
        {"privateKeyPath": "rsa.pem"},
        {"type": "pem", "privateKeyPath": "file://rsa-traditional.pem"},
        {"type": "pem", "privateKey": (KEYS / "rsa.pem").read_text()},
        {"privateKey": "{{key}}"},
        {"privateKeyPath": "rsa-locked.pem", "keyPassword": WORD},
        {"pfxPath": "rsa.p12", "pfxPassword": WORD},
        {"type": "pfx", "pfxPath": "rsa-old.p12", "pfxPassword": WORD},
        {"pfxContent": packed("rsa.p12"), "pfxPassword": WORD},
        {"certPath": "rsa-certificate.pem", "keyPath": "rsa.pem"},
        {"type": "pfx", "certContent": packed("rsa-certificate.pem"), "keyContent": packed("rsa.pem")},
        {"keystorePath": "rsa.jks", "keystorePassword": WORD},
        {"type": "jks", "keystorePath": "rsa.jks", "keystorePassword": WORD, "keyAlias": "Mine"},
        {"type": "jks", "keystoreContent": packed("rsa.jks"), "keystorePassword": WORD},
        {"keystorePath": "new.jks", "keystorePassword": WORD},
        {"keystorePath": "several.jks", "keystorePassword": WORD, "keyPassword": "of-its-own"},
        {"certificateContent": packed("rsa.p12"), "certificatePassword": WORD, "certificateFilename": "my.P12"},
        {"certificateContent": packed("rsa.jks"), "certificatePassword": WORD, "certificateFilename": "my.jks"},
        {"certificateContent": packed("rsa.pem"), "certificateFilename": "my.key"},
    ],
)  # fmt: skip
async def test_every_form_of_a_key(folder: Path, server: AnyServer, settings: dict[str, Any]) -> None:
    body = await sent(server, folder, settings, {"key": (KEYS / "rsa.pem").read_text()})
    assert abs(int(body["t"]) / 1000 - time.time()) < 3600
    check(body)
    with pytest.raises(InvalidSignature):
        check(body, "another time")


@pytest.mark.parametrize("kind", ["jks", "pfx"])
async def test_passwords_of_the_environment(
    folder: Path, server: AnyServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PROMPTFOO_{kind.upper()}_PASSWORD", WORD)
    settings = {"jks": {"keystorePath": "rsa.jks"}, "pfx": {"pfxPath": "rsa.p12"}}[kind]
    check(await sent(server, folder, settings))


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("SHA512", hashes.SHA512()),
        ("rsa-sha256", hashes.SHA256()),
        ("RSA-SHA1", hashes.SHA1()),
        ("sha384WithRSAEncryption", hashes.SHA384()),
        ("SHA2-256", hashes.SHA256()),
        ("RSA-SHA3-512", hashes.SHA3_512()),
        ("id-rsassa-pkcs1-v1_5-with-sha3-256", hashes.SHA3_256()),
        ("SHA512-256", hashes.SHA512_256()),
        ("RSA-SHA512/224", hashes.SHA512_224()),
    ],
)
async def test_algorithms(folder: Path, server: AnyServer, name: str, algorithm: Any) -> None:
    settings = {"privateKeyPath": "rsa.pem", "signatureAlgorithm": name, "signatureDataTemplate": "fixed"}
    check(await sent(server, folder, settings), "fixed", algorithm)
    body = await sent(server, folder, {**settings, "privateKeyPath": "ec.pem"})
    PUBLIC_EC.verify(base64.b64decode(body["s"]), b"fixed", ec.ECDSA(algorithm))  # type: ignore[union-attr, call-arg]


async def test_what_is_signed(folder: Path, server: AnyServer) -> None:
    settings = {"privateKeyPath": "rsa.pem", "signatureDataTemplate": "a\\n{{signatureTimestamp}}|{{prompt}}"}
    body = await sent(server, folder, settings)
    check(body, f"a\n{body['t']}|")


async def test_headers_raw_requests_and_sign_in_know_the_signature(folder: Path, server: AnyServer) -> None:
    settings = {"privateKeyPath": "rsa.pem"}
    headers = {"X-Signature": "{{signature}}"}
    body = await sent(
        server, folder, settings, headers=headers, auth={"type": "bearer", "token": "{{signature}}"}
    )
    seen = server.requests[-1]
    assert seen.headers["x-signature"] == body["s"] and seen.headers["authorization"] == f"Bearer {body['s']}"
    text = (
        f"POST /raw HTTP/1.1\nHost: 127.0.0.1:{server.port}\nContent-Type: application/json\n\n"
        '{"s": "{{signature}}", "t": "{{signatureTimestamp}}"}'
    )
    check(await sent(server, folder, settings, request=text))


def test_a_signature_lasts_until_shortly_before_its_end() -> None:
    now = 1000.0
    clock = lambda: now  # noqa: E731
    settings = {"privateKeyPath": "rsa.pem", "signatureValidityMs": 10_000}
    plain = RequestSignature(settings, services(KEYS), KEYS, "p", clock)
    early = RequestSignature({**settings, "signatureRefreshBufferMs": 4000}, services(KEYS), KEYS, "p", clock)
    times: dict[float, tuple[int, int]] = {}
    for now in (1000.0, 1005.999, 1006.0, 1008.999, 1009.0):
        one: dict[str, Any] = {}
        other: dict[str, Any] = {}
        plain.add(one)
        early.add(other)
        times[now] = (one["signatureTimestamp"], other["signatureTimestamp"])
    assert [time[0] for time in times.values()] == [1_000_000] * 4 + [1_009_000]
    assert [time[1] for time in times.values()] == [1_000_000] * 2 + [1_006_000] * 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "a private key is missing: privateKey, privateKeyPath, pfxPath or keystorePath"),
        ("yes", "expected a mapping"),
        ({"type": "gpg"}, "type: 'gpg' is none of pem, pfx, jks"),
        ({"privateKeyPath": "none.pem"}, r"privateKeyPath: none\.pem: No such file"),
        ({"privateKeyPath": "rsa-public.pem"}, "it is no private key in PEM"),
        ({"privateKeyPath": "rsa-locked.pem"}, "is locked with a password"),
        ({"privateKeyPath": "rsa-locked.pem", "keyPassword": "wrong"}, "the password of the private key is wrong"),
        ({"privateKeyPath": "rsa.pem", "signatureAlgorithm": "NOPE"}, "there is no algorithm 'NOPE'; for example"),
        ({"privateKeyPath": "rsa.pem", "signatureValidityMs": "5"}, "signatureValidityMs: expected milliseconds"),
        ({"privateKeyPath": 5}, "privateKeyPath: expected text"),
        ({"pfxPath": "rsa.p12"}, r"pfxPassword \(or PROMPTFOO_PFX_PASSWORD\) is missing"),
        ({"pfxPath": "rsa.p12", "pfxPassword": "wrong"}, "no PKCS#12 file, or the password is wrong"),
        ({"pfxPath": "rsa.pem", "pfxPassword": WORD}, "no PKCS#12 file, or the password is wrong"),
        ({"pfxPath": "no-key.p12", "pfxPassword": WORD}, "there is no private key in it"),
        ({"pfxContent": "*", "pfxPassword": WORD}, "pfxContent: it is not base64"),
        ({"type": "pfx"}, "pfxPath, pfxContent, certPath with keyPath"),
        ({"keystorePath": "rsa.jks"}, r"keystorePassword \(or PROMPTFOO_JKS_PASSWORD\) is missing"),
        ({"type": "jks", "keystorePassword": WORD}, "keystorePath or keystoreContent is missing"),
        ({"keystorePath": "rsa.jks", "keystorePassword": "wrong"}, "the password is wrong, or the keystore is damaged"),
        ({"keystorePath": "rsa.jceks", "keystorePassword": WORD}, "JCEKS; make it PKCS#12: keytool"),
        ({"keystorePath": "rsa.jks", "keystorePassword": WORD, "keyAlias": "x"}, "has no alias x; there are: mine"),
        ({"keystorePath": "several.jks", "keystorePassword": WORD}, "the password of the key second is another one"),
        ({"keystorePath": "several.jks", "keystorePassword": WORD, "keyAlias": "authority"},
         "there is no private key under the alias authority"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used(
    folder: Path, server: AnyServer, settings: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PFX", "JKS"):
        monkeypatch.delenv(f"PROMPTFOO_{name}_PASSWORD", raising=False)
    with pytest.raises(ConfigError, match=said) as caught:
        provider(server, folder, settings)
    assert "config.signatureAuth" in str(caught.value) and "\n" not in str(caught.value)
    assert WORD not in str(caught.value)


async def test_a_key_of_a_variable_that_is_none(folder: Path, server: AnyServer) -> None:
    with pytest.raises(AgentError, match=r"config\.signatureAuth: it is no private key in PEM"):
        await sent(server, folder, {"privateKey": "{{key}}"}, {"key": "nothing"})


async def test_a_key_that_cannot_sign(folder: Path, server: AnyServer) -> None:
    with pytest.raises(AgentError, match=r"Ed25519PrivateKey\) cannot sign with SHA256"):
        await sent(server, folder, {"privateKeyPath": "ed25519.pem"})


def test_a_keystore_cut_anywhere_is_said(folder: Path, server: AnyServer) -> None:
    whole = (KEYS / "rsa.jks").read_bytes()
    for end in (5, 40, 300, len(whole) - 1):
        (folder / "cut.jks").write_bytes(whole[:end])
        with pytest.raises(ConfigError, match="the keystore is damaged"):
            provider(server, folder, {"keystorePath": "cut.jks", "keystorePassword": WORD})


def test_a_key_outside_the_root_needs_trust(folder: Path, server: AnyServer) -> None:
    (folder / "suite").mkdir()
    settings = {"privateKeyPath": "../rsa.pem"}
    with pytest.raises(NeedsTrust, match=r"rsa\.pem"):
        provider(server, folder / "suite", settings, trusted=False)
    provider(server, folder / "suite", settings)


def test_without_the_library_the_extra_is_named(
    folder: Path, server: AnyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    for settings in (
        {"privateKeyPath": "rsa.pem"},
        {"pfxPath": "rsa.p12", "pfxPassword": WORD},
        {"keystorePath": "rsa.jks", "keystorePassword": WORD},
    ):
        with pytest.raises(ConfigError, match=r"pip install -e '\.\[certificates\]'"):
            provider(server, folder, settings)


def test_packed_keys_are_concealed(folder: Path, server: AnyServer) -> None:
    known: list[str] = []
    settings = {"pfxContent": packed("rsa.p12"), "pfxPassword": WORD}
    entry = {"id": f"{server.url}/chat", "config": {**SIGNED, "signatureAuth": settings}}
    create(for_provider(entry, Config(folder), folder), services(folder, conceal=known.append))
    assert known == [packed("rsa.p12")]
