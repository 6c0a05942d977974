"""By how much repaired counts are off on average, by size: a release taken as the truth, released again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.rows import frame_of
from hierdp.mechanisms import MechanismInfo
from hierdp.privacy.noise import SimulatedNoise

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.record.release import Release

TIMES, SEED = 5, 1
"""The number of second releases, and the first seed of their noise."""

CLASSES = (0, 1, 10, 100, 1000)
"""The least counts of the classes of size; the last has no upper end."""


def simulated_errors(mechanism: MechanismInfo, made: Release) -> dict[str, Any] | None:
    """Mean errors of the finest counts by size, in second releases whose true counts are the released ones.

    Post-processing: only the release is used. The method, the budget and the law of the noise are its own,
    and the noise is simulated from fixed seeds.

    Parameters
    ----------
    mechanism : MechanismInfo
    made : Release

    Returns
    -------
    dict or None
        An entry of the manifest: the number of second releases, their seed, and for each class of size its
        least and largest count, the number of counts, the mean and the standard deviation of their errors
        (released again minus released), and the share that became 0. None if the mechanism has no second
        releases, the counts are not repaired, or there are too many.
    """
    function = mechanism.bootstrap
    if function is None or not made.steps or len(made.counts) > mechanism.most_simulated:
        return None
    table = frame_of(made.counts)
    if "standard_error" in table:
        return None
    manifest = {"settings": made.settings, "budget": made.ledger.as_dict(), "mechanism": made.mechanism}
    before, cells = _finest(table), _cells(made)
    sums, squares, gone = np.zeros((3, len(CLASSES)))
    there = np.bincount(_class(before.to_numpy()), minlength=len(CLASSES))
    there[0] = cells - there[1:].sum()
    for number in range(TIMES):
        after = _finest(function(table, manifest, made.regions, SimulatedNoise(SEED + number)))
        one, other = before.align(after, fill_value=0)
        at = _class(one.to_numpy())
        error = (other - one).to_numpy(dtype=float)
        sums += np.bincount(at, error, minlength=len(CLASSES))
        squares += np.bincount(at, error**2, minlength=len(CLASSES))
        gone += np.bincount(at, other.to_numpy() == 0, minlength=len(CLASSES))
    ends: list[int | None] = [*(least - 1 for least in CLASSES[1:]), None]
    rows = [
        {
            "from": least,
            "to": most,
            "counts": int(n),
            "mean_error": float(f"{total / (n * TIMES):.3g}"),
            "deviation": float(
                f"{math.sqrt(max(0.0, square / (n * TIMES) - (total / (n * TIMES)) ** 2)):.3g}"
            ),
            "became_0": float(f"{zero / (n * TIMES):.3g}") if least else None,
        }
        for least, most, n, total, square, zero in zip(
            CLASSES, ends, there.tolist(), sums, squares, gone, strict=True
        )
        if n
    ]
    return {"times": TIMES, "seed": SEED, "classes": rows}


def _class(counts: Any) -> Any:
    return np.searchsorted(CLASSES, counts, side="right") - 1


def _finest(table: DataFrame) -> Any:
    """The positive counts of the last level, by the other columns."""
    last = table[(table["level"] == table["level"].max()) & (table["count"] > 0)]
    return last.set_index([name for name in last.columns if name not in ("count", "level")])["count"]


def _cells(made: Release) -> int:
    """The number of finest cells, including those with 0."""
    plan = made.settings.get("plan")
    lists = plan["attributes"].values() if isinstance(plan, Mapping) else ()
    regions = math.prod(int(places.names[-1].size) for places in made.regions.values())
    return regions * math.prod(len(each) for each in lists)
