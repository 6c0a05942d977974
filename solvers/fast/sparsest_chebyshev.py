"""The fewest positive entries at the least Chebyshev distance, in closed form."""

from __future__ import annotations

import numpy as np

from models import SparsestChebyshev
from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.certificate import Witness


def solve_sparsest_chebyshev(model: SparsestChebyshev) -> tuple[Ints, Witness | None]:
    """Keep the fewest, largest entries that suffice at their noisy counts; move them to the total in order.

    Ties: of equal entries the earlier one is kept; of those kept, the earlier is moved first. The threshold
    that proves it is the least noisy count kept.
    """
    lower, upper = model.box
    kept = np.sort(np.argsort(-model.counts, kind="stable")[: fewest(model)])
    x = np.zeros(model.counts.size, dtype=np.int64)
    x[kept] = np.maximum(model.counts[kept], 0)
    missing = model.total - int(x.sum())
    room = upper[kept] - x[kept] if missing > 0 else x[kept] - lower[kept]
    taken = np.clip(abs(missing) - (np.cumsum(room) - room), 0, room)
    x[kept] += taken if missing > 0 else -taken
    return x, {"threshold": model.counts[kept].min()} if kept.size else None


def fewest(model: SparsestChebyshev) -> int:
    """The least number of positive entries that any Chebyshev-optimal answer has, exactly."""
    lower, upper = model.box
    must = lower > 0
    room = int(exact.total(upper[must]))
    optional = np.sort(upper[~must & (upper > 0)])[::-1]
    if room >= model.total:
        return int(must.sum())
    reached = room + np.cumsum(optional)
    return int(must.sum()) + int(np.searchsorted(reached, model.total)) + 1
