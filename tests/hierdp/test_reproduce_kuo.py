"""hierdp reproduce kuo2018: runs repeat by seed, tables agree with the runs, and fits are optimal."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp.counts.size_runs import SizeRuns, cumulative_of
from hierdp.data.taxi import taxi
from hierdp.experiments.papers import kuo2018
from hierdp.experiments.papers.kuo2018 import BOTTOM_UP, NAIVE, fitted, released
from hierdp.experiments.papers.kuo2018.shared_seed import OneSeed, TheirDraws
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.metrics.runs import earth_movers_runs
from hierdp.privacy.noise import SimulatedNoise, geometric
from models import Isotonic
from tests.hierdp.papers import PAPERS, folder_of, frames, made

pytestmark = pytest.mark.slow

TINY = PAPERS["kuo2018"].settings


@pytest.fixture(scope="module")
def data():
    return SizeRuns.of(taxi(folder_of("kuo2018") / "taxi"))


def test_published_numbers_stand_beside_ours():
    tables = frames(made("kuo2018"))
    table = tables["bottom_up"]
    printed = table[table.noise == "published"]
    assert printed[["level_0", "level_1", "level_2"]].to_numpy().tolist() == [
        list(row) for row in BOTTOM_UP["Taxi"]
    ]
    assert printed.method.tolist() == ["bottom-up", "Hc"]
    mine = table[(table.data == "taxi") & (table.noise != "published")]
    assert set(zip(mine.method, mine.noise, mine.fit, strict=True)) == {
        (method, noise, fit)
        for method in ("bottom-up", "Hc")
        for noise in ("independent", "one seed")
        for fit in ("lowest", "middle")
    }
    assert (mine.runs == TINY.table_runs).all()
    one = tables["one_region"]
    naive = one[one.method == "naive"].set_index("data").published
    assert naive["taxi"] == NAIVE["Taxi"]
    assert naive["Hawaiian"] == NAIVE["Hawaiian"]
    assert one[one.method != "naive"].published.isna().all()


def test_with_one_seed_errors_add_up_and_without_it_they_do_not(data):
    rows = kuo2018.bottom_up_table({"taxi": ((data, 1), 4)}, TINY, seed=0)
    means = rows[(rows.method == "bottom-up") & (rows.fit == "lowest")].groupby(["noise", "level"]).emd.mean()
    for noise in ("one seed", "independent"):
        assert (
            means[noise, 0] <= 28 * means[noise, 2]
        )  # a sum's error is at most the sum of its parts' errors
    assert means["one seed", 0] > 0.6 * 28 * means["one seed", 2]
    assert means["independent", 0] < 0.5 * 28 * means["independent", 2]


def test_the_published_rows_imply_one_seed():
    """Bottom-up errors at the root are nearly the number of leaves times the error of a leaf."""
    table = kuo2018.coherence().set_index("data")
    assert (table.share > 0.9).all()
    assert (table.share_1 > 0.9).all()
    assert table.loc["Taxi"].at_most == pytest.approx(28 * 772.8)
    assert (table.share < 1.02).all()  # above 1 only because a leaf's error is rounded to 4.3


def test_every_fit_is_optimal_and_between_the_ends():
    rng = np.random.default_rng(1)
    apart = 0
    for _ in range(40):
        groups = int(rng.integers(1, 30))
        noisy = np.sort(rng.integers(0, groups + 1, 60)) + rng.integers(-4, 5, 60)
        low, middle, high = (fitted(noisy, groups, fit) for fit in ("lowest", "middle", "highest"))
        model = Isotonic(noisy, p=1, lower=0, upper=groups, integer=True)
        assert all(model.certificate(x).optimal for x in (low, middle, high))
        assert (low <= middle).all()
        assert (middle <= high).all()
        apart += (low != high).any()
    assert apart > 20


def test_the_lowest_fit_is_what_a_release_takes(data):
    for method, top in (("bottom-up", False), ("Hc", True)):
        plan = plan_of(method, data.hierarchy.levels, max_size=100, smallest=1)
        measured = measure(data, 1.0, SimulatedNoise(5), plan)
        theirs = post_process(measured, data.hierarchy, plan)
        ours = released(data, 1.0, SimulatedNoise(5), 100, "lowest", top)
        assert earth_movers_runs(theirs, ours).tolist() == [0] * data.hierarchy.size


def test_one_seed_starts_over_with_every_measurement():
    zeros = np.zeros(50, np.int64)
    for source in (OneSeed(7), TheirDraws(7)):
        one, other = (source.draw(geometric("q", 1, 0.5), zeros) for _ in range(2))
        assert one.answers.tolist() == other.answers.tolist()
        assert not one.spend.private
    assert OneSeed(7).draw(geometric("q", 1, 0.5), zeros).answers.tolist() == (
        SimulatedNoise(7).draw(geometric("q", 1, 0.5), zeros).answers.tolist()
    )


def test_one_seed_gives_every_true_count_away(data):
    """The root's true counts are the sums of its leaves, so the noise can be isolated and removed."""
    tree, runs = data.hierarchy.tree, data.runs
    true = np.array([cumulative_of(*runs.of(r), 50) for r in range(tree.size)])
    for noise, given_away in ((OneSeed(3), True), (SimulatedNoise(3), False)):
        noisy = np.array([noise.draw(geometric("q", 1, 1.0), row).answers for row in true])
        guess = (noisy[tree.leaves].sum(axis=0) - noisy[0]) // (tree.leaves.size - 1)
        assert (noisy - guess == true).all() == given_away


