"""A statistical audit: a lower bound on a mechanism's privacy loss, from many runs on neighbouring tables.

A mechanism is run many times on a table and equally often on a neighbouring table. Only its output is used.
Half of the runs choose an event that distinguishes the two tables. The other, independent half bound the
privacy loss that this event proves. The bound is valid for every mechanism. It exceeds the claim if a
mechanism loses sufficiently more than it claims; a bound below the claim proves nothing.

Noise is simulated by default: it has the same distribution as exact noise, and is much faster to draw.

The cases are each mechanism on two tiny, invented neighbouring tables. Each mechanism's cases are in its
package, one for each of its neighbouring relations. The tables, ε and the division of the budget are chosen
so that the release shows as much of the difference as possible: one region or one group, so that
post-processing does not average noise away; counts far from 0; and most of the budget for the counts that
differ. For each method there is also a case of a count that is 0 in one table and 1 in the other, which
reveals missing noise on zeros. For the samplers of exact noise, see `hierdp.audit.samplers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr

from hierdp import execution
from hierdp.audit.analytic_events import ZeroNoise, all_over, direction, moves, parts_of
from hierdp.audit.bound import at_least, at_most, least_epsilon
from hierdp.audit.events import Claim, Event, chosen
from hierdp.audit.samplers import SAMPLERS as SAMPLERS
from hierdp.audit.saved_findings import Finding as Finding
from hierdp.audit.saved_findings import findings, settings
from hierdp.errors import InputError
from hierdp.mechanisms.registry import MECHANISMS
from hierdp.privacy.noise import ExactNoise, Noise, SimulatedNoise
from hierdp.record.case import Case as Case
from hierdp.record.case import Seen


def cases() -> tuple[Case, ...]:
    """The cases of all mechanisms, a user's own included that were loaded."""
    return tuple(case for mechanism in MECHANISMS.values() for case in mechanism.cases)


CASES = cases()
"""Those of hierdp's mechanisms."""

NoiseSource = Callable[[int], Noise]
"""Noise from a seed."""

A_TASK = 50
"""Number of runs in one task of `execution`: a few tenths of a second of work."""

FEWEST = 10
"""The smallest number of runs of a mechanism on a table; it proves very little."""


def by_tables(_: int) -> Noise:
    """Exact noise from tables; it has no seed, so the argument is ignored."""
    from hierdp.privacy.tabulated import TabulatedNoise

    return TabulatedNoise()


def exactly(_: int) -> Noise:
    """Exact noise; it has no seed, so the argument is ignored."""
    return ExactNoise()


def audit(
    cases: Sequence[Case],
    runs: int = 1000,
    confidence: float = 0.999,
    source: NoiseSource = SimulatedNoise,
    seed: int = 0,
    results: str | Path | None = None,
) -> Generator[Finding, None, None]:
    """Audit mechanisms, one after the other.

    Parameters
    ----------
    cases : sequence of Case
        See `CASES`, and `SAMPLERS` for those of exact noise.
    runs : int
        Number of runs of each mechanism on each of its two tables, at least 10; very slow mechanisms run
        fewer times. Half of the runs choose the event.
    confidence : float
        Confidence with which all bounds hold simultaneously.
    source : callable
        Maps a seed to the noise of some runs: `SimulatedNoise` (default), `exactly` or `by_tables`.
    seed : int
        Seed of simulated noise.
    results : path, optional
        A Parquet file to which each finding is added. Findings that it already contains, for the same case
        (mechanism, method and change), settings and source code of hierdp, are not computed again, so an
        interrupted audit continues. The tables are made up, so no privacy budget is spent.

    Yields
    ------
    Finding

    Raises
    ------
    InputError
        If there are too few runs, the confidence is not between 0 and 1, the file is not a file of findings
        or is in use by another process, or its folder does not exist.
    """
    if runs < FEWEST:
        raise InputError(
            f"runs must be at least {FEWEST}, got {runs}: half choose an event, the rest bound its loss"
        )
    if not 0 < confidence < 1:
        raise InputError(f"the confidence must lie between 0 and 1, such as 0.999; got {confidence}")
    miss = (1 - confidence) / max(1, len(cases))
    make = partial(_finding, runs=runs, miss=miss, source=source, seed=seed)
    if results is None:
        return (make(case) for case in cases)
    results = Path(results)
    if not results.absolute().parent.is_dir():
        raise InputError(
            f"the folder {results.absolute().parent} of {results.name} does not exist; create it first"
        )
    wanted = [(case, settings(case, _runs_of(case, runs), miss, source, seed)) for case in cases]
    return findings(results, wanted, make)


