"""Whether noise is of the scale that a budget claims, where the same was measured twice.

A parent's noisy count less the sum of its children's is noise and nothing else. If the claims hold, the
evidence against them is an e-value: never negative, and 1 on average at most, so that by Markov's inequality
it reaches 10⁹ in at most one of 10⁹ releases. That holds for any number of counts, whatever these are, and by
the noise's own law.

*Too little noise.* Of independent differences d with known law, ∏ exp(−s·d²) / E exp(−s·D²) is an e-value. If
the parents were chosen by their noisy counts, D is the noise of the children alone: given the rest, d is D
plus a constant, and no constant raises E exp(−s·D²), since the law of D is symmetric and unimodal (Anderson
1955). By E exp(−s·D²) = E φ(√(2s)·G), for G standard normal and φ the characteristic function of D.

*Too much noise.* ∏ cosh(s·d) / M(s), for M the moment generating function. If the parents were chosen, then
given their own noise e the children's is fresh, which leaves ∏ cosh(s·e), at most that of all parents.

Averages of e-values, here over several s, levels and both directions, are e-values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierdp.check.found import FAILS, HOLDS, Found
from hierdp.privacy.noise import double_geometric_variance
from models import Tree
from models.arithmetic.arrays import Ints

Floats = NDArray[np.floating[Any]]

ODDS = 1e9
"""An honest release fails at most once in so many."""

LITTLE = 0.25, 1.0, 4.0, 16.0, 64.0
"""Values of s for too little noise, in 1/variance."""

MUCH = 0.1, 0.25, 0.5, 1.0
"""Values of s for too much noise, in 1/standard deviation."""

NORMAL = np.linspace(-9, 9, 1801)
WEIGHTS = np.exp(-(NORMAL**2) / 2) / np.exp(-(NORMAL**2) / 2).sum()


class Law(NamedTuple):
    """Of the noise of one count."""

    gaussian: bool
    scale: float

    @classmethod
    def of(cls, spend: Mapping[str, Any]) -> Law:
        """That of a measurement on record: double-geometric or discrete Gaussian noise on each count."""
        if spend["noise"] not in ("double-geometric", "discrete Gaussian"):
            raise ValueError(f"{spend['noise']} is not added to counts")
        return cls(spend["noise"] == "discrete Gaussian", float(spend["scale"]))

    @property
    def variance(self) -> float:
        """Of the discrete Gaussian at most σ² (Canonne, Kamath & Steinke 2020)."""
        return self.scale**2 if self.gaussian else double_geometric_variance(self.scale)

    def characteristic(self, at: Floats) -> Floats:
        """E cos(at·X), which is never negative."""
        turned = np.remainder(at + np.pi, 2 * np.pi) - np.pi
        if not self.gaussian:
            q, p = math.exp(-1 / self.scale), -math.expm1(-1 / self.scale)
            return np.asarray(p**2 / (p**2 + 4 * q * np.sin(turned / 2) ** 2))
        if self.scale < 1:
            whole = np.arange(-40, 41)
            mass = np.exp(-(whole**2) / (2 * self.scale**2))
            return np.asarray(np.maximum(0.0, np.cos(np.multiply.outer(turned, whole)) @ mass / mass.sum()))
        images = 2 * np.pi * np.arange(-2, 3)  # Poisson's summation formula
        above = np.exp(-((np.add.outer(turned, images) * self.scale) ** 2) / 2).sum(axis=-1)
        return np.asarray(above / np.exp(-((images * self.scale) ** 2) / 2).sum())

    def log_moment(self, s: Floats) -> Floats:
        """ln E exp(s·X), or more: of the discrete Gaussian at most that of the continuous one (ibid.)."""
        if self.gaussian:
            return np.asarray((s * self.scale) ** 2 / 2)
        rate = 1 / self.scale
        below = np.log(-np.expm1(s - rate)) + np.log(-np.expm1(-s - rate))
        return np.asarray(2 * math.log(-math.expm1(-rate)) - below)


class Twice(NamedTuple):
    """What was measured twice, as differences that hold noise alone.

    Attributes
    ----------
    what : str
    differences : array, shape (n,)
    law : Law
        Of each count in the sum of children.
    counts : int array, shape (n,)
        How many counts have that noise in each difference.
    own : Law or None
        Of the one count that is not in that sum; None where it is public.
    chosen_of : int or None
        Where the parents were chosen by their noisy counts: of how many, 0 if that is not known. None where
        all are there.
    """

    what: str
    differences: Floats
    law: Law
    counts: Ints
    own: Law | None
    chosen_of: int | None = None


def of_tree(tree: Tree, noisy: NDArray[Any], laws: Sequence[Law | None], what: str) -> Iterator[Twice]:
    """All families of two measured levels.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,) or (nodes, numbers)
    laws : sequence of Law or None
        A level each; None where it was not measured.
    what : str
        What was measured, for messages.
    """
    sums, each = tree.child_sums(noisy), tree.child_sums(np.ones(tree.size, dtype=np.int64))
    depth = tree.level[tree.internal]
    for level, (own, law) in enumerate(pairwise(laws)):
        if own is None or law is None:
            continue
        here = depth == level
        off = (noisy[tree.internal[here]] - sums[here]).astype(np.float64)
        times = np.broadcast_to(each[here].reshape(-1, *[1] * (noisy.ndim - 1)), off.shape)
        yield Twice(f"{what} of levels {level} and {level + 1}", off.ravel(), law, times.ravel(), own)


def check_noise(twice: Iterable[Twice]) -> Iterator[Found]:
    """One line on all that was measured twice; none if nothing was."""
    found = [(each, little, evidence) for each in twice for little, evidence in _evidence(each)]
    if not found:
        return
    in_all = _mean([evidence for *_, evidence in found])
    each, little, _ = max(found, key=lambda line: line[2])
    if in_all >= math.log(ODDS):
        how = "smaller" if little else "larger"
        why = (
            f"{each.what}: the noise is {how} than a scale of {each.law.scale:g} gives; by chance so at most "
            f"once in 10^{int(in_all / math.log(10))} releases"
        )
        yield Found("noise", FAILS, why)
    else:
        many = sum({id(one.differences): one.differences.size for one, *_ in found}.values())
        yield Found("noise", HOLDS, f"{many:,} sums measured twice differ as the claimed scales let them")


def _evidence(twice: Twice) -> Iterator[tuple[bool, float]]:
    """Whether of too little noise, and the logarithm of the e-value."""
    there = twice.counts > 0
    off, counts = twice.differences[there], twice.counts[there]
    if not off.size:
        return
    own = 0.0 if twice.own is None else twice.own.variance
    fresh = counts * twice.law.variance + (own if twice.chosen_of is None else 0.0)
    if fresh.min() > 0.01:  # else there is hardly any noise to miss
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
    # One s for all, where the parents were chosen: their own noise is reckoned for those left out, too.
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
    """The logarithm of the mean of numbers given by theirs."""
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs) / len(logs))
