"""The two conic models in the Conic Benchmark Format, version 1 (Friberg 2016), from their data alone.

All numbers are the data's, times powers of two, so that the text is the same on every machine.

- `BudgetSplit`: Σ a/ε² with Σ ε = E. Variables y, u, t of each level with ε = s·y for a power of two s:
  ``u·y ≥ 1`` and ``t ≥ u²`` (rotated second-order cones), at the cost ``(a/s²)·t``.
- `StrategySDP`: tr(G X⁻¹) for G = WᵀW, with a diagonal of X of at most 1. The smallest Y for which the matrix
  with the blocks X, I, I, Y is positive semidefinite is X⁻¹; the cost is tr(G Y).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.errors import InputError
from hierdp.execution import folder as folders
from models import BudgetSplit, StrategySDP
from models.arithmetic.arrays import Array, Floats
from models.programs.texts import number

Entry = tuple[Any, ...]
"""Places, and the number there."""


def write_cbf(model: Any, path: Path) -> Path:
    """Write a conic model; its optimum is the model's, and the first variables give the answer.

    Raises
    ------
    InputError
        If there is no conic form of this model.
    """
    if isinstance(model, BudgetSplit):
        lines = _budget_split(model)
    elif isinstance(model, StrategySDP):
        lines = _strategy(model)
    else:
        raise InputError(f"{type(model).__name__} has no form with cones")
    with folders.file_appearing(path) as aside, aside.open("w", encoding="ascii", newline="\n") as out:
        out.writelines(f"{line}\n" for line in ["VER", "1", "", "OBJSENSE", "MIN", *lines])
    return path


def point(model: Any, x: Any) -> list[float]:
    """All variables of the ``.cbf`` at an answer of the model, in doubles."""
    answer = np.asarray(x, float)
    if isinstance(model, BudgetSplit):
        y = answer / np.array(_units(model), float)
        return [*y.tolist(), *(1 / y).tolist(), *(1 / y**2).tolist()]
    below = np.tril_indices(model.bins)
    return [*answer[below].tolist(), *_inverse(answer)[below].astype(float).tolist()]


def _inverse(positive: Floats) -> Array:
    """Of a positive definite matrix, in fractions: floats would depend on the machine."""
    n = len(positive)
    rows = np.array([[*map(Fraction, row), *[Fraction(0)] * n] for row in positive.tolist()], dtype=object)
    for k in range(n):
        rows[k, n + k] = Fraction(1)
    for k in range(n):
        rows[k] /= rows[k, k]
        for i in range(n):
            if i != k:
                rows[i] -= rows[i, k] * rows[k]
    return rows[:, n:]


def cost(path: Path, values: Sequence[float]) -> Fraction:
    """The objective of a ``.cbf`` at a point, exactly."""
    lines = path.read_text(encoding="ascii").splitlines()
    first = lines.index("OBJACOORD") + 2
    parts = (line.split() for line in lines[first : first + int(lines[first - 1])])
    return sum((Fraction(float(a)) * Fraction(values[int(j)]) for j, a in parts), Fraction(0))


def _units(model: BudgetSplit) -> list[Fraction]:
    total, weights = Fraction(model.epsilon), [Fraction(a) for a in np.asarray(model.weights).tolist()]
    unit = [Fraction(2) ** (math.frexp(float(a))[1] // 3) for a in weights]  # about the cube root
    return [s * Fraction(2) ** math.frexp(float(total / sum(unit)))[1] for s in unit]  # then y is about 1


def _budget_split(model: BudgetSplit) -> Iterator[str]:
    weights = [Fraction(a) for a in np.asarray(model.weights).tolist()]
    n, total, unit = len(weights), Fraction(model.epsilon), _units(model)
    yield from ("", "VAR", f"{3 * n} 1", f"F {3 * n}")
    yield from ("", "CON", f"{1 + 6 * n} {1 + 2 * n}", "L= 1", *["QR 3"] * (2 * n))
    yield from _coordinates(
        "OBJACOORD", [(2 * n + i, a / s**2) for i, (a, s) in enumerate(zip(weights, unit, strict=True))]
    )
    rows: list[Entry] = [(0, i, s) for i, s in enumerate(unit)]
    sides: list[Entry] = [(0, -total)]
    for i in range(n):
        at = 1 + 6 * i
        rows += [(at, n + i, 1), (at + 1, i, Fraction(1, 2)), (at + 3, 2 * n + i, 1), (at + 5, n + i, 1)]
        sides += [(at + 2, 1), (at + 4, Fraction(1, 2))]
    yield from _coordinates("ACOORD", rows)
    yield from _coordinates("BCOORD", sides)


def _strategy(model: StrategySDP) -> Iterator[str]:
    work = np.array([[Fraction(w) for w in row] for row in np.asarray(model.workload).tolist()], dtype=object)
    gram, n = work.T @ work, model.bins
    places = [(i, j) for i in range(n) for j in range(i + 1)]
    yield from ("", "PSDCON", "1", str(2 * n))
    yield from ("", "VAR", f"{2 * len(places)} 1", f"F {2 * len(places)}")
    yield from ("", "CON", f"{n} 1", f"L+ {n}")
    costs = [(len(places) + k, gram[i, j] * (1 if i == j else 2)) for k, (i, j) in enumerate(places)]
    yield from _coordinates("OBJACOORD", [one for one in costs if one[1]])
    diagonal = [(i, k, -1) for k, (i, j) in enumerate(places) if i == j]
    yield from _coordinates("ACOORD", diagonal)
    yield from _coordinates("BCOORD", [(i, 1) for i in range(n)])
    above = [(0, k, i, j, 1) for k, (i, j) in enumerate(places)]
    below = [(0, len(places) + k, n + i, n + j, 1) for k, (i, j) in enumerate(places)]
    yield from _coordinates("HCOORD", [*above, *below])
    yield from _coordinates("DCOORD", [(0, n + i, i, 1) for i in range(n)])


def _coordinates(name: str, entries: list[Entry]) -> Iterator[str]:
    yield from ("", name, str(len(entries)))
    yield from (" ".join([*map(str, places), number(float(value))]) for *places, value in entries)
