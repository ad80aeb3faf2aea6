"""Private keys and certificates out of PEM, PKCS#12 (`.pfx`, `.p12`) and Java keystores.

Needs the extra `certificates`; `cryptography` is imported when a key is read.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from tui_eval.agents.loose_json import one_line
from tui_eval.extensions import adding

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


# -- Java keystores (JKS, as `keytool -storetype jks` writes them): private keys and their certificates.


MAGIC = b"\xfe\xed\xfe\xed"
MAGIC_JCEKS = b"\xce\xce\xce\xce"
_SALTED_WITH = b"Mighty Aphrodite"
_SHA1 = 20
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")
"""The OID 1.3.6.1.4.1.42.2.17.1.1 of Sun's key protection, in DER."""


@dataclass(frozen=True, slots=True)
class KeystoreEntry:
    """One entry; `protected` is its key as it is stored (empty: certificates alone), the rest is DER."""

    alias: str
    protected: bytes
    certificates: list[bytes]


def entries(data: bytes, password: str) -> list[KeystoreEntry]:
    """The entries of a keystore in their order.

    Raises:
        ValueError: it is none, or the password is another one; one line.
    """
    secret = password.encode("utf-16-be", "surrogatepass")
    kept = hashlib.sha1(secret + _SALTED_WITH + data[:-_SHA1]).digest()
    if not data.startswith(MAGIC):
        raise ValueError("it is no Java keystore")
    if not compare_digest(kept, data[-_SHA1:]):
        raise ValueError("the password is wrong, or the keystore is damaged")
    reading = _Reading(data[:-_SHA1], len(MAGIC))
    try:
        version, count = reading.number(), reading.number()
        return [_entry(reading, version) for _ in range(count)]
    except (struct.error, UnicodeDecodeError):
        raise ValueError("the keystore is damaged") from None


def private_key(entry: KeystoreEntry, password: str) -> bytes:
    """The private key of an entry: PKCS#8, DER.

    Raises:
        ValueError: it is protected in another way, or with another password.
    """
    kept = _protected_bytes(entry.protected)
    salt, hidden, check = kept[:_SHA1], kept[_SHA1:-_SHA1], kept[-_SHA1:]
    secret = password.encode("utf-16-be", "surrogatepass")
    stream, last = bytearray(), salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(secret + last).digest()
        stream += last
    key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise ValueError(f"the password of the key {entry.alias} is another one")
    return key


def _entry(reading: _Reading, version: int) -> KeystoreEntry:
    kind, alias = reading.number(), reading.text()
    reading.take(8)  # when it was made
    protected = reading.block() if kind == 1 else b""
    certificates = []
    for _ in range(reading.number() if kind == 1 else 1):
        if version == 2:
            reading.text()  # X.509
        certificates.append(reading.block())
    return KeystoreEntry(alias, protected, certificates)


def _protected_bytes(data: bytes) -> bytes:
    """What Sun's protection made of a key, out of the EncryptedPrivateKeyInfo (RFC 5208) around it."""
    try:
        start, _ = _der(data, 0)
        algorithm, end = _der(data, start)
        if not data[algorithm:end].startswith(_PROTECTION):
            raise ValueError("its key is not protected in the way of JKS")
        start, end = _der(data, end)
    except IndexError:
        raise ValueError("the keystore is damaged") from None
    if end - start < 2 * _SHA1 or end > len(data):
        raise ValueError("the keystore is damaged")
    return data[start:end]


def _der(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of the DER value at a place begins and ends."""
    length, start = data[at + 1], at + 2
    if length > 127:
        start += length - 128
        length = int.from_bytes(data[at + 2 : start], "big")
    return start, start + length


class _Reading:
    """A place in the bytes; running over their end is a `struct.error`."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise struct.error("it ends too early")
        self._at += count
        return found

    def number(self) -> int:
        return struct.unpack(">I", self.take(4))[0]

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(struct.unpack(">H", self.take(2))[0]).decode("utf-8")


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
    if data.startswith(MAGIC_JCEKS):
        raise KeyFileError(
            "a keystore of type JCEKS; make it PKCS#12: keytool -importkeystore -deststoretype pkcs12"
        )
    if not data.startswith(MAGIC):
        return from_pkcs12(data, passwords[0])
    serialization = _serialization()
    from cryptography.x509 import load_der_x509_certificate

    try:
        found = entries(data, passwords[0])
        entry = _chosen(found, alias)
        key = _unlocked(entry, passwords)
        certificates = [load_der_x509_certificate(item) for item in entry.certificates]
        return Identity(serialization.load_der_private_key(key, None), certificates)
    except KeyFileError:
        raise
    except Exception as error:
        raise KeyFileError(_why(error)) from None


def _chosen(found: list[KeystoreEntry], alias: str | None) -> KeystoreEntry:
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


def _unlocked(entry: KeystoreEntry, passwords: Sequence[str]) -> bytes:
    for password in passwords[:-1]:
        try:
            return private_key(entry, password)
        except ValueError:
            continue
    return private_key(entry, passwords[-1])


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise KeyFileError(EXTRA) from None
    return serialization


def _why(error: Exception) -> str:
    return one_line(str(error), 120) or type(error).__name__
