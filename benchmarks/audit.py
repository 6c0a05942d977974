"""What `hierdp audit` detects: half the noise of a mechanism, and true answers; see docs/privacy.md.

    python -m benchmarks.audit [--most 16000] [--change "group of its own"] [MECHANISM …]
    python -m benchmarks.audit --spared [MECHANISM …]

Each case of the audit is run with half the scale of noise and an unchanged claim: 500 runs of each table,
then 1,000, 2,000, … until the bound on the loss exceeds the claim. With `--spared`, each query of each method
that differs between the two tables of a case is answered truly, with the noise drawn and charged, in as many
runs as `hierdp audit` makes by default; the first case that shows it is printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hierdp.audit import CASES, Case, audit
from hierdp.audit.analytic_events import ZeroNoise, largest
from hierdp.audit.bound import at_least, at_most, least_epsilon
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import NoisyCounts, SimulatedNoise
from models.arithmetic.arrays import Ints

FIRST = 500
"""The number of runs at first."""

MISS = 1e-5
"""About each case's part of the error probability of 0.001 of a whole audit."""


RUNS = 1000
"""The default of `hierdp audit`."""


class Half(SimulatedNoise):
    """Half the noise with the full claim. (`stable` uses `geometric`'s noise; its threshold is unchanged.)"""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """Draw with twice the ε."""
        made = super().geometric(counts, query, sensitivity, 2 * epsilon)
        return replace(made, spend=replace(made.spend, epsilon=epsilon))

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """Draw with four times the ρ."""
        made = super().gaussian(counts, query, sensitivity, 4 * rho)
        return replace(made, spend=replace(made.spend, rho=rho))

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """Choose with twice the ε."""
        picked, spend = super().choose(scores, query, sensitivity, 2 * epsilon)
        return picked, replace(spend, epsilon=epsilon)


class Spared(SimulatedNoise):
    """True answers to one query, although its noise is drawn and charged."""

    def __init__(self, seed: int, query: str) -> None:
        super().__init__(seed)
        self.query = query

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """The true counts of the query, and noisy ones of others."""
        made = super().geometric(counts, query, sensitivity, epsilon)
        return replace(made, counts=counts.copy()) if query == self.query else made

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """The true counts of the query, and noisy ones of others."""
        made = super().gaussian(counts, query, sensitivity, rho)
        return replace(made, counts=counts.copy()) if query == self.query else made

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """The largest scores of the query, and private choices of others."""
        chosen, spend = super().choose(scores, query, sensitivity, epsilon)
        return largest(scores) if query == self.query else chosen, spend


class _Asked(ZeroNoise):
    """Keep the true counts of each query, and the scores of private choices."""

    def __init__(self) -> None:
        super().__init__()
        self.true: dict[str, list[bytes]] = {}

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        self.true.setdefault(query, []).append(counts.tobytes())
        return super().geometric(counts, query, sensitivity, epsilon)

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        self.true.setdefault(query, []).append(counts.tobytes())
        return super().gaussian(counts, query, sensitivity, rho)

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        self.true.setdefault(query, []).extend(part.tobytes() for part in scores)
        return super().choose(scores, query, sensitivity, epsilon)


def measured_differently(case: Case) -> list[str]:
    """The queries whose true counts differ between the two tables, in the order measured."""
    first, second = _Asked(), _Asked()
    case.release(0, first)
    case.release(1, second)
    return [query for query, true in first.true.items() if true != second.true.get(query)]


def runs_of_one_draw(epsilon: float) -> int:
    """Number of bounding runs that detect half the noise of one count, if hits are as often as expected."""
    p, q = 1 / (1 + np.exp(-2 * epsilon)), 1 / (1 + np.exp(2 * epsilon))
    for n in range(20, 100_000):
        low = at_least(np.floor(p * n), n, MISS / 2)
        high = at_most(np.ceil(q * n), n, MISS / 2)
        if least_epsilon(low, high) > epsilon:
            return n
    return -1


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mechanisms", nargs="*")
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--most", type=int, default=16_000)
    parser.add_argument("--change", default="", help="only cases whose change holds these words")
    parser.add_argument("--spared", action="store_true", help="true answers to one query at a time")
    given = parser.parse_args()
    if given.spared:
        _spared([c for c in CASES if not given.mechanisms or {c.mechanism, c.method} & set(given.mechanisms)])
        return
    print("one count, both tables seen: bounding runs by ε")
    print("  ".join(f"{e}: {runs_of_one_draw(e)}" for e in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)))
    for case in CASES:
        named = not given.mechanisms or {case.mechanism, case.method} & set(given.mechanisms)
        if named and given.change in case.change:
            _line(case, given.first, given.most)


def _spared(cases: Sequence[Case]) -> None:
    by: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        for query in measured_differently(case):
            by.setdefault((case.name, query), []).append(case)
    for (name, query), several in by.items():
        source = partial(Spared, query=query)
        found = (one for one in several if next(audit([one], RUNS, 1 - 0.001 / len(CASES), source)).over)
        where = next(found, None)
        said = "not found" if where is None else f"found: {where.change}"
        print(f"{name} | {query} | {said}", flush=True)


def _line(case: Case, runs: int, most: int) -> None:
    started = time.perf_counter()
    found: Any = None
    while runs <= most:
        (found,) = audit([case], round(runs * case.fewer), 1 - MISS, Half)
        if found.over:
            break
        runs *= 2
    claim, least = (found.claim.epsilon, found.epsilon) if found.rho is None else (found.claim.rho, found.rho)
    unit = "ε" if found.rho is None else "ρ"
    said = f"{found.runs:,}" if found.over else f"not at {found.runs:,}"
    seconds = time.perf_counter() - started
    print(
        f"{case.name} | {case.change} | {unit} {claim:.2g} | {least:.2f} | {said} | {seconds:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
