"""Java keystores (JKS, as `keytool -storetype jks` writes them): private keys and their certificates.

The format is Sun's of Java 1.2. Newer Java writes PKCS#12 under the same file ending, which `key_files` reads. The one
library for it (pyjks) wants a compiler for a dependency that this does not need, so the few bytes are read here.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from hmac import compare_digest

MAGIC = b"\xfe\xed\xfe\xed"
MAGIC_JCEKS = b"\xce\xce\xce\xce"
_SALTED_WITH = b"Mighty Aphrodite"
_SHA1 = 20
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")
"""The OID 1.3.6.1.4.1.42.2.17.1.1 of Sun's key protection, in DER."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; `protected` is its key as it is stored (empty: certificates alone), the rest is DER."""

    alias: str
    protected: bytes
    certificates: list[bytes]


def entries(data: bytes, password: str) -> list[Entry]:
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


def private_key(entry: Entry, password: str) -> bytes:
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


def _entry(reading: _Reading, version: int) -> Entry:
    kind, alias = reading.number(), reading.text()
    reading.take(8)  # when it was made
    protected = reading.block() if kind == 1 else b""
    certificates = []
    for _ in range(reading.number() if kind == 1 else 1):
        if version == 2:
            reading.text()  # X.509
        certificates.append(reading.block())
    return Entry(alias, protected, certificates)


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
