"""The bound that a witness of `CumulativeQIP` proves: by one set of prices, or one for each of many cases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array
from models.certificate import Witness
from models.witnesses.cumulative import Data, Domain, bound
from models.witnesses.scaled import numbers


def least(data: Data, witness: Witness) -> Fraction:
    """The bound that a witness of `CumulativeQIP.certificate` proves.

    `branches`, an integer array of shape (cases, 4), is a tree with case 0 at its root. A case ``(cell,
    value, below, above)`` with ``cell >= 0`` splits into the case `below`, where that cell is at most
    `value`, and the case `above`, where it is at least ``value + 1``: a whole number is one or the other. A
    case ``(-1, k, ., .)`` is bounded by the k-th set of prices over its remaining domain. Every answer is in
    one of the cases, so the least of their bounds holds for all answers.

    Raises `ValueError` if the witness is malformed.
    """
    nodes, sizes = data.counts.shape
    inner, leaves = data.tree.internal.size, data.tree.leaves.size
    try:
        prices = np.asarray(witness["prices"])
    except (KeyError, TypeError, IndexError, ValueError):
        raise ValueError("the witness must be a mapping with an array 'prices'") from None
    if "branches" not in witness:
        y = _reals("prices", prices, (inner, sizes))
        if "falls" in witness:
            return bound(data, y, None, _reals("falls", witness["falls"], (nodes, sizes - 1)))
        rises = np.asarray(witness.get("rises", np.zeros((leaves, sizes), np.int8)))
        if rises.dtype.kind not in "bi" or rises.shape != (leaves, sizes):
            raise ValueError(f"rises must be integers of shape {(leaves, sizes)}")
        return bound(data, y, rises, None)
    if not data.whole:
        raise ValueError("branches are for whole numbers")
    sets = len(prices) if prices.ndim else 0
    prices = _reals("prices", prices, (sets, inner, sizes))
    falls = _reals("falls", witness.get("falls"), (sets, nodes, sizes - 1))
    return _cases(data, _tree(witness["branches"], sets, data.counts.size), prices, falls)


def _cases(data: Data, branches: Array, prices: Array, falls: Array) -> Fraction:
    """The least bound of all cases."""
    shape = data.counts.shape
    kind: Any = np.int64 if data.total < 2**62 else object
    found: list[Fraction] = []
    open_cases = [(0, np.zeros(shape, kind), np.full(shape, data.total, kind))]
    while open_cases:
        case, low, high = open_cases.pop()
        cell, value, below, above = branches[case].tolist()
        if cell < 0:
            found.append(bound(data, prices[value], None, falls[value], Domain(low, high)))
            continue
        less, more = high.copy(), low.copy()
        less.flat[cell] = min(less.flat[cell], value)
        more.flat[cell] = max(more.flat[cell], value + 1)
        open_cases += [(below, low, less), (above, more, high)]
    return min(found)


def _tree(values: Any, sets: int, cells: int) -> Array:
    """Check that `branches` is a tree: every case except the first is named exactly once.

    A cycle or a second path to a case would name it twice.
    """
    cases = np.asarray(values)
    whole = np.issubdtype(cases.dtype, np.signedinteger)
    if cases.ndim != 2 or cases.shape[1] != 4 or not len(cases) or not whole:
        raise ValueError("branches must be an array of integers, of shape (cases, 4)")
    cases = cases.astype(np.int64)
    splits = cases[:, 0] >= 0
    named = cases[splits, 2:].ravel()
    if not np.array_equal(np.sort(named), np.arange(1, len(cases))):
        raise ValueError("branches must be a tree: each case but the first is named once")
    if np.any(cases[:, 0] >= cells) or np.any(np.abs(cases[splits, 1]) >= 2**62):
        raise ValueError("branches must split cells of the model, at values under 2**62")
    priced = cases[~splits, 1]
    if np.any((priced < 0) | (priced >= sets)):
        raise ValueError(f"branches must name one of {sets} sets of prices")
    return cases


def _reals(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Numbers of this shape, as floats."""
    try:
        return numbers(name, values, shape).astype(np.float64)
    except (OverflowError, TypeError):
        raise ValueError(f"{name} must be numbers that floats can hold") from None
