import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from models import Workload, WorkloadRounding, lagrangian_bound
from models.check.checker import cost_unit
from models.testing import whole_answers
from solvers import fast, solve
from solvers.fast import NoFastPath
from solvers.fast.flow import least_cost_flow
from tests.marks import quick

NESTED = Workload.marginals((2, 2), [(), (0,), (0, 1)])
CROSSED = Workload.marginals((2, 2), [(0,), (1,), (0, 1)])
TOTALS = Workload.marginals((2, 2), [()])


def instance(seed, children, workload=NESTED, rules=True, grain=1 << 20):
    """Fractions whose sums over children and over cells are whole, as after least squares."""
    rng = np.random.default_rng(seed)
    parts = rng.integers(0, grain, (children // 2, 2)) / grain
    parts = np.stack([parts, 1 - parts]).transpose(1, 0, 2).reshape(children, 2)
    values = rng.integers(0, 4, (children, 4)) + np.stack([parts, 1 - parts], axis=2).reshape(children, 4)
    parent = np.rint(values.sum(axis=0)).astype(int)
    totals = np.rint(values.sum(axis=1, keepdims=True)).astype(int) if rules else None
    return WorkloadRounding(workload, values, None, parent, TOTALS if rules else None, totals, totals)


@pytest.mark.parametrize("variant", ["", "rules"])
def test_many_children_are_proved(variant):
    model = WorkloadRounding.typical(np.random.default_rng(1), 16 * 100, **WorkloadRounding.variants[variant])
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    assert proof.optimal
    assert proof.gap == 0
    worse = np.array(x)
    c, d, j, k = next(exchanges(model, worse))
    worse[[c, d], [j, k]] += 1
    worse[[c, d], [k, j]] -= 1
    assert model.violations(worse) == []
    other = model.certificate(worse, witness)
    assert other.gap == model.objective(worse) - proof.objective
    assert not other.optimal or other.gap == 0


def exchanges(model, x):
    """Exchanges of two units between two children and two cells."""
    floor, ceil = model.neighbours
    for c in range(len(x)):
        for d in range(c + 1, len(x)):
            up, down = (x[c] < ceil[c]) & (x[d] > floor[d]), (x[c] > floor[c]) & (x[d] < ceil[d])
            for j in np.flatnonzero(up):
                for k in np.flatnonzero(down):
                    yield c, d, j, k


def test_sums_that_cross_have_no_fast_path_and_a_backend_solves_them():
    model = instance(0, 6, CROSSED)
    with pytest.raises(NoFastPath, match="do not nest"):
        fast.answer(model)
    highs, scip = (model.objective(solve(model, backend).x) for backend in ("highs", "ortools:scip"))
    assert highs == scip


def test_constraints_that_contradict_each_other_have_no_answer():
    half = [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]
    rules = Workload.marginals((2, 2), [(0, 1)])
    pinned = WorkloadRounding(NESTED, half, None, [1, 1, 0, 0], rules, [0, 1, 0, 0], [0, 1, 0, 0])
    assert fast.answer(pinned) == (None, None)
    assert solve(pinned, "highs").status == solve(pinned).status == "infeasible"


def test_numbers_with_too_many_digits_are_for_other_backends():
    values = np.array([[Fraction(1, 10**17), 0, 1, 2], [1 - Fraction(1, 10**17), 0, 1, 2]])
    model = WorkloadRounding(NESTED, values, None, [1, 0, 2, 4])
    with pytest.raises(NoFastPath, match="2\\^-20"):
        fast.answer(model)
    assert model.objective([[0, 0, 1, 2], [1, 0, 1, 2]]) == Fraction(6, 10**17)


def test_violations_name_the_place():
    model = instance(0, 2)
    x = np.array(fast.answer(model)[0])
    x[1, 2] += 5
    found = " ".join(model.violations(x))
    assert f"z[1, 2] = {x[1, 2]}, not at most" in found
    assert "parent: the sum, cell 2, is 7" in found
    assert "rules: child 1, query 0, answer 0" in found
    assert model.violations(x + 0.5)[0].startswith("integer")


@pytest.mark.parametrize("unit", [8, 3])
def test_the_targets_are_the_answers_on_the_values(unit):
    """Of values that floats hold, they are floats; of thirds they are fractions."""
    workload = Workload.marginals((2, 3), [(), (1,), (0, 1)])
    values = np.array([[Fraction(int(v), unit) for v in row] for row in np.arange(12).reshape(2, 6)])
    model = WorkloadRounding(workload, values, weights=[2, 0, 1])
    program = model.program()
    (term,) = program.objective
    assert (term.data[1].dtype == float) == (unit == 8)
    assert [Fraction(center) for center in term.data[1]] == [
        held for row in values for held in (row.sum(), *row)
    ]
    assert np.array_equal(program.matrix @ model.variables(np.ones((2, 6), int)), np.zeros(14))


@pytest.mark.parametrize("seed", range(30))
def test_flows_of_least_cost(seed):
    rng = np.random.default_rng(seed)
    nodes, arcs = int(rng.integers(2, 9)), int(rng.integers(1, 25))
    tail, head = rng.integers(0, nodes, (2, arcs))
    room, cost = rng.integers(0, 6, arcs), rng.integers(-9, 10, arcs)
    supply = np.zeros(nodes, np.int64)
    carried = rng.integers(0, room + 1) if seed % 3 else rng.integers(0, 6, arcs)
    np.add.at(supply, tail, carried)
    np.subtract.at(supply, head, carried)
    rows = np.zeros((nodes, arcs))
    np.add.at(rows, (tail, np.arange(arcs)), 1)
    np.add.at(rows, (head, np.arange(arcs)), -1)
    best = linprog(cost, A_eq=rows, b_eq=supply, bounds=np.c_[0 * room, room])
    found = least_cost_flow(tail, head, room, cost, supply)
    assert (found is None) == (best.status == 2)
    if found is not None:
        flow, potential = found
        assert np.array_equal(rows @ flow, supply)
        assert np.all((flow >= 0) & (flow <= room))
        assert flow @ cost == round(best.fun)
        paid = cost + potential[tail] - potential[head]
        assert np.all((paid >= 0) | (flow == room))
        assert np.all((paid <= 0) | (flow == 0))


def test_a_flow_whose_numbers_are_too_large_is_refused():
    one = np.array([1])
    with pytest.raises(NoFastPath, match="passes 64 bits"):
        least_cost_flow(one - 1, one, one, one << 60, np.array([1, -1]))
    with pytest.raises(NoFastPath, match="passes 64 bits"):
        least_cost_flow(one - 1, one, one << 31, one, np.array([1, -1]))


@pytest.mark.slow
def test_a_flow_over_many_nodes_with_small_numbers():
    nodes = 50_000  # times the supply of the first node, more than 2³¹
    leaves = np.arange(1, nodes)
    supply = np.full(nodes, -1)
    supply[0] = nodes - 1
    ones = np.ones(nodes - 1, np.int64)
    flow, potential = least_cost_flow(0 * leaves, leaves, 2 * ones, leaves, supply)
    assert np.array_equal(flow, ones)
    assert np.array_equal(potential[leaves] - potential[0], leaves)


@pytest.mark.parametrize("seed", range(30))
def test_of_several_flows_of_least_cost_a_part_gets_the_same_beside_any_other(seed):
    """Costs of other sizes and more nodes beside it; nodes and arcs of the parts are mixed."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in (int(rng.integers(2, 5)), 9):
        arcs = 6 * size
        tail, head = rng.integers(0, size, (2, arcs))
        room, cost = rng.integers(1, 4, arcs), rng.integers(0, 3, arcs) * int(rng.choice([1, 8, 1000]))
        carried, supply = rng.integers(0, room + 1), np.zeros(size, np.int64)
        np.add.at(supply, tail, carried)
        np.subtract.at(supply, head, carried)
        parts.append((tail, head, room, cost, supply))
    node = rng.permutation(sum(part[4].size for part in parts))
    nodes = np.split(node, [parts[0][4].size])
    nodes = [np.sort(own) for own in nodes]
    ends = [np.concatenate([own[part[k]] for own, part in zip(nodes, parts, strict=True)]) for k in (0, 1)]
    room, cost = (np.concatenate([part[k] for part in parts]) for k in (2, 3))
    supply = np.zeros(node.size, np.int64)
    for own, part in zip(nodes, parts, strict=True):
        supply[own] = part[4]
    flow, _ = least_cost_flow(*ends, room, cost, supply)
    own, _ = least_cost_flow(*parts[0])
    np.testing.assert_array_equal(flow[: own.size], own)


@pytest.mark.parametrize("seed", quick(range(4)))
def test_any_prices_bound_the_optimum_from_below(seed):
    """Large and small ones of either sign, also for sums without a bound; the one theorem gives the same."""
    rng, bounded = np.random.default_rng(seed), 0
    for model in (WorkloadRounding.random(rng, int(rng.integers(1, 4))) for _ in range(12)):
        costs = [model.objective(x) for x in whole_answers(model)]
        if not costs:
            continue
        x = next(whole_answers(model))
        shapes = {rows.name: rows.count for rows in model.program().rows}
        for size in (1, 3, 50):
            witness = {name: rng.integers(-size, size + 1, shape) for name, shape in shapes.items()}
            if size == 3:
                witness = {name: prices / 4 for name, prices in witness.items()}
            proof = model.certificate(x, witness)
            assert proof.bound <= min(costs)
            general = lagrangian_bound(model.program(), model.row_prices(proof.witness))
            unit = cost_unit(model.program().structure[0])
            assert proof.bound == (Fraction(math.ceil(general * unit), unit) if unit else general)
            bounded += 1
    assert bounded > 20
