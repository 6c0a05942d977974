"""hierdp reproduce qardaji2013: tables to the printed digit, cells that were empty, and figures."""

import numpy as np
import pytest

from hierdp.analysis import matrix_mechanism
from hierdp.analysis.workload import RANGE
from hierdp.experiments.papers import qardaji2013
from hierdp.experiments.papers.qardaji2013 import TABLE_1, TABLE_3
from tests.hierdp.papers import PAPERS, made
from tests.hierdp.papers import frames as tables_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def frames():
    return tables_of(made("qardaji2013"))


def test_without_histograms_there_is_no_figure_3(tmp_path):
    assert qardaji2013.histograms(tmp_path) == qardaji2013.histograms(None) == {}
    np.save(tmp_path / "ages.npy", np.arange(96))
    sets = qardaji2013.histograms(tmp_path / "ages.npy")
    found = qardaji2013.curve_parts(PAPERS["qardaji2013"].settings, sets, 0)
    assert [part.name for part in found] == ["figure3", "figure3-profiles", "repairs"]


def test_table_1_to_the_printed_digit(frames):
    table = frames["table1"]
    for name in ("V*[H_2]", "V[H_2]", "V*[H_b]", "V[H_b]"):
        np.testing.assert_allclose(table[name], table[f"{name}_printed"], atol=0.0051)
    exact = table[:6]
    np.testing.assert_allclose(exact["V[H_2^c]"], exact["V[H_2^c]_printed"], atol=0.0051)
    np.testing.assert_allclose(exact["V[H_b^c]"], exact["V[H_b^c]_printed"], atol=0.0101)
    assert (table.b == table["best_b_V*"]).all()
    assert (table.b == table["best_b_exact"]).all()
    assert table["V[H_2^c]"].notna().all()
    assert table["V[H_2^c]"].iloc[-1] == 2976.01
    assert table["V[H_b^c]"].iloc[-1] == 1196.35
    assert table["H_b/H_b^c"].iloc[4:8].tolist() == [1.91, 1.94, 1.95, 1.98]


def test_table_2(frames):
    table = frames["table2"].set_index("N")
    assert len(table) == len(TABLE_1)
    computed = table.loc["2^4":"2^9"]
    np.testing.assert_allclose(computed["V[H_b^c]_as_the_paper"], computed["V[H_b^c]_printed"], atol=0.0051)
    assert (table.b == table["best_b_V*"]).all()
    assert table.loc["2^10", "best_b_exact"] == 11
    around = frames["table2_1024"].set_index("b")
    assert around.loc[11, "V[H_b^c]"] == around.loc[11, "V[H_b^c]_printed"] == 156.64


def test_table_3(frames):
    table = frames["table3"]
    ours = table[table.whose == "ours"].set_index("method")
    again = table[table.whose == "ours, the paper's weights"].set_index("method")
    published = table[table.whose == "published"].set_index("method")
    assert set(published.index) == set(TABLE_3)
    computed = [f"2^{k}" for k in range(4, 10)]
    for name in ("F", "H_12", "H_16", "H_16^c", "H_2^c", "Quad = H_2,g^c"):
        np.testing.assert_allclose(ours.loc[name, computed], published.loc[name, computed], atol=0.0051)
    np.testing.assert_allclose(again.loc["H_12^c", computed], published.loc["H_12^c", computed], atol=0.0051)
    for k in (4, 10):
        assert ours.loc["W_H", f"2^{k}"] == published.loc["W_H", f"2^{k}"]
    every = [f"2^{k}" for k in TABLE_1]
    assert ours.loc[["F", "H_12^c", "H_16^c", "H_2^c", "W_H"], every].notna().all(axis=None)
    bound = ours.loc["MM, lower bound (SDP)", "2^4"]
    assert (ours.loc[ours.index != "MM, lower bound (SDP)", "2^4"].dropna() > bound).all()


def test_sampled_cells_are_corrected():
    mean, error = qardaji2013._sample(64, 8, False)
    assert mean == pytest.approx(37.07, abs=0.005)
    rng = np.random.default_rng(0)
    from hierdp.analysis.regular import of_ranges

    first, last = np.triu_indices(64)
    drawn = rng.integers(0, first.size, (200, 1000))
    means = of_ranges(64, 8, np.full(2, 1 / 8), first, last + 1)[drawn].mean(axis=1)
    assert np.std(means) == pytest.approx(error * 10, rel=0.2)  # 1,000 draws, not 100,000


def test_algorithms_as_printed_and_corrected(frames):
    table = frames["algorithms"]
    complete = table[table.b**table.h == table.N]
    two = complete[complete.h == 2]
    np.testing.assert_allclose(two.Algorithm_2_corrected, two.exact, rtol=0.01)
    assert (table.Algorithm_2_as_printed > 1e6).all()


