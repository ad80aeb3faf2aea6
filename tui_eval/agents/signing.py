"""Signing text with a private key, with the algorithm names that node's `createSign` knows."""

from __future__ import annotations

import base64
from typing import Any

from tui_eval.agents.key_files import KeyFileError
from tui_eval.agents.wire import one_line

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
