"""The post-processing of noisy tables: what every method keeps, and what its steps are optimal for."""

import itertools
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.tabulation import methods
from hierdp.mechanisms.tabulation.contradiction import NoTables, explaining
from hierdp.mechanisms.tabulation.family import Together, all_histograms, nested, whole_histograms
from hierdp.mechanisms.tabulation.methods import METHODS, Settings
from hierdp.mechanisms.tabulation.passes import UNIT, Family, _give, snapped
from hierdp.mechanisms.tabulation.problem import Constraints, Measured
from hierdp.mechanisms.tabulation.solving import solve_step, solving_of
from hierdp.mechanisms.tabulation.tree_estimate import every_marginal, subtree_weights, tree_model
from hierdp.record.spool import Steps
from hierdp.record.step import NotSolved, Step
from models import Tree, Workload
from tests.marks import quick

SHAPE = (3, 2)
WORKLOAD = Workload.marginals(SHAPE, [(), (0,), (1,), (0, 1)])
PASSES = Settings(((0,), (1, 2, 3)))
WHOLE = [name for name in METHODS if name not in ("GLS", "Joint")]


def tables(seed, deviation=3.0, most=30):
    """A nation of three states with one to four counties: true tables by level, and noisy answers."""
    rng = np.random.default_rng(seed)
    tree = Tree([np.zeros(3, int), np.repeat(np.arange(3), [1, 4, 2])])
    names = [["all"], ["A", "B", "C"], [f"county {i}" for i in range(7)]]
    regions = Hierarchy(("nation", "state", "county"), names, tree)
    leaves = rng.integers(0, most, (7, 6)) * rng.integers(0, 2, (7, 6))
    full = tree.sum_up(leaves)
    true = [full[tree.nodes_of(k)] for k in range(3)]
    variance = np.tile(deviation**2 * np.array([1.0, 2.0, 0.5, 1.0]), (3, 1))
    noisy = [
        WORKLOAD.answers(t)
        + np.rint(rng.normal(0, 1, (len(t), 12)) * np.sqrt(WORKLOAD.by_answer(variance[0]))).astype(int)
        for t in true
    ]
    return true, Measured(regions, WORKLOAD, noisy, variance)


def constraints(true, seed, sums=((), (0,))):
    """Totals fixed in the states, groups bounded in the counties, a combination that cannot be."""
    rng = np.random.default_rng(seed)
    rules = Workload.marginals(SHAPE, sums)
    held = [rules.answers(t).astype(float) for t in true]
    lower, upper = [0 * h for h in held], [np.full(h.shape, np.inf) for h in held]
    lower[1][:, 0] = upper[1][:, 0] = held[1][:, 0]
    if len(sums) > 1:
        lower[2][:, 1:] = np.maximum(held[2][:, 1:] - rng.integers(0, 9, (7, 1)), 0)
        upper[2][:, 1:] = held[2][:, 1:] + rng.integers(0, 9, (7, 1))
    zeros = true[0][0] == 0
    return Constraints(zeros, rules, lower, upper, [f"sum {i}" for i in range(rules.size)])


NONE = Constraints(np.zeros(6, bool))


def solved(measured, held, method, settings=PASSES, solving=solve_step):
    """The tables of a method, and its steps."""
    steps = Steps(solving)
    with explaining():
        found, _ = METHODS[method](measured, held, settings, steps)
    return found, steps.kept


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("seed", quick(range(8), first=2))
def test_tables_are_whole_consistent_and_keep_all_constraints(method, seed):
    true, measured = tables(seed)
    held = constraints(true, seed)
    found, steps = solved(measured, held, method)
    for k, table in enumerate(found):
        assert table.dtype == np.int64
        assert table.min() >= 0
        assert not table[:, held.zeros].any()
        sums = held.sums.answers(table)
        assert np.all((held.lower[k] <= sums) & (sums <= held.upper[k]))
        if k:
            above = np.zeros_like(found[k - 1])
            np.add.at(above, measured.tree.levels[k - 1], table)
            assert np.array_equal(above, found[k - 1])
    assert all(step.proved.proved_optimal for step in steps)


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("seed", quick(range(8), first=2))
def test_families_together_get_tables_as_near_as_alone(method, seed):
    """With bounds and fixed sums, in one step a level and in several; any of equally near tables is right."""
    true, measured = tables(seed)
    held = constraints(true, seed)
    least, nearest = costs(solved(measured, held, method)[1])
    for cells in (30, 10**6):
        found, steps = solved(measured, held, method, replace(PASSES, together=cells))
        assert any(step.problems for step in steps)
        assert all(step.proved.proved_optimal for step in steps)
        assert np.array_equal(found[1].sum(axis=0), found[0][0])
        together = costs(steps)
        assert together[1] == nearest
        assert together[0] == pytest.approx(least)  # sums of the same floats


