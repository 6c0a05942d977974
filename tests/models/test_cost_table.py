"""CostTable against enumeration of all divisions, min-plus convolution, and exact backends."""

import itertools

import numpy as np
import pytest

from models import CostTable
from solvers import solve
from solvers.fast.cost_table import merged_table
from solvers.fast.no_path import NoFastPath


def divisions(model):
    spans = [range(a, a + n) for a, n in zip(model.least.tolist(), model.lengths.tolist(), strict=True)]
    return [x for x in itertools.product(*spans) if sum(x) == model.total]


def test_tables_that_are_not_convex_keep_a_true_bound():
    rng = np.random.default_rng(1)
    gaps = 0
    for _ in range(300):
        tables = [rng.integers(0, 9, size=rng.integers(1, 5)) for _ in range(3)]
        room = sum(t.size - 1 for t in tables)
        model = CostTable(tables, int(rng.integers(0, room + 1)))
        best = min(model.objective(x) for x in divisions(model))
        for x in divisions(model):
            proof = model.certificate(x)
            assert proof.bound <= best
            assert not proof.optimal or model.objective(x) == best
            gaps += not proof.optimal and model.objective(x) == best
        if not model.convex:
            assert solve(model).status == "unsupported"
    assert gaps  # duality gaps occur, and are reported


def test_whole_table_is_the_min_plus_convolution():
    rng = np.random.default_rng(2)
    for _ in range(100):
        model = CostTable.random(rng, 25)
        if not model.convex:
            continue
        expected = {0: 0}
        for start, table in zip(model.least.tolist(), model.tables, strict=True):
            wider = {}
            for (v, cost), (k, more) in itertools.product(expected.items(), enumerate(table.tolist())):
                key = v + start + k
                wider[key] = min(wider.get(key, np.inf), cost + more)
            expected = wider
        least, costs = merged_table(model)
        assert {least + k: cost for k, cost in enumerate(costs.tolist())} == expected


def test_slopes_merge_for_convex_tables_only():
    with pytest.raises(NoFastPath, match="slopes merge for convex tables only"):
        merged_table(CostTable([[0, 3, 4]], 1))


def test_costs_up_to_two_to_the_60():
    huge = 2**60 + 1
    model = CostTable([[huge, huge // 2, 5], [3, 3, 4]], 2)  # held as Python integers
    found = solve(model)
    assert (found.status, found.objective, found.x.tolist()) == ("optimal", 8, [2, 0])
    assert merged_table(model)[1].tolist() == [huge + 3, huge // 2 + 3, 8, 8, 9]
