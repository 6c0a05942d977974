"""The only place where true counts meet noise.

`ExactNoise` draws from OpenDP's exact samplers, cannot be seeded, and is what a release uses.
`SimulatedNoise` draws the same distributions from a seeded NumPy generator, in floating point: for
experiments only, and marked as not private in everything that comes of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hierdp import progress
from hierdp.budget import Spend
from hierdp.errors import InputError

Ints = NDArray[np.int64]

BLOCK = 10_000
"""Exact draws between two steps of a progress bar."""

LARGEST_SCALE = 1e12
"""Noise beyond this could leave 64-bit sums; so small a budget releases nothing but noise anyhow."""


UPWARDS = 1 + 2**-50
"""Stretches a scale of exact noise so that no rounding makes the loss more than was asked."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts after the noise, with its record. It does not carry the true ones, nor can it give them back."""

    counts: Ints
    spend: Spend


class Noise(Protocol):
    """A source of noise: double-geometric for pure differential privacy, discrete Gaussian for zCDP."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """P(X = k) ∝ exp(−|k| ε/Δ₁) on each count; ε-DP for a query of L1 sensitivity Δ₁."""

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """P(X = k) ∝ exp(−k²/2σ²), σ² = Δ₂²/2ρ, on each count; ρ-zCDP for L2 sensitivity Δ₂."""


class ExactNoise:
    """OpenDP's samplers, exact on integers; the loss on record is the one of OpenDP's own privacy map."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `Noise.geometric`."""
        dp = _opendp()
        scale = _scale(sensitivity, epsilon) * UPWARDS
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        measure = dp.m.make_laplace(*space, scale=scale)
        loss = float(measure.map(sensitivity))
        noisy = _draw(measure, counts, query)
        return NoisyCounts(noisy, Spend(query, "double-geometric", sensitivity, scale, loss, None, True))

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """See `Noise.gaussian`."""
        dp = _opendp()
        scale = _scale(sensitivity, math.sqrt(2 * rho)) * UPWARDS
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
        measure = dp.m.make_gaussian(*space, scale=scale)
        loss = float(measure.map(sensitivity))
        noisy = _draw(measure, counts, query)
        return NoisyCounts(noisy, Spend(query, "discrete Gaussian", sensitivity, scale, None, loss, True))


class SimulatedNoise:
    """The same distributions from a seed, for experiments. NOT private: floats, and a known seed."""

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise InputError(f"the seed is {seed}: it must be a whole number, 0 or more")
        self._rng = np.random.default_rng(seed)

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `Noise.geometric`."""
        scale = _scale(sensitivity, epsilon)
        p = -math.expm1(-1 / scale)
        noise = self._rng.geometric(p, counts.shape) - self._rng.geometric(p, counts.shape)
        spend = Spend(query, "double-geometric", sensitivity, scale, epsilon, None, False)
        return NoisyCounts(counts + noise, spend)

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """See `Noise.gaussian`."""
        scale = _scale(sensitivity, math.sqrt(2 * rho))
        if scale < 1e5:
            reach = math.ceil(12 * scale) + 1
            support = np.arange(-reach, reach + 1)
            mass = np.exp(-(support**2) / (2 * scale**2))
            noise = self._rng.choice(support, size=counts.shape, p=mass / mass.sum())
        else:  # rounding is as good as the discrete law to more digits than a float holds
            noise = np.rint(self._rng.normal(0, scale, counts.shape)).astype(np.int64)
        return NoisyCounts(
            counts + noise, Spend(query, "discrete Gaussian", sensitivity, scale, None, rho, False)
        )


def _scale(sensitivity: float, loss: float) -> float:
    scale = sensitivity / loss if loss > 0 else math.inf  # a share of the budget may underflow to 0
    if not scale < LARGEST_SCALE:
        raise InputError(f"epsilon is so small that the noise's scale is {scale:.3g}: nothing would be left")
    return scale


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def _draw(measure: Any, counts: Ints, query: str) -> Ints:
    flat = counts.ravel()
    starts = range(0, flat.size, BLOCK)
    noisy = np.empty(flat.size, dtype=np.int64)
    for start in progress.steps(starts, f"exact noise: {query}", len(starts)):
        part = slice(start, start + BLOCK)
        noisy[part] = measure(flat[part].tolist())
    return noisy.reshape(counts.shape)
