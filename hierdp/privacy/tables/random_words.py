"""Random words: each block is a ChaCha20 stream of its own, keyed by the operating system's generator.

No generator outlives a block. So threads share none, a forked process repeats none, and there is no state to
seed or save.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

KEY_BYTES, NONCE_BYTES = 32, 16


class WordSource(Protocol):
    """Where random words come from."""

    def __call__(self, into: Words, /) -> None:
        """Fill an array with independent, uniform words."""


def system_words(into: Words) -> None:
    """Fill an array with random words; the key is wiped before this returns."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    key = bytearray(os.urandom(KEY_BYTES))
    try:
        stream = Cipher(algorithms.ChaCha20(key, bytes(NONCE_BYTES)), mode=None).encryptor()
        into.fill(0)  # the plaintext: encrypted zeros are the stream itself
        view = memoryview(into.view(np.uint8))  # type: ignore[arg-type]
        stream.update_into(view, view)
    finally:
        key[:] = bytes(KEY_BYTES)
