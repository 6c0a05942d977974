"""A VIPR 1.1 certificate, of any make, read and checked in whole numbers and fractions.

Derivations ``asm``, ``lin``, ``rnd``, ``uns`` and ``sol`` are checked, as is ``lin weak``, whose multipliers
leave coefficients that bounds of variables pay for. ``lin incomplete`` would need a search, and is refused.

References
----------
Cheung, Gleixner, Steffy 2017, "Verifying integer programming results"; ``cert_spec_v1_1.md`` of VIPR.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from models.arithmetic.exact import Number
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.read import entries, sides, terms

Vector = dict[int, Number]

SENSES = {"G": 1, "E": 0, "L": -1}


class Proved(NamedTuple):
    """What a certificate proves of the optimum of the problem that it states: a range that holds it.

    Both are infinite (``inf``) if it proves that no answer is feasible.
    """

    lower: Number
    upper: Number


class _Constraint(NamedTuple):
    sense: int
    side: Number
    row: Vector
    assumed: frozenset[int] = frozenset()

    def bound_of(self) -> tuple[int, int] | None:
        """The variable that this bounds, from below (1) or above (-1); None if it is not a bound."""
        if len(self.row) != 1 or not self.sense:
            return None
        ((j, a),) = self.row.items()
        return j, self.sense if a > 0 else -self.sense

    def implies(self, other: _Constraint) -> bool:
        """Whether this constraint dominates another one; an absurdity dominates every one."""
        if not self.row and ((self.sense >= 0 and self.side > 0) or (self.sense <= 0 and self.side < 0)):
            return True
        if self.row != other.row:
            return False
        if other.sense == 0:
            return self.sense == 0 and self.side == other.side
        if self.sense not in (0, other.sense):
            return False
        return (self.side - other.side) * other.sense >= 0


def check_vipr(path: str | Path, program: Program | None = None) -> Proved:
    """Check every step of a certificate.

    - path: a certificate of version 1.0 or 1.1.
    - program: a linear program that the certificate has to be about, by the names of its variables: its
      objective is the certificate's, and its rows and bounds imply those of the certificate. The answer of
      the certificate counts if it keeps all of the program.

    Returns: the range that it states, in the sense of its objective, if all of it is right; of a program, the
    range of what is minimized.

    Raises `ValueError` if a step is wrong, the file is not a certificate, or it is about another program. The
    message names the step or the constraint; `OSError` if the file cannot be read.

    Examples
    --------
    >>> from models import SimplexQP
    >>> from models.witnesses.vipr import write_vipr
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.vipr"
    ...     write_vipr(path, "two counts", SimplexQP([5, 3], total=4).program(), [3, 1], [-4])
    ...     check_vipr(path)
    Proved(lower=8, upper=8)
    """
    text = Path(path).read_text(encoding="utf-8")
    words = [word for line in text.splitlines() for word in _uncommented(line)]
    try:
        check = _Check(words[::-1])
        proved = check.proved()
        return proved if program is None else _of_program(check, proved, program)
    except (KeyError, IndexError, ZeroDivisionError) as wrong:
        raise ValueError(f"the certificate ends too early, or has a word that is none: {wrong}") from None


def _uncommented(line: str) -> list[str]:
    words = line.split()
    cut = next((k for k, word in enumerate(words) if word.startswith("%")), None)
    return words[:cut]


class _Check:
    def __init__(self, words: list[str]) -> None:
        self._words = words  # the next one last
        self._expect("VER")
        if self._word() not in ("1.0", "1.1"):
            raise ValueError("not a VIPR certificate of version 1.0 or 1.1")
        self._expect("VAR")
        self.size = self._count()
        self.names = [self._word() for _ in range(self.size)]
        self._expect("INT")
        self.whole = {self._variable() for _ in range(self._count())}
        self._expect("OBJ")
        sense = self._word()
        if sense not in ("min", "max"):
            raise ValueError(f"the objective is {sense!r}, not min or max")
        self.sign = 1 if sense == "min" else -1
        self.objective: Vector = {}
        self.objective = self._vector(self._word())
        self._expect("CON")
        count, _ = self._count(), self._count()
        self.stated = count
        self.answers: list[Vector] = []
        self.known: list[_Constraint] = []
        self.tightest: dict[tuple[int, int], int] = {}
        for _ in range(count):
            self._learn(self._constraint()[1])

    def _learn(self, found: _Constraint) -> None:
        """Add a constraint; if it is a bound that holds without assumptions, compare it with that known."""
        at = found.bound_of()
        if at is not None and not found.assumed:
            j, sense = at
            before = self.known[self.tightest[at]] if at in self.tightest else found
            new, old = (Fraction(one.side) / Fraction(one.row[j]) * sense for one in (found, before))
            if new >= old:
                self.tightest[at] = len(self.known)
        self.known.append(found)

    # --- words

    def _word(self) -> str:
        return self._words.pop()

    def _expect(self, word: str) -> None:
        found = self._word()
        if found != word:
            raise ValueError(f"{found!r} in place of {word!r}")

    def _count(self) -> int:
        word = self._word()
        if not (word.isascii() and word.isdigit()):
            raise ValueError(f"{word!r} in place of a count")
        return int(word)

    def _number(self) -> Number:
        return _number(self._word())

    def _variable(self) -> int:
        found = self._count()
        if found >= self.size:
            raise ValueError(f"there is no variable {found}")
        return found

    def _vector(self, first: str) -> Vector:
        """A vector after its first word: a count, or OBJ."""
        if first == "OBJ":
            return self.objective
        found: Vector = {}
        for _ in range(int(first)):
            j = self._variable()
            if j in found:
                raise ValueError(f"variable {j} is twice in a vector")
            found[j] = self._number()
        return {j: a for j, a in found.items() if a}

    def _constraint(self) -> tuple[str, _Constraint]:
        name, sense = self._word(), SENSES[self._word()]
        side = self._number()
        return name, _Constraint(sense, side, self._vector(self._word()))

    # --- sections

    def proved(self) -> Proved:
        """Read the rest: the relation to prove, answers, derivations."""
        self._expect("RTP")
        infeasible = self._word() == "infeas"
        lower: Number = -INFINITY if infeasible else self._end("-inf")
        upper: Number = INFINITY if infeasible else self._end("inf")
        best = self._answers()
        if not infeasible:
            stated = upper if self.sign > 0 else -lower
            if stated < INFINITY and (best is None or best > stated):
                raise ValueError("no answer is as good as the certificate states")
        # Cuts by known answers (`sol`) exclude these answers, so nothing that follows may.
        least = INFINITY if infeasible else lower if self.sign > 0 else -upper
        if best is not None and best < least:
            raise ValueError("an answer is better than the certificate states")
        self._expect("DER")
        for _ in range(self._count()):
            self._derive(best)
        free = [one for one in self.known if not one.assumed]
        if infeasible:
            if not any(one.implies(_Constraint(0, 0, {-1: 1})) for one in free):
                raise ValueError("that no answer is feasible is not derived")
            return Proved(INFINITY, INFINITY)
        side = lower if self.sign > 0 else upper
        aim = _Constraint(self.sign, side, self.objective)
        if -INFINITY < side < INFINITY and not any(one.implies(aim) for one in free):
            raise ValueError("the bound is not derived")
        return Proved(lower, upper)

    def _end(self, open_: str) -> Number:
        """One end of the range: a number, or that there is no bound."""
        word = self._word()
        return float(open_) if word == open_ else _number(word)

    def _answers(self) -> Number | None:
        """The least cost of the answers, negated for a maximum; each is checked."""
        self._expect("SOL")
        costs = []
        for _ in range(self._count()):
            name = self._word()
            answer = self._vector(self._word())
            if any(answer.get(j, 0) != int(answer.get(j, 0)) for j in self.whole):
                raise ValueError(f"the answer {name} is not whole")
            for k, (sense, side, row, _) in enumerate(self.known):
                away = _product(row, answer) - side
                if away * sense < 0 or (sense == 0 and away):
                    raise ValueError(f"the answer {name} breaks constraint {k}")
            costs.append(self.sign * _product(self.objective, answer))
            self.answers.append(answer)
        return min(costs, default=None)

    def _derive(self, best: Number | None) -> None:
        name, aim = self._constraint()
        self._expect("{")
        kind = self._word()
        if kind == "asm":
            found = aim._replace(assumed=frozenset([len(self.known)]))
            self._expect("}")
        elif kind in ("lin", "rnd"):
            found = self._combined(name, aim, kind)
        elif kind == "uns":
            found = self._unsplit(name, aim)
            self._expect("}")
        elif kind == "sol":
            whole = all(j in self.whole and a == int(a) for j, a in self.objective.items())
            cut = (
                None if best is None else _Constraint(-self.sign, self.sign * (best - whole), self.objective)
            )
            if cut is None or not cut.implies(aim):
                raise ValueError(f"{name}: no answer is known that allows this cut")
            found = aim
            self._expect("}")
        else:
            raise ValueError(f"{name}: unknown kind of derivation {kind!r}")
        int(self._word())  # where it is needed last
        if self._words[-1:] == ["global"]:  # SCIP's mark of a bound
            self._words.pop()
        self._learn(found)

    def _combined(self, name: str, aim: _Constraint, kind: str) -> _Constraint:
        """``Σ multiplier · constraint``, rounded if `kind` says so; it must imply the aim."""
        first, held = self._word(), None
        if first == "weak":
            held, first = self._weak_bounds(name), self._word()
        if first == "incomplete":
            raise ValueError(f"{name}: an incomplete derivation; complete the certificate with viprcomp")
        parts = [(self._known(), self._number()) for _ in range(int(first))]
        self._expect("}")
        found = _sum(name, [(self.known[k], part) for k, part in parts])
        if held is not None:
            found = self._completed(name, found, aim, held)
        if kind == "rnd":
            if not all(j in self.whole and a == int(a) for j, a in found.row.items()):
                raise ValueError(f"{name}: only whole coefficients of whole variables can be rounded")
            if found.sense:
                found = found._replace(side=found.sense * math.ceil(found.sense * found.side))
        if not found.implies(aim):
            raise ValueError(f"{name}: it does not follow")
        return aim._replace(assumed=found.assumed)

    def _known(self) -> int:
        found = self._count()
        if found >= len(self.known):
            raise ValueError(f"there is no constraint {found} yet")
        return found

    def _weak_bounds(self, name: str) -> dict[tuple[int, int], int]:
        """Which constraint is the local bound of a variable, by variable and sense."""
        found = {}
        self._expect("{")
        for _ in range(self._count()):
            sense = {"L": 1, "U": -1}[self._word()]
            j, k, _ = self._variable(), self._known(), self._number()
            if self.known[k].bound_of() != (j, sense):
                raise ValueError(f"{name}: constraint {k} is not such a bound of variable {j}")
            found[j, sense] = k
        self._expect("}")
        return found

    def _completed(
        self, name: str, found: _Constraint, aim: _Constraint, held: dict[tuple[int, int], int]
    ) -> _Constraint:
        """The combination, with bounds of variables added such that it has the coefficients of the aim."""
        parts: list[tuple[_Constraint, Number]] = [(found, 1)]
        for j in found.row.keys() | aim.row.keys():
            rest = aim.row.get(j, 0) - found.row.get(j, 0)
            if rest:
                at = (j, aim.sense if rest > 0 else -aim.sense)
                k = held.get(at, self.tightest.get(at))
                if k is None:
                    raise ValueError(f"{name}: variable {j} has no bound that completes it")
                parts.append((self.known[k], rest / Fraction(self.known[k].row[j])))
        return _sum(name, parts)

    def _unsplit(self, name: str, aim: _Constraint) -> _Constraint:
        """What follows from both sides of a disjunction over whole numbers."""
        one, low, other, high = (self._known() for _ in range(4))
        a, b = self.known[low], self.known[high]
        if a.sense > b.sense:
            a, b = b, a
        whole = all(j in self.whole and part == int(part) for j, part in a.row.items())
        if (a.sense, b.sense) != (-1, 1) or a.row != b.row or not whole or a.side != int(a.side):
            raise ValueError(f"{name}: no disjunction over whole numbers")
        if a.side + 1 != b.side:
            raise ValueError(f"{name}: the disjunction has a gap")
        if not (self.known[one].implies(aim) and self.known[other].implies(aim)):
            raise ValueError(f"{name}: it does not follow from both sides")
        assumed = (self.known[one].assumed - {low}) | (self.known[other].assumed - {high})
        return aim._replace(assumed=assumed)


def _of_program(check: _Check, proved: Proved, program: Program) -> Proved:
    """The range that a certificate proves of the optimum of a program, which is minimized.

    Its upper end is infinite if no answer of the certificate keeps the program.
    """
    other = "the certificate is about another program"
    if any(program.has(kind) for kind in ("quadratic", "absolute", "table")):
        raise ValueError("the program has other costs than linear ones, which no certificate states")
    place = {"_".join(name.split()): j for j, name in enumerate(program.variable_names())}
    foreign = next((name for name in check.names if name not in place), None)
    if foreign is not None:
        raise ValueError(f"{other}: it has the variable {foreign!r}")
    if len(place) < program.size or len({*check.names}) < check.size:
        raise ValueError("names of two variables are the same")
    at = [place[name] for name in check.names]
    alone = next((check.names[j] for j in sorted(check.whole) if not program.integer[at[j]]), None)
    if alone is not None:
        raise ValueError(f"{other}: the variable {alone!r} is whole in it")
    index, price, _ = terms(program, "linear")
    cost: Vector = {}
    for k, j in enumerate(index.tolist()):
        cost[j] = cost.get(j, 0) + price.value(k)
    if {j: a for j, a in cost.items() if a} != {at[j]: check.sign * a for j, a in check.objective.items()}:
        raise ValueError(f"{other}: OBJ is another objective")
    known = _constraints_of(program)
    for k, (sense, side, row, _) in enumerate(check.known[: check.stated]):
        key, low, high = _directed(
            {at[j]: a for j, a in row.items()},
            side if sense >= 0 else -INFINITY,
            side if sense <= 0 else INFINITY,
        )
        least, most = known.get(key, (-INFINITY, INFINITY))
        if low > least or high < most:
            raise ValueError(f"{other}: constraint {k} of CON does not follow from its rows and bounds")
    if check.sign < 0 and proved.lower < INFINITY:
        proved = Proved(-proved.upper, -proved.lower)
    if not any(_keeps({at[j]: a for j, a in answer.items()}, known, program) for answer in check.answers):
        return proved._replace(upper=INFINITY)
    return proved


Key = tuple[tuple[int, Number], ...]


def _directed(row: Vector, low: Number, high: Number) -> tuple[Key, Number, Number]:
    """``low ≤ row ≤ high`` with 1 as the first coefficient, as a key and its two sides."""
    places = sorted(row)
    scale = Fraction(row[places[0]]) if places else Fraction(1)
    low, high = (
        side if side in (INFINITY, -INFINITY) else Fraction(side) / abs(scale) for side in (low, high)
    )
    if scale < 0:
        low, high = -high, -low
    return tuple((j, row[j] / scale) for j in places), low, high


def _constraints_of(program: Program) -> dict[Key, tuple[Number, Number]]:
    """The tightest sides of the rows and variables of a program, by the direction of the row."""
    row, variable, entry = entries(program)
    vectors: list[Vector] = [{} for _ in range(program.matrix.shape[0])]
    for k, (i, j) in enumerate(zip(row.tolist(), variable.tolist(), strict=True)):
        if entry.number[k]:
            vectors[i][j] = entry.value(k)
    known: dict[Key, tuple[Number, Number]] = {(): (0, 0)}
    alone: list[Vector] = [{j: 1} for j in range(program.size)]
    for of, listed in (("rows", vectors), ("blocks", alone)):
        lower, upper = sides(program, of, "lower"), sides(program, of, "upper")
        for i, vector in enumerate(listed):
            low: Number = -INFINITY if lower.open[i] else lower.at.value(i)
            high: Number = INFINITY if upper.open[i] else upper.at.value(i)
            if of == "blocks" and program.integer[i]:
                low = low if lower.open[i] else math.ceil(low)
                high = high if upper.open[i] else math.floor(high)
            key, low, high = _directed(vector, low, high)
            before = known.get(key, (-INFINITY, INFINITY))
            known[key] = max(before[0], low), min(before[1], high)
    return known


def _keeps(answer: Vector, known: dict[Key, tuple[Number, Number]], program: Program) -> bool:
    """Whether an answer keeps all rows and bounds, and is whole where it has to be."""
    if any(program.integer[j] and a != int(a) for j, a in answer.items()):
        return False
    return all(low <= _product(dict(key), answer) <= high for key, (low, high) in known.items())


def _sum(name: str, parts: list[tuple[_Constraint, Number]]) -> _Constraint:
    """``Σ multiplier · constraint``; all must point in one direction."""
    row: Vector = {}
    side: Number = 0
    senses, assumed = {0}, frozenset[int]()
    for one, part in parts:
        if not part:
            continue
        senses.add(one.sense if part > 0 else -one.sense)
        assumed |= one.assumed
        side += part * one.side
        for j, a in one.row.items():
            row[j] = row.get(j, 0) + part * a
    if {1, -1} <= senses:
        raise ValueError(f"{name}: the constraints point in both directions")
    return _Constraint(sum(senses), side, {j: a for j, a in row.items() if a}, assumed)


def _product(row: Vector, answer: Vector) -> Number:
    return sum((a * answer.get(j, 0) for j, a in row.items()), 0)


def _number(word: str) -> Number:
    if "_" in word:  # as Python writes 1_000
        raise ValueError(f"{word!r} in place of a number")
    found = Fraction(word)
    return found.numerator if found.denominator == 1 else found
