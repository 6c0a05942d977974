"""The checker for real answers in floats: the same sum, each term enlarged by a bound on its own rounding.

For a convex cost and the residual r = f'(v) − c of a variable, a move by s changes f(v) − c v by at least
−|r| |s| + w s² (w = 0 for lines and absolute values), and s can be no more than the distance L to the bound
in the direction that r points away from. So the excess is at most

    r² / 4w,    or    L ( |r| − w L )    if L < |r| / 2w.

The computed r is off by at most a share of the numbers that it is made of, so |r| is enlarged by that share
first. What the rows leave, Σ y_i ((A v)_i − side_i), is enlarged likewise. The sum is at least the true gap.
All bounds are for IEEE double precision with rounding to nearest (Higham 2002, *Accuracy and Stability of
Numerical Algorithms*, §2.2 and §4.2), and hold for numbers that do not underflow; an underflow adds `LOST`.

An answer in floats keeps its rows up to rounding only (it is repaired first: `models.model.ByProgram`), so it
is called optimal if its gap is at most `FLOAT_TOLERANCE` of its cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE, Texts, all_texts
from models.arithmetic.arrays import PIECE, Array, Ints, read_only
from models.arithmetic.kernels import Kernel, kernel
from models.certificate import FLOAT_TOLERANCE, LEFT, PROVED, Certificate, infeasible
from models.programs.costs import Absolute, Linear, Square
from models.programs.operators import Operator, Sparse
from models.programs.terms import Block, Rows

UNIT = 2.0**-53
"""Bound on the relative error of one operation."""

LOST = 2.0**-1070
"""A bound on what underflow takes from a product."""

TINY = 1e-290
"""Weights below this, or above its inverse, might be rounded by more than their last digit."""

BLOCK = 1 << 12
"""Kernels add up at most this many floats one after another, and then their sums."""

PAIRED = 150
"""NumPy adds a long row of floats in pairs: the error is below that of so many additions in turn."""

COMPILED_FROM = 10_000
"""Array operations take less than a millisecond for so many variables; loading Numba takes half a second."""

FEW = 1000
"""Answers of so many numbers that are not proved in floats are computed exactly."""

ROW_ROUNDING = 64
"""A repaired answer keeps a row of k entries up to (k + 64) roundings of the numbers in it, each way."""


def check_floats(
    blocks: Sequence[Block],
    rows: Sequence[Rows],
    values: Mapping[str, Array],
    paid: Mapping[str, Array],
    broken: Sequence[str] = (),
) -> Certificate | None:
    """The certificate; None if rounding alone keeps it from being proved, or a number is too large.

    - broken: what whole variables break, which the caller knows exactly.
    """
    with np.errstate(all="ignore"):
        return _checked(
            blocks,
            rows,
            values,
            {k: _floats(v) for k, v in values.items()},
            {k: _floats(v) for k, v in paid.items()},
            paid,
            broken,
        )


def _checked(
    blocks: Sequence[Block],
    rows: Sequence[Rows],
    given: Mapping[str, Array],
    values: Mapping[str, Array],
    prices: Mapping[str, Array],
    witness: Mapping[str, Array],
    broken: Sequence[str],
) -> Certificate | None:
    terms = [_Variables(block, values[block.name]) for block in blocks]
    costs = [term.cost() for term in terms]
    objective, error, gap = sum(cost for cost, _ in costs), sum(wrong for _, wrong in costs), 0.0
    links = {part.name: _Row(part, values) for part in rows}
    parts: list[_Variables | _Row] = [*terms, *links.values()]
    if found := all_texts([broken, *(part.broken() for part in parts)]):
        return infeasible(objective, found)
    sides = [getattr(part, side) for part in (*blocks, *rows) for side in ("lower", "upper")]
    centers = [block.cost.data[0] for block in blocks if isinstance(block.cost, Square | Absolute)]
    rounded = any(map(_are_rounded, (*sides, *centers, *given.values())))
    for part in rows:
        row = links[part.name]
        if part.name in prices:
            left, wrong = row.left(prices[part.name].ravel())
            gap, error = gap + left, error + wrong
    saved = 0.0
    for term in terms:
        charge = _charge(term.block.name, rows, prices)
        gap, saved = gap + term.excess(*charge), saved + term.saved(charge[0])
    total = math.fsum([gap, error]) * (1 + 1e-12)
    unit = unit_of(blocks, values)
    allowed_gap = FLOAT_TOLERANCE * max(unit, objective)
    if not math.isfinite(total) or not math.isfinite(objective):
        return None
    if saved > allowed_gap:
        return infeasible(objective, all_texts([term.broken(0.0) for term in terms]))
    if rounded:
        return None
    if total < -allowed_gap:
        return infeasible(objective, [f"rows: it costs {-total:.6g} less than any that keeps all rows"])
    proved = total <= allowed_gap
    few = sum(term.v.size for term in terms) <= FEW
    if not proved and (few or gap - error <= allowed_gap):
        return None
    bound = math.nextafter(objective - max(total, 0.0), -math.inf)
    return Certificate(proved, objective, bound, objective - bound, dict(witness), PROVED if proved else LEFT)


class _Row:
    """Rows, and what they hold, in floats."""

    def __init__(self, rows: Rows, values: Mapping[str, Array]) -> None:
        self.rows, self.values = rows, values
        parts = [operator.apply(values[name]) for name, operator in rows.operators.items()]
        self.held = sum(parts[1:], parts[0]).ravel()
        self.low, self.high = (_side(side) for side in (rows.lower, rows.upper))
        #: How often a row is rounded.
        self.roundings = sum(map(_roundings, rows.operators.values())) + len(parts) + 4

    @property
    def _are_steps(self) -> bool:
        """Whether each row is the difference of two variables, with the sides 0 or none."""
        operators = list(self.rows.operators.values())
        plain = not any(isinstance(side, np.ndarray) for side in (self.low, self.high))
        plain = plain and self.low in (0.0, -np.inf) and self.high in (0.0, np.inf)
        return plain and len(operators) == 1 and operators[0].wide == 2

    def size(self) -> Array:
        """The sum of the absolute values in each row, its sides included."""
        parts = [operator.spread(np.abs(self.values[name])) for name, operator in self.rows.operators.items()]
        size = sum(parts[1:], parts[0]).ravel()
        for side in (self.low, self.high):
            size = size + np.where(np.isinf(side), 0.0, np.abs(side))
        return np.asarray(size)

    def broken(self) -> Sequence[str]:
        """Rows that are broken by more than the repair of an answer may leave."""
        inside = (self.held >= self.low) & (self.held <= self.high)
        if inside.all():
            return []
        allowed = ((self.roundings + ROW_ROUNDING) * UNIT + (self.rows.slack or 0.0)) * self.size() + LOST
        near = (self.held >= self.low - allowed) & (self.held <= self.high + allowed)
        operator = next(iter(self.rows.operators.values()))

        def text(i: int) -> str:
            row = operator.named(tuple(map(int, np.unravel_index(i, operator.rows))))
            low, high = _at(self.low, i), _at(self.high, i)
            side = f"{low}" if low == high else f"within {low} … {high}"
            return f"{self.rows.name}: {row} is {self.held[i]}, not {side}"

        return Texts(np.flatnonzero(~(near & np.isfinite(allowed))), text)

    def left(self, price: Array) -> tuple[float, float]:
        """``Σ y ((A v) − side)``, and a bound on its error."""
        if self._are_steps and not (price.astype(bool) & self.held.astype(bool)).any():
            return 0.0, 0.0  # a difference of two numbers is exact where it is 0
        if isinstance(self.low, float) and isinstance(self.high, float) and self.low == self.high:
            each = price * (self.held - self.low)
        else:
            off = self.held - np.where(price > 0, self.low, np.where(price < 0, self.high, self.held))
            each = np.where(price == 0, 0.0, price * off)
        error = self.roundings * UNIT * float((np.abs(price) * self.size()).sum())
        if self.rows.slack:
            each = np.abs(each)
        return float(each.sum()), error + PAIRED * UNIT * float(np.abs(each).sum())


def _side(limits: Any) -> Any:
    """A side in floats: one number if it is the same for all rows."""
    array = np.asarray(limits)
    if array.size and set(array.strides) <= {0}:
        return exact.as_float(array.flat[0])
    return _floats(array).ravel()


def broken_in_floats(
    structure: tuple[Sequence[Block], Sequence[Rows]], values: Mapping[str, Array]
) -> Sequence[str]:
    """The bounds of real variables, and the rows, that a repaired answer breaks by more than rounding."""
    held = {name: _floats(part) for name, part in values.items()}
    parts: list[_Variables | _Row] = [_Variables(block, held[block.name]) for block in structure[0]]
    parts += [_Row(rows, held) for rows in structure[1]]
    return all_texts([part.broken() for part in parts])


def unit_of(blocks: Sequence[Block], values: Mapping[str, Array]) -> float:
    """The cost of an answer that is wrong by as much as the data are large, or 1 if that is less."""
    costs = [block.cost for block in blocks if isinstance(block.cost, Square | Absolute | Linear)]
    far = max(map(_reach, (*values.values(), *(cost.data[0] for cost in costs))), default=0.0)
    sizes = (_reach(cost.data[1]) * (far * far if isinstance(cost, Square) else far) for cost in costs)
    return min(1.0, max(sizes, default=0.0))


def _reach(numbers: Any) -> float:
    """The largest absolute value."""
    array = np.asarray(numbers)
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


def _floats(numbers: Any) -> Array:
    """The nearest floats; each is within `UNIT` of the number, relatively."""
    try:
        return np.asarray(numbers).astype(np.float64, copy=False)
    except OverflowError:
        raise ValueError("a number beyond 1e308 has no place beside floats") from None


def _are_rounded(numbers: Any) -> bool:
    """Whether floats do not hold all of these numbers exactly."""
    array = np.asarray(numbers)
    if array.size and set(array.strides) <= {0}:
        array = array.ravel()[:1]
    if array.dtype == object:
        return any(abs(value) != math.inf and exact.as_float(value) != value for value in array.flat)
    return array.dtype.kind != "f" and exact.reach(array) > exact.FLOAT_WHOLE


def _roundings(operator: Operator) -> int:
    paired = operator.height == 1 and operator.columns[1:] != (1,) and not isinstance(operator, Sparse)
    return min(operator.wide, PAIRED) if paired else operator.wide


def _charge(name: str, rows: Sequence[Rows], prices: Mapping[str, Array]) -> tuple[Array, float, float]:
    """``c = Aᵀ y`` for a block, flat, and a bound on its error: a number, and a share of c."""
    parts = [
        (part.operators[name], prices[part.name])
        for part in rows
        if part.name in prices and name in part.operators
    ]
    if not parts:
        return np.zeros(1), 0.0, 0.0
    charge = sum(
        (operator.transpose(price).ravel() for operator, price in parts[1:]),
        parts[0][0].transpose(parts[0][1]).ravel(),
    )
    steepest = sum(operator.tall * float(np.abs(price).max(initial=0.0)) for operator, price in parts)
    terms = sum(operator.tall for operator, _ in parts)
    if terms <= 1:
        return charge, 0.0, 0.0  # each is a price itself
    if terms == 2:
        return charge, 0.0, 2 * UNIT  # one difference, rounded once
    return charge, 2 * (terms + len(parts)) * UNIT * steepest, 0.0


class _Variables:
    """A block's cost in floats, and bounds on what it and its excess are rounded by."""

    def __init__(self, block: Block, values: Array) -> None:
        cost = block.cost
        if cost is not None and not isinstance(cost, Square | Absolute | Linear):
            raise ValueError(f"{block.name}: tables of costs stand beside real variables in Fractions only")
        self.block, self.v = block, read_only(np.ravel(values))
        center, weight = (np.zeros(1), np.zeros(1)) if cost is None else cost.data
        self.kind = "linear" if cost is None else cost.kind
        sides = (center, weight, block.lower, block.upper)
        self.data = tuple(read_only(_few(side, block.shape)) for side in sides)

    def broken(self, share: float = FEASIBILITY_TOLERANCE) -> Sequence[str]:
        """Bounds of real variables that are broken by more than this share of the numbers."""
        at, near = self._outside
        v = self.v[at]
        wrong = np.flatnonzero(np.abs(near - v) > share * np.maximum(np.abs(near), np.abs(v)) + LOST)

        def text(k: int) -> str:
            place = ", ".join(map(str, np.unravel_index(at[k], self.block.shape)))
            return f"{self.block.name}[{place}] = {v[k]}, beyond its bound {near[k]}"

        return Texts(wrong, text)

    @cached_property
    def _outside(self) -> tuple[Array, Array]:
        """Real variables outside their bounds, and where the bounds are."""
        low, high = self.data[2:]
        if self.block.integer or ((low <= self.v) & (self.v <= high)).all():
            return np.zeros(0, np.int64), np.zeros(0)
        near = np.clip(self.v, low, high)
        at = np.flatnonzero(near != self.v)
        return at, near[at]

    def saved(self, charge: Array) -> float:
        """At most what the cost less the charge is lower, as some variables are outside their bounds."""
        at, near = self._outside
        if not at.size:
            return 0.0
        z, w, c = (np.broadcast_to(part, self.v.shape)[at] for part in (*self.data[:2], charge))
        slope = (
            2 * w * (near - z) if self.kind == "quadratic" else w if self.kind == "linear" else w + np.abs(c)
        )
        steep = slope if self.kind == "absolute" else np.abs(slope - c)
        return float((steep * np.abs(near - self.v[at])).sum()) * (1 + 1e-9)

    def cost(self) -> tuple[float, float]:
        """The cost, and a bound on its error."""
        power = {"quadratic": 2, "absolute": 1, "linear": 0}[self.kind]
        cost, near = _run(_cost, self.v, *self.data[:2], power)
        added_up = min(self.v.size, BLOCK) + self.v.size / BLOCK + 16
        size = cost if power else near / 4  # the sum of the absolute values of all terms
        return cost, (near + added_up * size) * UNIT * (1 + 1e-9) + self.v.size * LOST

    def excess(self, charge: Array, wrong: float, share: float) -> float:
        """At least the sum of all excesses, at a charge that is wrong by a number and a share of it.

        Kernels add `LOST` to each that is not 0, so that none counts as 0 because it underflows.
        """
        run = {"quadratic": _squares, "absolute": _absolutes, "linear": _lines}[self.kind]
        held: float = _run(
            run,
            self.v,
            *self.data,
            read_only(np.ascontiguousarray(charge) if charge.strides != (0,) else charge[:1]),
            wrong,
            share,
        )
        if not held:
            return 0.0
        weights = np.abs(self.data[1][self.data[1] != 0])
        light, heavy = (float(end(weights)) if weights.size else 1.0 for end in (np.min, np.max))
        if self.kind == "quadratic" and not TINY < light <= heavy < 1 / TINY:
            return math.inf
        lost = LOST * (1 + heavy + 1 / light)
        added = self.v.size if self.kind == "linear" else min(self.v.size, BLOCK) + self.v.size / BLOCK
        return held * (1 + 2 * (added + 16) * UNIT) + self.v.size * lost


