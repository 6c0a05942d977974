"""Which method wins where: the script runs, winners have the least errors, pages show what was measured."""

import shlex
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import __main__ as harness
from benchmarks import which_wins as script
from benchmarks.which_wins import (
    anonymized,
    decision,
    factorizations,
    flows,
    histograms,
    page,
    sizes,
    stability,
)
from benchmarks.which_wins.rows import COLUMNS, means, row
from hierdp import tables
from hierdp.analysis.matrix_mechanism import mean_variance
from hierdp.analysis.workload import RANGE
from hierdp.experiments.choosing import methods
from hierdp.experiments.papers.zhang2014 import histograms as real
from hierdp.mechanisms import registry
from hierdp.privacy.noise import gaussian
from tests.marks import quick

ROOT = Path(__file__).parents[1]
DATA = ROOT / "../shared/data"


def made(errors, **more):
    """Rows with these errors by method, one for each run."""
    about = {"kind": flows.FLOWS, "data": "a", "epsilon": 1.0, "metric": "L1", "level": 1, "depth": 2, **more}
    return [row(method=m, run=k, error=e, **about) for m, runs in errors.items() for k, e in enumerate(runs)]


def test_means_have_intervals_and_ties():
    found = means(pd.DataFrame(made({"x": [1, 2, 3], "y": [4.9, 5, 5.1], "z": [4, 5, 6]}))).set_index(
        "method"
    )
    assert found["mean"].tolist() == pytest.approx([2, 5, 5])
    assert found.half["x"] == pytest.approx(
        4.302653 / 3**0.5, rel=1e-6
    )  # Student's t, two degrees of freedom
    assert found.best.tolist() == [True, False, False]
    assert found.tied.tolist() == [True, False, True]  # 4.484 is over 5 − 2.484, and under 5 − 0.25
    assert means(pd.DataFrame(made({"x": [1.0], "y": [2.0]}))).tied.tolist() == [True, False]


def test_the_choice_by_hand():
    first = made({"InfTDA": [1, 1], "TDA": [2, 2], "SH": [8, 8], "TDA_L2": [0.1, 0.1]}, data="a")
    second = made({"InfTDA": [4, 4], "TDA": [1, 1], "SH": [1, 1]}, data="b")  # TDA_L2 is not in all settings
    found = decision.choice(means(pd.DataFrame(first + second)))
    assert (found.methods, found.next, found.best, found.settings) == (("TDA",), "InfTDA", 1, 2)
    assert found.over == pytest.approx((1 * 4) ** 0.5 / (2 * 1) ** 0.5)
    assert decision.choice(means(pd.DataFrame(first)).head(0)) is None
    alike = decision.choice(means(pd.DataFrame(made({"TDA": [100], "InfTDA": [104], "SH": [106]}))))
    assert (alike.methods, alike.next, alike.over) == (("InfTDA", "TDA"), "SH", pytest.approx(1.06))
    none = decision.choice(means(pd.DataFrame(made({"SH": [0], "TDA": [1]}))))
    assert (none.methods, none.over > 1000) == (("SH",), True)


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_has_the_least_geometric_mean(seed):
    rng = np.random.default_rng(seed)
    errors = rng.lognormal(size=(4, 3, 2))  # settings, methods, runs
    rows = []
    for k, each in enumerate(errors):
        rows += made(dict(zip(("InfTDA", "TDA", "SH"), each, strict=True)), data=f"set {k}")
    found = decision.choice(means(pd.DataFrame(rows)))
    scores = np.log(errors.mean(axis=2)).mean(axis=0)
    assert ("InfTDA", "TDA", "SH")[scores.argmin()] in found.methods
    if len(found.methods) == 1:
        assert np.log(found.over) == pytest.approx(np.diff(np.sort(scores))[0])