def test_budgets_are_certified_and_levels_dropped(frames):
    table = frames["budgets"]
    assert table.KKT.all()
    assert (table.optimized <= table.equal).all()
    dropped = table[(table.N == 1024) & (table.b == 2)]
    assert dropped.families_asked.item() == "16 × 8 × 8"
    assert dropped.levels_asked.item() == 3


def test_figures(frames):
    two = frames["figure2_best"].set_index(["N", "method"])
    assert two.loc[(1024, "H_b^c"), "b"] == 11
    four = frames["figure4_best"].set_index(["panel", "method"])
    assert list(four.index.levels[0]) == ["a", "b", "c", "d"]
    assert four.loc[("a", "H_b^c"), "over_flat"] == 1
    assert four.loc[("b", "H_b^c"), "b"] == 8
    assert four.loc[("c", "H_b^c"), "b"] == 12
    for panel in "abcd":
        assert four.loc[(panel, "H_b,o^c"), "over_flat"] < 0.9


def test_dimensions(frames):
    table = frames["break_even"].set_index(["d", "hierarchy"]).flat_is_best_to_n
    assert table[1, "H_b^c, equal"] == 42
    assert [table[d, "H_b^c, geometric"] for d in (1, 2, 3, 4)] == [35, 15, 10, 8]
    ratio = frames["propositions"].set_index(["d", "n", "b"])["proposition/exact"]
    assert ratio[2, 4096, 8] == pytest.approx(1, abs=0.02)
    assert (ratio > 1).all()


def test_ragged_rows_follow_from_the_papers_count_of_nodes(frames):
    table = frames["ragged"]
    np.testing.assert_allclose(table.as_counted_by_the_paper, table["V*_printed"], atol=0.0101)
    ragged = table[~table["b^h = N"]]
    assert ((ragged.nodes_counted_exactly - ragged["V*_printed"]).abs() > 0.5).all()
    assert len(ragged) == 4


def test_six_wavelet_cells_follow_the_law(frames):
    table = frames["wavelet"].set_index("N")
    assert table.printed_is.tolist() == ["exact", *["law"] * 5, "exact", "law"]
    np.testing.assert_allclose(table.law, table.prefixes_twice, atol=0.0101)


def test_45_follows_from_a_third_of_the_bins(frames):
    table = frames["until_45"].set_index("N")
    assert table.index[table.flat_is_best].max() == 42
    assert table.index[table["flat_is_best_by_N/3"]].max() == 45


def test_the_low_rank_program_stays_at_single_bins():
    gram = RANGE.gram(8)
    found = matrix_mechanism.low_rank(gram, 50, start=np.eye(8))
    assert matrix_mechanism.mean_variance(found, gram, 36) == pytest.approx(2 * RANGE.length(8), rel=1e-3)


def test_the_gram_matrix_of_ranges_over_their_length():
    from hierdp.experiments.papers.qardaji2013 import by_length

    ranges = np.array([[i <= t <= j for t in range(9)] for i in range(9) for j in range(i, 9)], float)
    ranges /= ranges.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(by_length(9), ranges.T @ ranges)


def test_errors_are_those_that_the_releases_state(frames):
    table = frames["figure3"]
    assert len(table) == 2 * 3 * len(qardaji2013.ONE_AXIS)
    assert set(table["size"]) == {1, 64, 128}
    known = table[table.method != "StructureFirst"]
    assert known.expected_mse.notna().all()
    assert table[table.method == "StructureFirst"].expected_mse.isna().all()
    flat = known[known.method == "Flat"].set_index(["data", "size"])
    # Noise of scale 1 on each bin has a variance of 1/(2 sinh² ½).
    assert flat.expected_mse["FULL", 64] == pytest.approx(64 / (2 * np.sinh(0.5) ** 2))
    for method in set(known.method):
        mine = known[known.method == method]
        assert 0.2 < mine.mse.mean() / mine.expected_mse.mean() < 5
    boxes = frames["figure3_boxes"]
    assert set(boxes.method) == {line.label for line in qardaji2013.TWO_AXES}


def test_repairs_are_compared_with_least_squares(frames):
    table = frames["repairs"]
    least = table[table.repair == "least squares"]
    assert (least.ratio == 1).all()
    assert (least.runs == 8).all()
    assert set(table.queries) == {"1 bin", "16 bins", "all ranges"}  # there are only 128 bins
    sparse = table[(table.data == "SPARSE") & (table.queries == "1 bin") & (table.epsilon == 0.1)]
    sparse = sparse.set_index("repair").ratio
    assert sparse["non-negative"] < 0.5
    assert sparse["non-negative"] < sparse[qardaji2013.CLIPPED] < 1