def rounded_cost(block: Block, x: Array) -> tuple[float, float]:
    """The cost of a block in floats, and a bound on its error."""
    return _Variables(block, x.astype(float)).cost()


def rounded_charge(
    name: str, rows: Sequence[Rows], prices: Mapping[str, Array]
) -> tuple[Array, float, float]:
    """As `_charge`, of exact prices."""
    rounded = {key: exact.floats(price) for key, price in prices.items()}
    charge, wrong, share = _charge(name, rows, rounded)
    if wrong or share:
        steep = (part.operators[name].tall * _reach(rounded[part.name])
                 for part in rows if part.name in rounded and name in part.operators)  # fmt: skip
        wrong += 2 * UNIT * sum(steep)
    return charge, wrong, share


def undecided(block: Block, x: Ints, charge: Array, wrong: float, share: float) -> Ints:
    """Whole variables for which floats do not show that the charge lies between the slopes beside them.

    - charge, wrong, share: the charges, and bounds on their error as a number and as a share.
    """
    if isinstance(block.cost, Square | Absolute) and np.abs(x).max(initial=0) < 2**53:
        found, sides = [], [*block.cost.data, block.lower, block.upper]
        data = [*(_few(side, block.shape) for side in sides), charge]
        for start in range(0, x.size, PIECE):
            v = x[start : start + PIECE].astype(float)
            y, w, low, high, c = (one if one.size == 1 else one[start : start + PIECE] for one in data)
            if isinstance(block.cost, Square):
                right = w * (2 * (v - y) + 1)
                left = right - 2 * w
            else:
                left, right = (w * (np.abs(v + a - y) - np.abs(v + b - y)) for a, b in ((0, -1), (1, 0)))
            size = np.abs(c)
            off = wrong + share * size + 8 * UNIT * (2 * w * (np.abs(v) + np.abs(y) + 1) + size) + LOST
            clear = ((c + off <= right) | (v >= high)) & ((c - off >= left) | (v <= low))
            found.append(np.flatnonzero(~clear) + start)
        return np.concatenate(found)
    return np.arange(x.size)


