"""HierarchyQIP with a weight per level or node: brute force, backends, cost tables, and valid weights."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp.mechanisms.group_size.cost_tables import by_slopes, solve_by_tables
from models import HierarchyQIP, Tree
from solvers import solve


@pytest.mark.parametrize("seed", range(8))
def test_backends_agree(seed):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, depth=3, branching=3, ragged=seed % 2 == 0)
    model = HierarchyQIP(tree, rng.integers(-9, 30, (tree.size, 4)), 40, weights=rng.integers(1, 50, 4))
    assert solve(model).status == "optimal"
    assert solve(model).objective == solve(model, "highs").objective
    relaxed = replace(model, integer=False)
    assert solve(relaxed).status == "optimal"
    assert solve(relaxed).objective == pytest.approx(solve(relaxed, "clarabel").objective, rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_windows_and_cost_tables_take_weights(seed):
    rng = np.random.default_rng(seed)
    tree = Tree([[0, 0], [0, 0, 1]])
    noisy = rng.integers(0, 6, (tree.size, 2))
    weights = [5, 1, 3] if seed % 2 else [5, 1, 7, 3, 2, 9]
    model = HierarchyQIP(tree, noisy, int(noisy[0].sum()), window=4, weights=weights)
    tables, _ = solve_by_tables(model, by_slopes)
    assert tables.status == solve(model).status
    assert tables.objective == solve(model).objective


def test_only_ratios_matter():
    rng = np.random.default_rng(3)
    tree = Tree.random(rng, depth=2, branching=5)
    noisy = rng.integers(-20, 90, (tree.size, 6))
    plain = HierarchyQIP(tree, noisy, 300)
    sevenfold = replace(plain, weights=[7, 7, 7])
    assert (solve(plain).x == solve(sevenfold).x).all()
    assert solve(sevenfold).objective == 7 * solve(plain).objective


def test_a_heavy_level_keeps_its_counts():
    model = HierarchyQIP(Tree([[0, 0]]), [[9], [3], [2]], 7, weights=[1, 10**6])
    assert solve(model).x.ravel().tolist() == [7, 4, 3]
    heavy_root = HierarchyQIP(Tree([[0, 0]]), [[4, 5], [3, 1], [4, 0]], 9, weights=[10**6, 1])
    assert solve(heavy_root).x[0].tolist() == [4, 5]
