"""Proofs of all kinds beside every answer of ten thousand tiny problems: the optima proved, and false proofs.

Different instances of each problem of `tests/models/test_brute_force_proofs.py`, enumerated. Of each, up to
three best answers are proved, and up to three others and one with another number are not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any

from benchmarks.measuring import compiled, version

KEY = ("problem", "version")


def run(
    known: Any,
    cases: Annotated[int, "instances of each problem"] = 10_000,
    only: Annotated[str, "problems whose name contains this"] = "",
) -> Iterator[dict[str, Any]]:
    """One row a problem."""
    from tests.models.test_brute_force_proofs import PROBLEMS, judged

    compiled()
    for problem in PROBLEMS:
        name = problem.__name__
        done = ((known["problem"] == name) & (known["version"] == version("hierdp"))).any()
        if done or only not in name:
            continue
        started = time.process_time()
        tally = judged(problem, range(3 * cases), cases, search=False)
        yield {
            "problem": name, "version": version("hierdp"), "date": date.today().isoformat(),
            "instances": tally.instances, "optima": tally.optima,
            "proved": tally.optima - len(tally.unproved), "others refused": tally.refused,
            "false proofs": len(tally.false),
            "CPU s": time.process_time() - started,
        }  # fmt: skip
