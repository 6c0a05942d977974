"""The theorem behind the certificates: any prices of a program's rows give a lower bound on its optimum.

For ``minimize f(v) subject to l ≤ Av ≤ u, v in a box`` and any price ``y_i`` of each row, let ``s_i`` be the
row's lower side where ``y_i > 0`` and its upper side where ``y_i < 0``. Then

    bound(y)  =  min over v in the box of ( f(v) − yᵀAv )  +  yᵀs     is at most the optimum.

Proof. A feasible v has ``y_i·(s_i − (Av)_i) ≤ 0`` for each row, by the choice of the side. So ``f(v)`` is at
least ``f(v) + yᵀ(s − Av)``, which is at least ``bound(y)``.

If f is separable, the minimum is one problem for each variable, solved here in closed form.

References
----------
Everett 1963, "Generalized Lagrange multiplier method"; Rockafellar 1970, *Convex Analysis*, §28; over whole
numbers: Geoffrion 1974, "Lagrangean relaxation for integer programming".
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Flags
from models.arithmetic.exact import Number
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.read import Side, entries, sides, tabulated, terms
from models.witnesses.scaled import (
    Scaled,
    divided,
    finite,
    gathered,
    minus,
    plus,
    raised,
    running,
    scaled,
    times,
)

LONGEST_DENOMINATOR = 4096
"""Bits. Fractions whose common denominator is longer are rounded down before they are added up."""


def lagrangian_bound(program: Program, prices: ArrayLike) -> Number:
    """A proved lower bound on a program's optimum, from any prices of its rows.

    The bound holds for any prices; good ones, such as a solver's dual values, make it tight. It is computed
    in whole numbers and fractions (a float is a fraction), so that no rounding can raise it above the
    optimum. Linear time.

    Parameters
    ----------
    program : Program
        Linear, quadratic, absolute and tabulated terms, in any mix and of any sign; variables bounded or not,
        whole or not. The variables of a table must be whole; outside its domain the cost is infinite.
    prices : array, shape (number of rows,)
        A real number for each row of ``program.matrix``: int, float or Fraction. A positive price is paid for
        the row's lower side, a negative one for its upper side. (HiGHS and most solvers sign the dual
        values of a minimization in this way.)

    Returns
    -------
    int, Fraction or float
        ``-inf`` if the prices prove nothing: one is not finite, is paid for an infinite side, or makes the
        cost of a variable unbounded below; or if the program has rounded numbers. ``inf`` if some variable's
        domain is empty.

    Raises
    ------
    ValueError
        If there is not one price for each row, or the program is malformed (the message says how).

    Notes
    -----
    Minima over real variables with squares are fractions with the weights as denominators. If their common
    denominator has more than `LONGEST_DENOMINATOR` bits, each is rounded down by less than 2⁻⁶⁴ of the data's
    unit: the bound stays a bound.

    Examples
    --------
    Two whole numbers that add up to 4, nearest to 5 and 3. At the price −4 the first is best at 3, the second
    at 1, and these add up to 4: no answer costs less than theirs.

    >>> from models import SimplexQP
    >>> program = SimplexQP([5, 3], total=4).program()
    >>> [lagrangian_bound(program, [price]) for price in (-6, -4, -1, 0)]
    [6, 8, 4, 1]
    >>> program.value(np.array([3, 1]))
    8
    """
    paid = door.numbers("prices", prices, (program.matrix.shape[0],), finite=False)
    if not (program.exactly and finite(paid).all()):
        return -INFINITY
    price = scaled([paid])
    paid_for = _paid_sides(program, price)
    if paid_for is None:
        return -INFINITY
    costs = _costs(program, price)
    box = sides(program, "blocks", "lower"), sides(program, "blocks", "upper")
    least = _least_tables(program, costs, box)
    pieces = _pieces(program, costs, box)
    for whole in (True, False):
        part = pieces.of(program.integer[pieces.variable] == whole)
        least = _added(least, _least_pieces(part, costs.unit, whole))
    if isinstance(least, float):
        return least
    found = least + Fraction(costs.constant, costs.unit) + paid_for
    return found.numerator if found.denominator == 1 else found


def _added(a: Fraction | float, b: Fraction | float) -> Fraction | float:
    """The sum; if one is +inf, +inf, as then no answer is feasible."""
    infinite = [part for part in (a, b) if isinstance(part, float)]
    return max(infinite) if infinite else a + b


def _paid_sides(program: Program, price: Scaled) -> Fraction | None:
    """``yᵀs``; None if a side that is paid for is infinite."""
    lower, upper = (sides(program, "rows", side) for side in ("lower", "upper"))
    up, down = price.number > 0, price.number < 0
    if np.any(up & lower.open) or np.any(down & upper.open):
        return None
    found = Fraction(0)
    for chosen, side in ((up, lower), (down, upper)):
        number, unit = side.at
        found += Fraction(int(exact.total(times(price.number[chosen], number[chosen]))), unit * price.unit)
    return found


class _Costs(NamedTuple):
    """``f(v) − yᵀAv`` without absolute terms and tables: ``(constant + Σ (square·v² + slope·v)) / unit``."""

    square: Array
    slope: Array
    constant: int
    unit: int


def _costs(program: Program, price: Scaled) -> _Costs:
    size = program.size
    linear, price_of, _ = terms(program, "linear")
    squared, weight, center = terms(program, "quadratic")
    _, height, bend = terms(program, "absolute")
    row, charged, entry = entries(program)
    charge = Scaled(times(entry.number, price.number[row]), entry.unit * price.unit)
    table_unit = scaled([table for term in tabulated(program) for table in term.tables]).unit
    once = weight.unit * center.unit
    unit = math.lcm(price_of.unit, once * center.unit, height.unit * bend.unit, charge.unit, table_unit)
    # weight·(v − center)² is weight·v² − 2·weight·center·v + weight·center².
    pull = times(weight.number, center.number)
    slope = minus(
        gathered(linear, price_of.over(unit), size),
        plus(
            gathered(charged, charge.over(unit), size), gathered(squared, times(pull, 2 * unit // once), size)
        ),
    )
    constant = int(exact.total(times(pull, center.number))) * (unit // (once * center.unit))
    return _Costs(gathered(squared, weight.over(unit), size), slope, constant, unit)


class _Pieces(NamedTuple):
    """Each variable's cost in pieces: ``square·v² + slope·v + height`` between two kinks.

    The ends of a piece are ``low / unit`` and ``high / unit``; `below` and `above` mark pieces without that
    end.
    """

    variable: Array
    square: Array
    slope: Array
    height: Array
    low: Array
    high: Array
    below: Flags
    above: Flags
    unit: int

    def of(self, chosen: Flags) -> _Pieces:
        """The chosen pieces."""
        if chosen.all():
            return self
        parts = {name: part[chosen] for name, part in self._asdict().items() if name != "unit"}
        return self._replace(**parts)


def _pieces(program: Program, costs: _Costs, box: tuple[Side, Side]) -> _Pieces:
    """The pieces of all variables without tables, in order."""
    bent, weight, bend = terms(program, "absolute")
    tabled = np.zeros(program.size, bool)
    for term in tabulated(program):
        tabled[term.index] = True
    plain = np.flatnonzero(~tabled)
    kept = np.flatnonzero(~tabled[bent])
    order, single = kept, bool((np.diff(bent[kept]) > 0).all())
    if not single:  # a variable has several bends, or they are not in order
        order = kept[np.argsort(bend.number[kept], kind="stable")]
        order = order[np.argsort(bent[order], kind="stable")]
    bent, at = bent[order], bend.number[order]
    rise = times(weight.number[order], costs.unit // weight.unit)  # half the rise of the slope
    drop = times(times(weight.number[order], at), costs.unit // (weight.unit * bend.unit))
    # One piece for each variable, and one more for each bend, which begins there.
    count = np.bincount(bent, minlength=program.size)[plain] + 1
    variable = np.repeat(plain, count)
    first = np.cumsum(count) - count
    after = np.ones(variable.size, bool)
    after[first] = False
    left, right = np.flatnonzero(after), np.flatnonzero(after) - 1

    def stepped(step: Array, sign: int) -> Array:
        """The first piece has all steps of its variable with a minus sign; each kink turns one positive."""
        if single:
            level = np.zeros(variable.size, step.dtype)
            level[left], level[right] = times(step, sign), times(step, -sign)
            return level
        turned = np.zeros(variable.size, step.dtype)
        turned[after] = step
        sums = running(turned)
        before, whole = sums[first], gathered(bent, step, program.size)[plain]
        level = minus(times(minus(sums, np.repeat(before, count)), 2), np.repeat(whole, count))
        return times(level, sign)

    unit = math.lcm(box[0].at.unit, box[1].at.unit, bend.unit)
    cut = times(at, unit // bend.unit)
    low, high = (side.at.over(unit)[variable] for side in box)
    below, above = (side.open[variable] for side in box)
    low, high = (side.astype(np.result_type(side, cut)) for side in (low, high))
    low[left] = np.where(below[left], cut, np.maximum(low[left], cut))
    high[right] = np.where(above[right], cut, np.minimum(high[right], cut))
    below[left] = above[right] = False
    slope = plus(costs.slope[variable], stepped(rise, 1))
    return _Pieces(variable, costs.square[variable], slope, stepped(drop, -1), low, high, below, above, unit)


def _least_pieces(pieces: _Pieces, cost_unit: int, whole: bool) -> Fraction | float:
    """The sum of all variables' minima; infinite if a domain is empty or a cost is unbounded below."""
    variables = np.count_nonzero(np.bincount(pieces.variable))
    if not variables:
        return Fraction(0)
    unit = pieces.unit
    if whole:
        inside = pieces._replace(low=raised(pieces.low, unit), high=divided(pieces.high, unit))
        unit = 1
    else:
        slope, height = times(pieces.slope, unit), times(pieces.height, unit**2)
        inside = pieces._replace(slope=slope, height=height)
    inside = inside.of((inside.low <= inside.high) | inside.below | inside.above)
    variable, square, slope, height, low, high, below, above, _ = inside
    first = np.flatnonzero(np.r_[True, variable[1:] != variable[:-1]])[: variable.size]
    if first.size < variables:
        return INFINITY
    if np.any((square < 0) & (below | above)):
        return -INFINITY
    if np.any((square == 0) & (((slope > 0) & below) | ((slope < 0) & above))):
        return -INFINITY

    flat = not square.any()

    def cost(at: Array) -> Array:
        turned = slope if flat else plus(times(square, at), slope)
        return plus(times(turned, at), height)

    # The parabola's lowest point, rounded (to the nearest for whole numbers), then moved into the interval.
    curved = square > 0
    twice = np.where(curved, times(square, 2), 1)
    turning = np.where(curved, minus(square if whole else np.zeros_like(square), slope), 0)
    bottom = turning // twice
    bottom = np.where(below, bottom, np.maximum(bottom, low))
    bottom = np.where(above, bottom, np.minimum(bottom, high))
    start, stop = np.where(below, bottom, low), np.where(above, bottom, high)
    least = np.minimum(cost(start), cost(stop))
    if whole:
        least = least if flat else np.minimum(least, cost(bottom))  # of a line, an end is lowest
        return Fraction(int(exact.total(np.minimum.reduceat(least, first))), cost_unit)
    # Over the reals the lowest point is a fraction; costs are compared over the denominator 4·square.
    over = np.where(curved, times(square, 4), 1)
    least = times(least, over)
    within = curved & (below | (times(low, twice) <= turning)) & (above | (turning <= times(high, twice)))
    lowest = minus(times(over, height), times(slope, slope))
    least = np.where(within, np.minimum(least, lowest), least)
    return _sum_of_fractions(np.minimum.reduceat(least, first), over[first]) / (cost_unit * unit**2)


