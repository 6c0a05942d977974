"""The only place where true counts meet noise.

`ExactNoise` draws from OpenDP's exact samplers, cannot be seeded, and is what a release uses by default.
`hierdp.privacy.tabulated.TabulatedNoise` draws the same laws, as exactly and much faster, from tables.
`SimulatedNoise` draws the same distributions from a seeded NumPy generator, in floating point. It is for
experiments only, and every result made with it is marked as not private.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.privacy.budget import CHOICE, GAUSSIAN, GEOMETRIC, Spend
from hierdp.privacy.threshold import EXACT, THRESHOLDS, Changes, miss_of
from models.arithmetic.arrays import Ints
from models.programs.layout import processors

BLOCK = 2_000
"""Exact draws that a thread makes at once: some 20 ms of work, after which it can be interrupted."""

MANY = 200_000
"""From this number on, exact draws are announced: they may take seconds."""

SAMPLE = 1_000
"""Number of OpenDP's draws to estimate the time from."""

LARGEST_SCALE = 1e12
"""The largest scale of noise: beyond it, sums could exceed 64 bits, and a release would be nothing but
noise."""

OPENDP, TABLES = "opendp", "hierdp tables"
"""Names of the samplers in the record, without their versions."""

UPWARDS = 1 + 2**-50
"""Enlarges a scale of exact noise, so that no rounding makes the loss more than requested."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Noisy counts with the record of the measurement; they contain no true counts."""

    counts: Ints
    spend: Spend


class Drawing(NamedTuple):
    """How the noise of a measurement is drawn."""

    sampler: str
    """Name and version of the sampler, for the record."""
    add: Callable[[Ints], Any]
    """Adds noise to a block of counts."""
    at_once: int | None = None
    """Counts in a block; None for `BLOCK`."""


