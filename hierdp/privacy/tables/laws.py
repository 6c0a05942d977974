"""Distribution functions on the whole numbers, enclosed between neighbouring multiples of 2⁻ᵇ.

All of them are computed in Arb's ball arithmetic (python-flint), whose balls contain the true value at any
precision. If a ball is too wide to decide the enclosure, it is computed again with more digits. The scale of
a law is a fraction: the exact value of the float that the privacy map is asked about.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Protocol

GUARDS = 64, 128, 256, 512, 1024, 2048, 4096
"""Numbers of extra digits, tried in turn until the result is certain."""


class Law(Protocol):
    """A law on the whole numbers, by its distribution function F."""

    def edge(self, k: int, bits: int) -> int:
        """A whole number E with E ≤ 2ᵇⁱᵗˢ F(k) ≤ E + 1."""

    def edges(self, bits: int) -> tuple[int, list[int]]:
        """The value of a table's first edge, and all its edges.

        They run from the last k < 0 whose edge is 0 to the first k ≥ 0 whose edge is 2ᵇⁱᵗˢ − 1.
        """


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(X = k) = exp(−k²/2σ²)/Θ, Θ = Σ exp(−j²/2σ²) over all whole numbers j.

    - scale: σ.
    """

    scale: Fraction

    def edge(self, k: int, bits: int) -> int:
        """See `Law.edge`; a sum of |k| terms."""
        before = max(k, -1 - k)
        tail = _certain(lambda: next(islice(self._tails(bits), before, None)), bits)
        return tail if k < 0 else _mirrored(tail, bits)

    def edges(self, bits: int) -> tuple[int, list[int]]:
        """See `Law.edges`."""
        tails = _floors(lambda: self._tails(bits), bits)
        return _joined(tails, tails, bits)

    def _tails(self, bits: int) -> Iterator[Any]:
        """2ᵇⁱᵗˢ F(−1 − j) for j = 0, 1, …: (1 − P(X = 0))/2, less P(X = 1), less P(X = 2), …."""
        from flint import acb, arb

        rate = _arb(1 / (2 * self.scale**2))
        theta = acb.modular_theta(acb(0), acb(0, rate / arb.pi()))[2].real
        mass = arb(1 << bits) / theta  # of 0, then of 1, 2, …
        tail = (arb(1 << bits) - mass) / 2
        ratio = (-rate).exp()  # from j to j + 1: exp(−(2j + 1)/2σ²)
        step = ratio * ratio
        while True:
            yield tail
            mass *= ratio
            ratio *= step
            tail -= mass


@dataclass(frozen=True)
class Quotient:
    """⌊X/N⌋ of double-geometric noise X, P(X = k) ∝ exp(−|k|/λ); of X itself for N = 1.

    With q = exp(−1/λ), F(t) is q · qᴺ⁽⁻¹⁻ᵗ⁾/(1 + q) for t < 0, and 1 − qᴺ⁽ᵗ⁺¹⁾/(1 + q) for t ≥ 0.

    - scale: λ.
    - of: N.
    """

    scale: Fraction
    of: int = 1

    def edge(self, k: int, bits: int) -> int:
        """See `Law.edge`."""
        power = 1 + self.of * (-1 - k) if k < 0 else self.of * (k + 1)
        tail = _certain(lambda: self._tail(power, bits), bits)
        return tail if k < 0 else _mirrored(tail, bits)

    def edges(self, bits: int) -> tuple[int, list[int]]:
        """See `Law.edges`."""
        below = _floors(lambda: self._tails(1, bits), bits)
        above = _floors(lambda: self._tails(self.of, bits), bits)
        return _joined(below, above, bits)

    def _tail(self, power: int, bits: int) -> Any:
        """2ᵇⁱᵗˢ qᵖᵒʷᵉʳ/(1 + q)."""
        return (1 << bits) * _arb(-power / self.scale).exp() / (1 + _arb(-1 / self.scale).exp())

    def _tails(self, power: int, bits: int) -> Iterator[Any]:
        """The tails for a power, the power + N, the power + 2N, …."""
        tail, ratio = self._tail(power, bits), _arb(-self.of / self.scale).exp()
        while True:
            yield tail
            tail *= ratio