def costs(steps):
    """The costs of the last level: of least squares, which are floats, and of rounding."""
    last = [step for step in steps if step.name.startswith("county")]
    kinds = (
        [step for step in last if ": least" in step.name],
        [step for step in last if ": round" in step.name],
    )
    return [sum(step.solution.objective for step in each) for each in kinds]


def test_families_are_solved_one_by_one_if_one_of_them_has_no_answer():
    """All get their tables alone; one without an answer is named."""
    _, one = families(2)
    _, other = families(3)
    steps = Steps()

    def refusing(name, model, problems=()):
        if problems and "pass 2" in name:
            raise NotSolved("error", "no")
        return steps(name, model, problems)

    both = Together(("A", "B"), (one, other))
    found = all_histograms(refusing, "both", both, PASSES.passes, (0, 1, 3))
    for x, family, name in zip(found, both.families, both.names, strict=True):
        assert np.array_equal(x, whole_histograms(Steps(), name, family, PASSES.passes, (0, 1, 3)))
    names = [step.name for step in steps.kept]
    assert names[:2] == ["both: least squares, pass 1", "A: least squares, pass 1"]
    assert names[-1] == "B: rounding"
    impossible = replace(other, parent=other.parent + 1000)
    with pytest.raises(NoTables) as failure:
        all_histograms(Steps(), "both", replace(both, families=(one, impossible)), PASSES.passes, (0, 1, 3))
    assert failure.value.name == "B"


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_the_truth_comes_out(method):
    if method == "Joint":
        pytest.skip("its test is in test_tabulation_joint.py")
    true, measured = tables(1)
    exact = replace(measured, noisy=[WORKLOAD.answers(t) for t in true])
    found, _ = solved(exact, NONE, method)
    for mine, theirs in zip(found, true, strict=True):
        assert np.allclose(mine, theirs, atol=1e-6)


def dense_estimate(measured, given=None):
    """Least squares over all leaves by a dense solve; with the root's table given, by a huge weight."""
    tree = measured.tree
    of_leaf = tree.sum_up(np.eye(tree.leaves.size))
    rows, right = [], []
    for k, noisy in enumerate(measured.noisy):
        scale = np.sqrt(WORKLOAD.by_answer(measured.weights[k]))
        for v, y in zip(range(*tree.nodes_of(k).indices(tree.size)), noisy, strict=True):
            rows.append(np.kron(of_leaf[v], WORKLOAD.matrix.toarray() * scale[:, None]))
            right.append(y * scale)
    if given is not None:
        rows.append(1e4 * np.kron(of_leaf[0], np.eye(6)))
        right.append(1e4 * given)
    leaves = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0].reshape(-1, 6)
    return tree.sum_up(leaves)


def test_gls_is_least_squares_over_all_regions():
    _, measured = tables(3)
    (nation, states, counties), _ = solved(measured, NONE, "GLS")
    assert np.allclose(np.concatenate([nation, states, counties]), dense_estimate(measured), atol=1e-6)


def test_gls_keeps_fixed_sums_and_refuses_what_it_cannot_keep():
    true, measured = tables(3)
    held = constraints(true, 3, sums=[()])
    found, _ = solved(measured, replace(held, zeros=np.zeros(6, bool)), "GLS")
    assert np.allclose(found[1].sum(axis=1), true[1].sum(axis=1), atol=1e-3)  # the variance is 2^-16
    one = np.arange(6) == 2
    for wrong in (replace(held, zeros=one), replace(constraints(true, 3), zeros=np.zeros(6, bool))):
        with pytest.raises(InputError, match="GLS takes no bounds and no structural zeros"):
            solved(measured, wrong, "GLS")


