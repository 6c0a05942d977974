"""A program, an answer and row prices as a VIPR 1.1 certificate, which checkers of other makes read.

VIPR knows linear objectives only, so other costs become lines or steps:

- *Lines.* A convex cost f(v) becomes a variable t that is at least each of a few lines. These lie nowhere
  above f (at whole numbers, if v is whole), and touch it at the answer and where the reduced cost is least.
  The file thus states a relaxation that costs as much as the program at the answer, and what it proves holds
  for the program, too.
- *Steps.* Costs in tables, and costs of whole variables that are not convex, become sums over binary
  variables, one for each value.

The bound is one linear combination of the file's constraints: the rows times their prices, lines and steps,
and bounds of variables for what remains. It is rounded up if all costs are whole.

References
----------
Cheung, Gleixner, Steffy 2017, "Verifying integer programming results"; ``cert_spec_v1_1.md`` of VIPR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from models.arithmetic import door
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Witness
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.lagrangian import lagrangian_bound
from models.witnesses.read import Side, entries, sides, tabulated, terms
from models.witnesses.row_proofs import exact_proofs
from models.witnesses.scaled import Scaled, scaled

SKIPPED = "skipped.txt"

MOST_STEPS = 100_000
"""The number of values up to which a variable's cost is written in steps."""


def vipr_lines(name: str, program: Program, variables: ArrayLike, prices: ArrayLike) -> Iterator[str]:
    """The lines of a certificate: the optimum is between the bound of these prices and the answer's cost.

    Parameters
    ----------
    name : str
        For the first line, a comment.
    program : Program
    variables : array, shape (program.size,)
        The answer, auxiliary variables included. If it breaks a constraint, however little, only the bound is
        certified.
    prices : array, shape (number of rows,)
        See `models.lagrangian_bound`.

    Raises
    ------
    ValueError
        If the prices prove no bound, a cost fits neither lines nor steps, or the program is malformed.

    Examples
    --------
    >>> from models import SimplexQP
    >>> print(*vipr_lines("two counts", SimplexQP([5, 3], total=4).program(), [3, 1], [-4]), sep="\\n")
    % two counts
    VER 1.1
    VAR 4
    x_0 x_1 cost_0 cost_1
    INT 4
    0 1 2 3
    OBJ min
    2 2 1 3 1
    CON 9 4
    x_0_lower G 0 1 0 1
    x_0_upper L 4 1 0 1
    x_1_lower G 0 1 1 1
    x_1_upper L 4 1 1 1
    total_0 E 4 2 0 1 1 1
    cost_0_left G 19 2 2 1 0 5
    cost_0_right G 13 2 2 1 0 3
    cost_1_left G 9 2 3 1 1 5
    cost_1_right G 7 2 3 1 1 3
    RTP range 8 8
    SOL 1
    answer 4 0 3 1 1 2 4 3 4
    DER 1
    bound G 8 OBJ { lin 5 4 -4 5 1/2 6 1/2 7 1/2 8 1/2 } -1
    """
    bound = lagrangian_bound(program, prices)
    if not -INFINITY < bound < INFINITY:
        raise ValueError("its prices prove no bound")
    answer = _exact(scaled([door.numbers("variables", variables, (program.size,))]))
    paid = _exact(scaled([door.numbers("prices", prices, (program.matrix.shape[0],), finite=False)]))
    yield f"% {' '.join(name.split())}"
    yield from _Certificate(program, answer, paid).lines()


