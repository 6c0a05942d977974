"""Optimal plans: the variance is that of least squares, no other split has less, a release runs them."""

import json
import math
import tomllib
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import brentq

from hierdp import SimulatedNoise, check, plan, release
from hierdp.cli.app import main
from hierdp.cli.plan import toml_of
from hierdp.errors import InputError
from hierdp.mechanisms.expected import regions_of
from hierdp.mechanisms.tabulation.budget import ONE_PERSON
from hierdp.mechanisms.tabulation.optimal import optimal
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from models import BudgetSplit
from solvers import solve
from tests.marks import quick

LEVELS, ATTRIBUTES = ["state=3", "county=12"], ["group=4", "age=2"]
TARGETS = ["state:group", "county:age=2", "county:total"]
SHAPE = {"epsilon": 1.0, "delta": 1e-9, "levels": LEVELS, "attributes": ATTRIBUTES}


def variances(made, targets):
    """The weighted variances of targets in a plan's table."""
    rows = made.table.set_index(["counts_of", "query"])["standard_error"] ** 2
    found = []
    for one in targets:
        named, _, weight = one.partition("=")
        found.append(float(weight or 1) * float(rows[tuple(named.split(":"))]))
    return found


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("largest", [True, False])
def test_the_variance_that_is_minimized_is_that_of_least_squares(bounded, largest):
    """Of a regular tree; the plan's standard errors are computed by `BlockInference`."""
    how = {**SHAPE, "method": "GLS", "bounded": bounded}
    made = plan("tabulation", optimize=TARGETS, largest=largest, **how)
    combined = max if largest else sum
    cost = combined(variances(made, TARGETS))
    assert made.notes[0].startswith(f"Optimized: the variance that is minimized is {cost:.6g}, at most ")
    before = combined(variances(plan("tabulation", **how), TARGETS))
    assert made.notes[0].endswith(f"with the shares before, it is {before:.6g}.")
    assert cost < 0.7 * before


@pytest.mark.parametrize("largest", [True, False])
def test_no_other_split_has_less(largest):
    """Other splits near the optimal one, and random ones, by `BlockInference`."""
    made = plan("tabulation", method="GLS", optimize=TARGETS, largest=largest, **SHAPE)
    combined, rng = (max if largest else sum), np.random.default_rng(0)
    cost, names = combined(variances(made, TARGETS)), made.plan["queries"]
    levels = ["root", "state", "county"]
    best = np.array([[share(made.plan, level, name) for name in names] for level in levels])
    for k in range(12):
        near = best * rng.uniform(0.7, 1.3, best.shape)
        parts = near if k % 2 else best + rng.dirichlet(np.ones(best.size)).reshape(best.shape)
        parts = np.round(parts / parts.sum() * 10**6).astype(int)
        parts[0, 0] = 0  # the total is public
        by_level = {
            level: {name: Fraction(int(p), int(row.sum())) for name, p in zip(names, row, strict=True)}
            for level, row in zip(levels, parts, strict=True)
            if row.any()
        }
        given = {
            "level_shares": [
                f"{level}={Fraction(int(row.sum()), int(parts.sum()))}"
                for level, row in zip(levels, parts, strict=True)
            ],
            "query_shares": [
                f"{level}:{name}={part}" for level, row in by_level.items() for name, part in row.items()
            ],
        }
        there = plan("tabulation", method="GLS", **SHAPE, **given)
        assert combined(variances(there, TARGETS)) > cost * (1 - 2e-3)  # a thousandth is for every cell


RECODED = {
    "attributes": {"group": list("123456"), "age": list("12")},
    "recodes": {
        "broad": {"attribute": "group", "categories": {"x": ["1", "2", "3", "4"], "y": ["5", "6"]}},
        "other": {"attribute": "group", "categories": {"u": ["1"], "v": list("2345"), "w": ["6"]}},
    },
}


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("largest", [True, False])
def test_errors_of_recoded_queries_are_those_of_least_squares(bounded, largest):
    """Coarser categories are of unequal sizes. GLS learns nothing from them, so they have no share."""
    queries = ["total", "broad", "broad*age", "other*age", "group", "detailed"]
    how = {"epsilon": 1.0, "delta": 1e-9, "levels": ["state=2", "county=6"], "method": "GLS",
           "bounded": bounded, "plan": {**RECODED, "queries": queries}}  # fmt: skip
    targets = ["county:broad", "state:other*age=2", "county:broad*age"]
    made = plan("tabulation", optimize=targets, largest=largest, **how)
    combined = max if largest else sum
    cost = combined(variances(made, targets))
    assert made.notes[0].startswith(f"Optimized: the variance that is minimized is {cost:.6g}, at most ")
    before = combined(variances(plan("tabulation", **how), targets))
    assert made.notes[0].endswith(f"with the shares before, it is {before:.6g}.")
    assert cost < 0.7 * before
    assert {share(made.plan, level, name) for level in ("state", "county") for name in queries[1:4]} == {0.0}


