"""A statistical audit: a lower bound on a mechanism's privacy loss, from many runs on neighbouring tables.

A mechanism is run many times on a table and as many times on a neighbour of it, from outside: all that is
looked at is what it releases. A third of the runs choose an event that tells the tables apart; the others,
which had no say in that, bound the loss that it proves. The bound is honest for any mechanism, and finds
fault with one that loses more than it claims by enough; that it finds none proves nothing.

Noise is simulated here unless exact noise is asked for: it has the same law, and is much faster to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hierdp import execution
from hierdp.audit.bound import at_least, at_most, least_epsilon
from hierdp.audit.case import Case as Case
from hierdp.audit.cases import CASES as CASES
from hierdp.audit.events import Claim, Event, Seen, chosen
from hierdp.audit.finding import Finding as Finding
from hierdp.audit.kept import findings, settings
from hierdp.audit.known import Undisturbed, all_over, direction, moves
from hierdp.errors import InputError
from hierdp.privacy.noise import ExactNoise, Noise, SimulatedNoise

Source = Callable[[int], Noise]
"""Noise from a seed."""

A_TASK = 50
"""Runs that one task of `execution` makes: some tenths of a second of work."""

FEWEST = 10
"""Runs of a mechanism on a table; so few prove hardly anything."""


def exactly(_: int) -> Noise:
    """Exact noise, which has no seed."""
    return ExactNoise()


def audit(
    cases: Sequence[Case],
    runs: int = 1000,
    confidence: float = 0.999,
    source: Source = SimulatedNoise,
    seed: int = 0,
    results: str | Path | None = None,
) -> Generator[Finding, None, None]:
    """Audit mechanisms, one after the other.

    Parameters
    ----------
    cases : sequence of Case
        See `CASES`.
    runs : int
        Of each mechanism on each of its two tables, 10 or more; a very slow one makes fewer. A third of
        them chooses the event.
    confidence : float
        With which all bounds hold together.
    source : callable
        The noise of some runs, from a seed: `SimulatedNoise` (default), or `exactly`.
    seed : int
        Of simulated noise.
    results : path, optional
        A Parquet file that findings are added to as they come. What it holds of the same cases (by mechanism,
        method and change), settings and source of hierdp is not run again, so that an audit that was stopped
        goes on. The tables are made up: nothing is spent twice.

    Yields
    ------
    Finding

    Raises
    ------
    InputError
        If there are too few runs, the confidence is not between 0 and 1, the file holds something else or
        another process is at it, or its folder is missing.
    """
    if runs < FEWEST:
        raise InputError(
            f"runs is {runs}: give {FEWEST} or more, a third to choose an event and the rest to bound it"
        )
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence}: it must lie between 0 and 1, such as 0.999")
    miss = (1 - confidence) / max(1, len(cases))
    make = partial(_finding, runs=runs, miss=miss, source=source, seed=seed)
    if results is None:
        return (make(case) for case in cases)
    results = Path(results)
    if not results.absolute().parent.is_dir():
        raise InputError(f"there is no folder {results.absolute().parent} to put {results.name} in")
    asked = [(case, settings(case, _runs_of(case, runs), miss, source, seed)) for case in cases]
    return findings(results, asked, make)


def _runs_of(case: Case, runs: int) -> int:
    return max(FEWEST, runs // case.fewer)


def _finding(case: Case, runs: int, miss: float, source: Source, seed: int) -> Finding:
    runs = _runs_of(case, runs)
    parts = execution.chunks(runs, A_TASK)
    tasks = [
        (case, side, part.stop - part.start, source, _seed(case, side, number, seed))
        for side in (0, 1)
        for number, part in enumerate(parts)
    ]
    made = list(execution.each(_runs, tasks, f"{case.name}: {case.change}"))
    seen = [[run for part in made[side * len(parts) :][: len(parts)] for run in part] for side in (0, 1)]
    release = case.release(0, source(seed))  # for what is the same in all
    ledger = release.ledger
    claim = Claim(ledger.epsilon, ledger.delta, ledger.rho if ledger.zcdp else None)
    few = runs // 3
    event = _event(case, (seen[0][:few], seen[1][:few]), claim, miss)
    rest = [seen[side][few:] for side in ((1, 0) if event.swapped else (0, 1))]
    p = at_least(event.counts(rest[0]), len(rest[0]), miss / 2)
    q = at_most(event.counts(rest[1]), len(rest[1]), miss / 2)
    rho = None if claim.rho is None else float(claim.loss(p, q))
    epsilon = float(least_epsilon(p, q, claim.delta))
    return Finding(case, claim, ledger.neighbours, epsilon, rho, event, runs)


def _event(case: Case, seen: tuple[list[Seen], list[Seen]], claim: Claim, miss: float) -> Event:
    """Chosen on some runs, among what these show and what is known beforehand."""
    truths = [case.seen(case.release(side, Undisturbed())) for side in (0, 1)]
    moved = moves((truths[0], truths[1]))
    along = dict(zip(moved, direction(moved, list(moved)).tolist(), strict=True))
    return chosen(seen, claim, miss, list(all_over(moved)), [along] if along else [])


def _seed(case: Case, side: int, part: int, seed: int) -> int:
    """One of its own for each task, the same however the work is spread."""
    words = [seed, side, part, *f"{case.name} {case.change}".encode()]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _runs(case: Case, side: int, number: int, source: Source, seed: int) -> list[Seen]:
    noise = source(seed)
    return [case.seen(case.release(side, noise)) for _ in range(number)]
