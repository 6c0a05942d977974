"""The cost of a draw of exact noise, from OpenDP and from tables, side by side; and tests of the law.

Each row is a law at a scale: nanoseconds of a draw by the clock, on all cores, as a release draws;
milliseconds to make the table; χ² of the draws from tables against the law, and of both samples against each
other, as p-values. A p-value far under 10⁻³ shows a fault. One in a thousand right samples has one under
10⁻³.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from scipy import stats

from benchmarks.measuring import TimedNoise, timed
from hierdp.privacy.noise import ExactNoise
from hierdp.privacy.tables import sampler
from hierdp.privacy.tabulated import TabulatedNoise
from models.arithmetic.arrays import Floats, Ints

LAWS = ("geometric", "gaussian")
SCALES = {"geometric": (1.0, 10.0, 100.0, 1e4, 1e8, 1e11), "gaussian": (1.0, 17.3, 100.0, 1e3, 1e4, 99e3)}
"""The last stays below 100,000, because the loss of that scale, rounded, is that of a slightly larger one,
for which OpenDP draws."""

AT_ONCE = 1 << 23
"""Counts that are given noise in one call: 64 MB."""

FEWEST = 20
"""The fewest expected draws in a bin of the χ² test."""

BINS = 16
"""Number of bins within a scale's width, if it has that many whole numbers."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Ranges of noise, and their probabilities.

    - low: the start of the second range; the first contains everything below.
    - width: number of whole numbers in a range; the last contains everything above.
    - shares, float array, shape (ranges,)
    """

    low: int
    width: int
    shares: Floats

    @classmethod
    def of(cls, law: str, scale: float, draws: float) -> Bins:
        """Ranges with at least `FEWEST` expected draws: by the tails' bounds, then by their masses."""
        width = max(1, round(scale / BINS))
        far = scale * (
            math.log(draws / FEWEST) if law == "geometric" else math.sqrt(2 * math.log(draws / FEWEST))
        )
        number, at_most = max(1, math.ceil(far / width)), distribution(law, scale)
        while True:
            low = -number * width
            cuts = low + width * np.arange(2 * number + 1)
            below = at_most(cuts - 1)
            above = at_most(-cuts)  # P(X ≥ cut), by symmetry
            shares = np.concatenate([[below[0]], _between(below, above), [above[-1]]])
            if number == 1 or (shares * draws).min() >= FEWEST:
                return cls(low, width, shares)
            number -= 1

    def count(self, noise: Ints) -> Ints:
        """The number of draws in each range."""
        last = len(self.shares) - 2
        at = np.clip((noise - self.low) // self.width, -1, last) + 1
        counts: Ints = np.bincount(at, minlength=last + 2)
        return counts

    def p_value(self, counts: Ints) -> float:
        """The p-value of χ²: how often a correct sample deviates at least as much."""
        expected = self.shares * counts.sum()
        keep = expected > 0
        off = ((counts - expected)[keep] ** 2 / expected[keep]).sum()
        return float(stats.chi2.sf(off, keep.sum() - 1))


def _between(below: Floats, above: Floats) -> Floats:
    """P(cut ≤ X < next cut), each computed from the smaller tail."""
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))


def distribution(law: str, scale: float) -> Callable[[Any], Floats]:
    """P(X ≤ k) in floats, for a wide range of k."""
    if law == "geometric":
        return stats.dlaplace(1 / scale).cdf
    reach = math.ceil(40 * scale) + 1
    mass = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    sums = np.cumsum(mass) / math.fsum(mass)
    return lambda k: sums[np.clip(np.asarray(k) + reach, 0, 2 * reach)]


def drawn(noise: Any, law: str, scale: float, counts: Ints) -> Any:
    """Noise of a scale on counts."""
    if law == "geometric":
        return noise.geometric(counts, "benchmark", 1, 1 / scale)
    return noise.gaussian(counts, "benchmark", 1.0, 1 / (2 * scale**2))


@dataclass(frozen=True)
class Sampled:
    """The cost of some draws, and their ranges."""

    seconds: float
    cpu: float
    counts: Ints


def sampled(noise: Any, law: str, scale: float, draws: int, bins: Bins) -> Sampled:
    """Draw, a large block at a time; only the drawing is timed."""
    zeros, clock = np.zeros(min(AT_ONCE, draws), dtype=np.int64), TimedNoise(noise)
    counts = np.zeros(len(bins.shares), dtype=np.int64)
    for start in range(0, draws, AT_ONCE):
        noisy = drawn(clock, law, scale, zeros[: draws - start]).counts
        for block in np.array_split(noisy, max(1, noisy.size >> 16)):
            counts += bins.count(block)
    return Sampled(clock.seconds, clock.cpu, counts)


def table_seconds(law: str, scale: float) -> float:
    """Seconds to make the tables of a scale again."""
    make = sampler.double_geometric if law == "geometric" else sampler.discrete_gaussian
    return timed(lambda: (make.cache_clear(), make(Fraction(scale))), 3)[0]


def run(
    *,
    draws: Annotated[float, "from tables, over all rows"] = 1e9,
    opendp: Annotated[float, "draws from OpenDP, in each row"] = 2e5,
    law: Annotated[str, f"rows of this law alone: {', '.join(LAWS)}"] = "",
    scale: Annotated[float | None, "rows of this scale alone"] = None,
) -> Iterator[dict[str, Any]]:
    rows = [
        (name, each) for name in LAWS for each in SCALES[name] if law in ("", name) and scale in (None, each)
    ]
    for name, each in rows:
        yield row(name, each, max(1, round(draws / len(rows))), round(opendp))


def row(law: str, scale: float, many: int, few: int) -> dict[str, Any]:
    """Many draws from tables, and few from OpenDP."""
    table = table_seconds(law, scale)
    drawn(TabulatedNoise(), law, scale, np.zeros(1, dtype=np.int64))
    bins, coarse = Bins.of(law, scale, many), Bins.of(law, scale, few)
    theirs = sampled(ExactNoise(), law, scale, few, coarse)
    ours = sampled(TabulatedNoise(), law, scale, many, bins)
    again = sampled(TabulatedNoise(), law, scale, few, coarse)
    both = np.array([again.counts, theirs.counts])
    same = stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue
    ns = [1e9 * one.seconds / n for one, n in ((ours, many), (theirs, few))]
    return {
        "law": law, "scale": scale, "draws": many, "table, ms": 1e3 * table, "tables, ns a draw": ns[0],
        "OpenDP, ns a draw": ns[1], "×": ns[1] / ns[0], "× CPU": (theirs.cpu / few) / (ours.cpu / many),
        "p, law": bins.p_value(ours.counts), "p, OpenDP": float(same),
    }  # fmt: skip