@pytest.mark.parametrize("method", ["Joint", "TopDown"])
def test_no_grid_of_splits_of_recoded_queries_has_less(method):
    """Of one region on two levels: all splits among three queries in steps of a fortieth are tried.

    Joint learns the same from either level, TopDown needs the root's.
    """
    queries = Queries(plan_of({**RECODED, "queries": ["broad", "other", "detailed"]}))
    places, unit = regions_of(["state=1"]), ONE_PERSON
    found = optimal(method, queries, places, unit, 0.1, ["root:broad", "root:other*age=2"], False)
    assert found.proof.objective * (1 - 1e-2) <= found.proof.bound <= found.proof.objective

    workload = queries.workload_of(["broad", "other", "detailed"])
    matrix, start = workload.matrix.toarray().astype(float), workload.start
    wanted = queries.workload_of(["broad", "other*age"])
    asked, weight = wanted.matrix.toarray(), np.repeat([1 / 2, 2 / 6], [2, 6])

    def cost(split):  # by least squares with the total known: a large weight stands for its exactness
        scale = np.repeat(split, np.diff(start)) * 0.1 * 2 / unit.squared_sensitivity()
        information = (matrix.T * scale) @ matrix + 1e9 * np.ones((12, 12))
        return float(weight @ np.einsum("ij,jk,ik->i", asked, np.linalg.inv(information), asked))

    used = ["root", "state"] if method == "Joint" else ["root"]
    best = [sum(share(found.shares, level, name) for level in used) for name in queries.plan.queries]
    assert cost(np.array(best)) == pytest.approx(found.proof.objective, rel=1e-6)
    grid = [np.array([a, b, 40 - a - b]) / 40 for a in range(40) for b in range(40 - a)]
    assert min(map(cost, grid)) >= float(found.proof.bound) * (1 - 1e-6)  # of that large weight


def test_recodes_that_distinguish_too_much_are_refused():
    many = [str(k) for k in range(200)]
    recode = {"attribute": "a", "categories": {f"c{k}": many[2 * k : 2 * k + 2] for k in range(100)}}
    fine = {"attribute": "a", "categories": {f"d{k}": many[k * 50 : k * 50 + 50] for k in range(4)}}
    queries = Queries(plan_of({
        "attributes": {"a": many, "b": list("123")}, "recodes": {"c": recode, "d": fine},
        "queries": ["c", "d", "detailed"],
    }))  # fmt: skip
    with pytest.raises(InputError, match="distinguish too many categories"):
        optimal("TopDown", queries, regions_of(LEVELS), ONE_PERSON, 0.1, ["state:c"], False)


def share(entries, level, query):
    whole = Fraction(entries["level_shares"][level])
    return float(whole * Fraction(entries["query_shares"].get(level, {}).get(query, "0")))


def test_the_gap_is_small_and_proved():
    queries = Queries(plan_of({"attributes": {"a": list("123"), "b": list("12")}}))
    places = regions_of(LEVELS)
    for method in ("GLS", "TopDown"):
        found = optimal(method, queries, places, ONE_PERSON, 0.1, ["state:a", "county:detailed"], False)
        assert found.proof.objective * (1 - 0.01) <= found.proof.bound <= found.proof.objective
        assert found.given > found.proof.objective
        plan_of(queries.plan.as_dict() | found.shares).check_levels(places.levels)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["town:a"], "the levels are 'root', 'state', 'county'"),
        (["state"], "write LEVEL:QUERY"),
        (["state:a=0"], "the weight must be a number above 0"),
        (["state:a=much"], "the weight must be a number above 0"),
        (["root:total"], "these answers are public"),
        (["state:nothing"], "nothing"),
    ],
)
def test_targets_that_say_nothing_are_named(targets, message):
    queries = Queries(plan_of({"attributes": {"a": list("123"), "b": list("12")}}))
    with pytest.raises(InputError, match=message):
        optimal("GLS", queries, regions_of(LEVELS), ONE_PERSON, 0.1, targets, False)


