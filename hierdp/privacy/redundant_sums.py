"""Noisy counts as a release shows them, and sums that were measured twice, whose differences are noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierdp.privacy.noise import double_geometric_variance
from models import Tree
from models.arithmetic.arrays import Ints

Floats = NDArray[np.floating[Any]]


class CountNoise(NamedTuple):
    """The law of one count's noise."""

    gaussian: bool
    scale: float

    @classmethod
    def of(cls, spend: Mapping[str, Any]) -> CountNoise:
        """The law of a recorded measurement: double-geometric or discrete Gaussian noise on each count."""
        if spend["noise"] not in ("double-geometric", "discrete Gaussian"):
            raise ValueError(f"{spend['noise']} is not added to counts")
        return cls(spend["noise"] == "discrete Gaussian", float(spend["scale"]))

    @property
    def variance(self) -> float:
        """The variance; for the discrete Gaussian, the bound σ² (Canonne, Kamath & Steinke 2020)."""
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
        images = 2 * np.pi * np.arange(-1, 2)  # Poisson's summation formula; others are 10¹⁷ times less
        above = np.exp(-((np.add.outer(turned, images) * self.scale) ** 2) / 2).sum(axis=-1)
        return np.asarray(above / np.exp(-((images * self.scale) ** 2) / 2).sum())

    def log_moment(self, s: Floats) -> Floats:
        """An upper bound on ln E exp(s·X); for the discrete Gaussian, that of the continuous one (ibid.)."""
        if self.gaussian:
            return np.asarray((s * self.scale) ** 2 / 2)
        rate = 1 / self.scale
        below = np.log(-np.expm1(s - rate)) + np.log(-np.expm1(-s - rate))
        return np.asarray(2 * math.log(-math.expm1(-rate)) - below)


class Recovered(NamedTuple):
    """The noisy counts of a measurement, as the release is computed from them.

    - query: as the budget names it.
    - noisy (int64 array)
    """

    query: str
    noisy: Ints


class RedundantSums(NamedTuple):
    """Differences between two measurements of the same sums, which are pure noise.

    - differences, shape (n,)
    - law: law of the noise of each count in the sum of children.
    - counts, shape (n,): how many counts have that noise in each difference.
    - own: law of the noise of the parent; None if the parent is public.
    - chosen_of: if the parents were chosen by their noisy counts, the number that they were chosen from, or 0
      if unknown. None if all parents are present.
    - near_zero: the "differences" are noisy counts: their distances from 0.
    """

    what: str
    differences: Floats
    law: CountNoise
    counts: Ints
    own: CountNoise | None
    chosen_of: int | None = None
    near_zero: bool = False


def of_tree(
    tree: Tree, noisy: NDArray[Any], laws: Sequence[CountNoise | None], what: str
) -> Iterator[RedundantSums]:
    """The differences of all families between two measured levels.

    - noisy, shape (nodes,) or (nodes, numbers)
    - laws: one for each level; None if it was not measured.
    - what: what was measured, for messages.
    """
    own, sums = noisy[tree.internal], tree.child_sums(noisy)
    each = tree.child_sums(np.ones(tree.size, dtype=np.int64))
    depth = tree.level[tree.internal]
    for level, (above, law) in enumerate(pairwise(laws)):
        if above is None or law is None:
            continue
        here = depth == level
        off = (own[here] - sums[here]).astype(np.float64)
        times = np.broadcast_to(each[here].reshape(-1, *[1] * (own.ndim - 1)), off.shape)
        yield RedundantSums(
            f"{what} of levels {level} and {level + 1}", off.ravel(), law, times.ravel(), above
        )
