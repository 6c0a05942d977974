"""The one checker: is an answer feasible, and do prices of the rows prove it optimal?

    minimize  Σ_j f_j(v_j)    subject to  low ≤ v ≤ high,  s ≤ A v ≤ t,  v_j whole or real

For any prices y of the rows (y_i > 0 is paid for the lower side of row i, y_i < 0 for its upper side),

    Σ f(v)  =  bound(y)  +  Σ_j excess_j  +  Σ_i y_i ((A v)_i − side_i),        c = Aᵀ y,
    excess_j  =  f_j(v_j) − c_j v_j − min over z of ( f_j(z) − c_j z ),

where z is within the bounds of v_j, and whole if v_j has to be. If v is feasible, no summand is negative, so
``bound(y)`` is at most the optimum; and v is optimal if all are 0. For a convex f_j the excess is 0 if and
only if c_j lies between the slopes of f_j to the left and to the right of v_j. So the checker compares two
numbers for each variable, and computes the excess of those alone that fail. Nothing is searched.

Whole numbers and Fractions are computed exactly, and have no tolerance: in int64 if one bound on all
intermediate values allows it, otherwise in Python's numbers. For real answers in floats see
`models.check.floats`.

References
----------
Everett 1963, "Generalized Lagrange multiplier method"; Rockafellar 1970, *Convex Analysis*, §28; over whole
numbers: Geoffrion 1974, "Lagrangean relaxation for integer programming".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.answers import Texts, all_texts
from models.arithmetic.arrays import PIECE, Array, Flags, Ints, read_only
from models.arithmetic.exact import Number
from models.arithmetic.kernels import SMALL, kernel
from models.certificate import LEFT, PROVED, Certificate, infeasible, judge, judge_exactly
from models.check.floats import BLOCK, check_floats, rounded_charge, rounded_cost, undecided, unit_of
from models.programs.costs import Absolute, Cost, Linear, Square, Table
from models.programs.terms import INFINITY, Block, Rows

FREE = 2**62
"""Stands for an infinite bound among int64 ones. All numbers that are compared with it are smaller."""

BINARY_DIGITS = (0, 1, 8, 24, 40)
"""After the point: floats with no more digits are whole multiples of a unit."""

MOST_UNITS = 1 << 48
"""Prices with a larger common denominator are left as they are."""

Values = Mapping[str, Array]
Structure = tuple[Sequence[Block], Sequence[Rows]]

Broken = tuple[Ints, Callable[[int], str]]
"""Flat places, and the text for each of them."""


def check(structure: Structure, values: Values, prices: Values) -> Certificate:
    """The certificate of an answer.

    Parameters
    ----------
    structure : ``(blocks, rows)``
        Blocks with costs and rows with operators: `Program.structure`.
    values : mapping of arrays
        Each block's variables by name, in the block's shape, as `models.arithmetic.door` returns numbers.
        Real ones in floats keep all rows up to rounding.
    prices : mapping of arrays
        Prices by the name of their rows, in the shape of the rows' operators. Missing rows are free, and a
        price that is paid for an infinite side counts as 0.

    Returns
    -------
    Certificate
        Exact, unless real variables or their data are floats: see `models.check.floats`.
    """
    blocks, rows = structure
    paid = {part.name: usable(part, prices[part.name]) for part in rows if part.name in prices}
    exactly = not in_floats(blocks, values)
    if not exactly:
        broken = violations(([block for block in blocks if block.integer], []), values)
        proof = check_floats(blocks, rows, values, paid, broken)
        if proof is not None:
            return proof
    whole, unit = _whole_prices(paid)
    units = {block.name: _in_units(block) for block in blocks} if exactly else {}
    kind = np.int64 if exactly and _fits(blocks, rows, values, whole, unit, units) else object
    if exactly and kind is object and (proof := _decided(blocks, rows, values, paid)):
        return proof
    variables = {
        block.name: _Variables(block, values[block.name], kind, unit, units.get(block.name))
        for block in blocks
    }
    if not exactly:
        for moved in variables.values():
            moved.move_inside()
    links = [_Links(part, variables, kind) for part in rows]
    objective = sum((part.cost() for part in variables.values()), 0)
    if exactly:
        broken, problem = _violations(variables, links)
        if broken:
            return replace(infeasible(objective, broken), unproved=problem)
    gap = _Gap(unit)
    for part in links:
        if part.name in paid:
            gap.add(*part.missed(_as(whole[part.name], kind)), part.part)
    for name, block in variables.items():
        gap.add(*block.missed(_charge(name, links, whole, kind)), block.part)
    if not exactly:
        bound = -INFINITY if gap.total == INFINITY else objective - gap.total
        return judge_exactly(objective, bound, False, paid, LEFT, unit_of(blocks, values))
    if 0 < gap.total < INFINITY and (least := cost_unit(blocks)):
        gap.round_up(least, _are_apart(blocks, rows))
    if gap.total == INFINITY:
        return Certificate(False, objective, -INFINITY, INFINITY, paid, f"{LEFT}: no bound", gap.first)
    return replace(judge(objective, gap.total, True, paid, gap.reason), unproved=gap.first)


def _decided(
    blocks: Sequence[Block], rows: Sequence[Rows], values: Values, paid: Values
) -> Certificate | None:
    """That many whole variables with data in floats are optimal, if floats leave few slopes undecided.

    Those few are compared exactly, so that the verdict is exact; the cost is rounded.
    """
    plain = [_without_cost(block) for block in blocks]
    if sum(block.size for block in blocks) <= SMALL or not _fits(plain, rows, values, {}, 1):
        return None
    variables = {block.name: _Variables(block, values[block.name], np.int64, 1) for block in plain}
    links = [_Links(part, variables, np.int64) for part in rows]
    if _violations(variables, links)[0] or any(
        link.missed(paid[link.name])[0].size for link in links if link.name in paid
    ):
        return None
    objective, error = 0.0, 0.0
    for block in blocks:
        x = values[block.name].ravel()
        at = undecided(block, x, *rounded_charge(block.name, rows, paid))
        if at.size > SMALL:
            return None
        exactly = np.broadcast_to(_charge(block.name, links, paid, object), x.shape)[at]
        if _Variables(block.chosen(at), x[at], object, 1).missed(exactly)[0].size:
            return None
        cost, wrong = rounded_cost(block, x)
        objective, error = objective + cost, error + wrong
    bound = math.nextafter(objective - error, -math.inf)
    return Certificate(True, objective, bound, objective - bound, dict(paid), PROVED)


def violations(structure: Structure, values: Values) -> Sequence[str]:
    """Every bound, row and integrality that exact values break, by name."""
    blocks, rows = [_without_cost(block) for block in structure[0]], structure[1]
    kind = np.int64 if _fits(blocks, rows, values, {}, 1) else object
    variables = {block.name: _Variables(block, values[block.name], kind, 1) for block in blocks}
    return _violations(variables, [_Links(part, variables, kind) for part in rows])[0]


def _without_cost(block: Block) -> Block:
    """The same variables; tables of costs stay, as values outside them break them."""
    return block if isinstance(block.cost, Table) else replace(block, cost=None)


def in_floats(blocks: Sequence[Block], values: Values) -> bool:
    """Whether a real variable, or a number of its cost, is a float; all else is exact."""
    return any(
        not block.integer
        and (values[block.name].dtype.kind == "f" or (block.cost is not None and block.cost.in_floats))
        for block in blocks
    )


def usable(rows: Rows, price: Array) -> Array:
    """The prices, 0 where they are paid for an infinite side, or not finite."""
    if price.dtype == object:
        exactly = [
            (Fraction(p) if math.isfinite(p) else 0) if isinstance(p, float) else p for p in price.flat
        ]
        price = exact.objects(exactly, price.shape)
    elif price.dtype.kind == "f" and not math.isfinite(price.sum()):
        price = np.where(np.isfinite(price), price, 0.0)
    for side, limit, keep in ((rows.lower, -INFINITY, np.minimum), (rows.upper, INFINITY, np.maximum)):
        if np.asarray(side).dtype == np.int64:
            continue
        if np.asarray(side).strides == (0,) and np.size(side):
            if side[0] == limit:
                price = keep(price, 0)
        elif (open_ := np.asarray(side == limit)).any():
            price = np.where(open_.reshape(price.shape), keep(price, 0), price)
    return price


def _data(cost: Cost | None) -> tuple[Any, ...]:
    if cost is None:
        return ()
    return (cost.cells,) if isinstance(cost, Table) else cost.data


def cost_unit(blocks: Sequence[Block]) -> int | None:
    """A number d such that the cost of every whole answer is a multiple of 1/d; None if there is none."""
    unit = 1
    for block in blocks:
        if block.cost is None:
            continue
        center, weight = (
            (np.zeros(0, np.int64), block.cost.cells) if isinstance(block.cost, Table) else block.cost.data
        )
        parts = [_denominator(np.asarray(part)) for part in (center, weight)]
        if not block.integer or None in parts:
            return None
        over, of = parts[0] or 1, parts[1] or 1
        unit = math.lcm(unit, of * over ** getattr(block.cost, "power", 1))
    return unit if unit <= MOST_UNITS else None


def _denominator(numbers: Array) -> int | None:
    """A common denominator of numbers; None if it is large."""
    if numbers.dtype == np.int64 or not numbers.size:
        return 1
    if numbers.dtype == object:
        unit = math.lcm(*{Fraction(value).denominator for value in numbers.flat})
    else:
        large = float(np.abs(numbers).max())
        fits = (k for k in BINARY_DIGITS if large < 2.0 ** (62 - k) and _are_whole(np.ldexp(numbers, k)))
        unit = 1 << next(fits, 62)
    return unit if unit <= MOST_UNITS else None


def _are_whole(numbers: Array) -> bool:
    return bool((numbers == np.rint(numbers)).all())


def _are_apart(blocks: Sequence[Block], rows: Sequence[Rows]) -> bool:
    """Whether the problems side by side have no row in common, so that each has a bound of its own.

    The variables of a row are all of its problem if neither the mean of their problems' numbers differs from
    that number, nor the mean of their squares from its square.
    """
    if not all(isinstance(part.part, np.ndarray) for part in blocks) or not all(
        isinstance(part.part, np.ndarray) for part in rows
    ):
        return False
    of = {block.name: np.asarray(block.part, object).reshape(block.shape) for block in blocks}
    for part in rows:
        for name, operator in part.operators.items():
            size = operator.spread(np.ones(operator.columns, object)).ravel()
            for power in (1, 2):
                if (
                    operator.spread(of[name] ** power).ravel()
                    != np.asarray(part.part, object) ** power * size
                ).any():
                    return False
    return True


def _whole_prices(paid: Values) -> tuple[Values, int]:
    """Prices as multiples of a unit fraction, and its denominator; as they are, if that were too large."""
    units = [_denominator(price) for price in paid.values()]
    unit = math.lcm(*(one or 1 for one in units))
    if None in units or unit > MOST_UNITS:
        return paid, 1
    return {name: _multiples(price, unit) for name, price in paid.items()}, unit


def _multiples(price: Array, unit: int) -> Array:
    """Prices, which are whole multiples of a fraction, over its denominator."""
    if (
        price.dtype.kind == "f"
        and unit & (unit - 1) == 0
        and exact.as_float(unit) * np.abs(price).max(initial=0) < 2.0**62
    ):
        return (price * unit).astype(np.int64)  # a power of two: nothing is rounded
    if price.dtype == np.int64:
        return exact.widened(price, unit) * unit
    number = exact.objects([int(Fraction(value) * unit) for value in price.flat], price.shape)
    return number.astype(np.int64) if exact.reach(number) < FREE else number


class _Units(NamedTuple):
    """A cost in whole numbers: its centers are over `near`, its weights over `heavy`."""

    cost: Any
    near: int
    heavy: int


def _in_units(block: Block) -> _Units | None:
    """The cost of whole variables in units, if its data are not whole, but multiples of a fraction."""
    cost = block.cost
    if not block.integer or not isinstance(cost, Square | Absolute | Linear):
        return None
    center, weight = map(np.asarray, cost.data)
    if center.dtype == weight.dtype == np.int64 or getattr(cost, "over", None) is not None:
        return None
    near, heavy = _denominator(np.atleast_1d(center)), _denominator(np.atleast_1d(weight))
    if near is None or heavy is None:
        return None
    center, weight = _multiples(center, near), _multiples(weight, heavy)
    return _Units(Linear(weight) if isinstance(cost, Linear) else type(cost)(center, weight), near, heavy)


# ---------------------------------------------------------------- the guard


def _fits(
    blocks: Sequence[Block],
    rows: Sequence[Rows],
    values: Values,
    paid: Values,
    unit: int,
    units: Mapping[str, _Units | None] = {},
) -> bool:
    """Whether int64 holds every number of the proof, by a bound from the largest data, values and prices."""
    plain = {block.name: units.get(block.name) or _Units(block.cost, 1, 1) for block in blocks}
    arrays = [
        *values.values(),
        *paid.values(),
        *(part for each in plain.values() for part in _data(each.cost)),
    ]
    if not all(np.asarray(array).dtype == np.int64 for array in arrays):
        return False
    if not all(operator.whole for part in rows for operator in part.operators.values()):
        return False
    limits = [getattr(part, side) for part in (*blocks, *rows) for side in ("lower", "upper")]
    ends = [_largest(limit) for limit in limits]
    if None in ends:
        return False
    far = max([0, *(end for end in ends if end is not None)])
    size = {name: exact.reach(array) for name, array in values.items()}
    price = {name: exact.reach(array) for name, array in paid.items()}
    largest = [far, *size.values(), *price.values()]
    for part in rows:
        largest.append(far + sum(op.wide * size[name] for name, op in part.operators.items()))
    for block in blocks:
        charge = sum(part.operators[block.name].tall * price.get(part.name, 0)
                     for part in rows if block.name in part.operators)  # fmt: skip
        if isinstance(block.cost, Table):
            span = size[block.name] + exact.reach(block.cost.most) + exact.reach(np.asarray(block.cost.least))
            largest.append(unit * exact.reach(block.cost.cells) + charge * span)
        elif block.cost is not None:
            cost, near, heavy = plain[block.name]
            center, weight = (exact.reach(np.atleast_1d(part)) for part in cost.data)
            far = near * (size[block.name] + 1) + center
            steep = near if isinstance(block.cost, Absolute) else 2 * far
            largest += [far, unit * weight * steep + charge * near * heavy]
        else:
            largest.append(charge)
    return 4 * max(largest) < FREE


def _largest(limits: Any) -> int | None:
    """The largest finite one of whole limits, in size; None if one is not whole."""
    array = np.asarray(limits)
    if array.size and set(array.strides) == {0}:
        array = array.ravel()[:1]
    if array.dtype == np.int64:
        return exact.reach(array)
    if array.dtype == object:
        array = array[
            np.array([abs(value) != INFINITY for value in array.ravel()], bool).reshape(array.shape)
        ]
        whole = all(value == value // 1 for value in array)
        return max((abs(int(value)) for value in array), default=0) if whole else None
    array = array[np.isfinite(array)]
    if not np.array_equal(array, np.rint(array)):
        return None
    return int(max(array.max(initial=0), -array.min(initial=0)))


def _as(numbers: Any, kind: Any) -> Any:
    """Numbers as int64, or as Python numbers: floats as Fractions, infinite ones as they are."""
    array = np.asarray(numbers)
    if kind is np.int64:
        return array.astype(np.int64, copy=False) if array.ndim else int(array)
    if array.dtype.kind == "f":
        flat = [
            v if math.isinf(v) else int(v) if v.is_integer() else Fraction(v) for v in array.ravel().tolist()
        ]
        array = exact.objects(flat, array.shape)
    elif array.dtype == object and any(isinstance(value, float) for value in array.flat):
        held = (Fraction(v) if isinstance(v, float) and math.isfinite(v) else v for v in array.flat)
        array = exact.objects(held, array.shape)
    array = array.astype(object)
    return array if array.ndim else array[()]


def _limit(limits: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    """A side: one number if it is the same everywhere, otherwise a flat array."""
    array = np.asarray(limits)
    if array.size and set(array.strides) <= {0}:
        array = array.ravel()[:1].reshape(())
    elif array.ndim:
        array = np.broadcast_to(array, shape).ravel()
    if kind is np.int64 and array.dtype != np.int64:
        if not array.ndim:
            value = array[()]
            return float(value) if abs(value) == INFINITY else int(value)
        if array.dtype.kind == "f":
            whole = np.where(np.isfinite(array), array, 0).astype(np.int64)
            return np.where(array == INFINITY, FREE, np.where(array == -INFINITY, -FREE, whole))
        flat = array.tolist()
        return np.array(
            [FREE if v == INFINITY else -FREE if v == -INFINITY else int(v) for v in flat], np.int64
        )
    return _as(array, kind)


# ---------------------------------------------------------------- variables


class _Variables:
    """A block's variables, bounds and costs as flat arrays of one kind; costs are multiplied by `unit`.

    In int64, the cost may be in units: slopes and charges are then multiplied by ``near · heavy``.
    """

    def __init__(
        self, block: Block, values: Array, kind: Any, unit: int, units: _Units | None = None
    ) -> None:
        self.block, self.name, self.part, self.kind = block, block.name, block.part, kind
        self.values = _as(values, kind)
        self.x = self.values.ravel()
        self.low, self.high = (_limit(side, kind, block.shape) for side in (block.lower, block.upper))
        self.units = units if kind is np.int64 else None
        cost, self.near, self.heavy = self.units or _Units(block.cost, 1, 1)
        self.step = self.near if block.integer else 0
        self.data: tuple[Any, ...] = ()
        if cost is not None and not isinstance(cost, Table):
            data = cost.data if kind is np.int64 else cost.exactly
            center, weight = (
                np.ravel(part) if np.ndim(part) else part for part in (_as(p, kind) for p in data)
            )
            self.data = center, weight * unit
        self.unit = unit

    def cost(self) -> Number:
        """The cost of all; exact."""
        cost = self.block.cost
        if self.units is not None:
            total = self.units.cost.value(self.values * self.near)
            return _whole(Fraction(total) / (self.heavy * self.near ** getattr(cost, "power", 1)))
        if cost is None or self.kind is np.int64:
            return 0 if cost is None else cost.value(self.values)
        if isinstance(cost, Table):
            inside = (self.x >= cost.least) & (self.x <= cost.most)
            return exact.total(_as(cost.own(self.x), object)) if inside.all() else INFINITY
        center, weight = self.data
        each = weight * (self.x if isinstance(cost, Linear) else abs(self.x - center) ** cost.power)
        return _whole(Fraction(exact.total(each)) / self.unit)

    def move_inside(self) -> None:
        """Move real variables, which may be outside their bounds by a tolerance, to these."""
        if not self.step:
            self.x = np.minimum(np.maximum(self.x, self.low), self.high)
            self.values = self.x.reshape(self.block.shape)

    def violations(self) -> list[Broken]:
        found: list[Broken] = []
        if self.step and self.kind is object:
            wrong = np.flatnonzero([value != value // 1 for value in self.x.tolist()])
            found.append((wrong, lambda j: f"integer: {self._named(j)} is not a whole number"))
        if isinstance(cost := self.block.cost, Table):
            wrong = np.flatnonzero((self.x < cost.least) | (self.x > cost.most))
            found.append((wrong, lambda j: f"{self._named(j)}, which its table of costs does not have"))
        return found + _beyond(self.x, self.low, self.high, lambda j: f"{self._named(j)},")

    def _named(self, j: int) -> str:
        place = ", ".join(map(str, np.unravel_index(j, self.block.shape)))
        return f"{self.name}[{place}] = {self.x[j]}"

    def missed(self, charge: Any) -> tuple[Ints, Any]:
        """Which variables have an excess, at a charge c for each unit; and the excess of each."""
        cost, c = self.block.cost, charge
        if isinstance(cost, Table):
            return self._missed_tables(cost, c)
        at = self._outside(c if self.units is None else c * (self.near * self.heavy))
        if not at.size:
            return at, at
        if self.units is None:
            return at, self._excess(at, _at(c, at))
        few = _Variables(self.block.chosen(at), self.x[at], object, self.unit)
        return at, few._excess(np.arange(at.size), _at(c, at))

    def _outside(self, c: Any) -> Ints:
        """The variables whose charge is not between the slopes beside them."""
        if self.kind is np.int64 and self.x.size > SMALL:
            center, weight = self.data or (np.zeros(1, np.int64),) * 2
            ends = (
                np.array([_held(v, end)]) if np.ndim(v) == 0 else v
                for v, end in ((self.low, -FREE), (self.high, FREE))
            )
            found = np.empty(self.x.size, np.int64)
            few = (
                np.atleast_1d(part) if np.ndim(part) == 0 or part.strides != (0,) else part[:1]
                for part in (center, weight, c)
            )
            power = {"absolute": 1, "quadratic": 2}.get(
                "" if self.block.cost is None else self.block.cost.kind, 0
            )
            parts = map(read_only, (self.x, *few, *ends))
            return found[: _outside(*parts, power, self.near, self.step, found)]
        wrong = [np.empty(0, np.int64)]
        for start in range(0, self.x.size, PIECE):
            part = slice(start, start + PIECE)
            left, right = self._slopes(part)
            here, x = _at(c, part), self.x[part]
            bad = ((here > right) & (x < _at(self.high, part))) | ((here < left) & (x > _at(self.low, part)))
            if np.any(bad):
                wrong.append(np.flatnonzero(bad) + start)
        return np.concatenate(wrong)

    def _slopes(self, part: slice) -> tuple[Any, Any]:
        """The slopes of the cost to the left and to the right; over whole numbers, of the unit there."""
        cost, x = self.block.cost, self.x[part]
        if cost is None:
            return 0, 0
        center, weight = (_at(numbers, part) for numbers in self.data)
        if isinstance(cost, Linear):
            return weight, weight
        away = x * self.near - center if self.units is not None else x - center
        if isinstance(cost, Square):
            slope = 2 * away if isinstance(weight, int) and weight == 1 else 2 * weight * away
            return (slope - self.step * weight, slope + self.step * weight) if self.step else (slope, slope)
        if self.step and (self.units is not None or self.kind is object):
            step = self.step
            return weight * (abs(away) - abs(away - step)), weight * (abs(away + step) - abs(away))
        return np.where(away > 0, weight, -weight), np.where(away >= 0, weight, -weight)

    def _excess(self, at: Ints, c: Any) -> Any:
        """``f(v) − c v − min (f(z) − c z)`` of some variables; infinite if nothing bounds the minimum."""
        cost, x, many = self.block.cost, self.x[at], at.size
        # Among Python's numbers NumPy would make an unsigned array of a bound beyond 2^63, and then floats.
        held = object if self.kind is object else None
        low, high = (np.broadcast_to(np.asarray(_at(side, at), held), many) for side in (self.low, self.high))
        data = (
            tuple(np.broadcast_to(_at(numbers, at), many) for numbers in self.data)
            or (np.zeros(many, int),) * 2
        )
        c = np.broadcast_to(c, many)
        if self.kind is object or not (self.step and _small(x, c, low, high, *data)):
            x, c, *data = (part.astype(object) for part in (x, c, *data))  # type: ignore[assignment]
        open_low, open_high = (np.abs(side) == end for side, end in ((low, INFINITY), (high, INFINITY)))
        if low.dtype == np.int64 or high.dtype == np.int64:
            open_low, open_high = open_low | (low == -FREE), open_high | (high == FREE)
        low, high = (np.where(open_, 0, side) for open_, side in ((open_low, low), (open_high, high)))
        if x.dtype == object:
            low, high = low.astype(object), high.astype(object)
            if self.step:
                low, high = -(-low // 1), high // 1
        else:
            low, high = low.astype(np.int64), high.astype(np.int64)

        def inside(z: Any) -> Any:
            return np.where(open_high, np.where(open_low, z, np.maximum(z, low)),
                            np.minimum(np.where(open_low, z, np.maximum(z, low)), high))  # fmt: skip

        center, weight = data
        if isinstance(cost, Square):
            flat = weight == 0  # a line among squares
            top, under = 2 * weight * center + c, np.where(flat, 1, 2 * weight)
            z = inside((top + weight) // under if self.step else _fractions(top, under))
            z = np.where(flat, np.where(c > 0, high, np.where(c < 0, low, x)), z)
            unbounded = flat & (((c > 0) & open_high) | ((c < 0) & open_low))
            return _or_infinite((x - z) * (weight * (x + z - 2 * center) - c), unbounded)
        if isinstance(cost, Absolute):
            unbounded = (open_low & (c < -weight)) | (open_high & (c > weight))
            least: Any = None
            kinks = (center // 1, -(-center // 1)) if self.step else (center,)
            for z in (
                *map(inside, kinks),
                np.where(open_low, inside(kinks[0]), low),
                np.where(open_high, inside(kinks[0]), high),
            ):
                here = weight * abs(z - center) - c * z
                least = here if least is None else np.minimum(least, here)
            return _or_infinite(weight * abs(x - center) - c * x - least, unbounded)
        slope = weight - c  # a line, or no cost at all
        end = np.where(slope > 0, low, np.where(slope < 0, high, x))
        unbounded = ((slope > 0) & open_low) | ((slope < 0) & open_high)
        return _or_infinite(slope * (x - end), unbounded)

    def _missed_tables(self, cost: Table, charge: Any) -> tuple[Ints, Any]:
        """Tables need not be convex, so the least of each is looked up."""
        lengths, cells = np.diff(cost.cuts), _as(cost.cells, self.kind) * self.unit
        c = np.broadcast_to(charge, self.x.size)
        place = cost.cuts[:-1] + (self.x - np.asarray(cost.least)).astype(np.int64)
        away = np.arange(cells.size) - np.repeat(place, lengths)  # units from the answer's own value
        if self.kind is object:
            away = away.astype(object)
        at = (
            np.asarray(cost.least)[np.repeat(np.arange(lengths.size), lengths)]
            + np.arange(cells.size)
            - np.repeat(cost.cuts[:-1], lengths)
        )
        low, high = (
            side if np.ndim(side) == 0 else np.repeat(side, lengths) for side in (self.low, self.high)
        )
        relative = cells - np.repeat(c, lengths) * away
        outside = (at < low) | (at > high)
        if outside.any():
            relative = np.where(outside, np.repeat(cells[place], lengths), relative)
        missed = cells[place] - np.minimum.reduceat(relative, cost.cuts[:-1])
        wrong = np.flatnonzero(missed != 0)
        return wrong, missed[wrong]


def _beyond(numbers: Array, low: Any, high: Any, named: Callable[[int], str]) -> list[Broken]:
    """Where numbers are below their lower side or above their upper one."""

    def text(side: Any, name: str) -> Callable[[int], str]:
        return lambda i: f"{named(i)} not {'' if _at(low, i) == _at(high, i) else name}{_at(side, i)}"

    sides = ((low, "at least ", np.less), (high, "at most ", np.greater))
    return [
        (np.flatnonzero(beyond(numbers, side)), text(side, name))
        for side, name, beyond in sides
        if np.ndim(side) or abs(side) != INFINITY
    ]


def _held(limit: Any, free: int) -> int:
    return free if abs(limit) == INFINITY else int(limit)


@kernel(linear=True)
def _outside(
    x: Any, y: Any, w: Any, c: Any, low: Any, high: Any, power: int, near: int, step: int, found: Any
) -> int:  # fmt: skip
    """Write the positions of variables whose charge is not between the slopes beside them; how many."""
    n = 0
    for start in range(0, x.size, BLOCK):
        stop, bad = min(start + BLOCK, x.size), 0
        if y.size == x.size and w.size == 1 and c.size == x.size and low.size == 1 and high.size == 1:
            # The usual case, without branches in the loop.
            m, least, most = w[0], low[0], high[0]
            a, b, k = x[start:stop], y[start:stop], c[start:stop]
            if power == 2:
                for i in range(a.size):
                    g = 2 * m * (near * a[i] - b[i]) - k[i]
                    bad |= ((g > step * m) & (a[i] > least)) | ((g < -step * m) & (a[i] < most))
            elif near > 1:
                for i in range(a.size):
                    d = near * a[i] - b[i]
                    right, left = m * (abs(d + step) - abs(d)), m * (abs(d) - abs(d - step))
                    bad |= ((k[i] > right) & (a[i] < most)) | ((k[i] < left) & (a[i] > least))
            else:
                for i in range(a.size):
                    right = m if a[i] >= b[i] else -m
                    left = m if a[i] > b[i] else -m
                    bad |= ((k[i] > right) & (a[i] < most)) | ((k[i] < left) & (a[i] > least))
            if not bad:
                continue
        for i in range(start, stop):
            m, k = w[0 if w.size == 1 else i], c[0 if c.size == 1 else i]
            left, right = m, m
            if power:
                away = near * x[i] - y[0 if y.size == 1 else i]
                if power == 2:
                    left, right = 2 * m * away - step * m, 2 * m * away + step * m
                elif near > 1:
                    right, left = m * (abs(away + step) - abs(away)), m * (abs(away) - abs(away - step))
                else:
                    left, right = m if away > 0 else -m, m if away >= 0 else -m
            least, most = low[0 if low.size == 1 else i], high[0 if high.size == 1 else i]
            if (k > right and x[i] < most) or (k < left and x[i] > least):
                found[n] = i
                n += 1
    return n


@_outside.without_numba
def _outside_in_arrays(
    x: Any, y: Any, w: Any, c: Any, low: Any, high: Any, power: int, near: int, step: int, found: Any
) -> int:  # fmt: skip
    n = 0
    for start in range(0, x.size, PIECE):
        part = slice(start, start + PIECE)
        a, b, m, k, least, most = (
            array if array.size == 1 else array[part] for array in (x, y, w, c, low, high)
        )
        if power == 2:
            slope = 2 * m * (near * a - b)
            left, right = slope - step * m, slope + step * m
        elif power == 1 and near > 1:
            away = near * a - b
            right, left = m * (abs(away + step) - abs(away)), m * (abs(away) - abs(away - step))
        elif power == 1:
            left, right = np.where(a > b, m, -m), np.where(a >= b, m, -m)
        else:
            left = right = m
        at = np.flatnonzero(((k > right) & (a < most)) | ((k < left) & (a > least)))
        found[n : n + at.size] = at + start
        n += at.size
    return n


def _at(numbers: Any, place: Any) -> Any:
    return numbers[place] if isinstance(numbers, np.ndarray) else numbers


def _small(*parts: Any) -> bool:
    """Whether int64 holds each variable's excess."""
    x, c, low, high, center, weight = (
        max(abs(v) for v in (part.max(), part.min()))
        if part.dtype != np.int64
        else exact.reach(part[np.abs(part) != FREE])
        for part in parts
    )
    if INFINITY in (x, c, center, weight):
        return False
    ends = max(0 if end == INFINITY else int(end) for end in (low, high))
    far = int(x) + 2 * int(center) + int(c) + ends + 1
    return 4 * far * (2 * int(weight) * far + int(c) + 1) < FREE


