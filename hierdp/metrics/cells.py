"""Errors of the counts of one level, whatever the level is: cells, sizes of groups, bins, or ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.arithmetic import exact
from models.arithmetic.arrays import Ints

RANKED = 10_000
"""Ranks are compared among this many cells, those with the largest true counts, zeros included."""

TOPS = (10, 100)
"""Sizes of the lists of largest cells that are compared."""


def cell_errors(true: ArrayLike, released: ArrayLike, cells: int | None = None) -> dict[str, Any]:
    """Errors of counts, false positives and negatives, and what is left of the order of the counts.

    Parameters
    ----------
    true, released : arrays of the same shape
        Cells that are 0 in both may be left out.
    cells : int, optional
        The number of cells, those left out included. Default: none is left out.

    Returns
    -------
    dict
        `cells`; `l1`, the sum of absolute errors, and `mean_error` and `rmse`, their mean and root mean
        square over all cells; `max_error`; `relative`, L1 divided by the sum of the true counts; `bias`, the
        sum of released minus true counts; `false_positives`, the released counts over 0 whose true count is
        0; `false_negatives`, the true counts over 0 whose released count is not; `negative`, the released
        counts below 0; and the entries of `rank_agreement`. L1, the maximum and the bias of whole counts are
        exact.

    Examples
    --------
    >>> found = cell_errors([5, 0, 2, 0], [7, 1, 0, 0])
    >>> found["l1"], found["mean_error"], found["max_error"], found["false_positives"]
    (5, 1.25, 2, 1)
    >>> found["rmse"], found["bias"], found["false_negatives"], round(found["relative"], 3)
    (1.5, 1, 1, 0.714)
    """
    before, after = _signed(true), _signed(released)
    error = after - before
    number = error.size if cells is None else cells
    away = np.abs(error)
    l1, squares = exact.total(away), exact.dot(error, error)
    true_sum = exact.total(np.abs(before))
    return {
        "cells": number,
        "l1": l1,
        "mean_error": float(l1 / max(1, number)),
        "rmse": math.sqrt(squares / max(1, number)),
        "max_error": away.max().item() if away.size else 0,
        "relative": float(l1 / true_sum) if true_sum else math.nan,
        "bias": exact.total(error),
        "false_positives": int(((before == 0) & (after > 0)).sum()),
        "false_negatives": int(((before > 0) & (after <= 0)).sum()),
        "negative": int((after < 0).sum()),
        **rank_agreement(before, after, number),
    }


def rank_agreement(true: ArrayLike, released: ArrayLike, cells: int | None = None) -> dict[str, float]:
    """How well the order of the largest true counts is kept.

    Parameters
    ----------
    true, released, cells
        As for `cell_errors`.

    Returns
    -------
    dict
        `spearman` and `kendall` (tau-b), the rank correlations among the `RANKED` cells with the largest true
        counts, or among all cells if there are fewer; NaN if all counts of a side are equal. Cells whose true
        count is 0 are among them, also those left out. If only some of these fit, cells released as 0 and
        others are taken in their proportions. `top_10` and `top_100` are the share of the cells with the 10
        and 100 largest true counts that are among those with as many largest released counts. Of cells with
        equal counts, the first ones come first.

    Examples
    --------
    >>> found = rank_agreement([9, 5, 1], [9, 1, 5])
    >>> found["spearman"], round(found["kendall"], 3), found["top_10"]
    (0.5, 0.333, nan)
    >>> round(rank_agreement([9, 5, 0], [9, 0, 5])["spearman"], 3)
    0.5
    """
    from scipy import stats

    before, after = _signed(true), _signed(released)
    by_true = np.argsort(-before, kind="stable")
    positive = int((before > 0).sum())
    ranked, zeros = _ranked(by_true, positive, before.size if cells is None else cells)
    x, y = (np.append(side[ranked], np.zeros(zeros, side.dtype)) for side in (before, after))
    varied = x.size > 1 and np.ptp(x) > 0 and np.ptp(y) > 0
    found = {
        "spearman": float(stats.spearmanr(x, y).statistic) if varied else math.nan,
        "kendall": float(stats.kendalltau(x, y).statistic) if varied else math.nan,
    }
    by_released = np.argsort(-after, kind="stable")
    for top in TOPS:
        kept = np.intersect1d(by_true[:top], by_released[:top]).size / top
        found[f"top_{top}"] = kept if positive >= top else math.nan
    return found


def _ranked(by_true: NDArray[Any], positive: int, cells: int) -> tuple[NDArray[Any], int]:
    """The positions of the cells whose ranks are compared, and how many of the cells left out are."""
    first, rest = by_true[: min(positive, RANKED)], by_true[positive:]
    room, others = min(RANKED, cells) - first.size, cells - positive
    if not room:
        return first, 0
    taken = round(room * rest.size / others)
    even = np.arange(taken) * rest.size // max(1, taken)
    return np.concatenate([first, rest[even]]), room - taken


def errors_by_size(
    true: ArrayLike, released: ArrayLike, cells: int | None = None
) -> Iterator[dict[str, Any]]:
    """Errors by the size of the true count: 0, and each power of ten.

    Parameters
    ----------
    true, released, cells
        As for `cell_errors`.

    Yields
    ------
    dict
        For each class with cells, its `true_count` in words, `cells`, `mean_error`, `rmse`, `max_error`,
        `bias_per_cell`, and `relative`, as for `cell_errors`.

    Examples
    --------
    >>> for row in errors_by_size([5, 0, 20], [7, 1, 20]):
    ...     print(row["true_count"], row["cells"], row["mean_error"])
    0 1 1.0
    1 to 9 1 2.0
    10 to 99 1 0.0
    """
    before, after = _signed(true), _signed(released)
    classes = _classes(before)
    left_out = 0 if cells is None else cells - before.size
    for number in range(-2, int(classes.max(initial=-2)) + 1):
        here = classes == number
        many = int(here.sum()) + (left_out if number == -2 else 0)
        if many:
            found = cell_errors(before[here], after[here], many)
            named = ("mean_error", "rmse", "max_error", "relative")
            yield {
                "true_count": _class(number),
                "cells": many,
                **{name: found[name] for name in named},
                "bias_per_cell": float(found["bias"] / many),
            }


def shares_by_size(true: ArrayLike, held: NDArray[np.bool_]) -> dict[str, float]:
    """The share of cells for which something holds, by the class of the true count as `errors_by_size`."""
    classes = _classes(_signed(true))
    return {_class(one): float(held[classes == one].mean()) for one in np.unique(classes).tolist()}


def _classes(true: NDArray[Any]) -> Ints:
    """−2 for 0, −1 under 1, otherwise the power of ten."""
    size = np.abs(true)
    classes = np.full(size.shape, -2)
    classes[size > 0] = -1
    power, low = 0, 1
    while (at := size >= low).any():
        classes[at] = power
        power, low = power + 1, low * 10
    return classes


def _class(power: int) -> str:
    if power < 0:
        return "0" if power == -2 else "under 1"
    return f"{10**power:,} to {10 ** (power + 1) - 1:,}"


def _signed(values: ArrayLike) -> NDArray[Any]:
    """Whole counts as int64, since differences of unsigned integers would wrap around; flat."""
    held = np.ravel(np.asarray(values))
    return held.astype(np.int64) if held.dtype.kind in "iub" else held