def _sum_of_fractions(number: Array, over: Array) -> Fraction:
    """``Σ number / over``; rounded down if the common denominator is too long (see `LONGEST_DENOMINATOR`)."""
    kinds, kind = np.unique(over, return_inverse=True)
    sums, common = gathered(kind, number, kinds.size).tolist(), 1
    for denominator in kinds.tolist():
        common = math.lcm(common, denominator)
        if common.bit_length() > LONGEST_DENOMINATOR:
            break
    else:
        whole = sum(int(held) * (common // d) for held, d in zip(sums, kinds.tolist(), strict=True))
        return Fraction(whole, common)
    return Fraction(
        sum((int(held) << 64) // d for held, d in zip(sums, kinds.tolist(), strict=True)), 1 << 64
    )


def _least_tables(program: Program, costs: _Costs, box: tuple[Side, Side]) -> Fraction | float:
    """The sum of the minima of the variables with tables, by enumerating each domain."""
    index, _, center = terms(program, "table")
    if not index.size:
        return Fraction(0)
    if center.unit != 1 or not program.integer[index].all():
        raise ValueError("a table needs whole variables, and whole numbers as centers")
    cost_tables = [table for term in tabulated(program) for table in term.tables]
    length = np.array([table.size for table in cost_tables], np.int64)
    if length.size != index.size:
        raise ValueError(f"there are {length.size} tables for {index.size} variables")
    cells, starts = scaled(cost_tables).over(costs.unit), np.cumsum(length) - length
    order = np.argsort(index, kind="stable")  # a variable may have several tables
    index, first, length, starts = (part[order] for part in (index, center.number, length, starts))
    variable, leading, times_ = np.unique(index, return_index=True, return_counts=True)
    # The domain of a variable is what its bounds and all its tables have in common.
    low = np.maximum.reduceat(first, leading)
    high = np.minimum.reduceat(plus(first, length - 1), leading)
    (lower, below), (upper, above) = box
    low = np.where(below[variable], low, np.maximum(low, raised(*lower)[variable]))
    high = np.where(above[variable], high, np.minimum(high, divided(*upper)[variable]))
    if np.any(low > high):
        return INFINITY
    many = (high - low + 1).astype(np.int64)
    begin = np.cumsum(many) - many
    of = np.repeat(np.arange(variable.size), many)
    at = plus(low[of], np.arange(of.size) - begin[of])
    cost = times(plus(times(costs.square[variable][of], at), costs.slope[variable][of]), at)
    for turn in range(times_.max()):  # its first table, its second one, ...
        entry = leading[of] + np.minimum(turn, times_[of] - 1)
        cell = cells[(starts[entry] + at - first[entry]).astype(np.int64)]
        cost = plus(cost, np.where(times_[of] > turn, cell, 0))
    cost = plus(cost, _absolutes_at(program, costs.unit, variable[of], at))
    return Fraction(int(exact.total(np.minimum.reduceat(cost, begin))), costs.unit)


def _absolutes_at(program: Program, unit: int, variable: Array, at: Array) -> Array:
    """The cost of absolute terms at whole values of variables (sorted), over `unit`."""
    bent, weight, bend = terms(program, "absolute")
    height = times(weight.number, unit // (weight.unit * bend.unit))
    start, stop = np.searchsorted(variable, bent), np.searchsorted(variable, bent, "right")
    both = np.flatnonzero(start < stop)  # few: no model has both kinds on one variable
    cost = np.zeros(variable.size, object if both.size else np.int64)
    for k in both:
        cells = slice(start[k], stop[k])
        cost[cells] += height[k] * np.abs(at[cells].astype(object) * bend.unit - bend.number[k])
    return cost
