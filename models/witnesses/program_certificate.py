"""The certificate of any answer to any program, by row prices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.exact import Number
from models.certificate import CONTRADICTION, FLOAT_TOLERANCE, PROVED, Certificate, infeasible
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.lagrangian import lagrangian_bound
from models.witnesses.read import Side, entries, sides, tabulated, terms
from models.witnesses.scaled import Scaled, divided, gathered, minus, scaled, times


def lagrangian_certificate(program: Program, variables: ArrayLike, prices: ArrayLike) -> Certificate:
    """Prove an answer to a program by prices of its rows, or bound how far it is from the optimum.

    Nothing is searched or rounded: feasibility, objective and bound are computed in whole numbers
    and fractions. `solvers.prove` finds prices; a solver's dual values can be used as well.

    Parameters
    ----------
    program : Program
    variables : array, shape (program.size,)
        All variables, in order, the auxiliary ones included: int, Fraction or float. In floats, real
        variables may be off by `FEASIBILITY_TOLERANCE` of their own size (of the data's largest number, but
        at most of 1, if they are smaller). They are moved into their bounds; then all rows together may be
        broken by what such moves within the bounds repair. Whole and fixed variables cannot move.
    prices : array, shape (number of rows,)
        See `lagrangian_bound`.

    Returns
    -------
    Certificate
        Its bound is that of `lagrangian_bound`. Optimal means a gap of 0; for a program with real variables
        and an answer in floats, a gap of at most `FLOAT_TOLERANCE` times the objective, or times the cost of
        an answer that is wrong by as much as the data are large, but at most 1.

    Raises
    ------
    ValueError
        If variables or prices are not real numbers of the right shape, or the program is malformed.

    Examples
    --------
    >>> from models import SimplexQP, lagrangian_certificate
    >>> program = SimplexQP([5, 3], total=4).program()
    >>> lagrangian_certificate(program, [3, 1], prices=[-4]).optimal
    True
    >>> print(lagrangian_certificate(program, [4, 0], prices=[-4]).reason)
    not proved: these prices leave a gap of 2
    """
    given = door.numbers("variables", variables, (program.size,))
    in_floats = bool(np.issubdtype(given.dtype, np.floating)) and not program.integer.all()
    at, small, tolerance = scaled([given]), Fraction(0), Fraction(0)
    largest = Fraction(exact.reach(at.number), at.unit)
    if in_floats:
        small = min(Fraction(1), _largest(program))
        largest = max(largest, small)
    allowed = Scaled(np.zeros(program.size, np.int64), 1)
    if in_floats:
        at, allowed = _inside(program, at, small)
    bound, objective = lagrangian_bound(program, prices), _cost(program, at)
    broken = list(_broken(program, at, allowed))
    if objective == INFINITY:
        broken.append("tables: a variable has a value that its table has no cost for")
    if broken:
        return infeasible(objective, broken)
    if in_floats:
        tolerance = Fraction(FLOAT_TOLERANCE) * max(_unit(program, largest), abs(Fraction(objective)))
    gap, witness = objective - bound, {"prices": door.numbers("prices", prices, finite=False)}
    if gap < 0 and not in_floats:
        return Certificate(False, objective, None, gap, witness, CONTRADICTION)
    if gap < -tolerance:
        less = f"variables: they cost {_shown(-gap)} less than any that keep all rows"
        return infeasible(objective, [less])
    gap = max(gap, 0)
    if gap <= tolerance:
        return Certificate(True, objective, objective - gap, gap, witness, PROVED)
    reason = "not proved: these prices give no bound"
    if gap < INFINITY:
        reason = f"not proved: these prices leave a gap of {_shown(gap)}"
    return Certificate(False, objective, objective - gap, gap, witness, reason)


def _shown(gap: Number) -> str:
    return f"{float(gap):.6g}" if gap < 10**300 else "more than 1e300"


def _inside(program: Program, at: Scaled, small: Fraction) -> tuple[Scaled, Scaled]:
    """The variables, real ones just outside their bounds moved to these; and how far each may move.

    A real variable may move by `FEASIBILITY_TOLERANCE` of its own size, or of the number `small` if it is
    smaller, but by no more than its bounds are apart. (The tolerance itself is left to `_broken`.)
    """
    low, high = _both(program, "blocks")
    unit = math.lcm(at.unit, low.at.unit, high.at.unit, small.denominator)
    v, ends = at.over(unit), (low.at.over(unit), high.at.over(unit))
    least = int(small * unit)
    size = np.maximum(np.abs(v) if exact.fits(least) else np.abs(v).astype(object), least)
    near = np.where(low.open, v, np.maximum(v, ends[0]))
    near = np.where(high.open, near, np.minimum(near, ends[1]))
    far = times(np.abs(minus(v, near)), round(1 / FEASIBILITY_TOLERANCE)) > size
    v = np.where(program.integer | far, v, near)
    apart = times(minus(ends[1], ends[0]), round(1 / FEASIBILITY_TOLERANCE))
    size = np.where(low.open | high.open, size, np.minimum(size, np.maximum(apart, 0)))
    return Scaled(v, unit), Scaled(np.where(program.integer, 0, size), unit)


def _broken(program: Program, at: Scaled, allowed: Scaled) -> Iterator[str]:
    """Violations of integrality, bounds and rows.

    Rows may be broken if moves of their variables by `FEASIBILITY_TOLERANCE` times `allowed` repair them all.
    """
    whole = times(divided(at.number, at.unit), at.unit) == at.number
    for j in np.flatnonzero(program.integer & ~whole).tolist():
        yield f"integer: {_variable(program, j)} = {at.value(j)}"
    for j, limit, _ in _outside(at, _both(program, "blocks")):
        yield f"bounds: {_variable(program, j)} = {at.value(j)}, not {limit}"
    tolerance = Fraction(FEASIBILITY_TOLERANCE)
    row, variable, entry = entries(program)
    count = program.matrix.shape[0]
    held = Scaled(gathered(row, times(entry.number, at.number[variable]), count), entry.unit * at.unit)
    # How far the variables of a row have to move: a share of their sizes, the same for all.
    moved = gathered(row, times(np.abs(entry.number), allowed.number[variable]), count)
    together: Number = Fraction(0)
    named = False
    for i, limit, short in _outside(held, _both(program, "rows")):
        share = short * (entry.unit * allowed.unit) / int(moved[i]) if moved[i] else math.inf
        together += share
        if share > tolerance:
            named = True
            yield f"{_row(program, i)}: {held.value(i)}, not {limit}"
    if together > tolerance and not named:
        yield f"rows: all together are broken by {_shown(together)}, more than {_shown(tolerance)}"


def _largest(program: Program) -> Fraction:
    """The largest absolute value among the sides of bounds and rows and the centers of terms."""
    both = [side.at for of in ("blocks", "rows") for side in _both(program, of)]
    centers = [terms(program, kind)[2] for kind in ("quadratic", "absolute")]
    return max(Fraction(exact.reach(part.number), part.unit) for part in (*both, *centers))


def _unit(program: Program, largest: Fraction) -> Fraction:
    """What the costliest term adds for variables that are wrong by `largest`, or 1 if that is less."""
    unit = Fraction(0)
    for kind, power in (("linear", 1), ("absolute", 1), ("quadratic", 2)):
        weight = terms(program, kind)[1]
        unit = max(unit, Fraction(exact.reach(weight.number), weight.unit) * largest**power)
    costs = [table for term in tabulated(program) for table in term.tables if table.size]
    return min(Fraction(1), max([unit, *(Fraction(table.max() - table.min()) for table in costs)]))


def _both(program: Program, of: str) -> tuple[Side, Side]:
    return sides(program, of, "lower"), sides(program, of, "upper")


def _outside(at: Scaled, limits: tuple[Side, Side]) -> Iterator[tuple[int, str, Fraction]]:
    """Which numbers are below the lower side or above the upper one; how far."""
    unit = math.lcm(at.unit, *(side.at.unit for side in limits))
    for (side, open_), sign, name in zip(limits, (1, -1), ("at least", "at most"), strict=True):
        short = times(minus(side.over(unit), at.over(unit)), sign)
        for i in np.flatnonzero(~open_ & (short > 0)).tolist():
            yield i, f"{name} {side.value(i)}", Fraction(int(short[i]), unit)


def _variable(program: Program, j: int) -> str:
    """``x[2, 0]``."""
    for block in program.blocks:
        if j < block.size and block.names is not None:
            return block.names[j]
        if j < block.size:
            return f"{block.name}[{', '.join(map(str, np.unravel_index(j, block.shape)))}]"
        j -= block.size
    raise IndexError(j)


def _row(program: Program, i: int) -> str:
    for rows in program.rows:
        if i < rows.matrix.shape[0]:
            return f"{rows.name}, row {i}" if rows.names is None else f"row {rows.names[i]}"
        i -= rows.matrix.shape[0]
    raise IndexError(i)


def _cost(program: Program, at: Scaled) -> Number:
    """The objective, exactly; infinite outside the domain of a table."""
    found = Fraction(0)
    for kind in ("linear", "quadratic", "absolute"):
        index, weight, center = terms(program, kind)
        unit = math.lcm(at.unit, center.unit)
        here = at.over(unit)[index]
        away = here if kind == "linear" else minus(here, center.over(unit))
        cost = times(weight.number, away if kind == "linear" else np.abs(away))
        power = 2 if kind == "quadratic" else 1
        cost = times(cost, np.abs(away)) if kind == "quadratic" else cost
        found += Fraction(int(exact.total(cost)), weight.unit * unit**power)
    index, _, start = terms(program, "table")
    costs = [table for term in tabulated(program) for table in term.tables]
    for i, (j, table) in enumerate(zip(index.tolist(), costs, strict=True)):
        place = at.value(j) - start.value(i)
        if place.denominator != 1 or not 0 <= place < table.size:
            return INFINITY
        found += scaled([table[int(place) :][:1]]).value(0)
    return found.numerator if found.denominator == 1 else found