def _runs_of(case: Case, runs: int) -> int:
    return max(FEWEST, int(runs / case.fewer))


def _finding(case: Case, runs: int, miss: float, source: NoiseSource, seed: int) -> Finding:
    runs = _runs_of(case, runs)
    parts = execution.chunks(runs, A_TASK)
    tasks = [
        (case, side, part.stop - part.start, source, _seed(case, side, number, seed))
        for side in (0, 1)
        for number, part in enumerate(parts)
    ]
    made = list(execution.each(_runs, tasks, f"{case.name}: {case.change}"))
    seen = [[run for part in made[side * len(parts) :][: len(parts)] for run in part] for side in (0, 1)]
    release = case.release(0, source(seed))  # for the ledger, which is the same in all runs
    ledger = release.ledger
    claim = Claim(ledger.epsilon, ledger.delta, ledger.rho if ledger.zcdp else None)
    few = runs // 2
    event = _event(case, (seen[0][:few], seen[1][:few]), claim, miss)
    rest = [seen[side][few:] for side in ((1, 0) if event.swapped else (0, 1))]
    p = at_least(event.counts(rest[0]), len(rest[0]), miss / 2)
    q = at_most(event.counts(rest[1]), len(rest[1]), miss / 2)
    rho = None if claim.rho is None else float(claim.loss(p, q))
    epsilon = float(least_epsilon(p, q, claim.delta))
    least = detectable(claim, runs - few, miss)
    return Finding(case, claim, ledger.neighbours, epsilon, rho, event, runs, least)


def _event(case: Case, seen: tuple[list[Seen], list[Seen]], claim: Claim, miss: float) -> Event:
    """The event chosen on these runs, among events found in them and events known in advance."""
    truths = [case.seen(case.release(side, ZeroNoise())) for side in (0, 1)]
    moved = moves((truths[0], truths[1]))
    along = [
        dict(zip(part, direction(part, list(part)).tolist(), strict=True))
        for part in parts_of(moved)
        if len(part) > 1
    ]
    return chosen(seen, claim, miss, list(all_over(moved)), along)


def _seed(case: Case, side: int, part: int, seed: int) -> int:
    """A seed for each task; it does not depend on how tasks are distributed."""
    words = [seed, side, part, *f"{case.name} {case.change}".encode()]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _runs(case: Case, side: int, number: int, source: NoiseSource, seed: int) -> list[Seen]:
    noise = source(seed)
    return [case.seen(case.release(side, noise)) for _ in range(number)]


LOSSES = np.geomspace(1, 100, 400)
"""Losses to try, as multiples of the claim."""


def detectable(claim: Claim, runs: int, miss: float) -> float:
    """The smallest loss for which the bound exceeds the claim, if hits are as often as expected.

    One event reveals the whole loss: with probabilities eˡ/(1 + eˡ) and 1/(1 + eˡ), as of one count with
    double-geometric noise; under zCDP with those of one count with normal noise, Φ(±√(2ρ)/2). No event of a
    mechanism with that loss is better for this bound, up to discretization and δ.

    Parameters
    ----------
    claim : Claim
    runs : int
        The number of runs of each table that bound the loss.
    miss : float
        The probability with which the bound may be wrong.

    Returns
    -------
    float
        In the unit of the claim, ρ under zCDP and else ε; infinite if no loss up to 100 times the claim would
        have been found.

    Examples
    --------
    >>> round(detectable(Claim(2.0, 0.0), 500, 1e-5), 2), detectable(Claim(2.0, 0.0), 50, 1e-5)
    (2.8, inf)
    """
    claimed = claim.epsilon if claim.rho is None else claim.rho
    losses = claimed * LOSSES
    p = expit(losses) if claim.rho is None else ndtr(np.sqrt(2 * losses) / 2)
    hits = np.rint(p * runs)
    low, high = at_least(hits, runs, miss / 2), at_most(runs - hits, runs, miss / 2)
    found = np.flatnonzero(claim.loss(low, high) > claimed)
    return float(losses[found[0]]) if found.size else math.inf