def test_every_method_has_a_command_that_exists():
    known = {
        name for one in registry.MECHANISMS.values() for name in (one.name, *(m.name for m in one.methods))
    }
    for command in methods.COMMANDS.values():
        words = shlex.split(command)
        options = dict(zip(words[1::2], words[2::2], strict=True))
        mechanism = registry.MECHANISMS[words[0]]
        assert {option[2:] for option in options} <= set(mechanism.keywords)
        chosen = options.get("--method", "Hc").removeprefix("bottom-up ").split(" x ")
        assert set(chosen) <= known


@pytest.fixture(scope="module")
def tiny():
    """A small case of every kind."""
    leaves = [np.unique(np.random.default_rng(k).integers(1, 9, 30), return_counts=True) for k in range(4)]
    by_size = sizes.Case("epsilon", "small", 1.0, sizes._tree(leaves, (2, 2)), 8)
    trips = pd.DataFrame({"o": list("aabbc"), "d": list("xyxyx"), "n": [50, 3, 1, 90, 7]})
    table = tables.flows(trips, axes={"origin": ["o"], "destination": ["d"]}, count="n")
    bins = np.repeat([30, 0, 2, 9], 4)
    return {
        "sizes": [by_size],
        "zcdp": [by_size],
        "flows": [flows.Case("small", table, 1.0)],
        "anonymized": [by_size],
        "stability": [flows.Case("small", table, 1.0)],
        "factorizations": [factorizations.Case(8)],
        "histograms": [histograms.Case("line", bins, 1.0), histograms.Case("map", np.outer(bins, bins), 0.1)],
    }


@pytest.mark.parametrize("kind", quick(script.KINDS, first=2))
def test_the_script_runs_and_its_winners_have_the_least_errors(kind, tiny, monkeypatch, tmp_path):
    monkeypatch.setitem(script.KINDS, kind, (lambda *_: tiny[kind], script.KINDS[kind][1]))
    given, file = {"only": (kind,), "runs": 2}, tmp_path / f"{kind}.parquet"
    harness.measured(script, given, file, None)
    rows = script.read(tmp_path)
    assert list(rows)[: len(COLUMNS) + 1] == [*COLUMNS, "seconds"]
    assert rows.groupby(["data", "level", "metric", "method"]).size().unique().tolist() == [2]
    assert (rows.error >= 0).all()
    found = means(rows)
    for key, here in rows.groupby(["data", "level", "metric"]):
        least = here.groupby("method").error.mean().min()
        best = found[(found.data == key[0]) & (found.level == key[1]) & (found.metric == key[2]) & found.best]
        assert best["mean"].tolist() == pytest.approx([least])
    changed = file.stat().st_mtime_ns
    assert len(harness.measured(script, given, file, None)) == len(rows)  # the cases are there
    assert file.stat().st_mtime_ns == changed


def test_the_winners_that_a_table_shows_are_the_least_of_its_rows():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame([
        one for data in "pq" for epsilon in (0.1, 1.0)
        for one in made({m: rng.lognormal(size=3) for m in page.FLOW_METHODS}, data=data, epsilon=epsilon)
    ])  # fmt: skip
    shown = page.filled("<!-- which-wins: flows-l1 --><!-- /which-wins -->", rows)
    for data in "pq":
        line = next(line for line in shown.splitlines() if line.startswith(f"| {data} |"))
        for cell, epsilon in zip(line.split(" | ")[2:], (0.1, 1.0), strict=True):
            here = rows[(rows.data == data) & (rows.epsilon == epsilon)].groupby("method").error.mean()
            assert cell.startswith(f"**{here.idxmin()}** {page.shown(here.min())} ")
            assert f"({here.drop(here.idxmin()).idxmin()} ×" in cell


