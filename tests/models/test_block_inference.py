"""Least squares over a tree of histograms: dense algebra, exact fractions, variances, broken passes."""

from fractions import Fraction

import numpy as np
import pytest

import solvers.fast.block_inference as fast_path
from models import BlockInference, ConstrainedInference, Tree, Workload
from models.arithmetic import exact
from solvers import fast, solve

RAGGED = Tree([[0, 0, 0], [0, 0, 2], [1, 0]])


def dense(model):
    """``(S, W)``: the matrix from leaves' cells to all measured answers, and the weights of the answers."""
    tree, workload = model.tree, model.workload
    leaves = tree.leaves.size
    ups = np.asarray(tree.sum_up(np.eye(leaves)))
    matrix = np.kron(ups, np.eye(workload.cells))
    queries = np.kron(np.eye(tree.size), workload.matrix.toarray())
    weight = workload.by_answer(np.asarray(model.weights, float))[tree.level].ravel()
    return matrix, queries @ matrix, weight


def estimate(model):
    matrix, rows, weight = dense(model)
    normal = rows.T @ (weight[:, None] * rows)
    y = np.asarray(model.noisy, float).ravel()
    covariance = np.linalg.inv(normal)
    return (matrix @ covariance @ (rows.T @ (weight * y))).reshape(
        model.shape
    ), matrix @ covariance @ matrix.T


def instance(tree=RAGGED, seed=0, dtype=np.int64, dropped=True):
    rng = np.random.default_rng(seed)
    workload = Workload.marginals((2, 3, 1), [(), (0,), (0, 1, 2), (1,)])
    weights = rng.integers(1, 5, size=(tree.depth + 1, 4))
    if dropped:
        weights[0] = [3, 0, 0, 0]
    return BlockInference(
        tree, workload, rng.integers(-9, 50, (tree.size, workload.size)).astype(dtype), weights
    )


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_generalised_least_squares_estimate(seed):
    model = instance(seed=seed, dropped=seed % 2)
    expected, _ = estimate(model)
    assert np.allclose(solve(model).x, expected)


def test_the_variance_of_any_query_is_that_of_dense_algebra():
    model, rng = instance(), np.random.default_rng(1)
    _, covariance = estimate(model)
    blocks = covariance.reshape(*model.shape, *model.shape)
    for query in (np.ones(6), np.eye(6)[2], rng.normal(size=6)):
        expected = [query @ blocks[v, :, v] @ query for v in range(model.tree.size)]
        assert np.allclose(model.variance(query), expected)
    with pytest.raises(ValueError, match=r"the query has shape \(2,\); there are 6 cells"):
        model.variance([1, 1])


def test_the_variance_is_that_of_many_draws():
    model = instance()
    _, _, weight = dense(model)
    rng = np.random.default_rng(3)
    sd = np.divide(1, np.sqrt(weight), where=weight > 0, out=np.zeros_like(weight))
    cells, totals = [], []
    for _ in range(300):
        noisy = (rng.normal(size=weight.size) * sd).reshape(np.shape(model.noisy))
        x, _ = fast.answer(BlockInference(model.tree, model.workload, noisy, model.weights))
        cells.append(x[:, 1])
        totals.append(x.sum(axis=1))
    assert np.allclose(np.var(cells, axis=0), model.variance(np.eye(6)[1]), rtol=0.4)
    assert np.allclose(np.var(totals, axis=0), model.variance(np.ones(6)), rtol=0.4)


def test_exact_data_give_an_exact_optimum():
    model = instance(dtype=object)
    found = solve(model)
    assert all(isinstance(value, Fraction) for value in found.x.flat)
    proof = found.certificate
    assert (found.status, proof.gap, proof.bound) == ("optimal", 0, found.objective)
    assert isinstance(proof.bound, Fraction)
    floats = solve(instance())
    assert np.allclose(floats.x, found.x.astype(float))
    off = found.x.copy()
    leaf = model.tree.leaves[-1]
    while leaf >= 0:  # up to the root, so that the counts stay consistent
        off[leaf, 0] += Fraction(1, 10**9)
        leaf = model.tree.parent[leaf]
    refused = model.certificate(off)
    assert not refused.optimal
    assert refused.gap > 0
    assert model.certificate(off, proof.witness).gap == model.objective(off) - found.objective