class Noise(Protocol):
    """A source of noise: double-geometric for pure differential privacy, discrete Gaussian for zCDP."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """P(X = k) ∝ exp(−|k| ε/Δ₁) on each count; ε-DP for a query of L1 sensitivity Δ₁."""

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """P(X = k) ∝ exp(−k²/2σ²), σ² = Δ₂²/2ρ, on each count; ρ-zCDP for L2 sensitivity Δ₂."""

    def stable(
        self, counts: Ints, query: str, changes: Changes, epsilon: float, least: int
    ) -> tuple[Ints, NoisyCounts]:
        """Positions and noisy values of the positive counts whose noisy value reaches a threshold; (ε, δ)-DP.

        Each gets double-geometric noise, P(X = k) ∝ exp(−|k| ε/Δ₁). Values under the threshold `least` are
        dropped, as if they had been 0 (Boninsegna & Silvestri 2025, Theorem 8). δ is
        `hierdp.privacy.threshold.miss_of` the threshold. The counts must not contain zeros: the threshold
        hides which cells are present.
        """

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """For each array of whole scores, choose the position of a large score; ε-DP.

        One person may change the scores of at most one array, each by at most Δ. Permute-and-flip: it has the
        guarantee of the exponential mechanism, P(i) ∝ exp(ε·scoreᵢ/2Δ), and never a lower expected score
        (McKenna & Sheldon 2020). Drawn as the largest of scoreᵢ + Eᵢ, where the Eᵢ are exponential with mean
        2Δ/ε.
        """


def check_noise(noise: Any) -> None:
    """A source of noise, or None for exact noise.

    Raises `InputError` if it is something else, such as a seed, or a class in place of an object.
    """
    if noise is None or (hasattr(noise, "geometric") and not isinstance(noise, type)):
        return
    kind = f"the class {noise.__name__}" if isinstance(noise, type) else type(noise).__name__
    raise InputError(
        "noise must be None (exact noise), TabulatedNoise() (exact, from tables) or SimulatedNoise(seed) "
        f"(NOT private), not {kind}"
    )


def threshold(changes: Changes, epsilon: float, delta: float, rule: str = EXACT) -> int:
    """The threshold of a stability histogram, by a rule of `hierdp.privacy.threshold.THRESHOLDS`."""
    return THRESHOLDS[rule](changes, _scale(changes.in_all, epsilon) * UPWARDS, delta)


def delta_of(changes: Changes, least: int, epsilon: float) -> float:
    """The δ of a stability histogram with a threshold; see `miss_of`."""
    return miss_of(changes, _scale(changes.in_all, epsilon) * UPWARDS, least)


def double_geometric_variance(scale: float) -> float:
    """The variance of P(X = k) ∝ exp(−|k|/scale): 1/(2 sinh²(1/2λ)), slightly below the Laplace law's 2λ².

    >>> round(double_geometric_variance(10.0), 3)
    199.833
    """
    half = 0.5 / scale
    return 0.5 / math.sinh(half) ** 2 if half < 350 else 0.0  # below the range of floats


def deviation_of(spend: Spend) -> float | None:
    """Standard deviation of a measurement's noise; None if the measurement is not a count plus noise.

    If counts under a threshold were dropped, it is that of the noise before.

    Examples
    --------
    >>> round(deviation_of(Spend("sizes", "double-geometric", 2, 4.0, 0.5, None, True)), 2)
    5.64
    """
    if spend.noise.startswith(GEOMETRIC):
        return math.sqrt(double_geometric_variance(spend.scale))
    if spend.noise != GAUSSIAN:
        return None
    if not 0.01 < spend.scale < 10:  # to float precision
        return spend.scale if spend.scale > 1 else 0.0
    support = np.arange(-150, 151)
    mass = np.exp(-(support**2) / (2 * spend.scale**2))
    return math.sqrt((support**2 * mass).sum() / mass.sum())


class ExactNoise:
    """OpenDP's samplers, exact on integers; the loss on record is given by OpenDP's own privacy map."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `Noise.geometric`."""
        return self._noisy(GEOMETRIC, counts, query, sensitivity, _scale(sensitivity, epsilon))

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """See `Noise.gaussian`."""
        return self._noisy(GAUSSIAN, counts, query, sensitivity, _scale(sensitivity, math.sqrt(2 * rho)))

    def stable(
        self, counts: Ints, query: str, changes: Changes, epsilon: float, least: int
    ) -> tuple[Ints, NoisyCounts]:
        """See `Noise.stable`; noise and ε are those of OpenDP's `make_laplace_threshold`."""
        dp, scale, large = _OpenDP(), _scale(changes.in_all, epsilon) * UPWARDS, dropping(least)
        space = (
            dp.map_domain(dp.atom_domain(T="u32"), dp.atom_domain(T="i64")),
            dp.l01inf_distance(dp.absolute_distance(T="i64")),
        )
        measure = dp.m.make_laplace_threshold(*space, scale=scale, threshold=least)
        loss, _ = measure.map((changes.cells, changes.in_all, changes.largest))

        def draw(part: Ints) -> Ints:
            kept = measure(dict(enumerate(part.tolist())))
            noisy = np.zeros(part.size, dtype=np.int64)
            noisy[list(kept)] = list(kept.values())
            return noisy

        drawing, miss = self._drawing(large, scale, draw, least), miss_of(changes, scale, least)
        spend = Spend(
            query, large, changes.in_all, scale, float(loss), None, True, miss, sampler=drawing.sampler
        )
        # Silent: the number of draws is that of the cells that are present, which the threshold hides.
        return _kept(_draw(drawing, counts, query, silent=True), spend)

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """See `Noise.choose`; the law and its loss are those of OpenDP's `make_noisy_max`."""
        dp, scale = _OpenDP(), _scale(2 * sensitivity, epsilon) * UPWARDS
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        measure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
        loss = float(measure.map(sensitivity))
        chosen = np.array([measure(part.tolist()) for part in scores], dtype=np.int64)
        return chosen, Spend(query, CHOICE, sensitivity, scale, loss, None, True, sampler=opendp())

    def _noisy(self, law: str, counts: Ints, query: str, sensitivity: float, least: float) -> NoisyCounts:
        scale = least * UPWARDS
        measure, loss = _measurement(law, scale, sensitivity)
        drawing = self._drawing(law, scale, lambda part: measure(part.tolist()))
        epsilon, rho = (None, loss) if law == GAUSSIAN else (loss, None)
        spend = Spend(query, law, sensitivity, scale, epsilon, rho, True, sampler=drawing.sampler)
        return NoisyCounts(_draw(drawing, counts, query), spend)

    def _drawing(
        self, law: str, scale: float, measure: Callable[[Ints], Any], least: int | None = None
    ) -> Drawing:
        """How noise is drawn; `measure` is OpenDP's. Noisy counts under `least` become 0."""
        del law, scale, least
        return Drawing(opendp(), measure)


def opendp() -> str:
    """OpenDP's name and version, for the record."""
    from importlib import metadata  # costs as much to load as this module

    return f"{OPENDP} {metadata.version('opendp')}"


class SimulatedNoise:
    """The same distributions from a seed, for experiments. NOT private: floats, and a known seed."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InputError(f"the seed must be a whole number, 0 or more, got {seed!r}")
        if seed < 0:
            raise InputError(f"the seed is {seed}: it must be a whole number, 0 or more")
        self._rng = np.random.default_rng(seed)

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `Noise.geometric`."""
        scale = _scale(sensitivity, epsilon)
        p = -math.expm1(-1 / scale)
        noise = self._rng.geometric(p, counts.shape) - self._rng.geometric(p, counts.shape)
        return NoisyCounts(counts + noise, Spend(query, GEOMETRIC, sensitivity, scale, epsilon, None, False))

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """See `Noise.gaussian`."""
        scale = _scale(sensitivity, math.sqrt(2 * rho))
        if scale < 1e5:
            reach = math.ceil(12 * scale) + 1
            support = np.arange(-reach, reach + 1)
            mass = np.exp(-(support**2) / (2 * scale**2))
            noise = self._rng.choice(support, size=counts.shape, p=mass / mass.sum())
        else:  # rounding agrees with the discrete law beyond float precision
            noise = np.rint(self._rng.normal(0, scale, counts.shape)).astype(np.int64)
        return NoisyCounts(counts + noise, Spend(query, GAUSSIAN, sensitivity, scale, None, rho, False))

    def stable(
        self, counts: Ints, query: str, changes: Changes, epsilon: float, least: int
    ) -> tuple[Ints, NoisyCounts]:
        """See `Noise.stable`."""
        noisy = self.geometric(counts, query, changes.in_all, epsilon)
        miss = miss_of(changes, noisy.spend.scale, least)
        spend = replace(noisy.spend, noise=dropping(least), delta=miss)
        return _kept(np.where(noisy.counts >= least, noisy.counts, 0), spend)

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """See `Noise.choose`."""
        scale = _scale(2 * sensitivity, epsilon)
        noisy = ((part - part.max()) + self._rng.exponential(scale, part.shape) for part in scores)
        chosen = np.array([int(np.argmax(part)) for part in noisy], dtype=np.int64)
        return chosen, Spend(query, CHOICE, sensitivity, scale, epsilon, None, False)


