"""The laws of tabulated noise, computed in other ways, and sources of random words for tests."""

import math
from fractions import Fraction

import numpy as np

DIGITS = 300
"""Binary digits of the intervals: enough for edges of 128 bits."""


class Exhausted(Exception):
    """A draw needs more words than a script contains."""


class Scripted:
    """Words from a list; the filled arrays are kept, so that a test can check whether they were wiped."""

    def __init__(self, *words):
        self.words, self.filled = list(words), []

    def __call__(self, into):
        if into.size > len(self.words):
            raise Exhausted
        into[:], self.words = self.words[: into.size], self.words[into.size :]
        self.filled.append(into)


class Seeded:
    """Pseudo-random words, the same in every run; counts the words drawn."""

    def __init__(self, seed):
        self.rng, self.count = np.random.default_rng(seed), 0

    def __call__(self, into):
        into[:] = self.rng.integers(0, 2**64, into.size, dtype=np.uint64)
        self.count += into.size


def interval(value):
    """A fraction in mpmath's interval arithmetic."""
    from mpmath import iv

    iv.prec = DIGITS
    exact = Fraction(value)
    return iv.mpf(exact.numerator) / iv.mpf(exact.denominator)


def geometric(scale, k):
    """P(X ≤ k) where P(X = k) = (1 − q)/(1 + q) q^|k|, by mpmath's interval arithmetic."""
    from mpmath import iv

    def power(n):
        return iv.exp(interval(-n / Fraction(scale)))

    return power(-k) / (1 + power(1)) if k < 0 else 1 - power(k + 1) / (1 + power(1))


def digit(scale, unit, base, k):
    """P(D ≤ k): the sum of the masses of 0 to k over the sum of all, term by term."""
    from mpmath import iv

    if k >= base - 1:
        return iv.mpf(1)
    masses = [iv.exp(interval(-unit * d / Fraction(scale))) for d in range(base)]
    return sum(masses[: k + 1], iv.mpf(0)) / sum(masses, iv.mpf(0))


def gaussian(scale, ks):
    """P(X ≤ k) for consecutive k: the masses are summed term by term, with a bound on the rest.

    For j > J ≥ σ², exp(−j²/2σ²) is at most exp(−j/2), so the sum of these terms is at most 2.6 exp(−J/2).
    """
    from mpmath import iv

    rate = -1 / (2 * Fraction(scale) ** 2)
    far = max(math.ceil(scale**2), math.ceil(22 * scale), 2 * DIGITS, max(map(abs, ks)) + 1)
    rest = 3 * iv.exp(interval(Fraction(-far, 2)))
    left_out = iv.mpf([0, rest.b])
    positive = [iv.exp(interval(rate * j * j)) for j in range(far + 1)]
    whole = 1 + 2 * (sum(positive[1:], iv.mpf(0)) + left_out)
    found, total = [], left_out
    at = iter(ks)
    k = next(at)
    for j in range(-far, far + 1):
        total += positive[abs(j)]
        if j == k:
            found.append(total / whole)
            k = next(at, None)
    return found


def pmf(name, scale, k):
    """P(X = k) for an array of k, in floats."""
    if name == "geometric":
        return np.exp(-np.abs(k) / scale) * math.tanh(0.5 / scale)
    support = np.arange(-math.ceil(40 * scale) - 1, math.ceil(40 * scale) + 2)
    return np.exp(-(k**2) / (2 * scale**2)) / np.exp(-(support**2) / (2 * scale**2)).sum()