class ViprFiles:
    """Writes proofs to a folder, one file a problem; what is left out, and why, to ``skipped.txt``.

    - written, skipped: how many problems were written, and how many were left out.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.written, self.skipped = folder, 0, 0

    def add(self, name: str, model: Any, x: Any, witness: Witness | None = None) -> None:
        """Write a step: one file, or one for each of the problems side by side."""
        for part, found in exact_proofs(name, model, x, witness):
            reason = found if isinstance(found, str) else self._write(part, *found)
            if reason is None:
                continue
            self.skipped += 1
            with (self._folder / SKIPPED).open("a", encoding="utf-8", newline="\n") as out:
                out.write(f"{' '.join(part.split())}: {reason}\n")

    def _write(self, name: str, program: Program, variables: Array, prices: Array) -> str | None:
        """Write a problem; or return the reason why it cannot be written."""
        path = self._folder / f"{self.written + 1:06}.vipr"
        try:
            write_vipr(path, name, program, variables, prices)
        except ValueError as reason:
            return str(reason)
        self.written += 1
        return None


def write_vipr(path: Path, name: str, program: Program, variables: ArrayLike, prices: ArrayLike) -> None:
    """Write the lines of `vipr_lines` to a file; no file if they raise an error."""
    lines = vipr_lines(name, program, variables, prices)
    first = [next(lines), next(lines)]  # whatever cannot be written is known before the second line
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in chain(first, lines))


class _Constraint(NamedTuple):
    """``Σ coefficient·variable`` is at least (G), at most (L) or equal to (E) a side; its multiplier."""

    name: str
    sense: str
    side: Number
    row: Mapping[int, Number]
    multiplier: Number


class _Certificate:
    """The sections of a certificate, built variable by variable."""

    def __init__(self, program: Program, answer: list[Number], prices: list[Number]) -> None:
        self.names = [*map(_word, program.variable_names())]
        self.whole = program.integer.tolist()
        self.answer = list(answer)
        self.objective: dict[int, Number] = {}
        self.bounds: list[_Constraint] = []
        self.rows: list[_Constraint] = []
        charges = self._add_rows(program, prices)
        lower, upper = (_ends(sides(program, "blocks", side)) for side in ("lower", "upper"))
        for j, costs in enumerate(_costs(program)):
            low, high, linear = lower[j], upper[j], costs.linear
            if self.whole[j]:
                low, high = low and math.ceil(low), high and math.floor(high)
            if linear:
                self.objective[j] = linear
            slope = charges[j] - linear
            rest = -slope + self._add_costs(j, costs, slope, low, high)
            paid = (max(rest, 0), min(rest, 0))
            for end, sense, side, part in zip((low, high), "GL", ("lower", "upper"), paid, strict=True):
                if end is not None:
                    self.bounds.append(_Constraint(f"{self.names[j]}_{side}", sense, end, {j: 1}, part))

    def _add_rows(self, program: Program, prices: list[Number]) -> list[Number]:
        """Write the rows; what each variable is charged."""
        vectors: list[dict[int, Number]] = [{} for _ in prices]
        charges: list[Number] = [0] * program.size
        row, variable, entry = entries(program)
        for i, j, a in zip(row.tolist(), variable.tolist(), _exact(entry), strict=True):
            vectors[i][j] = vectors[i].get(j, 0) + a
            charges[j] += a * prices[i]
        lower, upper = (_ends(sides(program, "rows", side)) for side in ("lower", "upper"))
        for name, vector, low, high, price in zip(
            map(_word, program.row_names()), vectors, lower, upper, prices, strict=True
        ):
            if low is not None and low == high:
                self.rows.append(_Constraint(name, "E", low, vector, price))
                continue
            if low is not None:
                self.rows.append(_Constraint(f"{name}_lower", "G", low, vector, max(price, 0)))
            if high is not None:
                self.rows.append(_Constraint(f"{name}_upper", "L", high, vector, min(price, 0)))
        return charges

    def _add_costs(
        self, j: int, costs: _Costs, slope: Number, low: Number | None, high: Number | None
    ) -> Number:
        """Write what a variable costs beside its linear cost; the slope that lines and steps pay for."""
        if not (costs.squares or costs.bends or costs.tables):
            return 0
        if costs.convex:
            return self._add_lines(j, costs, slope, low, high)
        for first, table in costs.tables:
            low = first if low is None else max(low, first)
            high = first + len(table) - 1 if high is None else min(high, first + len(table) - 1)
        if not self.whole[j] or low is None or high is None:
            raise ValueError(f"the cost of {self.names[j]} is not convex, and has no steps")
        if high - low >= MOST_STEPS:
            raise ValueError(f"the cost of {self.names[j]} has more than {MOST_STEPS:,} steps")
        return self._add_steps(j, costs, slope, range(int(low), int(high) + 1))

    def _add_lines(
        self, j: int, costs: _Costs, slope: Number, low: Number | None, high: Number | None
    ) -> Number:
        whole = self.whole[j]
        here = math.floor(self.answer[j]) if whole else self.answer[j]
        t = self._variable(f"cost_{j}", whole and costs.are_whole, costs.at(here))
        self.objective[t] = 1
        least = costs.least(slope, low, high, whole, here)
        found: Number = 0
        for at in dict.fromkeys((least, here)):
            left, right = costs.slopes(at, whole)
            chosen = min(max(slope, left), right) if at == least else left
            share = Fraction(chosen - left) / (right - left) if right > left else 0
            for side, steep, part in (("left", left, 1 - share), ("right", right, share)):
                if side == "right" and left == right:
                    continue
                end = "" if at == least else "_answer"
                line = {t: 1, j: -steep} if steep else {t: 1}
                height, part = costs.at(at) - steep * at, part if at == least else 0
                self.rows.append(
                    _Constraint(f"cost_{j}_{side}{end}", "G", _plain(height), line, _plain(part))
                )
            found = chosen if at == least else found
        return found

    def _add_steps(self, j: int, costs: _Costs, slope: Number, values: range) -> Number:
        prices = {k: costs.at(k) for k in values}
        least = min(prices[k] - slope * k for k in values)
        steps = {k: self._variable(f"step_{j}_{k}", True, int(k == self.answer[j])) for k in values}
        self.objective |= {step: prices[k] for k, step in steps.items() if prices[k]}
        for k, step in steps.items():
            reduced = prices[k] - slope * k - least
            self.bounds.append(_Constraint(f"step_{j}_{k}_lower", "G", 0, {step: 1}, reduced))
        self.rows.append(_Constraint(f"step_{j}_one", "E", 1, dict.fromkeys(steps.values(), 1), least))
        value = {j: 1, **{step: -k for k, step in steps.items() if k}}
        self.rows.append(_Constraint(f"step_{j}_value", "E", 0, value, -slope))
        return slope

    def _variable(self, name: str, whole: bool, value: Number) -> int:
        self.names.append(name)
        self.whole.append(whole)
        self.answer.append(value)
        return len(self.names) - 1

    def lines(self) -> Iterator[str]:
        constraints = [*self.bounds, *self.rows]
        if not constraints:  # VIPR's checker refuses a file without any
            constraints = [_Constraint("none", "G", 0, {}, 0)]
        bound = sum(one.multiplier * one.side for one in constraints)
        whole = all(self.whole[j] and weight == int(weight) for j, weight in self.objective.items())
        yield "VER 1.1"
        yield f"VAR {len(self.names)}"
        yield " ".join(self.names)
        yield f"INT {sum(self.whole)}"
        yield " ".join(str(j) for j, one in enumerate(self.whole) if one)
        yield "OBJ min"
        yield _vector(self.objective)
        yield f"CON {len(constraints)} {len(self.bounds)}"
        yield from (f"{one.name} {one.sense} {one.side} {_vector(one.row)}" for one in constraints)
        least = math.ceil(bound) if whole else _plain(bound)
        feasible = self._feasible(constraints)
        cost = _plain(sum(weight * self.answer[j] for j, weight in self.objective.items()))
        yield f"RTP range {least} {cost if feasible else 'inf'}"
        yield f"SOL {int(feasible)}"
        if feasible:
            yield f"answer {_vector({j: value for j, value in enumerate(self.answer) if value})}"
        yield "DER 1"
        paid = _vector({k: one.multiplier for k, one in enumerate(constraints) if one.multiplier})
        yield f"bound G {least} OBJ {{ {'lin' if least == bound else 'rnd'} {paid} }} -1"

    def _feasible(self, constraints: list[_Constraint]) -> bool:
        if any(one and value != int(value) for one, value in zip(self.whole, self.answer, strict=True)):
            return False
        for _, sense, side, row, _ in constraints:
            held = sum(a * self.answer[j] for j, a in row.items())
            if (held < side and sense != "L") or (held > side and sense != "G"):
                return False
        return True


class _Costs:
    """What a variable costs: ``linear·v``, ``(weight, center)`` of squares and bends, ``(first, costs)``."""

    def __init__(self) -> None:
        self.linear: Number = 0
        self.squares: list[tuple[Number, Number]] = []
        self.bends: list[tuple[Number, Number]] = []
        self.tables: list[tuple[int, list[Number]]] = []

    @property
    def convex(self) -> bool:
        return not self.tables and all(weight >= 0 for weight, _ in self.squares + self.bends)

    @property
    def are_whole(self) -> bool:
        """Whether whole numbers have whole costs."""
        return all(part == int(part) for pair in self.squares + self.bends for part in pair)

    def at(self, v: Number) -> Number:
        """The cost of v, without the linear one."""
        found: Number = sum(table[int(v) - first] for first, table in self.tables)
        for weight, center in self.squares:
            found += weight * (v - center) * (v - center)
        for weight, center in self.bends:
            found += weight * (v - center if v > center else center - v)
        return found

    def slopes(self, v: Number, whole: bool) -> tuple[Number, Number]:
        """The slopes of two lines that touch a convex cost at v, from the left and from the right."""
        if whole:
            return self.at(v) - self.at(v - 1), self.at(v + 1) - self.at(v)
        steep: Number = sum(2 * weight * (v - center) for weight, center in self.squares)
        steep += sum(weight if v > center else -weight for weight, center in self.bends if v != center)
        kink = sum(weight for weight, center in self.bends if v == center)
        return steep - kink, steep + kink

    def least(
        self, slope: Number, low: Number | None, high: Number | None, whole: bool, first: Number
    ) -> Number:
        """Where a convex cost, less ``slope·v``, is least; `first`, if it is least there."""
        curve: Number = sum(2 * weight for weight, _ in self.squares)
        pull: Number = sum(2 * weight * center for weight, center in self.squares)
        tried: list[Number] = [first, *(center for _, center in self.bends)]
        if curve:  # where the derivative is 0, if no bend is between
            level: Number = slope + pull + sum(weight for weight, _ in self.bends)
            tried.append(Fraction(level) / Fraction(curve))
            for weight, _ in sorted(self.bends, key=lambda bend: bend[1]):
                level -= 2 * weight
                tried.append(Fraction(level) / Fraction(curve))
        if whole:
            tried = [rounded for v in tried for rounded in (math.floor(v), math.ceil(v))]
        tried += [end for end in (low, high) if end is not None]
        inside = [low if low is not None and v < low else v for v in tried]
        inside = [high if high is not None and v > high else v for v in inside]
        reduced = {v: self.at(v) - slope * v for v in inside}
        return min(reduced, key=reduced.__getitem__)


def _costs(program: Program) -> list[_Costs]:
    """What each variable costs."""
    found = [_Costs() for _ in range(program.size)]
    for kind in ("linear", "quadratic", "absolute"):
        index, weight, center = terms(program, kind)
        for j, w, c in zip(index.tolist(), _exact(weight), _exact(center), strict=True):
            if kind == "linear":
                found[j].linear += w
            elif w:
                (found[j].squares if kind == "quadratic" else found[j].bends).append((w, c))
    index, _, first = terms(program, "table")
    each = (table for term in tabulated(program) for table in term.tables)
    for j, start, table in zip(index.tolist(), _exact(first), each, strict=True):
        found[j].tables.append((int(start), _exact(scaled([table]))))
    return found


def _ends(side: Side) -> list[Number | None]:
    return [None if open_ else end for end, open_ in zip(_exact(side.at), side.open.tolist(), strict=True)]


def _exact(part: Scaled) -> list[Number]:
    """Whole numbers, and fractions only if some are not whole."""
    if part.unit == 1:
        return [int(number) for number in part.number.tolist()]
    return [_plain(Fraction(int(number), part.unit)) for number in part.number.tolist()]


def _plain(number: Number) -> Number:
    return int(number) if number == int(number) else number


def _word(name: str) -> str:
    """A name that a file gave, as one word that begins no comment."""
    word = "_".join(name.split())
    return f"_{word}" if word.startswith("%") else word


def _vector(row: Mapping[int, Number]) -> str:
    return " ".join([str(len(row)), *(f"{j} {_plain(a)}" for j, a in row.items())])