def _few(numbers: Any, shape: tuple[int, ...]) -> Array:
    """Numbers as a flat array of floats; of one element if they are all the same."""
    array = np.asarray(numbers)
    if array.size and set(array.strides) <= {0}:
        return np.array([exact.as_float(array.flat[0])])
    array = _floats(array)
    return array.reshape(-1) if array.shape == shape else np.broadcast_to(array, shape).ravel()


def _run(loop: Kernel[Any], v: Array, *args: Any) -> Any:
    """A kernel over variables; few of them in array operations, so that Numba is not loaded for them."""
    return (loop if v.size > COMPILED_FROM else loop.in_arrays)(v, *args)


@kernel(error_model="numpy", fastmath={"reassoc"})
def _cost(v: Any, y: Any, w: Any, power: int) -> Any:
    """``Σ w |v − y|^power``, of power 0 ``Σ w v``; and ``Σ`` of what each term is rounded by, in `UNIT`."""
    cost, near = 0.0, 0.0
    for start in range(0, v.size, BLOCK):
        a, b = 0.0, 0.0
        for i in range(start, min(start + BLOCK, v.size)):
            m, z = w[0 if w.size == 1 else i], y[0 if y.size == 1 else i]
            d, far = abs(v[i] - z), abs(v[i]) + abs(z)
            if power == 2:
                a += m * d * d
                b += 4 * m * d * (far + d)
            elif power == 1:
                a += m * d
                b += 4 * m * (far + d)
            else:
                a += m * v[i]
                b += 4 * abs(m * v[i])
        cost += a
        near += b
    return cost, near


