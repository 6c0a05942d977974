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

from hierdp.errors import InputError, listed
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


class Threshold(NamedTuple):
    """Only noisy counts that reach a threshold are recorded. No other is ever seen.

    A count that is positive because of one person alone stays under the threshold with a probability of at
    least 1 − δ. Which other counts were positive must stay unknown, so there is no record of them.

    - changes: what one person changes.
    - least: the smallest noisy count that is recorded.
    """

    changes: Changes
    least: int


@dataclass(frozen=True)
class Law:
    """What is drawn for a measurement; raises `InputError` if there is no noise of that name.

    - name: of the query, as the budget names it.
    - sensitivity: the most that one person changes: in L1 norm, in L2 norm for Gaussian noise, or of a score.
    - loss: ε, or ρ for Gaussian noise.
    - noise: `GEOMETRIC`, `GAUSSIAN` or `CHOICE`; with a threshold, `dropping` of it.
    - threshold: if only noisy counts that reach it are recorded.
    """

    name: str
    sensitivity: int | float
    loss: float
    noise: str
    threshold: Threshold | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown noise: before an account is charged."""
        known = GEOMETRIC, GAUSSIAN, CHOICE
        if self.noise not in known and self.threshold is None:
            raise InputError(f"{self.name}: there is no noise {self.noise!r}; there are {listed(known)}")


def geometric(name: str, sensitivity: int, epsilon: float) -> Law:
    """P(X = k) ∝ exp(−|k| ε/Δ₁) on each count; ε-DP for a query of L1 sensitivity Δ₁."""
    return Law(name, sensitivity, epsilon, GEOMETRIC)


def gaussian(name: str, sensitivity: float, rho: float) -> Law:
    """P(X = k) ∝ exp(−k²/2σ²), σ² = Δ₂²/2ρ, on each count; ρ-zCDP for L2 sensitivity Δ₂."""
    return Law(name, sensitivity, rho, GAUSSIAN)


def over(name: str, changes: Changes, epsilon: float, least: int) -> Law:
    """Positions and noisy values of the positive counts whose noisy value reaches a threshold; (ε, δ)-DP.

    Each gets double-geometric noise, P(X = k) ∝ exp(−|k| ε/Δ₁). Values under the threshold `least` are
    dropped, as if they had been 0 (Boninsegna & Silvestri 2025, Theorem 8). δ is
    `hierdp.privacy.threshold.miss_of` the threshold. The counts must not contain zeros: the threshold hides
    which cells are present.
    """
    return Law(name, changes.in_all, epsilon, dropping(least), Threshold(changes, least))


def choice(name: str, sensitivity: int, epsilon: float) -> Law:
    """For each array of whole scores, the position of a large score; ε-DP.

    One person may change the scores of at most one array, each by at most Δ. Permute-and-flip: it has the
    guarantee of the exponential mechanism, P(i) ∝ exp(ε·scoreᵢ/2Δ), and never a lower expected score
    (McKenna & Sheldon 2020). Drawn as the largest of scoreᵢ + Eᵢ, where the Eᵢ are exponential with mean
    2Δ/ε.
    """
    return Law(name, sensitivity, epsilon, CHOICE)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Noisy answers with the record of the measurement; they contain no true counts.

    - answers, int64 array: of the shape of the counts; with a threshold, those that reach it; of a choice,
      the chosen position in each array of scores.
    - positions, int64 array: with a threshold, which counts these are.
    """

    answers: Ints
    spend: Spend
    positions: Ints | None = None


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

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """Noisy answers to a query by the law that it names; see `geometric`, `gaussian`, `over`, `choice`.

        - true: int64 array of counts, of any shape; for a choice, a sequence of arrays of whole scores.
        """


def check_noise(noise: Any) -> None:
    """A source of noise, or None for exact noise.

    Raises `InputError` if it is something else, such as a seed, or a class in place of an object.
    """
    if noise is None or (hasattr(noise, "draw") and not isinstance(noise, type)):
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


class _Source:
    """A source of noise that has a function for each kind of answers."""

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `Noise.draw`."""
        if law.noise == CHOICE:
            return self._chosen(law, true)
        if law.threshold is not None:
            changes, least = law.threshold  # the record says what is drawn, whatever the law is called
            return self._large(over(law.name, changes, law.loss, least), changes, least, true)
        return self._noisy(law, true)

    def _noisy(self, law: Law, counts: Ints) -> Drawn:
        raise NotImplementedError

    def _large(self, law: Law, changes: Changes, least: int, counts: Ints) -> Drawn:
        raise NotImplementedError

    def _chosen(self, law: Law, scores: Sequence[Ints]) -> Drawn:
        raise NotImplementedError


class ExactNoise(_Source):
    """OpenDP's samplers, exact on integers; the loss on record is given by OpenDP's own privacy map."""

    def _noisy(self, law: Law, counts: Ints) -> Drawn:
        scale = _scale_of(law) * UPWARDS
        measure, loss = _measurement(law.noise, scale, law.sensitivity)
        drawing = self._drawing(law.noise, scale, lambda part: measure(part.tolist()))
        spend = _spend(law, scale, loss, True, sampler=drawing.sampler)
        return Drawn(_draw(drawing, counts, law.name), spend)

    def _large(self, law: Law, changes: Changes, least: int, counts: Ints) -> Drawn:
        """Noise and ε are those of OpenDP's `make_laplace_threshold`."""
        dp, scale = _OpenDP(), _scale(changes.in_all, law.loss) * UPWARDS
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

        drawing = self._drawing(law.noise, scale, draw, least)
        delta = miss_of(changes, scale, least)
        spend = _spend(law, scale, float(loss), True, delta, sampler=drawing.sampler)
        # Silent: the number of draws is that of the cells that are present, which the threshold hides.
        return _kept(_draw(drawing, counts, law.name, silent=True), spend)

    def _chosen(self, law: Law, scores: Sequence[Ints]) -> Drawn:
        """The law and its loss are those of OpenDP's `make_noisy_max`."""
        dp, scale = _OpenDP(), _scale_of(law) * UPWARDS
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        measure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
        loss = float(measure.map(int(law.sensitivity)))
        chosen = np.array([measure(part.tolist()) for part in scores], dtype=np.int64)
        return Drawn(chosen, _spend(law, scale, loss, True, sampler=opendp()))

    def _drawing(
        self, noise: str, scale: float, measure: Callable[[Ints], Any], least: int | None = None
    ) -> Drawing:
        """How noise is drawn; `measure` is OpenDP's. Noisy counts under `least` become 0."""
        del noise, scale, least
        return Drawing(opendp(), measure)


