"""The reproduction of Zhang et al. 2014: runs repeat by seed, and tables agree with the runs."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from hierdp.analysis.bayes_bound import least_errors
from hierdp.errors import InputError
from hierdp.experiments.papers import zhang2014
from hierdp.experiments.papers.zhang2014 import (
    LARGEST,
    PUBLISHED_METHODS,
    TABLES,
    bound,
    drawn,
    histograms,
    net_trace,
    search_log,
)
from hierdp.experiments.papers.zhang2014 import STUDIED as NAMES
from hierdp.experiments.run import noise_for
from hierdp.mechanisms.clustering import METHODS, clustering
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import range_error
from hierdp.privacy.noise import geometric
from hierdp.tables.binning import Histogram
from tests.hierdp.papers import PAPERS, folder_of, frames, made

pytestmark = pytest.mark.slow

TINY = PAPERS["zhang2014"].settings


@pytest.fixture(scope="module")
def bench():
    return folder_of("zhang2014")


@pytest.fixture(scope="module")
def runs(bench):
    return zhang2014.accuracy(histograms(bench, TINY.sets, 0), TINY, 0)


def test_runs_are_rows_of_one_measurement_each(runs, bench):
    rows, ranges = runs
    sets = histograms(bench, TINY.sets, 0)
    assert len(rows) == 2 * 2 * 2 * len(TINY.methods)
    assert set(rows.method) == set(NAMES)
    assert not rows.duplicated(["data", "epsilon", "run", "method"]).any()
    assert not ranges.duplicated(["data", "epsilon", "run", "method", "size"]).any()
    assert rows[rows.method == "Laplace"].mse.nunique() == 8  # no two runs share their noise
    assert (rows[rows.method == "Laplace"].clusters == 48).all()
    of_the_paper = {
        "PHP": {}, "AHP": {"share": 0.5}, "AHP-greedy η=0": {"share": 0.5, "eta": 0}, "GS": {"width": 48}
    }  # fmt: skip
    for method, options in of_the_paper.items():
        true = sets["GOWALLA-2D"]
        noise = noise_for(0, "GOWALLA-2D", 0.1, 1)
        released = METHODS[method.partition(" ")[0]].publish(true, 0.1, noise, **options)
        row = rows[
            (rows.data == "GOWALLA-2D") & (rows.epsilon == 0.1) & (rows.run == 1) & (rows.method == method)
        ].iloc[0]
        assert row.kld == kld(true, released.counts)
        assert row["kld_1"] == kld(true, released.counts, 1.0)
        assert row.mse == pytest.approx(np.mean((true - released.counts) ** 2))
        assert row.clusters == len(set(released.clusters.tolist()))
        mine = ranges[
            (ranges.data == "GOWALLA-2D") & (ranges.epsilon == 0.1) & (ranges.run == 1)
            & (ranges.method == method)
        ]  # fmt: skip
        assert mine.mse.tolist() == range_error(true, released.counts, mine["size"]).tolist()


def test_tables_hold_means_spreads_and_what_was_published(runs):
    rows, _ = runs
    table = zhang2014.tables(rows, TINY).frames["kld"].set_index(["data", "epsilon", "what"])
    here = rows[(rows.epsilon == 0.1) & (rows.data == "NETTRACE") & (rows.method == "GS")].kld
    assert table.loc[("NETTRACE", 0.1, "mean"), "GS"] == pytest.approx(here.mean())
    assert table.loc[("NETTRACE", 0.1, "±"), "GS"] == pytest.approx(here.std())
    assert table.loc[("NETTRACE", 0.1, "runs"), "GS"] == 2
    printed = table.loc[("NETTRACE", 0.1, "published")]
    assert tuple(printed[list(PUBLISHED_METHODS)]) == TABLES[0.1, "NetTrace"]
    assert math.isnan(printed.AHP)
    assert ("GOWALLA-2D", 0.1, "published") not in table.index


def test_published_numbers_are_the_papers():
    """Spot checks against the paper, and its statement that AHP has the least KLD in all cases."""
    assert TABLES[1.0, "NetTrace"][PUBLISHED_METHODS.index("SF")] == 3.835
    assert TABLES[0.1, "Location"][PUBLISHED_METHODS.index("GS")] == 1.539
    assert TABLES[0.01, "Search Log"][PUBLISHED_METHODS.index("PHP")] == 0.86
    assert all(min(row) == row[0] for row in TABLES.values())


def test_orderings():
    values = {
        "AHP-greedy": (1.0, 3.0),
        "NF": (5.0, 5.0),
        "SF": (5.0, 5.002),
        "PHP": (0.5, 0.5),
        "GS": (9.0, 9.0),
    }
    rows = pd.DataFrame(
        {
            "data": "NETTRACE",
            "epsilon": 1.0,
            "run": run,
            "method": method,
            "kld": found[run],
            "kld_1": 10 - found[run],
        }
        for method, found in values.items()
        for run in (0, 1)
    )
    row = zhang2014.orderings(rows, TINY).frames["orderings"].iloc[0]
    assert row["order"] == "PHP < AHP-greedy < NF = SF < GS"
    assert row.published_order == "AHP-greedy < PHP < NF < SF < GS"
    assert row.pairs_as_published == "9 of 10"  # all but AHP before PHP
    assert row.best_of_all == "PHP"
    assert row["best_rival_over_AHP-greedy"] == 0.25
    assert row.order_floor_1 == "GS < SF = NF < AHP-greedy < PHP"


def test_published_errors_are_held_against_the_least():
    counts = {"NetTrace, rebuilt": np.array([0] * 600 + [110, 80, 50, 20] * 10)}
    few = replace(TINY, epsilons=(0.1,), bound_runs=1)
    values = {"AHP": 2.5, "AHP-greedy": 2.4, "NF": 4.8, "SF": 1.0, "PHP": 0.1, "GS": 7.0, "Laplace": 4.0}
    rows = [
        {
            "data": "NetTrace, rebuilt",
            "epsilon": 0.1,
            "run": 0,
            "method": name,
            "kld": value,
            "mse": 9 * value,
        }
        for name, value in values.items()
    ]
    runs = pd.DataFrame(rows)
    part = bound(runs, counts, few, 0)
    row = part.frames["bound"].iloc[0]
    least = least_errors(counts["NetTrace, rebuilt"], 0.1)
    assert (row.least_kld, row.least_mse, row.AHP_kld, row.AHP_mse) == (least.kld, least.mse, 2.5, 22.5)
    assert 0.1 < least.kld < 0.572
    assert (row.below_by_place, row.published_is, row.published_AHP_kld) == ("PHP", "above", 0.572)
    assert least_errors(counts["NetTrace, rebuilt"], row.epsilon_needed).kld == pytest.approx(0.572, rel=1e-3)
    assert row.AHP_kld_on_draws > least.kld
    scarce = {"NetTrace, rebuilt": np.array([0] * 6000 + [9, 6, 3, 2] * 10)}
    assert bound(runs, scarce, few, 0).frames["bound"].published_is[0] == "below"


def test_claims_are_counted():
    errors = {"AHP-greedy": (1, 4, 3), "NF": (2, 3, 9), "SF": (8, 8, 8), "PHP": (9, 9, 9), "GS": (9, 9, 9),
              "Laplace": (2, 5, 2)}  # fmt: skip
    ranges = pd.DataFrame(
        {"data": "x", "epsilon": 1.0, "run": run, "method": method, "size": size, "mse": value + run}
        for method, row in errors.items()
        for size, value in zip((1, 2, 4), row, strict=True)
        for run in (-0.5, 0.5)
    )
    row = zhang2014.claims(ranges).frames["claims"].iloc[0]
    assert (row["AHP-greedy_under_all_rivals"], row["AHP-greedy_under_Laplace"], row.grows_with_size) == (
        2,
        2,
        1,
    )
    assert row["rival_over_AHP-greedy_least"] == 0.75
    assert row["rival_over_AHP-greedy_median"] == 2
    assert row["rival_over_AHP-greedy_most"] == pytest.approx(8 / 3)


def test_the_optimum_costs_least_and_all_rules_have_the_same_counts():
    table = frames(made("zhang2014"))["optimum"]
    assert (table.cost_over_optimal.dropna() >= 1 - 1e-12).all()
    assert (table[table.rule == "AHP"].error_over_optimal == 1).all()
    known = table[table.rule == zhang2014.KNOWN]
    assert len(known) == 4
    assert (known.error_over_optimal <= 1).all()


def test_rules_are_run_on_what_ahp_clusters(bench):
    """AHP's row has the expected error of its clusters, and the cost of its own step."""
    counts = histograms(bench, ("NETTRACE",), 0)["NETTRACE"]
    rows = zhang2014.rules({"NETTRACE": counts}, TINY, 7)
    for epsilon in TINY.epsilons:
        for run in (0, 1):
            noise = noise_for(7, "rules", "NETTRACE", epsilon, run)
            released = clustering(Histogram.of(counts), epsilon, noise, "AHP")
            clusters = released.table["cluster"].to_numpy()
            mine = rows[(rows.epsilon == epsilon) & (rows.run == run) & (rows.rule == "AHP")].iloc[0]
            assert mine.cost == float(released.steps[0].solution.objective)
            assert mine.clusters == clusters.max() + 1
            error = zhang2014.expected_mse(counts, clusters, released.ledger.spends[-1].epsilon)
            assert mine.expected_mse == pytest.approx(error)