def test_a_release_runs_an_optimal_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {"state": rng.choice(list("AB"), 400), "age": rng.choice(["old", 'it\'s "young"'], 400)}
    )
    people["county"] = people.state + rng.choice(list("12"), 400)
    people["group"] = rng.choice(["x", "y"], 400)
    people.to_csv("people.csv", index=False)
    loss = {"epsilon": 1, "delta": 1e-9}

    def planned(*words):
        shape = ["--levels", "state:2,county:4", "--attribute", "group=2", "--attribute", "age=2"]
        return CliRunner().invoke(
            main, ["plan", "tabulation", *shape, "--epsilon", "1", "--delta", "1e-9", *words]
        )

    done = planned("--optimize", "county:age", "--plan-out", "optimal.toml")
    assert done.exit_code == 0, done.output
    attributes = {name: sorted(people[name].unique()) for name in ("group", "age")}
    made = release(
        people, "tabulation", plan="optimal.toml", levels=["state", "county"], regions_from_data=True,
        attributes=attributes, noise=SimulatedNoise(1), **loss,
    )  # fmt: skip
    assert "age by county" in [spend.query for spend in made.ledger.spends]
    assert "optimal.toml exists" in planned("--optimize", "state:age", "--plan-out", "optimal.toml").output
    assert "say what to --optimize" in planned("--plan-out", "none.toml").output


def test_a_plan_is_written_as_toml():
    entries = plan_of({
        "attributes": {"a": ["x \"quoted\"", "é\\n"], "b": ["1", "2"]},
        "queries": ["total", "a*b"],
        "level_shares": {"root": "1/3", "a state": "2/3"},
        "bounds": ["root:total:0..9"],
    }).as_dict()  # fmt: skip
    assert tomllib.loads(toml_of(entries)) == entries


def top_down_variances(children, variances):
    """Each level's mean variance of least squares level by level, from that of its noise: by matrices."""
    found, covariance = [variances[0]], np.array([[variances[0]]])
    for k, noise in zip(children, variances[1:], strict=True):
        above = len(covariance)
        spread = np.kron(np.eye(above), np.full((k, 1), 1 / k))  # a parent's count, in equal parts
        apart = np.eye(above * k) - np.kron(np.eye(above), np.full((k, k), 1 / k))
        covariance = spread @ covariance @ spread.T + noise * apart @ apart.T
        found.append(covariance.trace() / len(covariance))
    return np.array(found)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("largest", [True, False])
def test_the_best_shares_of_top_down_are_those_of_least_squares_level_by_level(bounded, largest):
    """Of matrices; a grid of shares has no less, and the plan gives cells what they take from above."""
    axes = {"origin": {"state": 3}, "destination": {"state": 2, "county": 4}}
    how = {"epsilon": 1.0, "delta": 1e-9, "axes": axes, "bounded": bounded, "trips": 4, "distinct": True}
    weights = np.array([1, 5, 2, 60])[bounded:]

    def cost(made):
        noise = made.table.noise_deviation.to_numpy() ** 2  # discrete, of a variance far above 1
        each = top_down_variances([2, 3, 2], [*([0.0] * bounded), *noise])[bounded:]
        return (max if largest else sum)(weights * each)

    made = plan("top-down", optimize=weights.tolist(), largest=largest, **how)
    rng, best = np.random.default_rng(0), np.array(made.plan["shares"])
    near = [best * rng.uniform(0.9, 1.1, best.size) for _ in range(20)]
    for other in (*near, *rng.dirichlet(np.ones(best.size), 20), np.ones(best.size), weights**0.5):
        assert cost(plan("top-down", shares=other.tolist(), **how)) > cost(made)


def test_shares_of_levels_without_a_choice_are_small():
    """A level with one place has no noise of its own, as its count is public."""
    how = {"epsilon": 1.0, "delta": 1e-9, "axes": {"origin": {"nation": 1, "state": 5}}}
    shares = plan("top-down", optimize=[1, 1], **how).plan["shares"]
    assert 0 < shares[0] < 0.002
    assert plan("top-down", optimize=[1, 1], largest=True, **how).plan["shares"][0] < shares[0]


