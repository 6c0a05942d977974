"""Whole cumulative counts against enumeration and exact backends, and with searches cut short or broken."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from models import CumulativeQIP, Tree
from solvers import fast, solve
from solvers.fast import cumulative

TWO_LEVELS = Tree([[0, 0], [0, 1, 1]])
THREE_LEVELS = Tree([[0, 0], [0, 0, 1, 1], [0, 0, 1, 2, 3, 3]])


def least(model):
    """The least cost of all feasible whole answers."""
    sizes = model.counts.shape[1]
    rows = [r for r in itertools.product(range(model.total + 1), repeat=sizes) if list(r) == sorted(r)]
    every = (model.tree.sum_up(np.array(c)) for c in itertools.product(rows, repeat=model.tree.leaves.size))
    return min(model.objective(x) for x in every if x[0, -1] == model.total)


def drawn(seed, tree, sizes, most=20):
    rng = np.random.default_rng(seed)
    total = int(rng.integers(1, most))
    return CumulativeQIP(tree, rng.integers(-2, total + 3, (tree.size, sizes)), total)


@pytest.mark.parametrize("tree", [Tree([]), Tree([[0, 0]]), TWO_LEVELS])
def test_tiny_instances_are_solved_and_proved(tree):
    for seed in range(4):
        model = drawn(seed, tree, 3, most=4)
        x, witness = fast.answer(model)
        proof = model.certificate(x, witness)
        assert proof.optimal
        assert proof.objective == proof.bound == least(model)


def test_counts_in_fractions_are_solved_and_proved():
    for seed in range(3):
        model = drawn(seed, TWO_LEVELS, 2, most=4)
        model = replace(model, noisy=model.counts / 2 + 0.125)
        x, witness = fast.answer(model)
        assert model.certificate(x, witness).optimal
        assert model.objective(x) == pytest.approx(least(model))


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_two_backends_agree_on_medium_instances(seed):
    model = drawn(seed, THREE_LEVELS, 8)
    ours = solve(model)
    assert ours.status == "optimal"
    for backend in ("highs", "cp-sat"):
        other = solve(model, backend, time_limit=300)
        assert (other.status, other.objective) == ("optimal", ours.objective)


def test_larger_instances_are_proved_by_their_certificates():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        tree = Tree.random(rng, 3, 4)
        true = tree.sum_up(np.cumsum(rng.integers(0, 4, (tree.leaves.size, 30)), axis=1))
        noisy = true + np.rint(rng.laplace(0, 5, true.shape)).astype(int)
        assert solve(CumulativeQIP(tree, noisy, int(true[0, -1]))).status == "optimal"


GAP = CumulativeQIP(
    Tree([[0, 0], [1, 1], [1, 1]]),
    np.array([[0, 2, -1], [1, 4, 0], [3, 5, 1], [4, 5, 0], [0, 0, 4], [5, 2, 5], [1, 4, 3]]) / 2,
    total=2,
)
"""The linear program's optimum is 36, at halves; the best whole answer costs 36.5 (docs/cumulative.md)."""


def doubled(model):
    """The same with whole counts: each node becomes a parent and a child, rounded down and up."""
    tree, counts = model.tree, model.counts
    levels, rows = [], [np.floor(counts[:1]), np.ceil(counts[:1])]
    for level in range(tree.depth + 1):
        nodes = tree.nodes_of(level)
        if level:
            levels.append(np.asarray(tree.levels[level - 1]))
            rows += [np.floor(counts[nodes]), np.ceil(counts[nodes])]
        levels.append(np.arange(nodes.stop - nodes.start))
    return CumulativeQIP(Tree(levels), np.concatenate(rows).astype(int), model.total)


@pytest.mark.parametrize(("model", "best"), [(GAP, 36.5), (doubled(GAP), 78)])
def test_branches_prove_the_optimum_of_fractional_relaxations(model, best, monkeypatch):
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    assert (proof.optimal, proof.objective) == (True, best)
    assert len(witness["branches"]) >= 3
    assert solve(model, "highs", time_limit=300).objective == pytest.approx(best)
    monkeypatch.setattr(cumulative, "MOST_WORK", 1)
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    assert "branches" not in witness
    assert best - 1.01 <= proof.bound < best - 0.4


@pytest.fixture
def doubtful(monkeypatch):
    """Linear programs that report bounds too low, and halves where the domain leaves a choice."""
    real = cumulative._Lines.solve

    def halved(self, near, low, high, steep):
        case = real(self, near, low, high, steep)
        free = np.flatnonzero((high > low) & (case.x < high))[:3]
        x = case.x.copy()
        x[free[:1]] = np.floor(x[free[:1]]) + 0.5
        return case._replace(x=x, bound=case.bound - 3.0) if free.size else case

    monkeypatch.setattr(cumulative._Lines, "solve", halved)
    monkeypatch.setattr(cumulative, "MOST_WORK", 2_000)


@pytest.mark.usefixtures("doubtful")
def test_a_tree_of_cases_proves_what_one_set_of_prices_would():
    for seed in range(4):
        model = drawn(seed, TWO_LEVELS, 2, most=4)
        near = np.clip(model.counts, 0, model.total).astype(float)
        rounded = partial(cumulative._rounded, model)
        x, witness = cumulative.branched(model, near, worst(model), rounded)
        assert len(witness["branches"]) > 2
        proof = model.certificate(x, witness)
        assert proof.objective == proof.bound == least(model)
        other = {**witness, "C4 consistency": witness["C4 consistency"] + 1}
        assert model.certificate(x, other).bound <= proof.bound


def test_the_work_limit_is_kept_and_the_gap_reported(monkeypatch):
    stated = []
    real = cumulative._Lines.solve
    monkeypatch.setattr(
        cumulative._Lines,
        "solve",
        lambda self, *a: stated.append(1) or real(self, *a)._replace(bound=-9.0),
    )
    monkeypatch.setattr(cumulative, "MOST_WORK", 100)
    model = drawn(5, TWO_LEVELS, 3, most=4)
    monkeypatch.setattr(cumulative, "_rounded", lambda model, _: worst(model))
    found = solve(model)
    assert len(stated) * model.counts.size <= 100
    assert found.status == "feasible"
    assert found.bound == least(model) < found.objective
    monkeypatch.setattr(cumulative, "MOST_CELLS", 10)
    assert solve(model).bound <= least(model)


def worst(model):
    """All groups in the last leaf, at the first size."""
    leaves = np.zeros((model.tree.leaves.size, model.counts.shape[1]), int)
    leaves[-1] = model.total
    return model.tree.sum_up(leaves)


def test_a_broken_search_proves_no_worse_answer(monkeypatch):
    model = drawn(5, TWO_LEVELS, 3, most=4)
    best = least(model)
    monkeypatch.setattr(cumulative, "_rounded", lambda model, _: worst(model))
    assert model.objective(worst(model)) > best
    for lines in (lambda *_: None, cumulative._Lines.solve):
        monkeypatch.setattr(cumulative._Lines, "solve", lines)
        x, witness = fast.answer(model)
        proof = model.certificate(x, witness)
        assert not proof.optimal
        assert proof.bound <= best
