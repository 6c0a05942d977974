"""The reproduction: runs repeat by seed, tables agree with the runs, optima agree with brute force."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hierdp.data.commuting import FILE, commuting
from hierdp.data.trips import SETS, binary_areas, random_areas, trips
from hierdp.experiments.papers import boninsegna2025
from hierdp.experiments.papers.boninsegna2025 import planner
from hierdp.mechanisms.top_down import METHODS, top_down, true_table
from hierdp.privacy.conversion import papers_rho_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import NotSolved, Step
from models import Chebyshev, SparsestChebyshev
from solvers.fast.chebyshev import fewest
from tests.hierdp.papers import PAPERS, folder_of, frames, made

pytestmark = pytest.mark.slow

TINY = PAPERS["boninsegna2025"].settings


SMALL = replace(TINY, runs=1, epsilons=(1.0,), methods=("InfTDA", "SH"))


def test_the_tables_say_what_is_known_to_hold():
    tables = frames(made("boninsegna2025"))
    first = tables["data"].set_index("data").loc["binary sparse"]
    assert (f"{first.trips:,}", f"{first.pairs_with_trips:,}") == (
        first.published_trips,
        first.published_pairs,
    )
    assert set(tables["figure3_max_error"].method) == set(TINY.methods) <= set(METHODS)
    discoveries = tables["figure5_binary_sparse_false_discovery_rate"].set_index("method")
    assert not discoveries.loc["SH"].drop(columns="epsilon").to_numpy().any()
    assert (discoveries.loc["VanillaGauss"]["16"] > 0.9).all()
    utility = tables["utility"]
    for bound in ("theorem", "bound_possible", "bound_measured"):
        assert not utility[f"{bound}_fails"].any()
        assert utility[f"{bound}_largest_ratio"].between(0.01, 1).all()
    assert (utility.bound_measured_finest <= utility.bound_possible_finest).all()
    assert (utility.bound_possible_finest <= utility.theorem_finest).all()
    proposition = tables["proposition"]
    assert set(proposition.method) == {"VanillaGauss", "SH"} & set(TINY.methods)
    assert not proposition.fails.any()
    assert proposition.largest_ratio.between(0, 1).all()
    assert (proposition.largest_ratio[proposition.method == "VanillaGauss"] > 0.3).all()
    fewest = tables["fewest"]
    assert (fewest.positive_fewest <= fewest.positive_IntOpt).all()
    italy = tables["italy"].set_index(["method", "epsilon"])
    assert italy.Italy_published_max_error["InfTDA", 1.0] == 143.6
    assert italy.commuters_max_error["InfTDA", 1.0] > italy.commuters_max_error["InfTDA", 10.0] > 0
    assert italy.commuters_max_error["TDA_inf", 1.0] > 0  # these commuters are few; TINY's only two ε
    known = tables["finest"][tables["finest"].published_max_error.notna()]
    assert set(known.data) == {"binary sparse"}
    assert set(tables["finest"].data) == {*TINY.sets, "commuting"}
    top_downs = known[known.method.isin(["InfTDA", "TDA_L2"])]
    # Two runs of each are near the published means with the same noise, and far below with all the budget.
    assert (top_downs.same_noise_max_error / top_downs.published_max_error).between(0.7, 1.3).all()
    assert top_downs.max_error.sum() < 0.85 * top_downs.published_max_error.sum()
    assert known[known.method == "VanillaGauss"].same_noise_max_error.isna().all()


def test_agreement_by_hand():
    metrics = ("max_error", "false_discovery_rate", "false_negative_rate")
    rows = [
        {"method": "SH", **dict.fromkeys(metrics, 0.4),
         **{f"same_noise_{m}": x for m in metrics}, **{f"published_{m}": y for m in metrics}}
        for x, y in ((0.2, 0.4), (0.3, 0.2), (0.5, float("nan")))
    ]  # fmt: skip
    (row,) = boninsegna2025.agreement(pd.DataFrame(rows)).to_dict("records")
    assert row == {
        "method": "SH", "means": 2,
        "whole_budget_median": 1.5, "whole_budget_min": 1.0, "whole_budget_max": 2.0,
        "their_budget_median": 1.0, "their_budget_min": 0.5, "their_budget_max": 1.5,
        "their_budget_false_discovery_rate": 0.2, "their_budget_false_negative_rate": 0.2,
    }  # fmt: skip


def test_runs_are_rows_of_one_measurement_each():
    areas = random_areas(0, 2, 2, 3)
    rows = boninsegna2025.accuracy({"a": trips(areas, 0.5)}, replace(TINY, methods=("InfTDA", "SH")), seed=0)
    assert len(rows) == 2 * 2 * 2 * 5  # methods × ε × runs × levels
    assert not rows.duplicated(["data", "method", "epsilon", "run", "level"]).any()
    assert rows[rows.method == "SH"].bound_measured.isna().all()
    assert rows[rows.method == "InfTDA"].theorem.notna().all()
    others = boninsegna2025.accuracy({"a": trips(areas, 0.5)}, replace(TINY, methods=("InfTDA",)), seed=1)
    assert (rows[rows.method == "InfTDA"].l1.to_numpy() != others.l1.to_numpy()).any()


def test_false_negatives_are_a_share_of_what_is_there():
    data = trips(binary_areas(2), 0.5)
    made = top_down(data, 1.0, 1e-8, SimulatedNoise(0), "SH")
    truth = true_table(data)
    for row in boninsegna2025.errors_of(truth, made):
        there = (truth.level == row["level"]).sum()
        assert row["false_negative_rate"] == row["false_negatives"] / there


def test_a_method_that_was_stopped_is_not_tried_again(monkeypatch):
    tried = []

    def stops(data, epsilon, delta, noise, method, **more):
        tried.append((method, epsilon))
        if method == "TDA_inf" and data.counts.size > 10:
            raise NotSolved("time_limit", "too slow")
        return top_down(data, epsilon, delta, noise, method, **more)

    monkeypatch.setattr(boninsegna2025, "as_published", stops)
    settings = replace(TINY, methods=("TDA_inf", "SH"), solver_runs=3)
    rows = boninsegna2025.accuracy({"a": trips(binary_areas(3), 0.5)}, settings, seed=0)
    assert set(rows.method) == {"SH"}
    assert boninsegna2025._absent(rows, settings) == ["TDA_inf on a"]
    assert tried.count(("TDA_inf", 10.0)) == 1


@pytest.mark.parametrize("method", ["VanillaGauss", "TDA_inf", "InfTDA"])
def test_what_is_too_large_is_left_out(method):
    data = trips(binary_areas(2), 0.5)
    fits = replace(TINY, most_pairs=16, most_positive=8)
    assert boninsegna2025._feasible(method, data, fits)
    assert boninsegna2025._feasible(method, data, replace(fits, most_pairs=15, most_positive=7)) == (
        method == "InfTDA"
    )


def brute_fewest(noisy, total):
    """The fewest positive entries of all answers with the least Chebyshev distance."""
    answers = [x for x in itertools.product(range(total + 1), repeat=len(noisy)) if sum(x) == total]
    far = [max(abs(a - b) for a, b in zip(x, noisy, strict=True)) for x in answers]
    return min(sum(v > 0 for v in x) for x, d in zip(answers, far, strict=True) if d == min(far))


@pytest.mark.parametrize("seed", range(60))
def test_sparsest_is_the_fewest_of_every_segment(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, size=4)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    noisy, totals = rng.integers(-3, 7, size=offsets[-1]), rng.integers(0, 7, size=4)
    model = Chebyshev(noisy, totals, offsets)
    step = Step.solve("level", model)
    before = np.array(step.solution.x)
    found = boninsegna2025.sparsest(step)
    assert model.certificate(found.x).optimal
    differing = 0
    for j in range(4):
        here = slice(offsets[j], offsets[j + 1])
        assert (found.x[here] > 0).sum() == brute_fewest(noisy[here].tolist(), int(totals[j]))
        differing += (found.x[here] > 0).sum() < (before[here] > 0).sum()
    assert found.differing == differing
    assert (step.solution.x == before).all()  # the release's own answer is unchanged


def test_sparsest_of_an_empty_level():
    step = Step.solve("level", Chebyshev(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64)))
    assert boninsegna2025.sparsest(step).differing == 0


def test_fewest_counts_against_the_truth():
    data = trips(random_areas(3, 2, 6, 6), 0.1, seed=1)
    settings = replace(TINY, sparse_epsilons=(0.5,), sparse_runs=2)
    rows = boninsegna2025.fewest({"a": data}, settings, seed=0)
    assert rows.level.tolist() == [1, 2, 3, 4] * 2
    for method in ("IntOpt", "fewest"):
        true = rows.truly_positive - rows[f"false_negative_{method}"]
        assert (true == rows[f"positive_{method}"] - rows[f"false_positive_{method}"]).all()
    assert (rows.positive_fewest <= rows.positive_IntOpt).all()
    assert (rows.problems_that_differ[rows.positive_fewest == rows.positive_IntOpt] == 0).all()
    assert rows.problems_that_differ.sum() > 0
    assert (rows[rows.level == 1].cells == 6).all()


def test_possible_nodes():
    data = trips(random_areas(1, 2, 2, 5), 0.2)
    regions = data.axes[0].tree.level_sizes.tolist()[1:]
    order = ["destination", "origin", "destination", "origin"]
    possible = [regions[0], regions[0] ** 2, regions[0] * regions[1], regions[1] ** 2]
    assert list(boninsegna2025.possible_nodes(data, order)) == possible


def test_what_the_authors_spent():
    published = boninsegna2025.authors_results()
    for epsilon in published.epsilon.unique():
        half = papers_rho_of(boninsegna2025.half(epsilon, 1e-8), 1e-8)
        assert half == pytest.approx(papers_rho_of(epsilon, 1e-8) / 2)
    assert boninsegna2025.root_2(3.0, 1e-8) ** 2 == pytest.approx(18)
    assert set(boninsegna2025.USERS) == set(SETS) == set(published.data) - {"Italy"}
    assert set(published.method) <= set(METHODS)
    assert not published.isna().any(axis=None)
    by = published.set_index(["data", "method", "epsilon"])
    assert by.index.is_unique
    assert by.loc["random dense", "SH", 10.0].tolist() == [4.8, 0, 0.37, 3.6]
    assert ("random dense", "TDA", 10.0) not in by.index


def test_missing_runs_are_reported():
    (figure,) = (part for part in made("boninsegna2025").parts if part.name == "figure6")
    assert "stopped" not in " ".join(figure.texts)
    rows = pd.DataFrame({"data": ["a", "b"], "method": ["SH", "SH"], "epsilon": [1.0, 10.0]})
    settings = replace(TINY, methods=("SH", "TDA"))
    assert boninsegna2025._absent(rows, settings) == ["SH on a, b", "TDA on a, b"]
    assert boninsegna2025._absent(rows, replace(settings, epsilons=(10.0,))) == ["SH on a", "TDA on a, b"]


def test_by_level_is_means_over_runs():
    rows = pd.DataFrame(
        {
            "method": ["A"] * 6, "epsilon": [1.0] * 6, "run": [0, 0, 0, 1, 1, 1],
            "level": [0, 1, 2] * 2, "max_error": [0, 2, 6, 0, 4, 7],
        }
    )  # fmt: skip
    assert boninsegna2025.by_level(rows, "max_error").to_dict("records") == [
        {"method": "A", "epsilon": 1.0, "1": 3.0, "2": 6.5}
    ]


def test_what_a_planner_sees_is_what_was_released():
    data = commuting(folder_of("boninsegna2025") / FILE)
    released = top_down(data, 1.0, 1e-8, SimulatedNoise(0), "InfTDA").table
    largest, region, matrix = planner(data, true_table(data), released, 4, "A release.")
    before = {tuple(cell): n for cell, n in zip(data.cells.tolist(), data.counts.tolist(), strict=True)}
    names = data.axes[0].names[2]
    finest = released[(released.origin_level == "county") & (released.destination_level == "county")]
    after = {
        (row.origin, row.destination): row.count_
        for row in finest.rename(columns={"count": "count_"}).itertuples()
    }
    between = sorted((n for (o, d), n in before.items() if o != d), reverse=True)
    table = largest.frames["largest_between"]
    assert table.true.tolist() == between[:4]
    for row in table.itertuples():
        origin, destination = row.origin.split()[0], row.destination.split()[0]
        assert row.released == after.get((origin, destination), 0)
        assert row.error == row.released - row.true
        assert row.error_percent == pytest.approx(100 * row.error / row.true, abs=1e-3)
    assert row.origin.endswith(")")
    within = sorted((n for (o, d), n in before.items() if o == d), reverse=True)
    assert [n for n in largest.frames["largest_within"].true if n] == within[:4]
    inflow = {d: sum(n for (o, e), n in before.items() if e == d != o) for d in range(names.size)}
    busiest = max(inflow, key=lambda d: inflow[d])
    sizes = region.frames["region_by_size"]
    assert names[busiest] in region.texts[0]
    assert sizes.true.sum() == sum(n for (_, d), n in before.items() if d == busiest)
    assert sizes.released.sum() == sum(n for (_, d), n in after.items() if d == names[busiest])
    states = released[(released.origin_level == "state") & (released.destination_level == "state")]
    assert "9 flows between 3 regions" in matrix.texts[0]
    shown = np.ma.filled(matrix.figure.axes[1].images[0].get_array(), 0)
    assert sorted(shown.ravel().tolist()) == sorted([0] * (9 - len(states)) + states["count"].tolist())
    labels = [label.get_text() for label in matrix.figure.axes[0].get_xticklabels()]
    assert labels == ["NY", "AL", "CA"]


def test_without_the_file_the_last_set_is_shown():
    study = boninsegna2025.study(SMALL, None)
    names = [part.name for part in study.parts]
    assert "figure3" not in names
    assert names[-1] == "matrix"
    assert "InfTDA on binary sparse" in study.parts[-1].texts[0]


def test_drawn_sets_follow_the_seed():
    one, other = (boninsegna2025.drawn("random sparse", seed) for seed in (0, 1))
    assert one.axes[0].names[-1].size != other.axes[0].names[-1].size
    assert boninsegna2025.drawn("binary dense", 0).counts.size == 2**15


def test_sparsest_is_what_the_model_says_of_longer_ones():
    noisy = [2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    for total in range(1, 12):
        step = Step.solve("level", Chebyshev(np.array(noisy), np.array([total]), np.array([0, 10])))
        found = boninsegna2025.sparsest(step)
        assert (found.x > 0).sum() == fewest(SparsestChebyshev(noisy, total))
