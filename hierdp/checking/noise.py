"""Test whether noise has the scale that a budget claims, by noisy counts and by sums measured twice.

A parent's noisy count minus the sum of its children's is pure noise, so its law is known exactly, whatever
the counts are. Each test gives a p-value for this law: at most α in at most a share α of honest releases. The
least of n p-values is multiplied by n (Bonferroni), so at most one in 10⁶ honest releases fails.

This covers what distances between noisy and released counts can show: the residuals of least squares are
linear in these differences, and have as many degrees of freedom. It needs no simulation, and holds for
isotonic and whole fits, whose distances depend on the true counts.

*Too little noise.* For independent differences d with known law, let T = Σ d²/Var(D). Then P(T ≤ t) is at
most exp(s·t)·∏ E exp(−s·D²/Var(D)) for every s > 0, and so for the best one (Chernoff). If the parents were
chosen by their noisy counts, D is the noise of the children alone: given the rest, d is D plus a constant,
and no constant raises E exp(−s·D²), since the law of D is symmetric and unimodal (Anderson 1955). It is
computed as E exp(−s·D²) = E φ(√(2s)·G), for G standard normal and φ the characteristic function of D.

Noisy counts of a query that all lie near 0, compared with the claimed scale, are evidence of too little
noise, too: d is then D plus the true count, a constant.

*Too much noise.* ∏ cosh(s·d) / M(s), for M the moment generating function, is 1 on average at most; so is its
mean over several s, and its inverse is a p-value by Markov's inequality. If the parents were chosen, the
children's noise is independent of the parents' own noise e, which leaves ∏ cosh(s·e), at most that of all
parents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.measurements.redundant_sums import CountNoise, Floats, Recovered, RedundantSums
from models.arithmetic.arrays import Ints

ODDS = 1e6
"""An honest release fails with at most this probability."""

LITTLE = tuple(2.0**k for k in range(-2, 15))
"""Values of s for too little noise, in 1/variance."""

STEEPEST = 8.0
"""The largest s beyond 64/variance: noise is whole, so larger ones only tell 0 from other values."""

MUCH = 0.1, 0.25, 0.5, 1.0
"""Values of s for too much noise, in 1/standard deviation."""

FINEST = 1801
"""The number of points of the normal law with which E exp(−s·D²) is computed, for s up to 64/variance."""

AT_ONCE = 30_000
"""Points of the law of noise that are computed together."""


def check_noise(
    twice: Iterable[RedundantSums],
    recovered: Iterable[Recovered] = (),
    spends: Iterable[Mapping[str, Any]] = (),
) -> Iterator[CheckResult]:
    """Yield one line about all noisy counts, and all sums that were measured twice; none if there are none.

    - recovered: the noisy counts of each query.
    - spends: the measurements in the manifest's budget, with the laws of their noise.
    """
    twice = [*twice, *_near_zero(recovered, spends)]
    found = [(each, little, evidence) for each in twice for little, evidence in _evidence(each)]
    if not found:
        return
    each, little, most = max(found, key=lambda line: line[2])
    in_all = most - math.log(len(found))
    if in_all >= math.log(ODDS):
        how = "smaller" if little else "larger"
        why = (
            f"{each.what}: the noise is {how} than a scale of {each.law.scale:g} gives; by chance, this "
            f"happens at most once in 10^{int(in_all / math.log(10))} releases"
        )
        yield CheckResult("noise", FAILS, why)
    else:
        many = {id(one): (one.differences.size, one.near_zero) for one, *_ in found}.values()
        sums, counts = (sum(n for n, near in many if near == which) for which in (False, True))
        parts = [f"{sums:,} sums measured twice differ as the claimed scales predict"] if sums else []
        parts += [f"{counts:,} noisy counts are not too near to 0 for the claimed scales"] if counts else []
        yield CheckResult("noise", HOLDS, "; ".join(parts))


def _near_zero(
    recovered: Iterable[Recovered], spends: Iterable[Mapping[str, Any]]
) -> Iterator[RedundantSums]:
    """The noisy counts of each query as differences from 0: noise and unknown constants."""
    laws = {
        spend["query"]: CountNoise.of(spend)
        for spend in spends
        if spend["noise"] in ("double-geometric", "discrete Gaussian")
    }
    parts: dict[str, list[Ints]] = {}
    for one in recovered:
        if one.query in laws:
            parts.setdefault(one.query, []).append(one.noisy)
    for query, noisy in parts.items():
        off = np.concatenate(noisy).astype(np.float64)
        ones = np.ones(off.size, dtype=np.int64)
        yield RedundantSums(query, off, laws[query], ones, None, chosen_of=0, near_zero=True)


def _evidence(twice: RedundantSums) -> Iterator[tuple[bool, float]]:
    """The logarithms of inverse p-values, each with whether it is evidence of too little noise."""
    there = twice.counts > 0
    off, counts = twice.differences[there], twice.counts[there]
    if not off.size:
        return
    own = 0.0 if twice.own is None else twice.own.variance
    beside = twice.own if twice.chosen_of is None else None
    fresh = counts * twice.law.variance + (0.0 if beside is None else own)
    if fresh.min() > 0.01:  # otherwise there is hardly any noise to test
        kinds, each = np.unique(counts, return_counts=True)
        reached, of_kind = float((off**2 / fresh).sum()), tuple(kinds.tolist())
        scales = [c for c in LITTLE if c <= max(64.0, STEEPEST * float(fresh.min()))]
        yield (
            True,
            max(-c * reached - float(each @ _expected(twice.law, beside, of_kind, c)) for c in scales),
        )
    if twice.chosen_of is None or twice.chosen_of:
        deviations = np.sqrt(counts * twice.law.variance + own)
        yield False, _mean([_much(twice, off, counts, deviations, c) for c in MUCH])


@lru_cache(maxsize=len(LITTLE) * 8)  # queries of a level have the same laws and numbers of children
def _expected(law: CountNoise, own: CountNoise | None, kinds: tuple[int, ...], c: float) -> Floats:
    """ln E exp(−c · D² / Var D), for the noise D of each number of counts, and of the parent's own if any."""
    counts = np.array(kinds)
    fresh = counts * law.variance + (0.0 if own is None else own.variance)
    points = int(FINEST * max(1.0, math.sqrt(c / 64))) // 2 + 1
    normal = np.linspace(0, 9, points)  # both sides are the same
    weights = np.exp(-(normal**2) / 2)
    weights[1:] *= 2
    weights /= weights.sum()
    found = []
    for part in np.array_split(np.arange(counts.size), -(-counts.size * points // AT_ONCE)):
        at = np.sqrt(2 * c / fresh[part])[:, None] * normal
        with np.errstate(divide="ignore"):  # of 0, the logarithm is -∞
            heights = np.exp(counts[part, None] * np.log(law.characteristic(at)))
        if own is not None:
            heights = heights * own.characteristic(at)
        found.append(np.log(heights @ weights))
    return np.concatenate(found)


def _much(twice: RedundantSums, off: Floats, counts: Ints, deviations: Floats, c: float) -> float:
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
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs) / len(logs))
