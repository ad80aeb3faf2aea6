"""Private keys and certificates out of PEM, PKCS#12 (`.pfx`, `.p12`) and Java keystores.

Needs the extra `certificates`; `cryptography` is imported when a key is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_eval.agents import java_keystore
from tui_eval.agents.wire import one_line
from tui_eval.extras import adding

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

EXTRA = f"needs the extra `certificates`: {adding('certificates')}"


class KeyFileError(Exception):
    """A key cannot be had from what was given; one line that names no secret."""


@dataclass(slots=True)
class Identity:
    """A private key and the certificates that go with it, the key's own first."""

    key: Any
    certificates: list[Certificate] = field(default_factory=list)

    def pem(self) -> tuple[str, str]:
        """PEM of the certificates and the key, and the password, made for this once, that the key is locked with."""
        from cryptography.hazmat.primitives import serialization

        password = secrets.token_hex(16)
        locked = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        chain = [item.public_bytes(serialization.Encoding.PEM) for item in self.certificates]
        return b"".join([*chain, locked]).decode("ascii"), password


def from_pem(text: str, password: str | None = None) -> Identity:
    """The key of a PEM text; `password` only where it is locked.

    Raises:
        KeyFileError: there is no key in it, or it is locked.
    """
    serialization = _serialization()
    data = text.strip().encode("utf-8", "replace")
    try:
        return Identity(serialization.load_pem_private_key(data, None))
    except TypeError:
        if not password:
            raise KeyFileError("the private key is locked with a password; give it, or an open key") from None
    except Exception as error:
        raise KeyFileError(f"it is no private key in PEM ({_why(error)})") from None
    try:
        return Identity(serialization.load_pem_private_key(data, password.encode()))
    except Exception:
        raise KeyFileError("the password of the private key is wrong") from None


def from_pkcs12(data: bytes, password: str | None) -> Identity:
    """The key and certificates of a PKCS#12 file.

    Raises:
        KeyFileError: it is none, the password is wrong, or it holds no key.
    """
    _serialization()
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except Exception as error:
        raise KeyFileError(f"it is no PKCS#12 file, or the password is wrong ({_why(error)})") from None
    if found.key is None:
        raise KeyFileError("there is no private key in it")
    own = [found.cert.certificate] if found.cert is not None else []
    return Identity(found.key, [*own, *(other.certificate for other in found.additional_certs)])


def from_java(data: bytes, passwords: Sequence[str], alias: str | None = None) -> Identity:
    """The key and certificates of a Java keystore under an alias (None: the first with a key). The first of the
    `passwords` opens the keystore, any of them the key. A `.jks` of newer Java is a PKCS#12 file.

    Raises:
        KeyFileError: it is none, a password is wrong, or there is no such key.
    """
    if data.startswith(java_keystore.MAGIC_JCEKS):
        raise KeyFileError(
            "a keystore of type JCEKS; make it PKCS#12: keytool -importkeystore -deststoretype pkcs12"
        )
    if not data.startswith(java_keystore.MAGIC):
        return from_pkcs12(data, passwords[0])
    serialization = _serialization()
    from cryptography.x509 import load_der_x509_certificate

    try:
        found = java_keystore.entries(data, passwords[0])
        entry = _chosen(found, alias)
        key = _unlocked(entry, passwords)
        certificates = [load_der_x509_certificate(item) for item in entry.certificates]
        return Identity(serialization.load_der_private_key(key, None), certificates)
    except KeyFileError:
        raise
    except Exception as error:
        raise KeyFileError(_why(error)) from None


def _chosen(found: list[java_keystore.Entry], alias: str | None) -> java_keystore.Entry:
    if alias is None:
        entry = next((entry for entry in found if entry.protected), None)
        if entry is None:
            raise KeyFileError("there is no private key in the keystore")
        return entry
    # Java keeps names in lower case.
    entry = next((entry for entry in found if entry.alias in (alias, alias.lower())), None)
    if entry is None:
        known = ", ".join(entry.alias for entry in found) or "none"
        raise KeyFileError(f"the keystore has no alias {alias}; there are: {one_line(known)}")
    if not entry.protected:
        raise KeyFileError(f"there is no private key under the alias {alias}")
    return entry


def _unlocked(entry: java_keystore.Entry, passwords: Sequence[str]) -> bytes:
    for password in passwords[:-1]:
        try:
            return java_keystore.private_key(entry, password)
        except ValueError:
            continue
    return java_keystore.private_key(entry, passwords[-1])


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise KeyFileError(EXTRA) from None
    return serialization


def _why(error: Exception) -> str:
    return one_line(str(error), 120) or type(error).__name__