def test_small_and_large_groups_together_have_sensitivity_1():
    """All groups by size of up to three groups of at most five entities, and one entity more."""

    def measured(sizes, most, listed):
        by_size = np.unique(sizes, return_counts=True)
        small = [int((np.array(sizes) >= r).sum()) for r in range(1, most + 1)]
        over, often = anonymized.largest_over(*by_size, listed, most)
        return np.array(small + np.repeat(over, often).tolist())

    for sizes_of in product(range(6), repeat=3):
        for grown, most, listed in product(range(3), range(1, 5), range(4)):
            more = [size + (k == grown) for k, size in enumerate(sizes_of)]
            change = measured(more, most, listed) - measured(sizes_of, most, listed)
            assert np.abs(change).sum() <= 1
            assert np.abs(change).sum() == 1 or (sizes_of[grown] >= most and listed < 3)


def test_stability_noise_lets_a_count_of_1_pass_with_the_chance_of_delta():
    noise = stability.StabilityNoise(0, 0.05)
    made = noise.draw(gaussian("cells", 2**0.5, 0.02), np.repeat([0, 1, 10**6], 20_000))
    passed = (made.answers != stability.NEVER).reshape(3, -1)
    assert (passed.sum(axis=1)[[0, 2]] == [0, 20_000]).all()
    # 0.05 of 20,000, give or take six standard deviations; a threshold between whole numbers lets 0.049 pass.
    assert abs(passed[1].mean() - 0.05) < 6 * (0.05 * 0.95 / 20_000) ** 0.5 + 0.002
    assert made.answers[-20_000:].mean() == pytest.approx(10**6, abs=1)  # the mean of 20,000 draws of σ = 7


def test_factorizations_are_those_of_the_paper_and_at_least_the_optimum():
    found = {
        (row["metric"].rpartition(" ")[2], row["method"]): row["error"]
        for row in factorizations.errors(factorizations.Case(64), 1, 0)
    }
    assert found["ε-DP", "H_b^c"] == pytest.approx(37.07, abs=0.005)  # Qardaji et al. 2013, Table 3
    for method in ("H_b^c", "square root", "each bin"):
        assert found["zCDP", method] > found["zCDP", factorizations.OPTIMUM]
    root, gram = factorizations.square_root(6), RANGE.gram(6)
    pure = factorizations.variance(root, gram, 21, 1)
    assert pure == pytest.approx(mean_variance(root, gram, 21), rel=1e-12)


def test_numbers_are_short():
    texts = {0.0: "0", 0.0123456: "0.0123", 1.5: "1.50", 99.96: "100", 1234.5: "1,234", 2.5e8: "2.5e8"}
    assert {value: page.shown(value).rstrip(".") for value in texts} == texts
    assert page.shown(float("nan")) == "–"


@pytest.mark.skipif(not (DATA / "dpbench").is_dir(), reason="needs DPBench's histograms")
def test_nearly_empty_histograms_are():
    sets = real(DATA, histograms.SETS, 0)
    empty = {name: (counts == 0).mean() for name, counts in sets.items()}
    assert {name for name, share in empty.items() if share > 0.9} == set(decision.NEARLY_EMPTY)
    assert max(share for name, share in empty.items() if name not in decision.NEARLY_EMPTY) < 0.53


def test_a_table_is_printed_by_its_name(capsys):
    for name, shown in (("runs", "group sizes 192 × 10"), ("names", "kld\nbins\nranges\n")):
        assert list(script.run(known=None, table=name)) == []
        assert shown in capsys.readouterr().out


def test_the_page_shows_what_was_measured():
    text = (ROOT / "docs" / script.PAGE).read_text(encoding="utf-8")
    assert page.MARKED.search(text)
    assert page.filled(text, script.read()) == text, "run: python -m benchmarks which_wins --pages docs"


def test_committed_results_are_small_and_of_ten_runs():
    files = list(script.RESULTS.glob("*.parquet"))
    assert sum(file.stat().st_size for file in files) < 2_000_000
    assert {file.stem for file in files} == set(script.KINDS)
    assert script.read().groupby([*COLUMNS[:-2]], dropna=False).run.nunique().unique().tolist() == [10]
