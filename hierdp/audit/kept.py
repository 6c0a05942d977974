"""Findings in a file that grows: each is kept as it comes, and what is there is not run again.

That is safe here, and only here: the tables of an audit are made up, so there is no budget that a second
run could spend again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from math import isnan
from pathlib import Path
from typing import Any

from hierdp.audit.case import Case
from hierdp.audit.events import Claim, Condition, Event
from hierdp.audit.finding import Finding
from hierdp.errors import InputError
from hierdp.execution import store
from hierdp.versions import fingerprint

KEY = ["mechanism", "method", "change", "runs", "miss", "noise", "seed", "code"]
"""What makes a finding the same as another. `miss` is how often its bound may be wrong, so the confidence and
how many cases share it; `code` is the source of hierdp with the versions of its libraries."""

COLUMNS = [
    *KEY, "version", "neighbours", "claimed_epsilon", "claimed_delta", "claimed_rho", "epsilon", "rho",
    "over", "event", "conditions", "swapped",
]  # fmt: skip

Row = dict[str, Any]


def findings(
    results: Path, asked: Sequence[tuple[Case, Row]], make: Callable[[Case], Finding]
) -> Generator[Finding, None, None]:
    """The finding of each case: from the file, or else made, and added to it.

    Parameters
    ----------
    results : path
        A Parquet file; see `hierdp.execution.store`.
    asked : sequence of (Case, dict)
        With the settings of its finding; see `settings`.
    make : callable

    Raises
    ------
    InputError
        If the file holds something else, or another process is at it.
    """
    with store.growing(results, COLUMNS, KEY) as held:
        rows: Any = held.known.to_dict("records")
        known = {tuple(row[name] for name in KEY): row for row in rows}
        for case, of in asked:
            row = known.get(tuple(of[name] for name in KEY))
            if row is not None:
                yield _finding(case, row)
                continue
            found = make(case)
            held.add(of | _row(found))
            yield found


def settings(case: Case, runs: int, miss: float, source: Callable[..., Any], seed: int) -> Row:
    """What a finding depends on.

    Raises
    ------
    InputError
        If the noise has no name by which to know it again.
    """
    name = getattr(source, "__qualname__", "<unnamed>")
    if "<" in name:
        raise InputError(
            f"findings with the noise {name} cannot be kept: it has no name to be known again by; "
            "give a class or function of a module"
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
    """What it proves; `event` is for people, `conditions` has it in full."""
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
    }


def _finding(case: Case, row: Mapping[str, Any]) -> Finding:
    claim = Claim(row["claimed_epsilon"], row["claimed_delta"], _number(row["claimed_rho"]))
    conditions = tuple(
        Condition(tuple((name, weight) for name, weight in one["weights"]), one["threshold"], one["below"])
        for one in json.loads(row["conditions"])
    )
    event = Event(conditions, bool(row["swapped"]))
    return Finding(case, claim, row["neighbours"], row["epsilon"], _number(row["rho"]), event, row["runs"])


def _number(value: float | None) -> float | None:
    """An empty cell is a float, too."""
    return None if value is None or isnan(value) else value