def dropping(least: int) -> str:
    """The name of double-geometric noise if noisy counts under a threshold are dropped."""
    return f"{GEOMETRIC}, under {least} dropped"


def threshold_of(spend: Spend) -> int:
    """The threshold under which noisy counts were dropped, from the name of the noise.

    >>> threshold_of(Spend("counts", dropping(12), 1, 2.0, 0.5, None, True))
    12
    """
    return int(spend.noise.removeprefix(f"{GEOMETRIC}, under ").removesuffix(" dropped"))


def _kept(noisy: Ints, spend: Spend) -> tuple[Ints, NoisyCounts]:
    kept = np.flatnonzero(noisy)
    return kept, NoisyCounts(noisy[kept], spend)


def _scale(sensitivity: float, loss: float) -> float:
    scale = sensitivity / loss if loss > 0 else math.inf  # a share of the budget may underflow to 0
    if not scale < LARGEST_SCALE:
        raise InputError(
            f"epsilon is so small that the noise's scale is {scale:.3g}: the result would be "
            "nothing but noise. Use a larger epsilon"
        )
    return scale


class _OpenDP:
    """The parts of OpenDP that are used; its prelude would also load scikit-learn and `scipy.stats`."""

    def __init__(self) -> None:
        from opendp import domains, measurements, measures, metrics, mod

        mod.enable_features("contrib")
        self.m = measurements
        self.atom_domain, self.map_domain = domains.atom_domain, domains.map_domain
        self.vector_domain, self.max_divergence = domains.vector_domain, measures.max_divergence
        self.absolute_distance, self.l01inf_distance = metrics.absolute_distance, metrics.l01inf_distance
        self.l1_distance, self.l2_distance = metrics.l1_distance, metrics.l2_distance
        self.linf_distance = metrics.linf_distance


@lru_cache(maxsize=64)
def _measurement(law: str, scale: float, sensitivity: float) -> tuple[Any, float]:
    """OpenDP's measurement with noise of a law, and its loss, ε or ρ. Making one takes 0.5 ms."""
    dp = _OpenDP()
    if law == GAUSSIAN:
        make, distance = dp.m.make_gaussian, dp.l2_distance(T=float)
    else:
        make, distance = dp.m.make_laplace, dp.l1_distance(T="i64")
    measure = make(dp.vector_domain(dp.atom_domain(T="i64")), distance, scale=scale)
    return measure, float(measure.map(sensitivity))


def announce(draws: int, noise: Noise) -> None:
    """Announce how long many draws of exact noise will take, estimated from a few draws for zeros."""
    if draws >= MANY and not isinstance(noise, SimulatedNoise):
        sample = getattr(noise, "sample", SAMPLE)
        zeros = np.zeros(sample, dtype=np.int64)
        noise.geometric(zeros[:1], "loads the library", 1, 1.0)
        started = time.perf_counter()
        noise.geometric(zeros, "time of a draw", 1, 1.0)
        seconds = (time.perf_counter() - started) / sample * draws / processors()
        progress.announce(f"{draws:,} draws of exact noise", seconds, f" on {processors()} cores")


def _draw(drawing: Drawing, counts: Ints, query: str, silent: bool = False) -> Ints:
    """Draw exact noise, a block at a time, on all cores; `silent` if the number of counts is not public.

    Threads suffice, because both samplers run without Python's lock. They draw from the system's generator,
    or from a stream that it keys for each block. No count leaves the process.
    """
    flat = counts.ravel()
    noisy = np.empty(flat.size, dtype=np.int64)
    at_once = drawing.at_once or BLOCK

    def block(start: int) -> None:
        part = slice(start, start + at_once)
        noisy[part] = drawing.add(flat[part])

    starts = range(0, flat.size, at_once)
    if len(starts) <= 1:
        for start in starts:
            block(start)
        return noisy.reshape(counts.shape)
    if drawing.at_once is None and not silent:
        announce(flat.size, ExactNoise())
    pool = ThreadPoolExecutor(processors())
    try:
        done = pool.map(block, starts)
        for _ in done if silent else progress.steps(done, f"exact noise: {query}", len(starts)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt waits only for the blocks in progress
    return noisy.reshape(counts.shape)
