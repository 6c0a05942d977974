"""The certificate of any answer to any program, by row prices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.exact import Number
from models.certificate import CONTRADICTION, FLOAT_TOLERANCE, PROVED, Certificate, infeasible
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.lagrangian import lagrangian_bound
from models.witnesses.read import Side, entries, sides, tables, tabulated, terms
from models.witnesses.scaled import Scaled, divided, finite, gathered, minus, numbers, scaled, times


def lagrangian_certificate(program: Program, variables: ArrayLike, prices: ArrayLike) -> Certificate:
    """Prove an answer to a program by prices of its rows, or bound how far it is from the optimum.

    Nothing is searched or rounded: feasibility, objective and bound are computed in whole numbers
    and fractions. `solvers.prove` finds prices; a solver's dual values can be used as well.

    Parameters
    ----------
    program : Program
    variables : array, shape (program.size,)
        All variables, in order, the auxiliary ones included: int, Fraction or float. In floats, real
        variables may break each bound, and all rows together, by `FEASIBILITY_TOLERANCE` of the largest (of
        the data's largest number, but at most 1, if variables are less); whole variables, and rows of these
        alone, may not. A row counts with what it lacks over its largest coefficient.
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
    given = numbers("variables", variables, (program.size,))
    wrong = np.flatnonzero(~finite(given))
    if wrong.size:
        raise ValueError(f"variable {wrong[0]} is {given[wrong[0]]}: it must be finite")
    in_floats = bool(np.issubdtype(given.dtype, np.floating)) and not program.integer.all()
    at, slack, tolerance = scaled([given]), Fraction(0), Fraction(0)
    largest = Fraction(exact.reach(at.number), at.unit)
    if in_floats:
        if largest < 1:
            largest = max(largest, min(Fraction(1), _largest(program)))
        slack = Fraction(FEASIBILITY_TOLERANCE) * largest
    bound, objective = lagrangian_bound(program, prices), _cost(program, at)
    broken = list(_broken(program, at, slack))
    if objective == INFINITY:
        broken.append("tables: a variable has a value that its table has no cost for")
    if broken:
        return infeasible(objective, broken)
    if in_floats:
        tolerance = Fraction(FLOAT_TOLERANCE) * max(_unit(program, largest), abs(Fraction(objective)))
    gap, witness = objective - bound, {"prices": np.asarray(prices)}
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


def _broken(program: Program, at: Scaled, slack: Fraction) -> Iterator[str]:
    """Violations of integrality, bounds and rows."""
    whole = times(divided(at.number, at.unit), at.unit) == at.number
    for j in np.flatnonzero(program.integer & ~whole).tolist():
        yield f"integer: {_variable(program, j)} = {at.value(j)}"
    slacks = Scaled(times(~program.integer, slack.numerator), slack.denominator)
    for j, limit, _ in _outside(at, _both(program, "blocks"), slacks):
        yield f"bounds: {_variable(program, j)} = {at.value(j)}, not {limit}"
    row, variable, entry = entries(program)
    count = program.matrix.shape[0]
    held = Scaled(gathered(row, times(entry.number, at.number[variable]), count), entry.unit * at.unit)
    steepest, real = np.zeros(count, entry.number.dtype), np.zeros(count, bool)
    np.maximum.at(steepest, row, np.abs(entry.number))
    real[row[~program.integer[variable]]] = True  # rows without real variables must hold exactly
    together: Number = Fraction(0)
    named = False
    for i, limit, short in _outside(held, _both(program, "rows"), Scaled(np.zeros(count, np.int64), 1)):
        apart = short * entry.unit / int(steepest[i]) if steepest[i] else math.inf
        together += apart
        if apart > slack or not real[i]:
            named = True
            yield f"{_row(program, i)}: {held.value(i)}, not {limit}"
    if together > slack and not named:
        yield f"rows: all together are broken by {_shown(together)}, more than {_shown(slack)}"


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
    costs = [table for term in tabulated(program) for table in tables(term) if table.size]
    return min(Fraction(1), max([unit, *(Fraction(table.max() - table.min()) for table in costs)]))


def _both(program: Program, of: str) -> tuple[Side, Side]:
    return sides(program, of, "lower"), sides(program, of, "upper")


def _outside(at: Scaled, limits: tuple[Side, Side], slack: Scaled) -> Iterator[tuple[int, str, Fraction]]:
    """Which numbers are below the lower side or above the upper one by more than the slack; how far."""
    unit = math.lcm(at.unit, slack.unit, *(side.at.unit for side in limits))
    for (side, open_), sign, name in zip(limits, (1, -1), ("at least", "at most"), strict=True):
        short = times(minus(side.over(unit), at.over(unit)), sign)
        for i in np.flatnonzero(~open_ & (short > slack.over(unit))).tolist():
            yield i, f"{name} {side.value(i)}", Fraction(int(short[i]), unit)


def _variable(program: Program, j: int) -> str:
    """``x[2, 0]``."""
    for block in program.blocks:
        if j < block.size:
            return f"{block.name}[{', '.join(map(str, np.unravel_index(j, block.shape)))}]"
        j -= block.size
    raise IndexError(j)


def _row(program: Program, i: int) -> str:
    for rows in program.rows:
        if i < rows.matrix.shape[0]:
            return f"{rows.name}, row {i}"
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
    costs = [table for term in tabulated(program) for table in tables(term)]
    for i, (j, table) in enumerate(zip(index.tolist(), costs, strict=True)):
        place = at.value(j) - start.value(i)
        if place.denominator != 1 or not 0 <= place < table.size:
            return INFINITY
        found += scaled([table[int(place) :][:1]]).value(0)
    return found.numerator if found.denominator == 1 else found
