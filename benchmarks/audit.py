"""What `hierdp audit` detects: half the noise of a mechanism, and true answers; see docs/privacy.md.

Each case of the audit is run with half the scale of noise and an unchanged claim: 500 runs of each table,
then 1,000, 2,000, … until the bound on the loss exceeds the claim. With `--spared`, each query of each method
that differs between the two tables of a case is answered truly, with the noise drawn and charged, in as many
runs as `hierdp audit` makes by default; a row is a query, and the first case that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

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

    def geometric(self, counts: Ints, query: str, *scale: Any) -> NoisyCounts:
        return self._spared(super().geometric(counts, query, *scale), counts, query)

    def gaussian(self, counts: Ints, query: str, *scale: Any) -> NoisyCounts:
        return self._spared(super().gaussian(counts, query, *scale), counts, query)

    def _spared(self, made: NoisyCounts, counts: Ints, query: str) -> NoisyCounts:
        return replace(made, counts=counts.copy()) if query == self.query else made

    def choose(self, scores: Sequence[Ints], query: str, *scale: Any) -> tuple[Ints, Spend]:
        chosen, spend = super().choose(scores, query, *scale)
        return largest(scores) if query == self.query else chosen, spend


class _Measured(ZeroNoise):
    """Keep the true counts of each query, and the scores of private choices."""

    def __init__(self) -> None:
        super().__init__()
        self.true: dict[str, list[bytes]] = {}

    def _keep(self, query: str, parts: Sequence[Ints]) -> None:
        self.true.setdefault(query, []).extend(part.tobytes() for part in parts)

    def geometric(self, counts: Ints, query: str, *scale: Any) -> NoisyCounts:
        self._keep(query, [counts])
        return super().geometric(counts, query, *scale)

    def gaussian(self, counts: Ints, query: str, *scale: Any) -> NoisyCounts:
        self._keep(query, [counts])
        return super().gaussian(counts, query, *scale)

    def choose(self, scores: Sequence[Ints], query: str, *scale: Any) -> tuple[Ints, Spend]:
        self._keep(query, scores)
        return super().choose(scores, query, *scale)


def measured_differently(case: Case) -> list[str]:
    """The queries whose true counts differ between the two tables, in the order measured."""
    first, second = _Measured(), _Measured()
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


def run(
    *,
    mechanisms: Annotated[tuple[str, ...], "mechanisms or methods; all"] = (),
    first: Annotated[int, "runs at first"] = FIRST,
    most: Annotated[int, "runs at most"] = 16_000,
    change: Annotated[str, "only cases whose change holds these words"] = "",
    spared: Annotated[bool, "true answers to one query at a time"] = False,
) -> Iterator[dict[str, Any]]:
    chosen = [case for case in CASES if not mechanisms or {case.mechanism, case.method} & set(mechanisms)]
    if spared:
        yield from _spared(chosen)
        return
    for epsilon in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0):
        yield {"one count, both tables seen: ε": epsilon, "bounding runs": runs_of_one_draw(epsilon)}
    for case in chosen:
        if change in case.change:
            yield _halved(case, first, most)


def _spared(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    by: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        for query in measured_differently(case):
            by.setdefault((case.name, query), []).append(case)
    for (name, query), several in by.items():
        source = partial(Spared, query=query)
        found = (one for one in several if next(audit([one], RUNS, 1 - 0.001 / len(CASES), source)).over)
        where = next(found, None)
        yield {"case": name, "query": query, "found by": "not found" if where is None else where.change}


def _halved(case: Case, runs: int, most: int) -> dict[str, Any]:
    found: Any = None
    while runs <= most:
        (found,) = audit([case], round(runs * case.fewer), 1 - MISS, Half)
        if found.over:
            break
        runs *= 2
    in_rho = found.rho is not None
    claim, least = (found.claim.rho, found.rho) if in_rho else (found.claim.epsilon, found.epsilon)
    return {"case": case.name, "change": case.change, "unit": "ρ" if in_rho else "ε", "claim": claim,
            "bound": least, "runs": found.runs, "detected": found.over}  # fmt: skip