def test_blue_down_is_least_squares_given_the_parent_where_no_count_is_near_zero():
    """Its weights of marginals stand for the information in each subtree, also if subtrees differ."""
    rng = np.random.default_rng(0)
    _, measured = tables(4)
    leaves = rng.integers(500, 900, (7, 6))
    full = measured.tree.sum_up(leaves)
    noisy = [
        WORKLOAD.answers(full[measured.tree.nodes_of(k)]) + rng.integers(-9, 10, (n, 12))
        for k, n in enumerate(measured.tree.level_sizes)
    ]
    measured = replace(measured, noisy=noisy)
    found, steps = solved(measured, NONE, "BlueDown")
    by_name = {step.name: np.asarray(step.solution.x, float) for step in steps}
    nodes = measured.tree.nodes_of
    assert np.allclose(by_name["nation all: least squares"], dense_estimate(measured)[nodes(0)], atol=1e-4)
    given = dense_estimate(measured, found[0][0])
    assert np.allclose(by_name["state in all: least squares"], given[nodes(1)], atol=1e-3)


def test_subtree_weights_give_the_information_of_each_subtree():
    _, measured = tables(5)
    weights, whole, tree = subtree_weights(measured), every_marginal(measured), measured.tree
    start, child = tree.children
    own = WORKLOAD.matrix.toarray()
    information = {}
    for v in reversed(range(tree.size)):
        weight = WORKLOAD.by_answer(measured.weights[tree.level[v]])
        information[v] = own.T @ (weight[:, None] * own)
        below = child[start[v] : start[v + 1]]
        if below.size:
            information[v] += np.linalg.inv(sum(np.linalg.inv(information[u]) for u in below))
        square = whole.matrix.toarray().T @ (whole.by_answer(weights[v])[:, None] * whole.matrix.toarray())
        assert np.allclose(square, information[v], rtol=1e-6)


def test_least_squares_over_the_tree_leaves_out_recodes_and_names_what_is_missing():
    _, measured = tables(6)
    recoded = Workload(SHAPE, [*WORKLOAD.queries, (np.array([0, 0, 1]), np.zeros(2, int))])
    noisy = [np.concatenate([y, y[:, :2] * 0], axis=1) for y in measured.noisy]
    variance = np.concatenate([measured.variance, np.ones((3, 1))], axis=1)
    more = Measured(measured.regions, recoded, noisy, variance)
    assert np.array_equal(tree_model(more).noisy, tree_model(measured).noisy)
    variance = measured.variance.copy()
    variance[2, 3] = np.inf
    with pytest.raises(InputError, match="measure every cell there"):
        tree_model(replace(measured, variance=variance))


def families(seed, tight=False):
    """Children with bounds on their groups and totals."""
    true, measured = tables(seed)
    rng = np.random.default_rng(seed)
    sums = Workload.marginals(SHAPE, [(), (0,)])
    held = sums.answers(true[1]).astype(float)
    room = rng.integers(0, 2 if tight else 15, held.shape)
    return true, Family(
        WORKLOAD,
        measured.noisy[1],
        measured.weights[1],
        true[0][0],
        true[0][0] == 0,
        sums,
        np.maximum(held - room, 0),
        held + room,
    )


def least(family, queries):
    """The least weighted square error of some queries over all histograms that keep the constraints."""
    x = cp.Variable((len(family.noisy), 6), nonneg=True)
    matrix = family.workload.matrix.toarray()
    away = sum(
        family.weights[q] * cp.sum_squares(x @ matrix[rows].T - family.noisy[:, rows])
        for q in queries
        for rows in [np.arange(family.workload.start[q], family.workload.start[q + 1])]
    )
    held = x @ family.sums.matrix.toarray().T
    kept = [cp.sum(x, axis=0) == family.parent, held >= family.lower, held <= family.upper]
    if family.zeros.any():  # cvxpy 1.6 takes no empty constraint
        kept.append(x[:, family.zeros] == 0)
    cp.Problem(cp.Minimize(away), kept).solve("CLARABEL")
    return float(away.value)


