"""The paper's dynamic program: tables by constraint programs equal those by merged slopes, cell by cell."""

import numpy as np
import pytest

from hierdp.mechanisms.group_size import cost_tables
from hierdp.mechanisms.group_size.cost_tables import by_program, by_slopes, solve_by_tables
from models import HierarchyQIP, Tree
from solvers import solve
from tests.marks import quick


def instance(seed, window=2):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, depth=2, branching=2, ragged=seed % 3 == 0)
    noisy = rng.integers(-2, 6, (tree.size, 2))
    return HierarchyQIP(tree, noisy, int(np.maximum(noisy[0], 0).sum()), window=window)


@pytest.mark.parametrize("seed", quick(range(12), every=4))
def test_constraint_programs_and_merged_slopes_agree_cell_by_cell(seed):
    model = instance(seed)
    slow, cells = solve_by_tables(model, by_program())
    quick, merged = solve_by_tables(model, by_slopes)
    assert cells.keys() == merged.keys()
    for place, table in cells.items():
        assert table.start == merged[place].start
        assert (table.costs == merged[place].costs).all()
    assert slow.status == quick.status
    assert slow.objective == quick.objective


def test_a_cell_has_one_thread(monkeypatch):
    """Several threads double a small program's time, and make the choice between ties random."""
    used = []

    def noted(model, *_, threads=None, **__):
        used.append(threads)
        return solve(model, "fast")

    monkeypatch.setattr(cost_tables, "solve", noted)
    solve_by_tables(instance(1), by_program())
    assert set(used) == {1}


@pytest.mark.parametrize("seed", quick(range(60), every=4))
def test_the_tables_give_the_optimum_that_the_fast_path_gives(seed):
    model = instance(seed, window=(0, 1, 3, None)[seed % 4])
    by_tables, _ = solve_by_tables(model, by_slopes)
    fast = solve(model)
    assert by_tables.status == fast.status
    assert by_tables.objective == fast.objective
    assert (by_tables.x is None) == (fast.status == "infeasible")


def test_the_running_example_of_the_paper():
    """Fig. 4 and 6: groups of size 1 in GA (noisy 3) and MI (noisy 0), under the US."""
    model = HierarchyQIP(Tree([[0, 0]]), [[3], [3], [0]], total=3)
    _, tables = solve_by_tables(model, by_slopes)
    assert tables[1, 0].costs.tolist() == [9, 4, 1, 0]
    assert tables[2, 0].costs.tolist() == [0, 1, 4, 9]
    # φ(0 … 3) = 9, 4, 1, 0 below the root, which has a noisy count of 3.
    assert tables[0, 0].costs.tolist() == [9 + 9, 4 + 4, 1 + 1, 0]


def test_the_time_limit_is_for_all_cells_together():
    many = HierarchyQIP(Tree([[0, 0], [0, 0, 1]]), np.full((6, 3), 50), 150, window=90)
    solution, _ = solve_by_tables(many, by_program(time_limit=0.05))
    assert solution.status == "time_limit"
    assert solution.x is None


def test_an_empty_domain_is_named():
    model = HierarchyQIP(Tree([[0, 0]]), [[3], [-5], [2]], total=3, window=1)
    solution, _ = solve_by_tables(model, by_slopes)
    assert (solution.status, solution.message) == ("infeasible", "node 1, size 0: no value in its domain")


def test_the_fast_path_names_it_too():
    model = HierarchyQIP(Tree([[0, 0]]), [[3], [-5], [2]], total=3, window=1)
    solution = solve(model)
    assert solution.status == "infeasible"
    assert solution.message == "H4 domain: no whole number >= 0 for x[1, 0] is within the window"