def test_their_draws_are_the_repositorys():
    """Two geometric draws of RandomState, minus one each: the code of yzk5145/coco, line by line."""
    prng = np.random.RandomState(20)
    p = 1 - np.exp(-0.7)
    x = prng.geometric(p, size=30) - 1
    y = prng.geometric(p, size=30) - 1
    assert (
        TheirDraws(20).draw(geometric("q", 1, 0.7), np.zeros(30, np.int64)).answers.tolist()
        == (x - y).tolist()
    )


def test_all_levels_at_once_is_never_further_from_the_estimates(data):
    rows = kuo2018.joint(data, TINY, seed=0)
    cost = rows[rows.level == 0].pivot(index=["epsilon", "run"], columns="method", values="cost")
    assert (cost["all levels at once"] <= cost["family by family"]).all()
    assert (cost["all levels at once"] <= cost["top down, merged"]).all()
    assert (cost["all levels at once"] < cost["family by family"]).any()


def test_runs_are_rows_of_one_measurement_each(data):
    lines = kuo2018.lines_of(("Hc", "Hg"), ("weighted", "plain"))
    rows = kuo2018.accuracy({"taxi": (data, 1)}, lines, replace(TINY, epsilons=(1.0,)), 0, "test")
    assert len(rows) == 2 * 2 * 3 * 3  # runs × methods × merges, and matching by original estimates × levels
    assert not rows.duplicated(["method", "merging", "run", "level"]).any()
    assert rows.groupby(["method", "merging", "run"]).emd.sum().nunique() == 12


def test_errors_by_position_add_up(data):
    rows = kuo2018.by_rank(data, replace(TINY, runs=1), seed=0)
    assert set(rows.method) == {"Hc", "Hg"}
    assert rows.groupby("method").size().tolist() == [kuo2018.BINS] * 2
    assert (
        rows.true_size.is_monotonic_increasing
        or rows.groupby("method").true_size.is_monotonic_increasing.all()
    )


def test_without_data():
    study = kuo2018.study(replace(TINY, runs=1, table_runs=1), None)
    found = frames(study)
    assert "joint" not in found
    assert "readme" not in found
    assert not found["data"].data.str.contains("taxi").any()
    assert set(found["one_region"].data) == {"housing, nation"}


def test_the_whole_nation_has_the_published_row():
    few = replace(TINY, runs=1, epsilons=(1.0,), nation_runs=1, max_size=20)
    study = kuo2018.study(few, None)
    table = frames(study)["bottom_up"]
    nation = table[table.data == "housing, nation"]
    assert nation[nation.noise == "published"].level_0.tolist() == [78_459.0, 32_480.0]
    assert set(nation.noise) == {"published", "independent", "one seed"}
