"""Cumulative hierarchies: over the reals by Newton's method, over whole numbers by branch and bound."""

from __future__ import annotations

import numpy as np

from models import CumulativeQIP
from models.arithmetic.arrays import Array, Floats
from models.arithmetic.exact import is_exact
from models.certificate import FLOAT_TOLERANCE, Witness
from solvers.fast.cumulative_branches import branched
from solvers.fast.cumulative_newton import relaxed


def solve_cumulative(model: CumulativeQIP) -> tuple[Array, Witness]:
    """An optimal answer: over the reals to `FLOAT_TOLERANCE`, over whole numbers if the search completes.

    Over whole numbers, the relaxation's answer is rounded. If the relaxation's own prices do not prove it,
    branch and bound continues to the optimum, or to the limits of `solvers.fast.cumulative_branches`. At a
    limit the witness proves the best bound found, and a gap remains.
    """
    absolute = 1e-3 if model.integer else np.inf
    real = relaxed(model.tree, model.counts, model.total, FLOAT_TOLERANCE / 4, absolute)
    witness = {"prices": real.prices, "rises": real.rises}
    if not model.integer:
        return real.x, witness
    best = _rounded(model, real.x)
    # Every whole answer costs at least this much, as it differs from the relaxation's answer.
    least = float(((real.x - model.counts) ** 2).sum() + ((real.x - np.rint(real.x)) ** 2).sum())
    if is_exact(model.counts) and float(model.objective(best)) < least + 0.99 - 10 * real.gap:
        return best, witness
    found, proof = branched(model, real.x, best, lambda x: _rounded(model, x))
    return found, witness if proof is None else proof


def _rounded(model: CumulativeQIP, real: Floats) -> Array:
    """A feasible answer near the relaxation's.

    The leaves' rows are rounded (and made monotone, which they are only up to rounding), and their last cells
    are changed to fit the total. The other nodes are sums of leaves.
    """
    leaves = real[model.tree.leaves]
    whole = np.maximum.accumulate(np.maximum(np.rint(leaves), 0.0), axis=1).astype(np.int64)
    missing = model.total - int(whole[:, -1].sum())
    floor = whole[:, -2] if whole.shape[1] > 1 else np.zeros(len(whole), np.int64)
    order = np.argsort((leaves[:, -1] - whole[:, -1]) * (-1 if missing > 0 else 1), kind="stable")
    while missing:
        for leaf in order:
            step = 1 if missing > 0 else -1
            if missing and (step > 0 or whole[leaf, -1] > floor[leaf]):
                whole[leaf, -1] += step
                missing -= step
        if missing < 0 and not np.any(whole[:, -1] > floor):
            # The last cells cannot be lowered alone: lower whole tails of rows.
            leaf = int(np.argmax(whole[:, -1]))
            whole[leaf] = np.minimum(whole[leaf], whole[leaf, -1] - 1)
            missing += 1
    return np.asarray(model.tree.sum_up(whole))