def opendp() -> str:
    """OpenDP's name and version, for the record."""
    from importlib import metadata  # costs as much to load as this module

    return f"{OPENDP} {metadata.version('opendp')}"


class SimulatedNoise(_Source):
    """The same distributions from a seed, for experiments. NOT private: floats, and a known seed."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InputError(f"the seed must be a whole number, 0 or more, got {seed!r}")
        if seed < 0:
            raise InputError(f"the seed is {seed}: it must be a whole number, 0 or more")
        self._rng = np.random.default_rng(seed)

    def _noisy(self, law: Law, counts: Ints) -> Drawn:
        scale = _scale_of(law)
        if law.noise != GAUSSIAN:
            p = -math.expm1(-1 / scale)
            noise = self._rng.geometric(p, counts.shape) - self._rng.geometric(p, counts.shape)
        elif scale < 1e5:
            reach = math.ceil(12 * scale) + 1
            support = np.arange(-reach, reach + 1)
            mass = np.exp(-(support**2) / (2 * scale**2))
            noise = self._rng.choice(support, size=counts.shape, p=mass / mass.sum())
        else:  # rounding agrees with the discrete law beyond float precision
            noise = np.rint(self._rng.normal(0, scale, counts.shape)).astype(np.int64)
        return Drawn(counts + noise, _spend(law, scale, law.loss, False))

    def _large(self, law: Law, changes: Changes, least: int, counts: Ints) -> Drawn:
        noisy = self._noisy(geometric(law.name, changes.in_all, law.loss), counts)
        delta = miss_of(changes, noisy.spend.scale, least)
        spend = replace(noisy.spend, noise=law.noise, delta=delta)
        return _kept(np.where(noisy.answers >= least, noisy.answers, 0), spend)

    def _chosen(self, law: Law, scores: Sequence[Ints]) -> Drawn:
        scale = _scale_of(law)
        noisy = ((part - part.max()) + self._rng.exponential(scale, part.shape) for part in scores)
        chosen = np.array([int(np.argmax(part)) for part in noisy], dtype=np.int64)
        return Drawn(chosen, _spend(law, scale, law.loss, False))


def dropping(least: int) -> str:
    """The name of double-geometric noise if noisy counts under a threshold are dropped."""
    return f"{GEOMETRIC}, under {least} dropped"


def threshold_of(spend: Spend) -> int:
    """The threshold under which noisy counts were dropped, from the name of the noise.

    >>> threshold_of(Spend("counts", dropping(12), 1, 2.0, 0.5, None, True))
    12
    """
    return int(spend.noise.removeprefix(f"{GEOMETRIC}, under ").removesuffix(" dropped"))


def _kept(noisy: Ints, spend: Spend) -> Drawn:
    kept = np.flatnonzero(noisy)
    return Drawn(noisy[kept], spend, kept)


def _spend(
    law: Law,
    scale: float,
    loss: float,
    private: bool,
    delta: float | None = None,
    sampler: str | None = None,
) -> Spend:
    """The record of a measurement; `loss` is that of the noise: ε, or ρ for Gaussian noise."""
    epsilon, rho = (None, loss) if law.noise == GAUSSIAN else (loss, None)
    return Spend(law.name, law.noise, law.sensitivity, scale, epsilon, rho, private, delta, sampler=sampler)


def _scale_of(law: Law) -> float:
    """The scale of a query's noise, by its law."""
    if law.noise == GAUSSIAN:
        return _scale(law.sensitivity, math.sqrt(2 * law.loss))
    return _scale(law.sensitivity * (2 if law.noise == CHOICE else 1), law.loss)


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
def _measurement(noise: str, scale: float, sensitivity: float) -> tuple[Any, float]:
    """OpenDP's measurement with this noise, and its loss, ε or ρ. Making one takes 0.5 ms."""
    dp = _OpenDP()
    if noise == GAUSSIAN:
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
        noise.draw(geometric("loads the library", 1, 1.0), zeros[:1])
        started = time.perf_counter()
        noise.draw(geometric("time of a draw", 1, 1.0), zeros)
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