def test_the_best_shares_of_levels_are_in_proportion_to_roots_of_their_weights():
    """Square roots for Gaussian noise, cube roots for double-geometric noise."""
    sizes = {"epsilon": 1.0, "levels": ["state=2", "county=4"]}
    made = plan("count-of-counts", optimize=[1, 8, 27], **sizes)
    assert made.notes[0].endswith("--share 0.1667 --share 0.3333 --share 0.5")
    wrongs = [([1, 2], "2 weights for 3 levels"), ([1, 0, 1], "positive and finite")]
    for wrong, message in (*wrongs, ([1e-305, 1, 1], "too different for a proof")):
        with pytest.raises(InputError, match=message):
            plan("count-of-counts", optimize=wrong, **sizes)
    with pytest.raises(InputError, match="not both"):
        plan("count-of-counts", optimize=[1, 1, 1], shares=[1, 1, 1], **sizes)
    for delta, shares in ((None, [1 / 6, 1 / 3, 1 / 2]), (1e-6, [1 / 14, 4 / 14, 9 / 14])):
        made = plan("group-size", optimize=[1, 8 if delta is None else 16, 27 if delta is None else 81],
                    max_size=3, delta=delta, **sizes)  # fmt: skip
        assert made.plan["shares"] == pytest.approx(shares)  # BudgetSplit's answer, in floats


def test_shares_for_the_largest_error_make_all_weighted_variances_equal():
    """In proportion to the weights for Gaussian noise, else to their roots; no split near is better."""
    sizes = {"epsilon": 0.1, "levels": ["state=2", "county=4"]}  # so that discrete noise is nearly continuous
    rng = np.random.default_rng(0)
    for mechanism, how, shares in (
        ("count-of-counts", sizes, [1 / 8, 2 / 8, 5 / 8]),
        ("group-size", {**sizes, "max_size": 3}, [1 / 8, 2 / 8, 5 / 8]),
        ("group-size", {**sizes, "max_size": 3, "delta": 1e-6}, [1 / 30, 4 / 30, 25 / 30]),
    ):
        weights = np.array([1, 4, 25])

        def cost(made, weights=weights):
            return (weights * made.table["noise_deviation"] ** 2).max()

        made = plan(mechanism, optimize=weights.tolist(), largest=True, **how)
        assert made.plan["shares"] == pytest.approx(shares)  # in floats
        assert "proved" in made.notes[0]
        for _ in range(5):
            near = (np.array(shares) * rng.uniform(0.8, 1.2, 3)).tolist()
            assert cost(plan(mechanism, shares=near, **how)) > cost(made)
        assert cost(plan(mechanism, optimize=weights.tolist(), **how)) > cost(made)
    with pytest.raises(InputError, match="give optimize, too"):
        plan("count-of-counts", largest=True, **sizes)