@pytest.mark.parametrize("seed", quick(range(6), first=1))
def test_a_pass_over_sums_reaches_the_least_error_over_all_histograms(seed):
    """The coarse histograms lose no possible answer: their constraints are those that the fine ones imply."""
    _, family = families(seed)
    family = family.implied()
    for queries in ((0,), (0, 1)):
        step = Step.solve("pass", family.over(queries, []).model)
        # Clarabel's relative accuracy is 1e-8, and the costs are below 1e3.
        assert float(step.solution.objective) == pytest.approx(least(family, queries), abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_pass_over_all_queries_states_the_family_again(monkeypatch, seed):
    _, family = families(seed)
    family = family.implied()
    queries = tuple(range(len(family.workload.queries)))
    model = family.over(queries, []).model
    monkeypatch.setattr(Family, "_is_all", lambda *_: False)
    other = family.over(queries, []).model
    assert (model.workload, model.rules) == (other.workload, other.rules)
    for ours, theirs in zip(
        (*model.data, model.most, *model.sides), (*other.data, other.most, *other.sides), strict=True
    ):
        assert np.array_equal(ours, theirs)


def test_later_passes_keep_the_answers_of_earlier_ones():
    _, family = families(2)
    steps = Steps()
    whole_histograms(steps, "A", family, PASSES.passes, (0, 1, 3))
    assert [step.name for step in steps.kept] == [
        "A: least squares, pass 1",
        "A: least squares, pass 2",
        "A: rounding",
    ]
    first, last = (np.asarray(step.solution.x) for step in steps.kept[:2])
    assert np.allclose(last.sum(axis=1), first[:, 0], atol=1e-5)  # rounded to multiples of 2^-20 in between


@pytest.mark.parametrize("seed", quick(range(6), first=1))
def test_tight_bounds_have_an_answer(seed):
    """Many sums are forced to their bounds; all queries share one pass if two leave no room."""
    _, family = families(seed, tight=True)
    steps = Steps()
    x = whole_histograms(steps, "A", family, PASSES.passes, (0, 1, 3))
    held = family.sums.answers(x)
    assert np.all((family.lower <= held) & (held <= family.upper))
    assert all(step.proved.proved_optimal for step in steps.kept)


def test_implied_sums_keep_every_answer():
    """By enumeration of two children's whole histograms."""
    rng = np.random.default_rng(0)
    workload = Workload.marginals((2,), [(), (0,)])
    forced = 0
    for _ in range(100):
        parent = rng.integers(0, 4, 2)
        lower = rng.integers(0, 3, (2, 3)).astype(float)
        upper = lower + rng.integers(0, 3, (2, 3))
        family = Family(
            workload, np.zeros((2, 3)), np.ones(2), parent, np.zeros(2, bool), workload, lower, upper
        )
        every = [np.array([x, parent - x]) for x in itertools.product(*(range(n + 1) for n in parent))]
        kept = [x for x in every if np.all((lower <= workload.answers(x)) & (workload.answers(x) <= upper))]
        if not kept:
            continue
        tight = family.implied()
        assert tight.sums is not None
        again = [tight.sums.answers(x) for x in kept]
        assert all(np.all((tight.lower <= held) & (held <= tight.upper)) for held in again)
        forced += int(np.sum((tight.lower == tight.upper) & (lower < upper)[:, : tight.lower.shape[1]]))
    assert forced


def test_rounded_fractions_add_up_to_the_parent_within_their_bounds():
    rng = np.random.default_rng(0)
    sums = Workload.marginals((4,), [(0,)])
    for _ in range(50):
        x = rng.random((5, 4)) * rng.integers(0, 2, (5, 4))
        x[0] += np.ceil(x.sum(axis=0)) - x.sum(axis=0)
        upper = np.where(rng.random((5, 4)) < 0.5, x, np.inf)
        upper = np.ceil(upper / UNIT) * UNIT
        parent = np.rint(x.sum(axis=0)).astype(np.int64)
        family = Family(sums, x, np.ones(1), parent, np.zeros(4, bool), sums, 0 * x, upper)
        held = snapped(x, family)
        assert np.array_equal(held.sum(axis=0), parent)
        assert np.array_equal(held / UNIT, np.rint(held / UNIT))
        assert np.all((held >= 0) & (held <= upper))
        assert np.abs(held - x).max() <= 6 * UNIT


def test_fractions_of_several_parents_are_rounded_as_those_of_each():
    """The child with the most room takes what is missing; if that is too little, others do."""
    rng, sums = np.random.default_rng(1), Workload.marginals((3,), [(0,)])
    few = 0
    for _ in range(50):
        x, offsets = rng.random((7, 3)), np.array([0, 2, 7])
        parent = np.array([np.rint(x[:2].sum(axis=0)), np.rint(x[2:].sum(axis=0))]).astype(np.int64)
        upper = x + rng.choice([0.001, 0.5, np.inf], x.shape)
        family = Family(sums, x, np.ones(1), parent, np.zeros(3, bool), sums, 0 * x, upper, offsets=offsets)
        held = snapped(x, family)
        for k, here in enumerate((slice(0, 2), slice(2, 7))):
            alone = np.clip(np.round(x[here] / UNIT) * UNIT, 0, upper[here])
            before, missing = alone.copy(), parent[k] - alone.sum(axis=0)
            _give(alone, 0 * alone, upper[here], missing)
            assert np.array_equal(held[here], alone)
            few += ((alone != before).sum(axis=0) > 1).any()
    assert few


def test_weights_of_queries_multiply_those_of_their_variance():
    """Doubled weights of all queries change nothing; a weight of one query is as good as less variance."""
    _, measured = tables(1)
    plain, _ = solved(measured, NONE, "TopDown", PASSES, Step.solve)
    double, _ = solved(measured, NONE, "TopDown", replace(PASSES, weights=(2.0,) * 4), Step.solve)
    heavy, _ = solved(measured, NONE, "TopDown", replace(PASSES, weights=(1.0, 9.0, 1, 1)), Step.solve)
    variance = measured.variance / [1, 9, 1, 1]
    exact, _ = solved(replace(measured, variance=variance), NONE, "TopDown", PASSES, Step.solve)
    assert all(np.array_equal(a, b) for a, b in zip(plain, double, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(heavy, exact, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(plain, heavy, strict=True))


def test_the_answers_of_a_level_are_computed_once(monkeypatch):
    """Not once for each parent, which takes hours for a nation."""
    _, measured = tables(1)
    seen, answers = [], Workload.answers
    monkeypatch.setattr(Workload, "answers", lambda own, x: (seen.append(len(x)), answers(own, x))[1])
    solved(measured, NONE, "BlueDown", PASSES, lambda *problem: Step.solve(*problem))
    assert seen.count(7) == 4  # of the 7 counties: three times to prove the tree's step, once to go down


def test_families_are_made_when_their_turn_comes(monkeypatch):
    """All of a level at once are as large as all noisy answers."""
    _, measured = tables(1)
    made, seen = [], []
    monkeypatch.setattr(methods, "Family", lambda *given: (made.append(1), Family(*given))[1])

    def solving(name, *problem):
        seen.append((name, len(made)))
        return Step.solve(name, *problem)

    solved(measured, NONE, "BlueDown", PASSES, solving)
    rounded = [number for name, number in seen if name.endswith("rounding")]
    assert rounded == [1, 2, 3, 4, 5]


def test_a_parent_without_persons_needs_no_step():
    family = Family(
        WORKLOAD, np.ones((2, 12)), np.ones(4), np.zeros(6, int), np.zeros(6, bool), None, *([0] * 2)
    )
    steps = Steps()
    assert not whole_histograms(steps, "A", family, PASSES.passes, (0, 3)).any()
    assert not steps.kept


def test_queries_for_rounding_nest():
    assert nested(WORKLOAD, None) == [0, 1, 3]
    assert nested(WORKLOAD, Workload.marginals(SHAPE, [(1,)])) == [0, 2, 3]


def test_contradicting_bounds_are_named():
    true, measured = tables(0)
    held = constraints(true, 0)
    lower = [side.copy() for side in held.lower]
    lower[2][1, 0] = held.upper[1][1, 0] + 1
    held.upper[2][1] = np.inf
    with pytest.raises(InputError, match=r"state 'B': sum 0 must be at least \d+ and at most \d+"):
        solved(measured, replace(held, lower=lower), "TopDown")


@pytest.mark.slow
@pytest.mark.parametrize("solver", [SolverOptions(), SolverOptions("fast", 600)])
@pytest.mark.parametrize("method", WHOLE)
def test_other_processes_give_the_same(method, solver):
    true, measured = tables(0)
    held = constraints(true, 0)
    here, steps = solved(measured, held, method)
    with execution.using(workers=2):
        there, others = solved(measured, held, method, solving=solving_of(solver))
    assert all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
    assert [step.name for step in steps] == [step.name for step in others]
