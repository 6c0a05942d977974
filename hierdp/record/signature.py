"""Sign a release: an Ed25519 signature of its SHA256SUMS, in a file beside it.

Keys are PEM files as OpenSSL makes them; the signature is 64 bytes, which OpenSSL verifies, too:

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError
from hierdp.execution.seal import SIGNATURE, SUMS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_MOST_BYTES = 100_000
"""Largest size of a key's file, in bytes."""


def private_key(path: str | Path) -> Ed25519PrivateKey:
    """Read the key to sign with.

    Raises `InputError` if it cannot be read, is not an Ed25519 private key, or needs a password.
    """
    from_pem, text = _library().load_pem_private_key, _text(path)
    try:
        key = from_pem(text, password=None)
    except TypeError:
        raise InputError(
            f"the key in {path} needs a password: give a key without one, such as `openssl pkey -in {path}` "
            "writes, in a file that only you can read"
        ) from None
    except Exception:
        raise InputError(f"{path} is not a private key in PEM format; `{_MAKE}` makes one") from None
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"the key in {path} is not an Ed25519 key; `{_MAKE}` makes one")
    return key


def public_key(path: str | Path) -> Ed25519PublicKey:
    """Read the key to verify with.

    Raises `InputError` if it cannot be read, or is not an Ed25519 public key.
    """
    from_pem, text = _library().load_pem_public_key, _text(path)
    try:
        key = from_pem(text)
    except Exception:
        raise InputError(
            f"{path} is not a public key in PEM format; `openssl pkey -in private.pem -pubout` writes "
            "that of a private key"
        ) from None
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"the key in {path} is not an Ed25519 key; `{_MAKE}` makes a pair")
    return key


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Sign a sealed folder."""
    (folder / SIGNATURE).write_bytes(key.sign((folder / SUMS).read_bytes()))


def name_of(key: Ed25519PublicKey) -> str:
    """The SHA-256 digest of a public key, 64 hexadecimal digits: the manifest's `signed_with`."""
    return sha256(key.public_bytes_raw()).hexdigest()


def is_signed_by(folder: Path, key: Ed25519PublicKey) -> bool:
    """Whether the folder's signature was made with that key for its SHA256SUMS."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify((folder / SIGNATURE).read_bytes(), (folder / SUMS).read_bytes())
    except InvalidSignature:
        return False
    return True


_MAKE = "openssl genpkey -algorithm ed25519"


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise InputError("signatures need the package cryptography: pip install 'hierdp[sign]'") from None
    return serialization


def _text(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as unreadable:
        raise InputError(f"the key {path} cannot be read ({unreadable.strerror})") from None