def _fractions(top: Any, under: Any) -> Any:
    pairs = zip(top.tolist(), under.tolist(), strict=True)
    return exact.objects([Fraction(a) / Fraction(b) for a, b in pairs], top.shape)


def _or_infinite(excess: Any, unbounded: Flags) -> Any:
    return np.where(unbounded, exact.objects([INFINITY], (1,)), excess) if unbounded.any() else excess


def _charge(name: str, links: Sequence[_Links], paid: Values, kind: Any) -> Any:
    """``c = Aᵀ y`` for the variables of a block, flat; 0 if no rows are paid for."""
    parts = [
        link.rows.operators[name].transpose(_as(paid[link.name], kind))
        for link in links
        if link.name in paid and name in link.rows.operators
    ]
    if not parts:
        return 0
    return sum(parts[1:], parts[0]).ravel()


# ---------------------------------------------------------------- rows


class _Links:
    """Rows, what they hold, and their sides as flat arrays of one kind."""

    def __init__(self, rows: Rows, variables: Mapping[str, _Variables], kind: Any) -> None:
        self.rows, self.name, self.part = rows, rows.name, rows.part
        parts = [operator.apply(variables[name].values) for name, operator in rows.operators.items()]
        self.held = sum(parts[1:], parts[0]).ravel()
        self.low, self.high = (_limit(side, kind, (rows.count,)) for side in (rows.lower, rows.upper))

    def violations(self) -> list[Broken]:
        return _beyond(
            self.held,
            self.low,
            self.high,
            lambda i: f"{self.name}: {self._named(i)} is {self.held[i]},",
        )

    def _named(self, i: int) -> str:
        operator = next(iter(self.rows.operators.values()))
        return operator.named(tuple(map(int, np.unravel_index(i, operator.rows))))

    def missed(self, price: Array) -> tuple[Ints, Any]:
        """Rows that are paid for without being at that side, and what that leaves."""
        price = price.ravel()
        off = ((price > 0) & (self.held != self.low)) | ((price < 0) & (self.held != self.high))
        at = np.flatnonzero(off)
        if not at.size:
            return at, at
        y, held, low, high = (
            np.broadcast_to(_at(part, at), at.size).astype(object)
            for part in (price, self.held, self.low, self.high)
        )
        return at, y * (held - np.where(y > 0, low, high))