HOMES = pd.DataFrame(
    {"home": np.arange(240), "state": np.repeat(list("AB"), 120), "county": np.arange(240) // 20}
)
PEOPLE = HOMES.loc[HOMES.index.repeat(np.arange(240) % 5)]
SIZES = {"group": ["home"], "groups": HOMES, "levels": ["state", "county"], "max_size": 4}


@pytest.mark.parametrize(("method", "delta"), quick(product(["M_c^dp", "M_H^dp"], [None, 1e-6]), every=3))
def test_optimal_shares_of_group_sizes_lower_the_errors_asked_for(method, delta):
    """Of the planned noise, and of released counts at the counties, which have most of the weight."""
    weights = np.array([1, 1, 1000])
    how = {
        "epsilon": 3.0,
        "delta": delta,
        "max_size": 4,
        "levels": ["state=2", "county=12"],
        "method": method,
    }
    best, equal = plan("group-size", optimize=weights.tolist(), **how), plan("group-size", **how)
    cost, before = (weights @ one.table["noise_deviation"].to_numpy() ** 2 for one in (best, equal))
    assert cost < before
    true = np.bincount(np.arange(240) % 5, minlength=5) / 12  # 4 homes of each size in each county

    def error(shares):
        made = [
            release(PEOPLE, "group-size", **SIZES, method=method, epsilon=3.0, delta=delta, shares=shares,
                    noise=SimulatedNoise(seed)).table["groups"].to_numpy()[-60:].reshape(12, 5)
            for seed in range(10)
        ]  # fmt: skip
        return np.mean((np.array(made) - true) ** 2)

    # Of these seeds the ratio is 0.13 to 0.57.
    assert error(best.plan["shares"]) < 0.8 * error(None)


def test_uneven_shares_weigh_levels_by_their_noise():
    """A whole weight for each level, in the ratio of ρ, or ε²; equal shares leave the paper's program."""
    for delta, weights in ((None, [1, 4, 9]), (1e-6, [1, 2, 3])):
        made = release(PEOPLE, "group-size", **SIZES, epsilon=1.0, delta=delta, shares=[1, 2, 3],
                       method="M_H^dp", noise=SimulatedNoise(0))  # fmt: skip
        ratios = np.asarray(made.steps[-1].model.weights) / made.steps[-1].model.weights[0]
        assert ratios.tolist() == pytest.approx(weights, rel=1e-3)  # whole weights have three digits
    even = release(PEOPLE, "group-size", **SIZES, epsilon=1.0, shares=[2, 2, 2], noise=SimulatedNoise(0))
    assert even.steps[-1].model.weights is None


def test_a_plan_of_shares_is_written_and_released(tmp_path):
    HOMES.to_csv(tmp_path / "homes.csv", index=False)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    file = str(tmp_path / "optimal.toml")
    for mechanism in ("group-size", "count-of-counts"):
        shape = ["--levels", "state:2,county:12", "--max-size", "4", "--epsilon", "1"]
        done = CliRunner().invoke(
            main, ["plan", mechanism, *shape, *("--optimize 1 " * 2).split(), "--optimize", "8",
                   "--plan-out", file, "--overwrite"])  # fmt: skip
        assert done.exit_code == 0, done.output
        own = ["--group", "home", "--groups", str(tmp_path / "homes.csv"), "--levels", "state,county",
               "--max-size", "4", "--epsilon", "1"]  # fmt: skip
        words = ["release", mechanism, str(tmp_path / "people.csv"), *own, "--plan", file,
                 "--overwrite", "--out", str(tmp_path / mechanism)]  # fmt: skip
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        spent = json.loads((tmp_path / mechanism / "manifest.json").read_text())["budget"]["spends"]
        assert [one["epsilon"] for one in spent] == pytest.approx([0.25, 0.25, 0.5])
        assert [line for line in check(tmp_path / mechanism) if line.verdict == "FAILS"] == []
    (tmp_path / "optimal.toml").write_text("attributes = 3")
    assert "no option 'attributes'" in CliRunner().invoke(main, words).output


ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
"""The sizes of the attributes of Adult (Xiao et al. 2023)."""


def of_residuals(sizes, ways, largest):
    """ResidualPlanner's plan (Xiao et al. 2023) as a budget split: every effect is measured by itself.

    The sum, or the maximum, of the variances of all marginals' counts is least. Attributes of one size are
    alike, and the errors convex, so some optimum spends alike on sets of like attributes: a part stands for
    all sets with the same sizes. That makes 100 attributes a small problem.

    An effect A with σ² of noise costs p_A/σ², p_A = Π_{i in A} (1 − 1/n_i), and adds p_B σ_B² / Π n_i² (over
    the i in A, not in B) to each count of a marginal A that contains B. A unit of budget is a privacy cost of
    1, or 2ρ.
    """
    often = Counter(sizes)
    kinds = [
        Counter(kind)
        for k in range(max(ways) + 1)
        for kind in combinations_with_replacement(sorted(often), k)
        if all(often[n] >= many for n, many in Counter(kind).items())
    ]
    sets = np.array([_ways(often, kind) for kind in kinds], dtype=float)
    share = np.array([math.prod((1 - 1 / n) ** many for n, many in kind.items()) for kind in kinds])
    asked = [a for a, kind in enumerate(kinds) if kind.total() in ways]
    weights = np.zeros((len(asked), len(kinds)))
    for row, a in enumerate(asked):
        for b, part in enumerate(kinds):
            if part <= kinds[a]:
                rest = math.prod(n**-2.0 for n in (kinds[a] - part).elements())
                weights[row, b] = _ways(kinds[a], part) * share[b] ** 2 * rest
    if not largest:
        cells = [sets[a] * math.prod(kinds[a].elements()) for a in asked]
        weights = np.array([cells]) @ weights
    return BudgetSplit(weights, 1.0, 1 / sets)


def _ways(whole, part):
    """In how many ways a set with some sizes contains one with others."""
    return math.prod(math.comb(whole[n], many) for n, many in part.items())


@pytest.mark.parametrize(
    ("ways", "root_mean", "largest"),
    [
        # Of the authors' program, run by itself, with Clarabel's tolerances at 1e-13; they publish 3.047 and
        # 12.047, 6.359 and 67.802, 10.665 and 253.605.
        ([1], 3.0468232175613394, 12.046538806813126),
        ([2], 6.358720131533941, 67.8021260301956),
        pytest.param([0, 1, 2, 3], 10.665008050725904, 253.60515591527377, marks=pytest.mark.slow),
    ],
)
def test_plans_of_residuals_are_those_of_residual_planner(ways, root_mean, largest):
    """Xiao et al. 2023, Tables 3 and 5: Adult, at a privacy cost of 1. Proofs are within 1e-10."""
    cells = sum(math.prod(sizes) for k in ways for sizes in combinations(ADULT, k))
    found = solve(of_residuals(ADULT, ways, largest=False))
    assert math.sqrt(found.objective / cells) == pytest.approx(root_mean, rel=1e-8)
    assert found.bound == pytest.approx(found.objective, rel=1e-10)
    found = solve(of_residuals(ADULT, ways, largest=True))
    assert found.objective == pytest.approx(largest, rel=1e-8)
    assert found.bound == pytest.approx(found.objective, rel=1e-10)


def test_plans_of_residuals_of_a_hundred_attributes():
    """Of ten categories each, and up to two at once: Xiao et al. 2023, Theorem 5, summed up by hand."""
    kinds = [of_residuals([10] * 100, range(3), largest) for largest in (False, True)]
    found, most = map(solve, kinds)
    roots = sum(
        math.comb(100, b) * (9 / 10) ** b
        * math.sqrt(10**b * sum(math.comb(100 - b, j) / 10**j for j in range(3 - b)))
        for b in range(3)
    )  # fmt: skip
    assert found.objective == pytest.approx(roots**2, rel=1e-12)
    cells = 1 + 100 * 10 + math.comb(100, 2) * 100
    assert found.objective / cells < most.objective  # the largest is above the mean
    for one in (found, most):
        assert one.status == "optimal"
        assert one.bound == pytest.approx(one.objective, rel=1e-10)


def test_plans_of_residuals_by_hand():
    """The closed form over all sets; for single attributes, the one equation that is left."""
    sizes, ways = (2, 3, 3, 4), (0, 1, 2, 3)
    roots = 0.0
    for inner in (one for k in ways for one in combinations(range(4), k)):
        part = math.prod(1 - 1 / sizes[i] for i in inner)
        summed = sum(
            math.prod(sizes[i] for i in outer) * math.prod(sizes[i] ** -2 for i in outer if i not in inner)
            for k in ways
            for outer in combinations(range(4), k)
            if set(inner) <= set(outer)
        )
        roots += math.sqrt(part * part * summed)
    assert solve(of_residuals(sizes, ways, largest=False)).objective == pytest.approx(roots**2, rel=1e-12)

    def cost(most):  # the least privacy cost of variances of at most `most` for each attribute's counts
        parts = [(1 - 1 / n, n) for n in sizes]

        def slope(total):  # of 1/σ² + Σ p²/(most − σ²/n²) in σ², where p²/… is p over σ_n²
            return sum(p * p / n**2 / (most - total / n**2) ** 2 for p, n in parts) - 1 / total**2

        total = brentq(slope, 1e-9, most * min(n**2 for n in sizes) * (1 - 1e-12), xtol=1e-15, rtol=1e-15)
        return 1 / total + sum(p * p / (most - total / n**2) for p, n in parts)

    # Costs are in proportion to 1/variance, so the variance at cost 1 is the cost at variance 1.
    assert solve(of_residuals(sizes, (1,), largest=True)).objective == pytest.approx(cost(1.0), rel=1e-9)
