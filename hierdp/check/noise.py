"""Test whether noise has the scale that a budget claims, by sums that were measured twice.

A parent's noisy count minus the sum of its children's is pure noise. If the claims hold, the
evidence against them is an e-value: never negative, and 1 on average at most, so that by Markov's inequality
it reaches 10⁹ in at most one of 10⁹ releases. This holds for any counts, by the exact law of the noise.

*Too little noise.* Of independent differences d with known law, ∏ exp(−s·d²) / E exp(−s·D²) is an e-value. If
the parents were chosen by their noisy counts, D is the noise of the children alone: given the rest, d is D
plus a constant, and no constant raises E exp(−s·D²), since the law of D is symmetric and unimodal (Anderson
1955). It is computed as E exp(−s·D²) = E φ(√(2s)·G), for G standard normal and φ the characteristic function
of D.

*Too much noise.* ∏ cosh(s·d) / M(s), for M the moment generating function. If the parents were chosen, the
children's noise is independent of the parents' own noise e, which leaves ∏ cosh(s·e), at most that of all
parents.

Averages of e-values, here over several s, levels and both directions, are e-values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hierdp.check.result import FAILS, HOLDS, CheckResult
from hierdp.privacy.twice import Floats, Twice
from models.arithmetic.arrays import Ints

ODDS = 1e9
"""An honest release fails with at most this probability."""

LITTLE = 0.25, 1.0, 4.0, 16.0, 64.0
"""Values of s for too little noise, in 1/variance."""

MUCH = 0.1, 0.25, 0.5, 1.0
"""Values of s for too much noise, in 1/standard deviation."""

NORMAL = np.linspace(-9, 9, 1801)
WEIGHTS = np.exp(-(NORMAL**2) / 2) / np.exp(-(NORMAL**2) / 2).sum()


def check_noise(twice: Iterable[Twice]) -> Iterator[CheckResult]:
    """Yield one line about all sums that were measured twice; none if there are none."""
    found = [(each, little, evidence) for each in twice for little, evidence in _evidence(each)]
    if not found:
        return
    in_all = _mean([evidence for *_, evidence in found])
    each, little, _ = max(found, key=lambda line: line[2])
    if in_all >= math.log(ODDS):
        how = "smaller" if little else "larger"
        why = (
            f"{each.what}: the noise is {how} than a scale of {each.law.scale:g} gives; by chance, this "
            f"happens at most once in 10^{int(in_all / math.log(10))} releases"
        )
        yield CheckResult("noise", FAILS, why)
    else:
        many = sum({id(one.differences): one.differences.size for one, *_ in found}.values())
        yield CheckResult(
            "noise", HOLDS, f"{many:,} sums measured twice differ as the claimed scales predict"
        )


def _evidence(twice: Twice) -> Iterator[tuple[bool, float]]:
    """The logarithms of e-values, each with whether it is evidence of too little noise."""
    there = twice.counts > 0
    off, counts = twice.differences[there], twice.counts[there]
    if not off.size:
        return
    own = 0.0 if twice.own is None else twice.own.variance
    fresh = counts * twice.law.variance + (own if twice.chosen_of is None else 0.0)
    if fresh.min() > 0.01:  # otherwise there is hardly any noise to test
        kinds, kind = np.unique(counts, return_inverse=True)
        yield True, _mean([_little(twice, off, fresh, kinds, kind, c) for c in LITTLE])
    if twice.chosen_of is None or twice.chosen_of:
        deviations = np.sqrt(counts * twice.law.variance + own)
        yield False, _mean([_much(twice, off, counts, deviations, c) for c in MUCH])


def _little(twice: Twice, off: Floats, fresh: Floats, kinds: Ints, kind: Ints, c: float) -> float:
    first = np.unique(kind, return_index=True)[1]
    expected = []
    for count, variance in zip(kinds.tolist(), fresh[first].tolist(), strict=True):
        at = math.sqrt(2 * c / variance) * NORMAL
        heights = twice.law.characteristic(at) ** count
        if twice.own is not None and twice.chosen_of is None:
            heights = heights * twice.own.characteristic(at)
        expected.append(math.log(float(heights @ WEIGHTS)))
    return float((-c * off**2 / fresh - np.array(expected)[kind]).sum())


def _much(twice: Twice, off: Floats, counts: Ints, deviations: Floats, c: float) -> float:
    laws = [law for law in (twice.law, twice.own) if law is not None and not law.gaussian]
    most = min((0.9 / law.scale for law in laws), default=math.inf)
    # If the parents were chosen, one s for all: the bound covers the noise of the parents left out, too.
    wide = deviations if twice.chosen_of is None else np.full(off.size, deviations.max())
    s = np.minimum(c / np.maximum(wide, 1e-9), most)
    reached = np.abs(s * off)
    got = reached + np.log1p(np.exp(-2 * reached)) - math.log(2) - counts * twice.law.log_moment(s)
    own = 0.0
    if twice.own is not None:
        parents = s if twice.chosen_of is None else np.full(twice.chosen_of, s[0])
        own = float(twice.own.log_moment(parents).sum())
    return float(got.sum()) - own


def _mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of numbers, given their logarithms."""
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs) / len(logs))
