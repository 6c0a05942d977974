"""Values in order, cut into runs: answers mark each run's first bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic import door
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel


def checked_clusters(clusters: Any, values: int) -> int | None:
    """Check the number of runs to cut the values into; None if it is free.

    Raises `ValueError` if it is not a whole number from 1 to the number of values.
    """
    if clusters is None:
        return None
    if isinstance(clusters, bool | np.bool_) or not isinstance(clusters, int | np.integer):
        raise ValueError(f"clusters must be a whole number, got {clusters!r}")
    if not 1 <= clusters <= values:
        raise ValueError(f"clusters is {clusters}: {values} values make 1 to {values} runs")
    return int(clusters)


def starts_of(x: Any, values: int) -> Ints:
    """Where runs begin: at the first bin, whatever its mark, and at every other bin whose mark is not 0."""
    return np.union1d([0], np.flatnonzero(door.answer(x, (values,), integer=True))).astype(np.int64)


def marks_of(starts: Ints, values: int) -> Ints:
    """The answer whose runs begin at `starts`."""
    x = np.zeros(values, np.int64)
    x[starts] = 1
    return x


def broken(x: Any, values: int, clusters: int | None) -> list[str]:
    """Violations: marks other than 0 and 1, an unmarked first bin, a wrong number of runs."""
    x = door.answer(x, (values,), integer=True)
    found = [f"mark: x[{i}] = {x[i]}, neither 0 nor 1" for i in np.flatnonzero((x != 0) & (x != 1))]
    if x[0] == 0:
        found.insert(0, f"first: x[0] = {x[0]}, but the first bin begins a run")
    runs = starts_of(x, values).size
    if clusters is not None and runs != clusters:
        found.append(f"clusters: {runs} runs, not {clusters}")
    return found


def walk(begins: Ints) -> Ints:
    """The starts of the runs of the cut in which ``begins[j]`` starts the last run of the first j bins.

    If `begins` has one row for each number of runs, from 0 on, each step back goes one row up.
    """
    return np.asarray(_walk(np.atleast_2d(begins)))


@kernel()
def _walk(begins: Any) -> Any:
    row, end = begins.shape[0] - 1, begins.shape[1] - 1
    starts = np.empty(end, np.int64)
    k = end
    while end > 0:
        end = begins[row, end]
        row = max(row - 1, 0)
        k -= 1
        starts[k] = end
    return starts[k:]