@_cost.without_numba
def _cost_in_arrays(v: Any, y: Any, w: Any, power: int) -> Any:
    d, far = np.abs(v - y), np.abs(v) + np.abs(y)
    if power == 2:
        return float(np.sum(w * d * d)), float(np.sum(4 * w * d * (far + d)))
    if power == 1:
        return float(np.sum(w * d)), float(np.sum(4 * w * (far + d)))
    return float(np.sum(w * v)), float(np.sum(4 * np.abs(w * v)))


@kernel(error_model="numpy", fastmath={"reassoc"})
def _squares(
    v: Any, y: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    """The excesses of squares, each enlarged by its rounding."""
    total = 0.0
    free = low.size == 1 and high.size == 1 and low[0] == -np.inf and high[0] == np.inf
    for start in range(0, v.size, BLOCK):
        stop, held, steepness = min(start + BLOCK, v.size), 0.0, 0.0
        if free and w.size == 1 and y.size == v.size and c.size == v.size and w[0] > 0:
            m, a, b, k = w[0], v[start:stop], y[start:stop], c[start:stop]
            for i in range(a.size):
                r = 2 * m * (a[i] - b[i]) - k[i]
                off = (
                    wrong
                    + share * abs(k[i])
                    + 8 * UNIT * (2 * m * (abs(a[i]) + abs(b[i])) + abs(k[i]))
                    + LOST
                )
                off = 0.0 if r == 0 and a[i] == b[i] and wrong == 0 else off
                held += (abs(r) + off) * (abs(r) + off)
                steepness += abs(r) + off
            total += held * 0.25 / m + (LOST if steepness > 0 else 0.0)
            continue
        for i in range(start, stop):
            m, z, k = w[0 if w.size == 1 else i], y[0 if y.size == 1 else i], c[0 if c.size == 1 else i]
            below, above = v[i] - low[0 if low.size == 1 else i], high[0 if high.size == 1 else i] - v[i]
            r = 2 * m * (v[i] - z) - k
            off = wrong + share * abs(k)
            if m > 0 and not (r == 0 and v[i] == z and wrong == 0):
                off += 8 * UNIT * (2 * m * (abs(v[i]) + abs(z)) + abs(k)) + LOST
            steep = abs(r) + off
            # The way down is known where rounding cannot turn the sign of r.
            room = max(max(below, above) if abs(r) <= off else below if r > 0 else above, 0.0)
            each = steep * steep / (4 * m) if m > 0 else np.inf
            if steep == 0 or room == 0:
                each = 0.0
            elif room < np.inf and 2 * m * room < steep:
                each = room * (steep - m * room)
            held += each + (LOST if steep > 0 and room > 0 else 0.0)
        total += held
    return total


@_squares.without_numba
def _squares_in_arrays(
    v: Any, y: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    r = 2 * w * (v - y) - c
    off = 8 * UNIT * (2 * w * (np.abs(v) + np.abs(y)) + np.abs(c)) + LOST
    off = wrong + share * np.abs(c) + np.where((w == 0) | ((r == 0) & (v == y) & (wrong == 0)), 0.0, off)
    steep = np.abs(r) + off
    below, above = v - low, high - v
    room = np.where(np.abs(r) <= off, np.maximum(below, above), np.where(r > 0, below, above))
    room = np.maximum(room, 0.0)
    each = np.where(w > 0, steep * steep / (4 * np.where(w > 0, w, 1.0)), np.inf)
    way = np.where(room < np.inf, room, 0.0)
    each = np.where((room < np.inf) & (2 * w * way < steep), way * (steep - w * way), each)
    return float(np.sum(np.where((steep == 0) | (room == 0), 0.0, each + LOST)))


@kernel(error_model="numpy", fastmath={"reassoc"})
def _absolutes(
    v: Any, y: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    """The excesses of absolute values: down by w ± c on the way to y, by |c| − w for each unit beyond it."""
    total = 0.0
    for start in range(0, v.size, BLOCK):
        held = 0.0
        for i in range(start, min(start + BLOCK, v.size)):
            m, z, k = w[0 if w.size == 1 else i], y[0 if y.size == 1 else i], c[0 if c.size == 1 else i]
            away, near = v[i] - z, wrong + share * abs(k)
            off = 2 * UNIT * (abs(v[i]) + abs(z))  # how wrong the distance is
            if away != 0:
                back = max(m - k if away > 0 else m + k, 0.0) + near + 4 * UNIT * (abs(k) + m)
                room = v[i] - low[0 if low.size == 1 else i]
                if away < 0:
                    room = high[0 if high.size == 1 else i] - v[i]
                held += back * min(abs(away) + off, max(room, 0.0)) + LOST
                if abs(away) <= off:
                    held += (m + abs(k)) * off
            # Floats compare exactly: what counts is the error of c alone.
            beyond = (abs(k) + near) * (1 + 4 * UNIT) - m
            if beyond > 0:
                room = high[0 if high.size == 1 else i] - max(v[i], z)
                if k < 0:
                    room = min(v[i], z) - low[0 if low.size == 1 else i]
                held += beyond * (max(room, 0.0) + off) + LOST
        total += held
    return total


@_absolutes.without_numba
def _absolutes_in_arrays(
    v: Any, y: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    away, near, size = v - y, wrong + share * np.abs(c), np.abs(c)
    off = 2 * UNIT * (np.abs(v) + np.abs(y))
    back = np.maximum(np.where(away > 0, w - c, w + c), 0.0) + near + 4 * UNIT * (size + w)
    way = np.minimum(np.abs(away) + off, np.maximum(np.where(away > 0, v - low, high - v), 0.0))
    held = np.where(away != 0, LOST + back * way + np.where(np.abs(away) <= off, (w + size) * off, 0.0), 0.0)
    beyond = (size + near) * (1 + 4 * UNIT) - w
    room = np.where(c < 0, np.minimum(v, y) - low, high - np.maximum(v, y))
    return float(np.sum(held + np.where(beyond > 0, LOST + beyond * (np.maximum(room, 0.0) + off), 0.0)))


@kernel(error_model="numpy", fastmath={"reassoc"})
def _lines(
    v: Any, _: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    """The excesses of lines: as far as the bound in the direction that goes down."""
    total = 0.0
    for i in range(v.size):
        m, k = w[0 if w.size == 1 else i], c[0 if c.size == 1 else i]
        below, above = v[i] - low[0 if low.size == 1 else i], high[0 if high.size == 1 else i] - v[i]
        r, off = m - k, wrong + share * abs(k) + 2 * UNIT * abs(m - k)
        room = max(below, above) if abs(r) <= off else below if r > 0 else above
        if abs(r) + off > 0 and room > 0:
            total += (abs(r) + off) * room + LOST
    return total


@_lines.without_numba
def _lines_in_arrays(
    v: Any, _: Any, w: Any, low: Any, high: Any, c: Any, wrong: float, share: float
) -> float:  # fmt: skip
    r = w - c
    off = wrong + share * np.abs(c) + 2 * UNIT * np.abs(r)
    below, above = v - low, high - v
    room = np.where(np.abs(r) <= off, np.maximum(below, above), np.where(r > 0, below, above))
    steep = np.abs(r) + off
    return float(np.sum(np.where((steep > 0) & (room > 0), steep * room + LOST, 0.0)))


def _at(numbers: Any, part: Any) -> Any:
    return numbers[part] if isinstance(numbers, np.ndarray) else numbers
