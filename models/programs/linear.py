"""Programs with linear costs, squares, bounds and rows, out of arrays of any exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door
from models.arithmetic.arrays import Flags
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term


def linear_program(
    name: str,
    c: ArrayLike,
    matrix: Any,
    lower: Any,
    upper: Any,
    bounds: tuple[Any, Any],
    whole: Flags,
    squares: ArrayLike = 0,
    columns: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
) -> Program:
    """Minimize c·x + Σ squares·x² subject to ``lower ≤ matrix x ≤ upper`` and bounds.

    - whole, array of bool, shape (variables,): blocks are whole or not as a whole, so there is one for each
      stretch of variables of a kind.
    - columns, rows: names, if there are any.
    """
    size = whole.size
    sides = ("the lower bounds", "the upper bounds")
    low, high = (np.broadcast_to(door.sides(*side), size) for side in zip(sides, bounds, strict=True))
    cuts = [0, *(1 + np.flatnonzero(whole[1:] != whole[:-1])).tolist(), size]
    blocks = [
        Block(
            f"x{k}" if k else "x", (b - a,), low[a:b], high[a:b], bool(whole[a]),
            names=None if columns is None else tuple(columns[a:b]),
        )
        for k, (a, b) in enumerate(pairwise(cuts))
        if b > a
    ]  # fmt: skip
    c, squares = (
        np.broadcast_to(door.numbers(part, value), size) for part, value in (("c", c), ("squares", squares))
    )
    terms, bent = [Term("linear", np.arange(size), c)], np.flatnonzero(squares)
    if bent.size:
        terms.append(Term("quadratic", bent, squares[bent]))
    names = None if rows is None else tuple(rows)
    return Program(name, blocks, [Rows("A", matrix, lower, upper, names=names)], terms)
