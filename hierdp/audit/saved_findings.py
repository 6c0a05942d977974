"""Findings of audits, and a file of them: each is saved when it is computed, and not computed again.

Repeating runs is safe for audits only: their tables are made up, so no privacy budget is spent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from math import isnan
from pathlib import Path
from typing import Any

from hierdp.audit.events import Claim, Condition, Event
from hierdp.errors import InputError
from hierdp.execution import store
from hierdp.record.case import Case
from hierdp.versions import fingerprint

KEY = ["mechanism", "method", "change", "runs", "miss", "noise", "seed", "code"]
"""Columns that identify a finding. `miss` is the probability that its bound is wrong, which depends on the
confidence and the number of cases; `code` identifies hierdp's source and the versions of its libraries."""

COLUMNS = [
    *KEY, "version", "neighbours", "claimed_epsilon", "claimed_delta", "claimed_rho", "epsilon", "rho",
    "over", "event", "conditions", "swapped", "detectable",
]  # fmt: skip

Row = dict[str, Any]


def findings(
    results: Path, wanted: Sequence[tuple[Case, Row]], make: Callable[[Case], Finding]
) -> Generator[Finding, None, None]:
    """The finding of each case, from the file or else computed and added to the file.

    Parameters
    ----------
    results : path
        A Parquet file; see `hierdp.execution.store`.
    wanted : sequence of (Case, dict)
        Each case with the settings of its finding; see `settings`.
    make : callable

    Raises
    ------
    InputError
        If the file is not a file of findings, or is in use by another process.
    """
    with store.growing(results, COLUMNS, KEY) as held:
        rows: Any = held.known.to_dict("records")
        known = {tuple(row[name] for name in KEY): row for row in rows}
        for case, of in wanted:
            row = known.get(tuple(of[name] for name in KEY))
            if row is not None:
                yield _finding(case, row)
                continue
            found = make(case)
            held.add(of | _row(found))
            yield found


def settings(case: Case, runs: int, miss: float, source: Callable[..., Any], seed: int) -> Row:
    """The settings that a finding depends on.

    Raises
    ------
    InputError
        If the noise is not a named class or function.
    """
    name = getattr(source, "__qualname__", "<unnamed>")
    if "<" in name:
        raise InputError(
            f"findings with the noise {name} cannot be saved, because it has no name; "
            "use a class or function defined in a module"
        )
    return {
        "mechanism": case.mechanism,
        "method": case.method,
        "change": case.change,
        "runs": runs,
        "miss": miss,
        "noise": f"{source.__module__}.{name}",
        "seed": seed,
        "code": fingerprint(),
        "version": metadata.version("hierdp"),
    }


def _row(found: Finding) -> Row:
    """The columns of a finding's result; `event` is a summary of `conditions`."""
    return {
        "neighbours": found.neighbours,
        "claimed_epsilon": found.claim.epsilon,
        "claimed_delta": found.claim.delta,
        "claimed_rho": found.claim.rho,
        "epsilon": found.epsilon,
        "rho": found.rho,
        "over": found.over,
        "event": str(found.event),
        "conditions": json.dumps([asdict(condition) for condition in found.event.conditions]),
        "swapped": found.event.swapped,
        "detectable": found.detectable,
    }


def _finding(case: Case, row: Mapping[str, Any]) -> Finding:
    claim = Claim(row["claimed_epsilon"], row["claimed_delta"], _number(row["claimed_rho"]))
    conditions = tuple(
        Condition(tuple((name, weight) for name, weight in one["weights"]), one["threshold"], one["below"])
        for one in json.loads(row["conditions"])
    )
    event = Event(conditions, bool(row["swapped"]))
    rho, least = _number(row["rho"]), row["detectable"]
    return Finding(case, claim, row["neighbours"], row["epsilon"], rho, event, row["runs"], least)


def _number(value: float | None) -> float | None:
    """The number, or None for an empty cell, which pandas reads as NaN."""
    return None if value is None or isnan(value) else value


@dataclass(frozen=True)
class Finding:
    """The result of an audit for one case: a lower bound on the privacy loss.

    Attributes
    ----------
    case : Case
    claim : Claim
        The privacy loss that the ledger states.
    neighbours : str
        The neighbouring relation, as the ledger states it.
    epsilon : float
        A lower bound on ε, at the claimed δ.
    rho : float or None
        A lower bound on ρ, under zCDP.
    event : Event
        The event that proves the bounds.
    runs : int
        Number of runs on each table.
    detectable : float
        The smallest loss, in the unit of the claim, that so many runs would have shown to exceed the claim,
        if one event had revealed it; infinite if there is none. See `hierdp.audit`.
    """

    case: Case
    claim: Claim
    neighbours: str
    epsilon: float
    rho: float | None
    event: Event
    runs: int
    detectable: float

    @property
    def shows_nothing(self) -> bool:
        """Whether no loss at all could have exceeded the claim in so few runs."""
        return not self.over and self.detectable == math.inf

    @property
    def over(self) -> bool:
        """Whether a bound exceeds the claim, so that the mechanism is less private than it claims."""
        if self.claim.rho is not None and self.rho is not None and self.rho > self.claim.rho:
            return True
        return self.epsilon > self.claim.epsilon
