"""The checker against the general theorem, which is other code, on random programs, answers and prices."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from models import HierarchyQIP, Isotonic, Program, lagrangian_bound
from models import model as models_model
from models.certificate import FLOAT_TOLERANCE
from models.check.checker import check, usable
from models.check.floats import unit_of
from models.model import ByProgram
from models.programs.costs import Absolute, Linear, Square, Table
from models.programs.operators import Each, Sparse, Steps, Sums
from models.programs.terms import Block, Rows
from solvers import fast
from tests.models.test_operators import MAKERS

INF = math.inf
HUGE = (2**29, 2**31, 2**58, 2**60, 2**53 - 1, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 2**80)


def _array(values: Any, shape: tuple[int, ...]) -> Any:
    """Python numbers as int64 if it holds them, otherwise as objects."""
    flat = list(values)
    if all(type(v) is int and -(2**63) <= v < 2**63 for v in flat):
        return np.array(flat, np.int64).reshape(shape)
    return np.array([*flat, None], object)[:-1].reshape(shape)


def _number(rng: Any, kind: str) -> Any:
    number = int(rng.integers(-6, 7))
    if kind == "huge" and rng.random() < 0.4:
        return int(rng.choice([-1, 1])) * HUGE[rng.integers(len(HUGE))] + number
    if kind == "large" and rng.random() < 0.2:
        return number * 2 ** int(rng.integers(25, 45))
    if kind == "float":
        return float(number * rng.choice([1.0, 0.1, 1e-9, 1e9])) if rng.random() < 0.8 else 0.0
    return Fraction(number, int(rng.integers(1, 4))) if kind == "fraction" else number


def _plain(number: Any) -> Any:
    """A number without rounding: an int, a Fraction or an infinity."""
    number = number.item() if isinstance(number, np.generic) else number
    if isinstance(number, float):
        return number if math.isinf(number) else Fraction(number)
    return number


class Case:
    """A random structured program, an answer, prices, and what is true of them by plain loops."""

    def __init__(self, seed: int, kind: str) -> None:
        rng = self.rng = np.random.default_rng([seed, len(kind)])
        self.kind = kind
        blocks, rows, self.values, self.prices, charge = [], [], {}, {}, {}
        real = {"huge": False, "large": False, "float": True}.get(kind, bool(rng.random() < 0.5))
        integer = {}
        for name in "abc"[: rng.integers(1, 4)]:
            operator, _ = MAKERS[list(MAKERS)[rng.integers(len(MAKERS))]](rng)
            size = int(np.prod(operator.columns))
            if not size or not operator.height:
                operator, size = Each((2,)), 2
            integer[name] = not real or bool(rng.random() < 0.3)
            whole = kind if kind in ("huge", "large") else "whole"
            own = [_number(rng, whole if integer[name] else kind) for _ in range(size)]
            v = np.array(own) if kind == "float" and not integer[name] else _array(own, (size,))
            self.values[name] = v.reshape(operator.columns)
            of = {name: operator}
            if len(operator.rows) == 1 and len(self.values) > 1 and rng.random() < 0.5:
                before = next(iter(self.values))
                matrix = rng.integers(-2, 3, (operator.height, self.values[before].size))
                if self.values[before].ndim == 1:
                    of[before] = Sparse(matrix)
            self._rows(rows, of, charge)
        for name, v in self.values.items():
            blocks.append(self._block(name, v, integer[name], charge.get(name, [0] * v.size)))
        self.program = Program("random", blocks, rows)
        assert self.program.structure is not None
        self.blocks, self.rows = self.program.structure

    def _sides(self, held: Any, tight: Any = None, broken: float = 0.02) -> tuple[Any, Any]:
        """Sides around a number; tight is the side that has to be there, broken how often it is not kept."""
        rng, sides = self.rng, []
        for sign in (-1, 1):
            gap = [0, 0, 1, Fraction(1, 2), 3, INF][rng.integers(6)] if tight != sign else 0
            side = sign * INF if gap == INF else held + sign * (-1 if rng.random() < broken else 1) * gap
            sides.append(float(side) if self.kind == "float" else side)
        return (sides[0], sides[1]) if sides[0] <= sides[1] else (held, held)

    def _rows(self, rows: list[Rows], of: Any, charge: Any) -> None:
        rng, name = self.rng, f"rows {len(rows)}"
        first = next(iter(of.values()))
        held = sum(op.apply(self.values[b].astype(object)).ravel() for b, op in of.items()).tolist()
        good, lower, upper, prices = rng.random() < 0.5, [], [], []
        for value in held:
            price = 0 if rng.random() < 0.3 else _number(rng, self.kind)
            sign = (price > 0) * -1 + (price < 0) * 1 if good else None
            low, high = self._sides(value if self.kind == "float" else _plain(value), sign)
            lower, upper, prices = [*lower, low], [*upper, high], [*prices, price]
        rows.append(Rows(name, of, lower, upper))
        if good or rng.random() < 0.8:
            paid = np.array(prices) if self.kind == "float" else _array(prices, (len(prices),))
            self.prices[name] = paid.reshape(first.rows)
            for block, operator in of.items():
                c = operator.transpose(self.prices[name].astype(object)).ravel()
                charge[block] = [a + b for a, b in zip(charge.get(block, [0] * c.size), c, strict=True)]

    def _block(self, name: str, v: Any, whole: bool, charge: Any) -> Block:
        rng, flat, kind = self.rng, v.ravel().tolist(), self.kind
        sides = [self._sides(value, broken=0.005 if kind == "float" else 0.02) for value in flat]
        lower, upper = ([pair[k] for pair in sides] for k in (0, 1))
        if rng.random() < 0.4:
            lower, upper = [-INF] * len(flat), [INF] * len(flat)
        low, high = (np.reshape(np.array([*side, None], object)[:-1], v.shape) for side in (lower, upper))
        which = rng.choice(["square", "absolute", "linear", "none", "table"] if whole and kind != "float"
                           else ["square", "absolute", "linear", "none"])  # fmt: skip
        cost: Any = None
        data_kind = kind if kind != "whole" and not (whole and rng.random() < 0.5) else "whole"
        weight = [abs(_number(rng, "whole" if kind == "huge" else data_kind)) for _ in flat]
        good = rng.random() < 0.6
        if which == "square":
            weight = [w or 1 for w in weight] if good else weight
            center = [x - Fraction(_plain(c)) / (2 * _plain(w)) if good else _number(rng, data_kind)
                      for x, c, w in zip(map(_plain, flat), charge, weight, strict=True)]  # fmt: skip
        elif which == "absolute":
            center = [x - _sign(c) * abs(_number(rng, data_kind)) if good else _number(rng, data_kind)
                      for x, c in zip(flat, charge, strict=True)]  # fmt: skip
            weight = [abs(c) if good else w for c, w in zip(charge, weight, strict=True)]
        elif which == "linear":
            price = [c if good else _number(rng, data_kind) for c in charge]
            cost = Linear(self._as_data(price, v.shape))
        elif which == "table":
            least = [x - int(rng.integers(0, 3)) + (9 if rng.random() < 0.02 else 0) for x in flat]
            if all(abs(x) < 2**62 for x in least):
                tables = [[_number(rng, data_kind) for _ in range(3)] for _ in flat]
                cost = Table(tables, least) if v.ndim == 1 else None
        if which in ("square", "absolute"):
            single = rng.random() < 0.3 and not good
            cost = (Square if which == "square" else Absolute)(
                self._as_data(center, v.shape), weight[0] if single else self._as_data(weight, v.shape)
            )
        return Block(name, v.shape, low, high, whole, cost)

    def _as_data(self, numbers: Any, shape: Any) -> Any:
        if self.kind == "float":
            return np.array([float(number) for number in numbers]).reshape(shape)
        return _array(numbers, shape)

    def objective(self) -> Any:
        return sum(_cost(block, self.values[block.name]) for block in self.blocks)

    def broken(self, slack: Any = 0, of_bounds: Any = 0) -> bool:
        """Whether the answer breaks a row, or a bound, by more than this."""
        v = [_plain(x) for block in self.blocks for x in self.values[block.name].ravel().tolist()]
        matrix = self.program.matrix.toarray().astype(int)
        held = [sum(int(a) * x for a, x in zip(row, v, strict=True)) for row in matrix]
        whole = np.concatenate([np.full(b.size, b.integer) for b in self.blocks])
        limits = [(side, part) for part in (*self.blocks, *self.rows) for side in ("lower", "upper")]
        ends = {"lower": [], "upper": []}
        for side, part in limits:
            shape = part.shape if isinstance(part, Block) else (part.count,)
            ends[side] += [
                _plain(end) for end in np.broadcast_to(getattr(part, side), shape).ravel().tolist()
            ]
        allowed = [of_bounds] * len(v) + [slack] * len(held)
        inside = (low - off <= x <= high + off for low, x, high, off in
                  zip(ends["lower"], [*v, *held], ends["upper"], allowed, strict=True))  # fmt: skip
        return not all(inside) or any(x != x // 1 for x, w in zip(v, whole, strict=True) if w)

    def bound(self) -> Any:
        """What the general theorem proves."""
        parts = [
            usable(part, self.prices[part.name]).ravel().tolist()
            if part.name in self.prices else [0] * part.count for part in self.rows
        ]  # fmt: skip
        paid = [price for part in parts for price in part]
        return lagrangian_bound(self.program, np.array([*paid, None], object)[:-1])

    def certificate(self) -> Any:
        return check((self.blocks, self.rows), self.values, self.prices)


def _sign(number: Any) -> int:
    return (number > 0) - (number < 0)


def _cost(block: Block, v: Any) -> Any:
    cost, flat = block.cost, [_plain(x) for x in v.ravel().tolist()]
    if cost is None:
        return 0
    if isinstance(cost, Table):
        cells = [list(map(_plain, np.asarray(table).tolist())) for table in cost.tables]
        away = [x - int(least) for x, least in zip(flat, cost.least, strict=True)]
        return sum(cell[k] if 0 <= k < len(cell) else INF for cell, k in zip(cells, away, strict=True))
    center, weight = (
        [_plain(x) for x in np.broadcast_to(part, v.shape).ravel().tolist()] for part in cost.data
    )
    if isinstance(cost, Linear):
        return sum(w * x for w, x in zip(weight, flat, strict=True))
    return sum(w * abs(x - y) ** cost.power for w, x, y in zip(weight, flat, center, strict=True))


def _cost_unit(case: Case) -> int:
    """The least d such that the costs of all whole answers are multiples of 1/d; 0 if there is none.

    A polynomial of degree 2 is a sum of whole multiples of its values at 0, 1 and 2.
    """
    if not all(block.integer for block in case.blocks if block.cost is not None):
        return 0
    costs: list[Fraction] = []
    for block in case.blocks:
        if isinstance(block.cost, Table):
            costs += map(Fraction, block.cost.cells.tolist())
        elif block.cost is not None:
            center, weight = (np.broadcast_to(part, block.shape).ravel().tolist() for part in block.cost.data)
            for y, w in zip(map(Fraction, center), map(Fraction, weight), strict=True):
                costs += [w * (z if isinstance(block.cost, Linear) else abs(z - y) ** block.cost.power)
                          for z in (0, 1, 2)]  # fmt: skip
            if isinstance(block.cost, Absolute):  # its bend is anywhere
                costs += [
                    2 * w * y for y, w in zip(map(Fraction, center), map(Fraction, weight), strict=True)
                ]
    return math.lcm(*(cost.denominator for cost in costs))


@pytest.mark.parametrize("kind", ["whole", "large", "huge", "fraction"])
def test_exact_answers_get_the_cost_the_verdict_and_the_bound_of_the_general_theorem(kind: str) -> None:
    proved = 0
    for seed in range(200):
        case = Case(seed, kind)
        proof, where = case.certificate(), f"{kind}, seed {seed}"
        assert proof.objective == case.objective(), where
        if case.broken() or proof.objective == INF:
            assert (proof.optimal, proof.bound) == (False, None), where
            continue
        bound = case.bound()
        rounded = bound
        if abs(bound) < INF and (unit := _cost_unit(case)):
            rounded = Fraction(math.ceil(bound * unit), unit)
        assert bound <= proof.bound <= rounded, where
        assert kind != "whole" or proof.bound == rounded, where
        assert proof.gap == proof.objective - proof.bound, where
        assert proof.optimal == (proof.gap == 0), where
        proved += proof.optimal
    assert proved > 20


def test_no_whole_answer_nearby_costs_less_than_the_bound() -> None:
    for seed in range(300):
        case = Case(seed, "whole")
        proof = case.certificate()
        whole = all(block.integer for block in case.blocks)
        if not whole or case.program.size > 4 or proof.bound is None:
            continue
        values = {name: v.copy() for name, v in case.values.items()}
        for moves in itertools.product((-2, -1, 0, 1, 2), repeat=case.program.size):
            at = 0
            for name, v in values.items():
                case.values[name] = v + np.reshape(moves[at : at + v.size], v.shape)
                at += v.size
            assert case.broken() or case.objective() >= proof.bound, f"seed {seed}, moved by {moves}"


@pytest.mark.parametrize("size", [7, pytest.param(30_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(6))
def test_whole_variables_with_data_in_units_are_judged_as_in_fractions(
    seed: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([seed, size])
    center, weight = rng.integers(-40, 40, size) / 8, rng.integers(0, 5, size) / 2
    center, weight = center if seed % 2 else np.rint(center), weight if seed % 3 else weight[0]
    far = rng.integers(-3, 4, size)
    for cost in (Square(center, weight), Absolute(center, weight), Linear(weight - 1 if seed % 3 else 0.5)):
        block = Block("x", (size,), far - 4, np.where(far > 1, INF, far + 5.0), True, cost)
        rows = Rows("each", {"x": Each((size,))}, far - 1, far + 1)
        x, price = far + rng.integers(-1, 2, size), rng.integers(-20, 21, size) / 4
        values, paid = {"x": x}, {"each": np.where(np.sign(price) == np.sign(far - x), price, 0.0)}
        proofs = [check(([block], [rows]), values, paid)]
        with monkeypatch.context() as patched:
            for name in ("_in_units", "_decided"):
                patched.setattr(f"models.check.checker.{name}", lambda *_: None)
            proofs.append(check(([block], [rows]), values, paid))
        one, other = ((p.optimal, p.objective, p.bound, p.gap) for p in proofs)
        assert one == other
        assert not isinstance(one[1], float)


@pytest.mark.parametrize("seed", range(60))
def test_of_problems_side_by_side_each_bound_is_rounded_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, int(rng.integers(1, 5)))
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    part, n = np.repeat(np.arange(sizes.size), sizes), int(cuts[-1])
    x = rng.integers(-5, 6, n)
    x = np.concatenate([np.sort(x[a:b]) for a, b in itertools.pairwise(cuts)])
    center, weight = x + rng.integers(-1, 2, n) * (rng.random(n) < 0.5), rng.integers(1, 4, n)
    prices = {"up": rng.integers(0, 2, n - sizes.size), "sum": rng.integers(-2, 3, sizes.size)}
    prices = {name: price * Fraction(1, 2) for name, price in prices.items()}
    kind, whole = (Square, Absolute)[seed % 2], seed % 4 < 3
    totals = Sums(cuts).apply(x)

    def program(at: slice, parts: slice, steps: Any) -> Program:
        own, m = Sums(cuts[parts.start : parts.stop + 1] - cuts[parts.start]), at.stop - at.start
        inner = np.delete(part[at], steps.starts) if m > 1 else np.zeros(0, int)
        cost = kind(center[at] if whole else center[at] + Fraction(1, 3), weight[at])
        return Program(
            "parts",
            [Block("x", (m,), -9, 9, True, cost, part[at])],
            [
                Rows("up", {"x": steps}, 0, INF, part=inner),
                Rows(
                    "sum", {"x": own}, totals[parts], totals[parts], part=np.arange(parts.start, parts.stop)
                ),
            ],
        )

    together = program(slice(0, n), slice(0, sizes.size), Steps(n, cuts[:-1]))
    assert together.structure is not None
    proof = check(together.structure, {"x": x}, prices)
    gaps, up, unit = [], 0, 1 if whole else 9 if kind is Square else 3
    for k, (a, b) in enumerate(itertools.pairwise(cuts.tolist())):
        alone = program(slice(a, b), slice(k, k + 1), Steps(b - a))
        paid = [*prices["up"][up : up + b - a - 1], prices["sum"][k]]
        bound, up = lagrangian_bound(alone, np.array([*paid, None], object)[:-1]), up + b - a - 1
        gaps.append(alone.value(x[a:b]) - Fraction(math.ceil(bound * unit), unit))
    assert (proof.gap, proof.optimal) == (sum(gaps), sum(gaps) == 0)
    assert proof.unproved == next((k for k, gap in enumerate(gaps) if gap), None)


def test_of_real_answers_in_floats_the_bound_is_never_above_the_exact_one() -> None:
    proved = 0
    for seed in range(400):
        case, where = Case(seed, "float"), f"seed {seed}"
        proof = case.certificate()
        if proof.bound is None:
            continue
        exactly, bound = case.objective(), case.bound()
        if bound > -INF and (unit := _cost_unit(case)):
            bound = Fraction(math.ceil(bound * unit), unit)
        assert proof.bound == -INF or Fraction(proof.bound) <= bound, where
        largest = max(float(abs(v).max()) for v in case.values.values())
        heaviest = max(operator.wide for part in case.rows for operator in part.operators.values())
        slack, of_bounds = Fraction(1e-13 * heaviest * (largest + 1)), Fraction(1e-6 * largest)
        assert not case.broken(slack, of_bounds), where
        allowed = Fraction(FLOAT_TOLERANCE) * Fraction(max(unit_of(case.blocks, case.values), exactly)) * 2
        assert not proof.optimal or exactly - bound <= allowed, where
        proved += proof.optimal
    assert proved > 20


EXTREMES = [
    0,
    1,
    -1,
    2**53 - 1,
    2**53 + 1,
    2**62,
    -(2**63),
    2**63,
    2**64,
    10**300,
    10**400,
    Fraction(1, 2**70),
]
EXTREME_FLOATS = [0.0, -1.5, 5e-324, 1e-160, 1e160, 1e308, -1.7e308, 2.0**63]


@dataclass(frozen=True, eq=False)
class Extreme(ByProgram):
    """A model that is the given program."""

    given: Program

    def program(self) -> Program:
        return self.given


def _extreme(rng: Any, of: Any, whole: bool) -> tuple[Any, Any, Any]:
    """A model, an answer and a witness with such numbers here and there."""

    def few(n: int = 2) -> Any:
        return [
            of[rng.integers(len(of))] if rng.random() < 0.4 else int(rng.integers(0, 3)) for _ in range(n)
        ]

    kind = (Square, Absolute, Linear)[rng.integers(3)]
    low, high = [(-INF, INF), (0, INF), sorted(few())][rng.integers(3)]
    cost = Linear(few()) if kind is Linear else kind(few(), [abs(w) for w in few()])
    total = Rows("all", {"x": Sums(np.array([0, 2]))}, *few(1) * 2)
    rows = [Rows("up", {"x": Steps(2)}, 0, INF), total]
    model = Extreme(Program("x", [Block("x", (2,), low, high, whole, cost)], rows))
    x = few() if rng.random() < 0.5 else sorted(few())
    return model, x, {"up": few(1), "all": few(1)} if rng.random() < 0.5 else None


@pytest.mark.parametrize("whole", [False, True])
def test_extreme_numbers_in_every_field_are_refused_or_judged_as_the_general_theorem_does(
    whole: bool,
) -> None:
    refused = 0
    for seed in range(300):
        of = (EXTREMES, EXTREME_FLOATS, EXTREMES + EXTREME_FLOATS)[seed % 3]
        try:
            model, x, witness = _extreme(np.random.default_rng(seed), of, whole)
            proof = model.certificate(x, witness)
        except ValueError:
            refused += 1
            continue
        assert proof.bound is not None or not proof.optimal, seed
        if proof.bound is None or proof.bound == -INF:
            continue
        bound = lagrangian_bound(model.program(), model.row_prices(proof.witness))
        assert Fraction(proof.bound) <= (math.ceil(bound) if whole and bound > -INF else bound), seed
    assert refused < 200


def test_a_reader_that_guesses_proves_nothing_false(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, proved = np.random.default_rng(1), 0
    fair = models_model.read_prices

    def guess(structure: Any, values: Any, near: float = 0.0) -> Any:
        prices, kind = fair(structure, values, near), int(rng.integers(6))
        if kind < 2:
            return prices
        change = [
            lambda p: -p,
            lambda p: p[::-1],
            lambda p: p * 0,
            lambda p: p * (math.nan, INF, 2)[rng.integers(3)],
        ]
        return {name: change[kind - 2](price) for name, price in prices.items()}

    monkeypatch.setattr(models_model, "read_prices", guess)
    for k in range(150):
        kind = (Isotonic, HierarchyQIP)[k % 2]
        model = kind.random(rng, 6)
        best = fast.answer(model)[0]
        if best is None:
            continue
        cost = model.objective(best)
        for x in (best, np.asarray(best) + rng.integers(-1, 2, np.shape(best))):
            proof = model.certificate(x)
            slack = 1e-6 * max(1, cost) if isinstance(cost, float) else 0
            assert proof.bound is None or proof.bound <= cost + slack, (k, model)
            assert not proof.optimal or proof.objective <= cost + slack, (k, model)
            proved += proof.optimal
    assert proved > 30
