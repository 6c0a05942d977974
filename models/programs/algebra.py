"""A program as readable algebra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from models.programs.terms import Block, Formulation, Term

SHOWN = 8
"""How many rows of a block, and terms of a sum, are printed. The others are only counted."""


def number(value: Any) -> str:
    """A coefficient without a needless decimal point: 3, not 3.0."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else f"{value:g}"


def _signed(parts: Iterator[tuple[float, str]] | list[tuple[float, str]], total: int) -> str:
    """``[(1, "x"), (-2, "y")]`` as ``x - 2 y``."""
    text = ""
    for value, what in parts:
        sign = (" - " if value < 0 else " + ") if text else ("-" if value < 0 else "")
        size = "" if abs(value) == 1 else number(abs(value)) + " "
        text += sign + size + what
    return (text or "0") + (f" + … ({total} terms)" if total > SHOWN else "")


def _term(term: Term, names: list[str]) -> str:
    weight, center = term.data
    parts = []
    for w, c, i in zip(weight[:SHOWN], center[:SHOWN], term.index[:SHOWN], strict=True):
        away = f"{names[i]} {'+' if c < 0 else '-'} {number(abs(c))}" if c else names[i]
        shapes = {
            "linear": names[i],
            "quadratic": f"({away})^2",
            "absolute": f"|{away}|",
            "table": f"τ({names[i]})",
        }
        shape = shapes[term.kind]
        parts.append((float(w), shape))
    return _signed(parts, term.index.size)


def _relation(body: str, lower: float, upper: float) -> str:
    if lower == upper:
        return f"{body} = {number(lower)}"
    left = f"{number(lower)} <= " if np.isfinite(lower) and np.isfinite(upper) else ""
    if np.isfinite(upper):
        return f"{left}{body} <= {number(upper)}"
    return f"{body} >= {number(lower)}" if np.isfinite(lower) else f"{body} free"


def _domain(block: Block) -> str:
    def side(values: Any, sign: str, left: bool) -> str:
        array = np.asarray(values, float)
        if array.size == 0 or np.all(np.isinf(array)):
            return ""
        low, high = array.min(), array.max()
        text = number(low) if low == high else f"({number(low)} … {number(high)})"
        return f"{text} {sign} " if left else f" {sign} {text}"

    below, above = side(block.lower, "<=", True), side(block.upper, "<=", False)
    bounded = f"{below}{block.name}{above}" if below or above else f"{block.name} free"
    shape = " x ".join(map(str, block.shape))
    return f"  {block.name} ({shape}): {bounded}" + (", integer" if block.integer else "")


def algebra(program: Formulation) -> str:
    """The program as text; long sums and row blocks are cut after `SHOWN` entries, with their number."""
    names = program.variable_names()
    lines = [repr(program), "minimize"]
    for position, term in enumerate(program.objective):
        lines.append(("  + " if position else "  ") + _term(term, names))
    lines.append("subject to")
    for rows in program.rows:
        lines.append(f"  {rows.name}:")
        count = rows.matrix.shape[0]
        for i in range(min(count, SHOWN)):
            one = rows.matrix.indptr[i], rows.matrix.indptr[i + 1]
            pairs = sorted(zip(rows.matrix.indices[slice(*one)], rows.matrix.data[slice(*one)], strict=True))
            body = _signed([(float(v), names[j]) for j, v in pairs[:SHOWN]], len(pairs))
            lines.append("    " + _relation(body, float(rows.lower[i]), float(rows.upper[i])))
        if count > SHOWN:
            lines.append(f"    … ({count} rows)")
    return "\n".join([*lines, "with", *(_domain(block) for block in program.blocks)])
