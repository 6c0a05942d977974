"""Any prices bound a program's optimum; the bound is exactly the minimum of the Lagrangian."""

import re
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

from models import Program, SimplexQP, WorkloadLeastSquares, lagrangian_bound, lagrangian_certificate
from models.programs.terms import Block, Rows, Term
from models.witnesses.scaled import divided, gathered, minus, plus, raised, running, scaled, times

INF = float("inf")


def number(rng, kind):
    """A random number: an integer, a fraction, a float, or huge."""
    whole = int(rng.integers(-4, 5))
    if kind == "fraction":
        return Fraction(whole, int(rng.integers(1, 5)))
    if kind == "float":
        return whole * 0.3
    return whole * 10**17 + whole if kind == "huge" else whole


def column(values):
    held = np.empty(len(values), object)
    held[:] = values
    return held if any(isinstance(v, Fraction) or abs(v) > 2**62 for v in values) else np.array(values)


def random_program(rng, tabled=True):
    """Up to three variables with terms of every kind, including repeated ones, and up to two rows."""
    n, kind = int(rng.integers(1, 4)), str(rng.choice(["whole", "whole", "fraction", "float", "huge"]))
    blocks = []
    for j in range(n):
        low = int(rng.integers(-3, 2))
        high = low + int(rng.integers(0, 5))
        quarter = 0.25 * (rng.random() < 0.3)
        blocks.append(Block(f"v{j}", (1,), low - quarter, high + quarter, bool(rng.random() < 0.6)))
    terms = []
    for _ in range(int(rng.integers(1, 5))):
        index = rng.integers(0, n, size=int(rng.integers(1, 4)))
        name = str(rng.choice(["linear", "quadratic", "absolute"]))
        weight = column([number(rng, kind) for _ in index])
        terms.append(Term(name, index, weight, column([number(rng, "fraction") for _ in index])))
    if tabled and rng.random() < 0.4:
        chosen = [j for j in range(n) if blocks[j].integer for _ in range(int(rng.integers(0, 3)))]
        low = [int(np.ceil(blocks[j].lower)) - int(rng.integers(0, 2)) for j in chosen]
        tables = tuple(column([number(rng, kind) for _ in range(9)]) for _ in chosen)
        terms.append(Term("table", np.array(chosen, int), 1, np.array(low, int), tables))
    rows = []
    for i in range(int(rng.integers(0, 3))):
        matrix = sp.csr_matrix(np.round(rng.integers(-2, 3, size=(1, n)) * rng.choice([1.0, 0.5]), 1))
        low = float(rng.integers(-4, 2))
        side = [(low, low + 2.5), (low, INF), (-INF, low), (low, low)][rng.integers(0, 4)]
        rows.append(Rows(f"r{i}", matrix, np.array([side[0]]), np.array([side[1]])))
    return Program("random", blocks, rows, terms)


def cost_of(terms, j, value):
    """The cost of one variable at a value, in fractions."""
    found = Fraction(0)
    for term in terms:
        weight, center = term.data
        for k in np.flatnonzero(term.index == j):
            w, away = Fraction(weight[k].item() if isinstance(weight[k], np.generic) else weight[k]), None
            c = Fraction(center[k].item() if isinstance(center[k], np.generic) else center[k])
            away = value - c
            if term.kind == "table":
                cell = term.tables[k][int(away)] if 0 <= away < len(term.tables[k]) else None
                if cell is None:
                    return None
                found += Fraction(cell.item() if isinstance(cell, np.generic) else cell)
            else:
                found += w * {"linear": value, "quadratic": away**2, "absolute": abs(away)}[term.kind]
    return found