@pytest.mark.parametrize("dropped", [True, False])
def test_floats_are_judged_without_rounding(dropped):
    """The bound is the least Lagrangian, as by dense algebra, and never exceeds the optimum in Fractions."""
    model = instance(seed=2, dropped=dropped)
    exactly = BlockInference(model.tree, model.workload, np.asarray(model.noisy, object), model.weights)
    best = solve(exactly).objective
    x = fast.answer(model)[0]
    proof = model.certificate(x)
    cost = exactly.objective(exact.fractions(x))
    assert proof.objective == pytest.approx(float(cost), rel=1e-14)  # that of the sums of its leaves
    assert proof.bound <= best <= cost + Fraction(1, 10**9)
    assert 0 <= proof.gap < 1e-12 * proof.objective
    rng = np.random.default_rng(0)
    for prices in (proof.witness["prices"], rng.normal(0, 30, model.shape)):
        found = model.certificate(x, {"prices": prices})
        price = np.asarray(found.witness["prices"], float)
        charge = price - np.vstack([0 * price[:1], price[model.tree.parent[1:]]])
        queries, least = model.workload.matrix.toarray(), 0.0
        for v, level in enumerate(model.tree.level):
            weight = model.workload.by_answer(np.asarray(model.weights, float)[level])
            square, slope = queries.T @ (weight[:, None] * queries), 2 * queries.T @ (weight * model.noisy[v])
            z = np.linalg.pinv(2 * square) @ (slope - charge[v])
            least += weight @ (queries @ z - model.noisy[v]) ** 2 + charge[v] @ z
        assert found.bound == pytest.approx(least, rel=1e-9)
        assert found.bound <= best
        assert found.gap == pytest.approx(float(cost) - found.bound, rel=1e-9, abs=1e-9)


def test_one_cell_is_constrained_inference():
    tree, rng = RAGGED, np.random.default_rng(0)
    noisy, variance = rng.integers(0, 30, tree.size), rng.integers(1, 5, tree.depth + 1).astype(float)
    one = BlockInference(tree, Workload.marginals((1,), [(0,)]), noisy[:, None], 1 / variance[:, None])
    other = ConstrainedInference(tree, noisy, variance[tree.level])
    assert np.allclose(solve(one).x[:, 0], solve(other).x)
    assert solve(one).objective == pytest.approx(solve(other).objective)


def test_a_pass_that_is_wrong_is_not_proved(monkeypatch):
    model = instance()
    restored = fast_path._restored
    for harm in (lambda x, shape: restored(x, shape) + 0.1, lambda x, shape: restored(x * 1.01, shape)):
        monkeypatch.setattr(fast_path, "_restored", harm)
        assert solve(model).status != "optimal"


# The second: noise so small that the cost is hundreds: the last digits of the counts matter.
@pytest.mark.parametrize(("noise", "weight"), [(170, 3.5e-5), (1, 0.2)])
@pytest.mark.parametrize("seed", range(3))
def test_a_fixed_total_of_great_weight_moves_no_other_count(noise, weight, seed):
    rng = np.random.default_rng(seed)
    tree, workload = Tree([[0] * 6, list(np.arange(60) % 6)]), Workload.marginals((67,), [(0,), ()])
    cells = tree.sum_up(rng.poisson(1_600, (60, 67)))
    answers = workload.answers(cells) + np.rint(rng.normal(0, noise, (tree.size, 68))).astype(np.int64)
    answers[0, 67] = cells[0].sum()
    weights = np.array([[2 * weight, 65_536.0], [weight, 0.0], [weight, 0.0]])
    assert solve(BlockInference(tree, workload, answers, weights)).certificate.optimal