@dataclass(frozen=True)
class Digit:
    """One digit of geometric noise to base B: a number from 0 to B − 1, P(D = d) ∝ exp(−u·d/λ).

    For 0 ≤ d < B, 1 − F(d) = (exp(−u(d + 1)/λ) − exp(−uB/λ))/(1 − exp(−uB/λ)).

    - scale: λ.
    - unit: u, the value of one step of this digit.
    - base: B.
    """

    scale: Fraction
    unit: int
    base: int

    def edge(self, k: int, bits: int) -> int:
        """See `Law.edge`."""
        if k < 0:
            return 0
        before = min(k, self.base - 1)
        return _mirrored(_certain(lambda: next(islice(self._tails(bits, before), 1)), bits), bits)

    def edges(self, bits: int) -> tuple[int, list[int]]:
        """See `Law.edges`."""
        return _joined([0], _floors(lambda: self._tails(bits), bits), bits)

    def _tails(self, bits: int, first: int = 0) -> Iterator[Any]:
        """2ᵇⁱᵗˢ (1 − F(d)) for d = first, …, B − 1, the last of which is 0."""
        ratio, last = (_arb(-self.unit * n / self.scale).exp() for n in (1, self.base))
        scaled = -(1 << bits) / _arb(-self.unit * self.base / self.scale).expm1()
        power = _arb(-self.unit * (first + 1) / self.scale).exp()
        for _ in range(first, self.base - 1):
            yield scaled * (power - last)
            power *= ratio
        yield _arb(0)


def _arb(value: Fraction | int) -> Any:
    """A ball around a fraction."""
    from flint import arb, fmpq

    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def _certain(value: Callable[[], Any], bits: int) -> int:
    """A whole number E with E ≤ x ≤ E + 1, for an x ≥ 0 that `value` encloses at any precision."""
    return _floors(lambda: iter((value(),)), bits)[0]


def _floors(values: Callable[[], Iterator[Any]], bits: int) -> list[int]:
    """`_certain` for several numbers, up to the first whose E is 0.

    Raises `ArithmeticError` if one is so close to a whole number that no precision of `GUARDS` decides its E;
    this was never observed.
    """
    for guard in GUARDS:
        with _digits(bits + guard):
            found = _as_far_as_known(values())
        if found is not None:
            return found
    raise ArithmeticError(f"a distribution function is too close to a multiple of 2⁻ᵇ: {GUARDS[-1]} digits")


def _as_far_as_known(balls: Iterable[Any]) -> list[int] | None:
    found: list[int] = []
    for ball in balls:
        floor = ball.nonnegative_part().floor().unique_fmpz()
        if floor is None:
            return None
        found.append(int(floor))
        if not found[-1]:
            break
    return found


def _mirrored(tail: int, bits: int) -> int:
    """The edge of 1 − F from that of F: from E ≤ x ≤ E + 1 follows 2ᵇ − E − 1 ≤ 2ᵇ − x ≤ 2ᵇ − E."""
    return (1 << bits) - 1 - tail


def _joined(below: list[int], above: list[int], bits: int) -> tuple[int, list[int]]:
    """`Law.edges` from the floors of 2ᵇF(−1), 2ᵇF(−2), … and those of 2ᵇ(1 − F(0)), 2ᵇ(1 − F(1)), …."""
    return -len(below), [*below[::-1], *(_mirrored(tail, bits) for tail in above)]


@contextmanager
def _digits(precision: int) -> Iterator[None]:
    """Compute with a precision in binary digits; one thread at a time, because the setting is global."""
    from flint import ctx

    with _one_at_a_time, ctx.workprec(precision):
        yield


_one_at_a_time = threading.Lock()


def _afresh() -> None:
    """Replace the lock in a forked process, where one held by another thread would stay locked."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_afresh)