def places(program, j, slope):
    """Where a variable's cost minus slope · v may be least: at whole values, or at ends, kinks and minima."""
    low, high = (Fraction(side[j]) for side in program.bounds)
    if program.integer[j]:
        return [Fraction(k) for k in range(-(-low.numerator // low.denominator), int(high // 1) + 1)]
    terms = [(t, k) for t in program.objective for k in np.flatnonzero(t.index == j)]

    def at(t, k, part):
        value = t.data[part][k]
        return Fraction(value.item() if isinstance(value, np.generic) else value)

    bends = sorted({low, high, *(at(t, k, 1) for t, k in terms if t.kind == "absolute")})
    bends = [b for b in bends if low <= b <= high]
    found = list(bends)
    for a, b in pairwise(bends):
        square, line, middle = Fraction(0), -slope, (a + b) / 2
        for t, k in terms:
            w, c = at(t, k, 0), at(t, k, 1)
            square += w if t.kind == "quadratic" else 0
            line += {"linear": w, "quadratic": -2 * w * c, "absolute": w if middle > c else -w}[t.kind]
        if square > 0:
            found.append(min(max(-line / (2 * square), a), b))
    return found


def by_hand(program, prices):
    """The bound as the theorem writes it."""
    lower, upper = program.row_bounds
    matrix, found = program.matrix.toarray(), Fraction(0)
    for price, low, high in zip(prices, lower, upper, strict=True):
        side = low if price > 0 else high
        if price != 0 and not np.isfinite(side):
            return -INF
        found += price * Fraction(side) if price else 0
    for j in range(program.size):
        slope = sum((Fraction(matrix[i, j]) * Fraction(p) for i, p in enumerate(prices)), Fraction(0))
        costs = [(cost_of(program.objective, j, v), v) for v in places(program, j, slope)]
        costs = [cost - slope * v for cost, v in costs if cost is not None]
        if not costs:
            return INF
        found += min(costs)
    return found


@pytest.mark.parametrize("batch", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_the_bound_is_the_least_value_of_the_lagrangian(batch):
    rng = np.random.default_rng(batch)
    for _ in range(60):
        program = random_program(rng)
        prices = [Fraction(int(rng.integers(-4, 5)), int(rng.choice([1, 1, 3]))) for _ in program.rows]
        assert lagrangian_bound(program, prices) == by_hand(program, prices)


@pytest.mark.parametrize("batch", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_no_answer_costs_less_than_the_bound(batch):
    rng = np.random.default_rng(batch)
    for _ in range(20):
        program = random_program(rng)
        where = [places(program, j, Fraction(0)) for j in range(program.size)]
        lower, upper = program.row_bounds
        feasible = [
            sum(costs)
            for v in product(*where)
            if np.all((at := program.matrix @ np.array(v, float)) >= lower) and np.all(at <= upper)
            if None not in (costs := [cost_of(program.objective, j, x) for j, x in enumerate(v)])
        ]
        for scale in (0, 1, 100):
            prices = scale * rng.normal(size=len(program.rows))
            assert lagrangian_bound(program, prices) <= min(feasible, default=INF)


def one(term=(), lower=-INF, upper=INF, integer=False, rows=()):
    return Program("one", [Block("v", (1,), lower, upper, integer)], list(rows), [*term])


def row(lower, upper):
    return Rows("row", sp.csr_matrix([[1.0]]), np.array([lower]), np.array([upper]))


def test_price_for_a_missing_bound_proves_nothing():
    square = Term("quadratic", np.array([0]), 1, 5)
    at_most = one([square], rows=[row(-INF, 3)])
    assert lagrangian_bound(at_most, [-4]) == 4
    assert lagrangian_bound(at_most, [4]) == -INF
    assert lagrangian_bound(one([square], rows=[row(3, INF)]), [-4]) == -INF
    for price in (INF, -INF, float("nan")):
        assert lagrangian_bound(at_most, [price]) == -INF


def test_unbounded_costs_prove_nothing():
    at = np.array([0])
    for whole in (False, True):
        assert lagrangian_bound(one([Term("linear", at)], integer=whole), []) == -INF
        assert lagrangian_bound(one([Term("linear", at)], lower=2, integer=whole), []) == 2
        assert lagrangian_bound(one([Term("linear", at, -1)], upper=2, integer=whole), []) == -2
        assert lagrangian_bound(one([Term("quadratic", at, -1)], lower=2, integer=whole), []) == -INF
        assert lagrangian_bound(one([Term("absolute", at, 1, 3)], integer=whole), []) == 0
        flat = [Term("absolute", at, 1, 3), Term("linear", at)]
        assert lagrangian_bound(one(flat, integer=whole), []) == 3
        assert lagrangian_bound(one([*flat, Term("linear", at)], integer=whole), []) == -INF
        assert lagrangian_bound(one(integer=whole), []) == 0


def test_an_empty_domain_is_reported():
    assert lagrangian_bound(one(lower=0.2, upper=0.8, integer=True), []) == INF
    assert lagrangian_bound(one(lower=1, upper=0), []) == INF
    table = Term("table", np.array([0]), 1, 3, (np.array([7, 8]),))
    assert lagrangian_bound(one([table], lower=0, upper=2, integer=True), []) == INF
    assert lagrangian_bound(one([table], integer=True), []) == 7


def test_floats_are_the_fractions_that_they_are():
    tenth = one([Term("quadratic", np.array([0]), 1, 0.1)], rows=[row(0.3, 0.3)])
    gap = Fraction(0.3) - Fraction(0.1)
    assert lagrangian_bound(tenth, [2 * gap]) == gap**2
    assert lagrangian_bound(tenth, [0.4]) <= gap**2
    wide = one([Term("linear", np.array([0]), 1e-300), Term("linear", np.array([0]), 1e300)], 1, 1)
    assert lagrangian_bound(wide, []) == Fraction(1e300) + Fraction(1e-300)


def test_whole_numbers_beyond_64_bits_are_exact():
    n = 10**9 + 7
    program = one([Term("quadratic", np.array([0]), n, -(10**15))], 0, 10**15, True, [row(10**15, INF)])
    assert lagrangian_bound(program, [0]) == n * 10**30
    assert lagrangian_bound(program, [4 * n * 10**15]) == n * 4 * 10**30
    sides = Rows("row", sp.csr_matrix([[1.0]]), np.array([2**62 - 1]), np.array([2**62 - 1]))
    assert lagrangian_bound(one([], 0, 2**62 - 1, True, [sides]), [3]) == 0
    assert lagrangian_bound(one([], 0, 2**62 - 2, True, [sides]), [3]) == 3


def test_many_denominators_are_rounded_down_a_little():
    rng = np.random.default_rng(3)
    weight, center, price = rng.random(300) + 0.5, rng.random(300), Fraction(1, 3)
    block, total = Block("v", (300,), -9, 9), Rows("sum", sp.csr_matrix(np.ones((1, 300))), [4], [4])
    program = Program("many", [block], [total], [Term("quadratic", np.arange(300), weight, center)])
    exactly = price * 4 + sum(
        -price * Fraction(c) - price**2 / (4 * Fraction(w)) for w, c in zip(weight, center, strict=True)
    )
    found = lagrangian_bound(program, [price])
    assert 0 < exactly - found < Fraction(1, 2**60)


@pytest.mark.parametrize("wrong", [[1, 2], [], [[1]], ["a"], [None], "one", [1j], None, [[1], [2, 3]], {}])
def test_invalid_prices_are_reported(wrong):
    with pytest.raises(ValueError, match="prices"):
        lagrangian_bound(one(rows=[row(0, 1)]), wrong)


def test_malformed_programs_are_reported():
    at = np.array([0])
    with pytest.raises(ValueError, match=r"the lower side of .* must be numbers"):
        lagrangian_bound(one(lower=float("nan")), [])
    with pytest.raises(ValueError, match="upper side of the program's rows"):
        lagrangian_bound(one(rows=[row(0, -INF)]), [0])
    with pytest.raises(ValueError, match="whole variables"):
        lagrangian_bound(one([Term("table", at, 1, 0, (np.array([1]),))]), [])
    with pytest.raises(ValueError, match="weight of a linear term is inf: it must be finite"):
        lagrangian_bound(one([Term("linear", at, INF)], 0, 1), [])


def test_an_answer_is_judged_by_its_rows_its_cost_and_the_bound():
    program = SimplexQP([5, 3], total=4).program()
    proof = lagrangian_certificate(program, [3, 1], [-4])
    assert (proof.optimal, proof.objective, proof.bound, proof.gap) == (True, 8, 8, 0)
    worse = lagrangian_certificate(program, [4, 0], [-4])
    assert (worse.optimal, worse.objective, worse.bound, worse.gap) == (False, 10, 8, 2)
    assert not lagrangian_certificate(program, [3, 1], [-6]).optimal
    assert lagrangian_certificate(program, [3, 1], [INF]).bound == -INF
    for wrong, why in [
        ([3, 0], "total, row 0: 3, not at least 4"),
        ([3, 2], "total, row 0: 5, not at most 4"),
        ([5, -1], r"bounds: x\[1\] = -1, not at least 0"),
        ([3.5, 0.5], r"integer: x\[0\] = 7/2"),
    ]:
        proof = lagrangian_certificate(program, wrong, [-4])
        assert (proof.optimal, proof.bound) == (False, None)
        assert re.search(why, proof.reason)


@pytest.mark.parametrize("wrong", [[1], [[3, 1]], ["a", "b"], [np.nan, 1], [np.inf, 1], None])
def test_invalid_answers_are_reported(wrong):
    with pytest.raises(ValueError, match="variable"):
        lagrangian_certificate(SimplexQP([5, 3], total=4).program(), wrong, [-4])


def test_answers_in_floats_get_the_tolerance_of_floats_only_over_the_reals():
    real = SimplexQP([0.1, 0.1, 0.1], total=1, integer=False).program()
    third, price = [1 / 3] * 3, [2 * (1 / 3 - 0.1)]
    proof = lagrangian_certificate(real, third, price)
    assert proof.optimal
    assert proof.gap < 1e-15
    assert not lagrangian_certificate(real, np.array([Fraction(v) for v in third]), price).optimal
    exactly = np.array([Fraction(1, 3)] * 3)
    assert lagrangian_certificate(real, exactly, [2 * (Fraction(1, 3) - Fraction(0.1))]).gap == 0
    assert not lagrangian_certificate(real, [0.334, 0.333, 0.333], price).optimal
    assert lagrangian_certificate(real, [0.334, 0.334, 0.334], price).bound is None
    whole = SimplexQP([5, 3], total=4).program()
    assert lagrangian_certificate(whole, [3.0, 1.0], [-4]).objective == 8
    assert lagrangian_certificate(whole, [3.0, 1 + 1e-12], [-4]).bound is None


def test_the_cost_is_exact_and_a_value_without_one_is_no_answer():
    rng = np.random.default_rng(1)
    for _ in range(60):
        program = random_program(rng)
        v = [places(program, j, Fraction(0))[0] for j in range(program.size)]
        costs = [cost_of(program.objective, j, x) for j, x in enumerate(v)]
        found = lagrangian_certificate(program, np.array([*v, None])[:-1], [0] * len(program.rows))
        if None in costs:
            assert (found.objective, found.bound) == (INF, None)
        else:
            assert found.objective == sum(costs)
            at = program.matrix @ np.array(v, float)
            lower, upper = program.row_bounds
            assert (found.bound is None) == bool(np.any((at < lower) | (at > upper)))


@pytest.mark.parametrize("large", [2**31, 2**62, 2**63, 2**64 - 1, 2**64, -(2**63), 10**40])
def test_no_product_and_no_sum_is_rounded(large):
    for small in (0, 1, -3, 2**40 + 1):
        array = np.array([small, 0])
        for found, right in [
            (times(array, large), [small * large, 0]),
            (plus(array, large), [small + large, large]),
            (minus(array, large), [small - large, -large]),
        ]:
            assert found.dtype.kind in "iO"
            assert found.tolist() == right
            assert found.dtype == object or max(map(abs, right)) < 2**62
    assert divided(np.array([-7, 7]), 2).tolist() == [-4, 3]
    assert raised(np.array([-7, 7]), 2).tolist() == [-3, 4]
    assert divided(np.array([-1, 1]), abs(large)).tolist() == [-1, 0]


def test_no_sum_of_many_overflows():
    values = np.full(6, 2**61)
    assert gathered(np.array([0, 0, 0, 0, 1, 1]), values, 3).tolist() == [2**63, 2**62, 0]
    assert running(values).tolist() == [2**61 * k for k in range(1, 7)]


def test_two_tables_of_a_variable_have_a_domain_in_common():
    at = np.array([0, 0])
    tables = (np.array([9, 8, 5, 0]), np.array([0, 4]))  # costs of 1 … 4, and of 2 and 3
    both = one([Term("table", at, 1, [1, 2], tables)], integer=True)
    assert lagrangian_bound(both, []) == 8


def test_every_value_of_a_table_counts():
    for k in range(4):
        table = Term("table", np.array([0]), 1, 3, (np.where(np.arange(4) == k, 0, 9),))
        assert lagrangian_bound(one([table], integer=True), []) == 0
        program = one([table], integer=True)
        costs = {v: lagrangian_certificate(program, [v], []).objective for v in range(2, 8)}
        assert costs == {v: INF if v in (2, 7) else 9 * (v - 3 != k) for v in range(2, 8)}


def test_a_domain_that_is_empty_outweighs_a_cost_that_falls_for_ever():
    blocks = [Block("a", (1,), 0.2, 0.8, True), Block("b", (1,), -INF, INF)]
    assert lagrangian_bound(Program("both", blocks, [], [Term("linear", np.array([1]))]), []) == INF


def test_the_lowest_point_of_a_parabola_may_be_anywhere_between_the_ends():
    square = [Term("quadratic", np.array([0]), 1, Fraction(1, 2))]
    assert lagrangian_bound(one(square, 0, 1), []) == 0
    assert lagrangian_bound(one(square, 0, 1, integer=True), []) == Fraction(1, 4)
    assert lagrangian_bound(one([Term("quadratic", np.array([0]), 1, Fraction(1, 10**9))], 0, 1), []) == 0
    for center in (Fraction(k, 4) for k in range(-20, 21)):  # over the integers, the nearest one
        square, nearest = [Term("quadratic", np.array([0]), 3, center)], Fraction(round(center))
        for ends in ((-INF, INF), (-9, 9), (-9, INF), (-INF, 9)):
            assert lagrangian_bound(one(square, *ends, integer=True), []) == 3 * (nearest - center) ** 2


def test_whole_answers_get_no_tolerance():
    near = one([Term("absolute", np.array([0]), 1, 10**9)], 0, 5, True, [row(4, 4)])
    for answer in ([4], [4.0]):
        assert lagrangian_certificate(near, answer, [0]).gap == 1
        assert not lagrangian_certificate(near, answer, [0]).optimal
    for other in ([5.0], [3.0], [6.0]):
        assert lagrangian_certificate(near, other, [0]).bound is None


def test_whole_variables_get_no_tolerance_beside_large_real_ones():
    blocks = [Block("whole", (1,), 0, 5, True), Block("real", (1,), 0, 10**8)]
    program = Program("mixed", blocks, [], [Term("linear", np.array([0]), -1)])
    assert lagrangian_certificate(program, [5.0, 10.0**8 + 1], []).optimal
    assert lagrangian_certificate(program, [6.0, 10.0**8], []).bound is None
    assert lagrangian_certificate(program, [-1.0, 10.0**8], []).bound is None
    assert lagrangian_certificate(program, [5.0, 10.0**8 + 1000], []).bound is None


@pytest.mark.parametrize("digits", [-3, 0, 1, 20, 52, 53, 62, 63, 1074])
def test_floats_have_the_least_common_unit(digits):
    rng = np.random.default_rng(digits + 3)
    for bits in (1, 20, 52, 53):
        values = np.ldexp(rng.integers(-(2**bits), 2**bits, 9).astype(float), -digits)
        values[0] = 0
        exactly = [Fraction(value) for value in values.tolist()]
        found = scaled([values])
        assert found.unit == max(value.denominator for value in exactly)
        assert [found.value(i) for i in range(9)] == exactly
    assert scaled([np.zeros(2)]).unit == 1


def test_sums_by_index_take_any_order():
    for index in ([0, 2, 3], [3, 0, 2], [1, 1, 3], [-1, 0, 3], []):
        values, sums = np.arange(1, len(index) + 1), [0] * 4
        for i, value in zip(index, values.tolist(), strict=True):
            sums[i] += value
        assert gathered(np.array(index, np.int64), values, 4).tolist() == sums


def test_floats_of_all_sizes_share_a_unit():
    values = [0.0, 0.1, -3.0, 5e-324, 1.7e308, -(2.0**-1074) * 3, 2.0**62]
    found = scaled([np.array(values), np.array([2**62, -1]), np.array([Fraction(1, 3), 7], object)])
    assert [found.value(i) for i in range(10)] == [*map(Fraction, values), 2**62, -1, Fraction(1, 3)]


@pytest.mark.parametrize("seed", range(14))
def test_answers_that_are_tiny_beside_the_data_end_no_certificate(seed):
    """As whole numbers over one unit, the data pass 64 bits, and the answer does not."""
    rng = np.random.default_rng(seed)
    program = WorkloadLeastSquares.random(rng, 4).program()
    x = rng.choice([0, 1, 5], program.size) * float(rng.choice([0, 1e-9, 1]))
    for size in (1e-9, 2.0**-90):
        prices = rng.normal(size=program.matrix.shape[0]) * size
        assert lagrangian_certificate(program, x, prices).objective >= 0
