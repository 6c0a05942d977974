"""The benchmark of tabulation gives every method the same measurements; anchors solve the same problem."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import tabulation
from benchmarks.peers import bureau
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation.joint import joint_model
from hierdp.privacy.conversion import rho_of
from models.tree import Tree

pytestmark = pytest.mark.slow


def persons():
    """Persons of two states, with a precinct that has no county."""
    rng = np.random.default_rng(0)
    places = [("A", "a", "1"), ("A", "a", "2"), ("A", None, "3"), ("B", "b", "4"), ("B", "b", "5")]
    rows = [
        (*place, group, age, int(rng.geometric(0.02)))
        for place in places
        for group in ("x", "y", "z")
        for age in ("old", "young")
    ]
    return pd.DataFrame(rows, columns=["state", "county", "precinct", "group", "age", "persons"])


def test_tables_are_those_of_the_rows():
    given = persons()
    nation = tabulation.Nation.of(given)
    assert nation.true[0].sum() == given.persons.sum()
    third = given[given.precinct == "3"].set_index(["group", "age"]).persons
    assert nation.leaves[nation.regions.positions(["3"])[0]].tolist() == third.sort_index().tolist()
    assert "A, no county" in nation.regions.names[2]


@pytest.mark.parametrize("fixed", [0, 1])
def test_the_noise_spends_the_budget(fixed):
    measurements, constraints = tabulation.measured(tabulation.Nation.of(persons()), fixed, 0.5, 1)
    with np.errstate(divide="ignore"):
        spent = 2 / (2 * measurements.variance)
    assert np.isclose(spent.sum(), 0.5)
    assert np.isinf(measurements.variance[:, 0]).tolist() == [level <= fixed for level in range(4)]
    assert [np.array_equal(*sides) for sides in zip(constraints.lower, constraints.upper, strict=True)] == [
        level <= fixed for level in range(4)
    ]


def test_every_method_is_judged():
    nation = tabulation.Nation.of(persons())
    rows = pd.concat(tabulation.study(nation, 2, ["root", "state"]), ignore_index=True)
    shown = {*tabulation.METHODS, tabulation.ROUNDED, "InfTDA"}
    assert {name: set(part.method) for name, part in rows.groupby("invariants")} == {
        "root": shown,
        "state": {"TopDown", "BlueDown"},
    }
    assert len(rows) == 2 * (5 + 2) * 4 * 4
    fixed = rows[(rows["query"] == "total") & (rows.level == rows.invariants)]
    assert fixed[fixed.method != tabulation.ROUNDED].error.max() < 1e-3
    noisy = rows[(rows["query"] == "group*age") & (rows.level == "precinct")]
    assert noisy.error.min() > 0
    assert not tabulation.ratios(rows).isna().any(axis=None)
    assert list(tabulation.accuracy(rows[rows.invariants == "state"]).columns) == ["TopDown", "BlueDown"]


def test_errors_are_means_over_regions_and_answers():
    nation = tabulation.Nation.of(persons())
    wrong = nation.added_up(nation.leaves + np.eye(1, 6, dtype=np.int64))
    total, group, age, cells = (error[-1] for error in zip(*tabulation.errors(nation, wrong), strict=True))
    assert (total, group, age, cells) == (1, 1 / 3, 1 / 2, 1 / 6)
    assert tabulation.errors(nation, wrong)[0][0] == 5


@pytest.mark.parametrize("seed", range(2))
def test_no_method_costs_less_than_the_joint_optimum(seed):
    tree = Tree([[0, 0], [0, 0, 1, 1]])
    names = tuple(np.array([f"{i}" for i in range(n)], dtype=object) for n in tree.level_sizes)
    counts = np.random.default_rng(seed).geometric(0.15, (4, 4)) - 1
    nation = tabulation.Nation(Hierarchy(("root", "state", "county"), names, tree), (2, 2), counts)
    given = tabulation.measured(nation, 0, 0.5, seed)
    cost = joint_model(*given).objective
    joint, blue, top = (
        float(cost(np.concatenate(tabulation.solved_by(method, *given))))
        for method in ("Joint", "BlueDown", "TopDown")
    )
    assert joint <= blue * (1 + 1e-9)
    assert joint < top


def test_without_the_bureaus_code_nothing_is_compared(tmp_path):
    with pytest.raises(SystemExit, match="no checkout of uscensusbureau"):
        bureau.passes(tmp_path)
    codes = bureau.codes_of(Tree([[0, 0], [0, 1, 1]]))
    assert [len(code) for code in codes] == [1, 7, 7, 13, 13, 13]
    assert codes[5].startswith(codes[2])


def test_estimates_agree_with_the_bureaus_code():
    folder = os.environ.get("HIERDP_BUREAU")
    if folder is None:
        pytest.skip("HIERDP_BUREAU names no checkout of uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation")
    found = bureau.compare(bureau.passes(Path(folder)), "HOUSEHOLDSMALL_SCHEMA", (3, 4))
    assert found["estimates apart"] < 1e-6
    assert found["variances apart"] < 1e-9


def test_the_budget_is_that_of_the_page():
    assert round(rho_of(tabulation.EPSILON, tabulation.DELTA), 3) == 0.994