def test_expected_error_is_the_mean_over_noise():
    counts = np.array([0, 0, 3, 9, 4, 50])
    clusters = np.array([0, 0, 0, 1, 1, 2])
    q = math.exp(-0.5)
    variance = 2 * q / (1 - q) ** 2
    spread = 6 + Fraction(25, 2)
    expected = (float(spread) + variance * (1 / 3 + 1 / 2 + 1)) / 6
    assert zhang2014.expected_mse(counts, clusters, 0.5) == pytest.approx(expected)
    noise = noise_for(0, "x")
    sums = noise.draw(geometric("sums", 1, 0.5), np.tile([3, 13, 50], (20_000, 1))).answers
    released = np.repeat(sums / [3, 2, 1], [3, 2, 1], axis=1)
    assert ((released - counts) ** 2).mean() == pytest.approx(expected, rel=0.05)


def test_tuning_compares_with_the_default():
    table = frames(made("zhang2014"))["tuning"]
    assert set(zip(table.method, table.parameter, strict=True)) == set(zhang2014.PARAMETERS)
    assert (table.best_over_default <= table.worst_over_default).all()
    assert (table.default_mse > 0).all()


@pytest.mark.parametrize(("bins", "many"), [(1, 4), (2, 4), (48, 3), (4096, 12)])
def test_range_sizes_fit(bins, many):
    sizes = zhang2014.sizes_of(bins, many)
    assert sizes[0] == 1
    assert sizes[-1] == max(1, bins // 2)
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= many


def test_a_file_of_the_papers_own_data(tmp_path):
    """Whoever has one of the four files names it as the paper does, and gets its rows of Tables 1 to 4."""
    (tmp_path / "Location.csv").write_text("\n".join(map(str, drawn(3, 48)["drawn, by time"])))
    tables = frames(zhang2014.study(TINY, tmp_path / "Location.csv"))
    first = tables["kld"][tables["kld"].what == "published"].iloc[0]
    assert tuple(first[list(PUBLISHED_METHODS)]) == TABLES[1.0, "Location"]
    assert tables["data"].data.tolist() == ["Location", "published: Location"]
    assert set(tables["bound"].published_is) <= {"above", "below"}
    assert len(tables["definitions"]) == 2 * 5
    (tmp_path / "Location.csv").write_text("3\n-1\n")
    with pytest.raises(InputError, match="at least 0"):
        zhang2014.study(TINY, tmp_path / "Location.csv")


def test_data_that_are_not_there(tmp_path):
    for folder in (None, tmp_path):
        sets = histograms(folder, TINY.sets, 5, 100)
        assert list(sets) == ["drawn, sorted", "drawn, by time"]
        assert all(
            counts.shape == (100,) and (counts >= 0).all() and counts.any() for counts in sets.values()
        )
        assert (np.diff(sets["drawn, sorted"]) <= 0).all()
    assert (drawn(5, 100)["drawn, by time"] == sets["drawn, by time"]).all()
    assert (drawn(6, 100)["drawn, by time"] != sets["drawn, by time"]).any()


def test_sf_makes_fewer_runs_where_bins_are_many(bench):
    few = replace(TINY, many_bins=47, few_runs=4, sf_runs=1)
    rows, _ = zhang2014.accuracy(histograms(bench, ("NETTRACE",), 0), few, 0)
    assert set(rows[rows.method == "SF"].clusters) == {4}
    assert set(rows[rows.method == "SF"].run) == {0}
    assert zhang2014.tuned(histograms(bench, ("NETTRACE",), 0), few, 0).empty
    usual, _ = zhang2014.accuracy(histograms(bench, ("NETTRACE",), 0), TINY, 0)
    assert set(usual[usual.method == "SF"].clusters) == {5}


def test_rebuilt_sets_keep_the_sums(bench):
    sets = histograms(bench, ("NETTRACE", "NetTrace, rebuilt", "Search Log, rebuilt"), 0)
    assert list(sets) == ["NETTRACE", "NetTrace, rebuilt"]  # the other needs SEARCHLOGS, which is missing
    finer = sets["NetTrace, rebuilt"]
    assert finer.size == 16 * 48
    assert finer.sum() == sets["NETTRACE"].sum()
    assert (np.diff(finer) <= 0).all()
    assert (finer >= 0).all()


def test_net_trace_falls_from_the_largest_count():
    coarse = np.array([7383, 2563, 1437, 954, 747, 627, 542, 0, 0])
    finer = net_trace(coarse)
    assert finer[0] == LARGEST
    assert finer.sum() == coarse.sum()
    assert (np.diff(finer) <= 0).all()
    # A curve may cross its neighbour at the end; sorting then moves a few people.
    assert (np.abs(finer.reshape(-1, 16).sum(axis=1) - coarse) <= 0.1 * coarse).all()
    assert (finer[-32:] == 0).all()
    assert net_trace(np.array([16 * 9]), largest=2).tolist() == [9] * 16
    assert net_trace(np.array([320, 160]))[-1] <= 10
    assert net_trace(np.zeros(2, np.int64)).tolist() == [0] * 32


def test_search_log_spreads_each_bin_over_eight():
    coarse = np.array([800, 0, 7, 80_000])
    finer = search_log(coarse, 5)
    assert finer.reshape(-1, 8).sum(axis=1).tolist() == coarse.tolist()
    assert finer[-8:].min() > 9_000
    assert finer.tolist() == search_log(coarse, 5).tolist() != search_log(coarse, 6).tolist()