def _violations(
    variables: Mapping[str, _Variables], links: Sequence[_Links]
) -> tuple[Sequence[str], int | None]:
    """What is broken, in words; and the first of the problems side by side in which something is."""
    texts, problems = [], []
    parts: list[_Variables | _Links] = [*variables.values(), *links]
    for part in parts:
        for places, text in part.violations():
            texts.append(Texts(places, text))
            if part.part is not None and places.size:
                problems.append(int(part.part[places].min()))
    return all_texts(texts), min(problems, default=None)


# ---------------------------------------------------------------- the gap


class _Gap:
    """What the objective exceeds the bound by; of problems side by side, by problem."""

    def __init__(self, unit: int) -> None:
        self.total: Number = 0
        self._unit = unit
        self._by_problem: dict[int | None, Number] = {}

    def add(self, at: Ints, amounts: Any, part: Ints | None) -> None:
        """Add what some variables or rows leave, over the unit."""
        if not at.size:
            return
        if part is None:
            found: dict[int | None, Any] = {None: amounts}
        else:
            order = np.argsort(part[at], kind="stable")
            problems, starts = np.unique(part[at][order], return_index=True)
            found = dict(zip(problems.tolist(), np.split(amounts[order], starts[1:]), strict=True))
        for problem, each in found.items():
            gap = _total(each.tolist()) if each.dtype == object else exact.total(each)
            gap = gap if gap == INFINITY or self._unit == 1 else Fraction(gap) / self._unit
            self._by_problem[problem] = _total([self._by_problem.get(problem, 0), gap])
        self.total = _whole(_total([*self._by_problem.values()]))

    def round_up(self, unit: int, apart: bool) -> None:
        """Costs are multiples of a fraction, and so is the least one; of each problem, if they are apart."""
        if not apart:
            self.total = _whole(Fraction(math.floor(self.total * unit), unit))
            return
        self._by_problem = {k: Fraction(math.floor(gap * unit), unit) for k, gap in self._by_problem.items()}
        self.total = _whole(_total([*self._by_problem.values()]))

    @property
    def _missed(self) -> list[int]:
        return sorted(k for k, gap in self._by_problem.items() if k is not None and gap > 0)

    @property
    def first(self) -> int | None:
        """The first of several problems with a gap."""
        return min(self._missed, default=None) if self.total > 0 else None

    @property
    def reason(self) -> str:
        """Why the answer is not proved."""
        if self.first is None:
            return LEFT
        more = len(self._missed) - 1
        return f"problem {self.first}: {LEFT}" + (f" (and in {more} more)" if more else "")


def _total(amounts: Sequence[Number]) -> Number:
    """The sum; infinite if one of them is: Python does not add infinity to an integer beyond 1e308."""
    return INFINITY if INFINITY in amounts else sum(amounts, 0)


def _whole(number: Any) -> Number:
    """A whole Fraction as an int."""
    return number.numerator if isinstance(number, Fraction) and number.denominator == 1 else number
