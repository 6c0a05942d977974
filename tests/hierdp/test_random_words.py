"""Random words are independent, wiped, and never the same in two threads or processes."""

import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from hierdp.errors import InputError
from hierdp.privacy.tables import random_words
from hierdp.privacy.tables.random_words import system_words
from hierdp.privacy.tabulated import TabulatedNoise

ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")


def block(size=1000):
    words = np.zeros(size, dtype=np.uint64)
    system_words(words)
    return words


def never_the_same(blocks):
    """No two blocks share a word; of 64-bit words, it would take about 2³² to share one by chance."""
    together = np.concatenate(blocks)
    assert np.unique(together).size == together.size


def test_words_are_uniform():
    bits = np.unpackbits(block(100_000).view(np.uint8)).reshape(-1, 64)
    off = (bits.mean(axis=0) - 0.5) * 2 * np.sqrt(len(bits))
    assert (np.abs(off) < 8).all()
    counts = np.bincount(block(100_000).view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-12


def test_each_block_has_words_of_its_own():
    never_the_same([block() for _ in range(50)])


def test_threads_share_no_words():
    with ThreadPoolExecutor(8) as pool:
        never_the_same(list(pool.map(lambda _: block(), range(200))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_repeats_nothing():
    first = block()
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(3)]
    children = [context.Process(target=lambda end=end: end.send(block())) for _, end in pipes]
    for child in children:
        child.start()
    received = [end.recv() for end, _ in pipes]
    for child in children:
        child.join()
    never_the_same([first, *received, block()])


def test_nothing_is_kept_between_two_blocks():
    """The module stores no generator, key or stream, so nothing can be seeded, shared or repeated."""
    before = dict(vars(random_words))
    block()
    assert dict(vars(random_words)) == before
    kinds = (np.ndarray, bytearray, np.random.Generator, ciphers.Cipher, ciphers.CipherContext)
    assert not [name for name, value in before.items() if isinstance(value, kinds)]


@pytest.mark.parametrize("fails", [False, True])
def test_the_key_is_fresh_and_wiped(monkeypatch, fails):
    held, seen = [], []
    cipher = ciphers.Cipher

    def keep(algorithm, *mode, **options):
        held.append(algorithm.key)
        seen.append(bytes(algorithm.key))
        if fails:
            raise MemoryError
        return cipher(algorithm, *mode, **options)

    monkeypatch.setattr(ciphers, "Cipher", keep)
    for _ in range(3):
        if fails:
            with pytest.raises(MemoryError):
                block()
        else:
            block()
    assert len(set(seen)) == 3
    assert [len(key) for key in seen] == [32] * 3
    assert not any(any(key) for key in held)


def test_what_was_in_the_array_does_not_matter():
    words = np.full(1000, 2**64 - 1, dtype=np.uint64)
    system_words(words)
    assert (words != 2**64 - 1).all()
    key, stream = bytearray(32), np.full(4, 7, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda _: bytes(key))
        system_words(stream)
    # The first block of ChaCha20 under the zero key: RFC 8439, A.1, test vector 1.
    want = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert stream.tobytes().hex() == want


@pytest.mark.parametrize(
    ("package", "module"),
    [("python-flint", "flint"), ("cryptography", "cryptography.hazmat.primitives.ciphers")],
)
def test_a_missing_library_is_named(monkeypatch, package, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"needs {package}: install hierdp\[noise\]"):
        TabulatedNoise()
