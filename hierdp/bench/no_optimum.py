"""Problems without an optimum, infeasible or unbounded, made from steps of releases, and their exact proofs.

- *infeasible*: two published sums that contradict a third. An equation Σ a·x = b is cut in two, and each half
  is to be at least what it is in the answer; the second half one more. The prices −1, 1, 1 prove it (Farkas).
- *unbounded*: absolute changes or squares whose sign was kept: minimize Σ (v − noisy) over increasing or
  consistent numbers. A feasible point and a direction prove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from hierdp.bench.point import point
from models import ConstrainedInference, Isotonic
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term
from models.programs.texts import Stated

Status = Literal["infeasible", "unbounded"]


@dataclass(frozen=True, eq=False)
class NoOptimum:
    """A program without an optimum, and what proves it.

    Attributes
    ----------
    program : Program
    status : "infeasible" or "unbounded"
    numbers : dict
        ``prices`` of the rows; or a ``point`` and a ``ray`` of the variables. Each is a list of whole
        numbers and fractions.
    """

    program: Program
    status: Status
    numbers: dict[str, list[Any]]


def infeasible(model: Any, x: Any) -> NoOptimum | None:
    """The model's program with a contradiction; None if it has no equation of two variables or more."""
    program: Program = model.program()
    least, most = program.row_bounds
    lengths = np.diff(program.matrix.indptr)
    found = np.flatnonzero((least == most) & (lengths >= 2))
    if not found.size or program.has("table") or program.has("absolute"):
        return None
    i = int(found[np.argmax(lengths[found])])
    row = program.matrix[i]
    half = row.nnz // 2
    values = point(model, program, x)
    parts = []
    for inside in (slice(0, half), slice(half, None)):
        parts.append(
            sp.csr_matrix((row.data[inside], row.indices[inside], [0, row.data[inside].size]), row.shape)
        )
    first = sum(
        Fraction(a) * values[j]
        for a, j in zip(row.data[:half].tolist(), row.indices[:half].tolist(), strict=True)
    )
    sides = np.array([float(first), float(Fraction(least[i]) - Fraction(float(first)) + 1)])
    more = Rows("published", sp.vstack(parts, format="csr"), sides, np.full(2, np.inf))
    prices = [0] * len(least)
    prices[i] = -1
    made = replace(program, name=f"{program.name} infeasible", rows=[*program.rows, more])
    return NoOptimum(made, "infeasible", {"prices": [*prices, 1, 1]})


def unbounded(model: Any, _: Any) -> NoOptimum | None:
    """The model's program with signed changes; None if the model has no free variables."""
    if not isinstance(model, Isotonic | ConstrainedInference):
        return None
    program: Program = model.program()
    size = program.blocks[0].size
    if len(program.blocks) > 1:
        return None
    weight = np.ones(size) if isinstance(model, Isotonic) else np.arange(1.0, size + 1)
    made = replace(
        program, name=f"{program.name} unbounded",
        blocks=[Block("x", (size,), -np.inf, np.inf)], objective=[Term("linear", np.arange(size), weight)],
    )  # fmt: skip
    down: Any = np.ones(size, int)
    if isinstance(model, ConstrainedInference):
        down = model.tree.sum_up(np.ones(model.tree.leaves.size, int))
    start = [0] * size  # equal numbers increase, and zeros are consistent
    return NoOptimum(made, "unbounded", {"point": start, "ray": (-down).tolist()})


def refutation(made: Stated, status: str, numbers: dict[str, Sequence[Any]]) -> str:
    """Why the numbers do not prove that a written program has no optimum; empty if they do. Exact."""
    given = {name: [Fraction(one) for one in part] for name, part in numbers.items()}
    if status == "infeasible":
        return _not_farkas(made, given["prices"])
    at, ray = given["point"], given["ray"]
    broken = next(violated(made, at), "")
    if broken:
        return f"the point breaks {broken}"
    zero = replace(
        made, lower=np.where(np.isfinite(made.lower), 0.0, made.lower),
        upper=np.where(np.isfinite(made.upper), 0.0, made.upper),
        least=np.where(np.isfinite(made.least), 0.0, made.least),
        most=np.where(np.isfinite(made.most), 0.0, made.most),
    )  # fmt: skip
    broken = next(violated(zero, ray), "")
    if broken:
        return f"the ray leaves {broken}"
    if any(square and step for square, step in zip(made.square.tolist(), ray, strict=True)):
        return "the ray moves a variable that has a square"
    gain = sum(Fraction(c) * step for c, step in zip(made.cost.tolist(), ray, strict=True))
    return "" if gain < 0 else "the cost does not fall along the ray"


def _not_farkas(made: Stated, prices: Sequence[Fraction]) -> str:
    """Σ price·side must exceed the most that (Aᵀ·prices)·v can be within the bounds."""
    total, slope = Fraction(0), [Fraction(0)] * len(made.columns)
    for i, price in enumerate(prices):
        if price:
            side = float(made.least[i] if price > 0 else made.most[i])
            if not np.isfinite(side):
                return f"the row {made.rows[i]} has no side for its price"
            total += price * Fraction(side)
            for j, value in row_of(made, i):
                slope[j] += price * value
    for j, at in enumerate(slope):
        if at:
            bound = float(made.upper[j] if at > 0 else made.lower[j])
            if not np.isfinite(bound):
                return f"the variable {made.columns[j]} has no bound for its price"
            total -= at * Fraction(bound)
    return "" if total > 0 else "the prices do not contradict each other"


def violated(made: Stated, at: Sequence[Fraction]) -> Iterator[str]:
    """The bounds and rows that a point violates, exactly."""
    for name, low, value, high, whole in zip(
        made.columns, made.lower.tolist(), at, made.upper.tolist(), made.integer.tolist(), strict=True
    ):
        if not low <= value <= high or (whole and value.denominator != 1):
            yield f"the bounds of {name}"
    for i, name in enumerate(made.rows):
        if not float(made.least[i]) <= sum(a * at[j] for j, a in row_of(made, i)) <= float(made.most[i]):
            yield f"the row {name}"


def row_of(made: Stated, i: int) -> Iterator[tuple[int, Fraction]]:
    """The columns and exact coefficients of a row."""
    inside = slice(made.matrix.indptr[i], made.matrix.indptr[i + 1])
    for j, value in zip(made.matrix.indices[inside].tolist(), made.matrix.data[inside].tolist(), strict=True):
        yield j, Fraction(value)
