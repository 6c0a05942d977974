"""The columns `lower` and `upper` of a release: in all files, checked, covered, also together."""

import json
import math
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from doubles import Undrawn
from scipy.special import log_ndtr
from test_check import ALL, PEOPLE, change_manifest, released, verdicts
from test_intervals import TRIP_OPTIONS, as_written, law, sizes, tabulated

from hierdp import Hierarchy, InputError, SimulatedNoise, plan, release, repair
from hierdp import open as open_release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import ENDS, covering
from hierdp.execution import seal
from hierdp.experiments.evaluate import evaluate
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.intervals import CLOSE, FEW, RowIntervals, down_if_shown, half_width, log_normal
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down.intervals import MeasuredLevel
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.mechanisms.top_down.post_processing import METHODS
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC
from hierdp.privacy.noise import double_geometric_variance
from hierdp.publication.copy import copy_of
from hierdp.publication.formats import write_copy
from hierdp.questions.intervals import check_confidence, if_known, with_intervals
from hierdp.record import files, written
from hierdp.reports.release import release_report
from hierdp.tables import Flows
from tests.marks import quick

WITH = [(mechanism, options) for mechanism, options in ALL if MECHANISMS[mechanism].intervals]


@pytest.mark.parametrize(("mechanism", "options"), quick(WITH, every=5), ids=lambda value: str(value)[:60])
def test_all_files_have_the_intervals_and_the_check_recomputes_them(tmp_path, mechanism, options):
    folder = released(mechanism, tmp_path / "out", SimulatedNoise(3), **options, confidence=0.9)
    lines = check(folder)
    assert FAILS not in {line.verdict for line in lines}, lines
    (line,) = [line for line in lines if line.check == "table from steps"]
    assert line.verdict == HOLDS
    assert "this table and its intervals" in line.why
    opened = open_release(folder)
    table = opened.table
    assert list(table.columns[-2:]) == ENDS
    assert (table["lower"].isna() | (table["lower"] <= table["upper"])).all()
    read = pd.read_csv(folder / "released.csv", dtype={"c": str, "s": str})
    pd.testing.assert_frame_equal(read[ENDS], table[ENDS])
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "released.parquet")[ENDS], table[ENDS])
    if opened.finest is not None:
        last = table[table["level"] == sum(each.tree.depth for each in opened.regions.values())]
        pd.testing.assert_frame_equal(opened.finest[ENDS], last[ENDS].reset_index(drop=True))
    alone = written.read(folder)
    assert not set(ENDS) & set(alone.table.columns)
    pd.testing.assert_frame_equal(table[ENDS], open_release(folder).intervals(0.9)[ENDS])


def shift(folder, name, row, by):
    """Move an end of an interval, in all files."""
    found = written.read(folder)
    ends = {one: np.array(getattr(found.ends, one)) for one in ENDS}
    ends[name][row] += by
    table = open_release(folder).table.assign(**ends)
    files.write_parts([table], folder, files.TABLE)
    files.write_parts(laid_out(table).finest(found.regions), folder, files.FINEST)


def claimed(folder, **about):
    said = {**json.loads((folder / files.MANIFEST).read_text())["intervals"], **about}
    said = {"covers": covering(said["confidence"], said["simultaneous"]), **about}
    change_manifest(folder, lambda made: made["intervals"].update(said))


def without_columns(folder):
    found = written.read(folder)
    files.write_parts([found.table], folder, files.TABLE)
    files.write_parts(laid_out(found.table).finest(found.regions), folder, files.FINEST)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("intervals")
    options = {"axes": {"o": ["s", "c"], "d": ["c"]}, "regions_from_data": True, "delta": 1e-6}
    tables = {"levels": ["s", "c"], "attributes": ["a"], "attributes_from_data": True}
    tables |= {"regions_from_data": True, "delta": 1e-6}
    return {
        mechanism: released(mechanism, place / mechanism, SimulatedNoise(2), **of_mechanism, confidence=0.9)
        for mechanism, of_mechanism in (("top-down", options), ("tabulation", tables))
    }


@pytest.mark.parametrize("kind", ["top-down", "tabulation"])
@pytest.mark.parametrize(
    "change",
    [
        partial(shift, name="lower", row=-1, by=1),
        partial(shift, name="upper", row=3, by=-1),
        partial(shift, name="upper", row=3, by=1),
        partial(claimed, confidence=0.95),
        partial(claimed, simultaneous=True),
        partial(claimed, covers="all true counts are between lower and upper"),
        without_columns,
    ],
)
def test_changed_intervals_fail(tmp_path, made, kind, change):
    folder = tmp_path / "out"
    shutil.copytree(made[kind], folder)
    change(folder)
    seal.seal(folder)
    assert verdicts(folder)["table from steps"] == FAILS


def test_an_end_next_to_a_whole_number_may_be_rounded_to_either_side():
    value, near = np.array([10.0, 10.0]), 10 * CLOSE
    found = RowIntervals(value, np.array([2.0 - 0.99 * near, 2.5]))
    other = RowIntervals(value, np.array([2.0 - 1.01 * near, 2.5]))  # as if added in another order
    exact, rounded = found.ends(), other.ends()
    assert exact.lower.tolist() == [8, 8]
    assert rounded.lower.tolist() == [9, 8]
    assert not found.wrong(rounded).any()
    assert not other.wrong(exact).any()
    assert other.wrong(RowIntervals(value, np.array([3.0, 2.5])).ends()).tolist() == [True, False]
    assert RowIntervals(np.full(2, np.nan), np.ones(2)).wrong(exact).all()  # intervals that are not known


def test_sums_of_noise_of_any_weights_keep_the_half_width_far_out():
    """Intervals that hold together go far into the tails: a miss of 0.1 among 10 million counts."""
    for scale in (0.5, 1.0, 3.7, 10.0):
        for noise in (GEOMETRIC, GAUSSIAN):
            half_weight = law(noise, scale)
            one = np.zeros(2 * half_weight.size - 1)
            one[::2] = half_weight  # a noise with the weight 1, in steps of 1/2
            sums = [(one, 1), (np.convolve(one, one), 2), (np.convolve(one, half_weight), 1.25)]
            variance = scale**2 if noise == GAUSSIAN else double_geometric_variance(scale)
            for mass, times in sums:
                away = np.abs(np.arange(mass.size) - mass.size // 2) / 2
                for miss in (1e-2, 1e-4, 1e-6, 1e-8):
                    half = half_width(times * variance, miss, [noise])
                    assert mass[away > half].sum() <= miss * (1 + 1e-9), (scale, noise, times, miss)


def test_normal_probabilities_are_scipys():
    """Few at once, which are computed without SciPy, and many; near the change to a series, too."""
    at = np.concatenate(
        [np.linspace(-60, 12, FEW), np.linspace(-30.1, -29.9, FEW), -np.geomspace(30, 1e6, FEW)]
    )
    exact = log_ndtr(at)
    # Each is a sum of a few terms, at most as large as the result or 1.
    assert np.allclose(log_normal(at), exact, rtol=1e-14, atol=1e-15)
    few = np.concatenate([log_normal(each) for each in np.split(at, 3)])
    assert np.allclose(few, exact, rtol=1e-14, atol=1e-15)


# --- counts that are shown because their noisy counts are large ------------------------------------------


@pytest.mark.parametrize("noise", [GEOMETRIC, GAUSSIAN])
@pytest.mark.parametrize("miss", [0.1, 0.05])
def test_a_count_is_covered_given_that_it_is_shown(noise, miss):
    """For every true count and limit, by enumeration."""
    for scale in (0.4, 1.0, 2.5, 6.0):
        mass = law(noise, scale)
        k = np.arange(mass.size) - mass.size // 2
        variance = scale**2 if noise == GAUSSIAN else double_geometric_variance(scale)
        half = half_width(variance, miss, [noise])
        for above in (0, 3, 15):
            for true in (0, 1, 2, 5, 20):
                value = true + k
                shown = (value > above) & (mass > 1e-14)
                if not shown.any():
                    continue
                at, weight = value[shown].astype(float), mass[shown]
                down = down_if_shown(at, np.full(at.shape, float(above)), variance, miss, [noise])
                ends = RowIntervals(at, np.full(at.shape, half), down=down).ends()
                covered = weight[(ends.lower <= true) & (true <= ends.upper)].sum() / weight.sum()
                assert covered >= 1 - miss - 1e-9, (scale, above, true)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].model and name != "TDA_inf"])
def test_a_count_whose_noisy_count_stays_above_the_limit_keeps_its_row(name):
    """By brute force: each noisy count of a family is lowered, the others stay."""
    method, rng = METHODS[name], np.random.default_rng(5)
    solve, checked = method.solving(SolverOptions()), 0
    for _ in range(60):
        k = int(rng.integers(1, 7))
        noisy, total = rng.integers(-6, 12, k), int(rng.integers(0, 4 * k))
        ends = np.array([0, k])

        def fit(noisy, total=total, ends=ends):
            return method.answer(solve("x", method.model(noisy, np.array([total]), ends)), by_solver=False)

        counts = np.asarray(fit(noisy))
        level = MeasuredLevel(np.zeros((k, 0)), noisy, 1.0, np.zeros(k, np.int64), counts)
        for at, needed in zip(np.flatnonzero(level.positive), level.needed, strict=True):
            for lower in range(int(needed) + 1, noisy[at]):
                changed = noisy.copy()
                changed[at] = lower
                assert fit(changed)[at] > 0, (noisy, total, at, lower)
                checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("method", "runs"),
    [
        ("InfTDA", 60),
        *(pytest.param(name, 200, marks=pytest.mark.slow) for name in METHODS if name != "TDA_inf"),
    ],
)
def test_rows_are_covered_in_every_size_class(method, runs):
    """Rows of true zeros too: of those shown in a sparse table, plain intervals cover 75 %."""
    names = [f"{a}{i}" for a in "ABC" for i in range(4)]
    places = Hierarchy.from_columns({"state": [n[0] for n in names], "county": names}, ["state", "county"])
    cells = np.stack(np.unravel_index(np.arange(144), (12, 12)), axis=1)
    counts = np.random.default_rng(5).choice([0, 0, 0, 0, 1, 4, 12, 30, 500], 144)
    data = Flows((places, places), ("origin", "destination"), cells[counts > 0], counts[counts > 0])
    true = dict(zip([(names[i], names[j]) for i, j in cells.tolist()], counts.tolist(), strict=True))
    covered, shown = dict.fromkeys(set(counts.tolist()), 0), dict.fromkeys(set(counts.tolist()), 0)
    for seed in range(runs):
        found = with_intervals(top_down(data, 1.0, 1e-6, SimulatedNoise(seed), method), 0.9).table
        last = found[found["level"] == 4]
        for _, row in last.iterrows():
            count = true[row["origin"], row["destination"]]
            shown[count] += 1
            covered[count] += row["lower"] <= count <= row["upper"]
    for count in shown:
        # Counts of a size share parents, and so errors; as if a fifth of them were independent.
        spread = math.sqrt(0.09 / max(1.0, shown[count] / 5))
        assert covered[count] >= (0.9 - 3 * spread) * shown[count], (count, covered[count], shown[count])
    assert shown[0] > 20 or method == "SH"  # which shows no zeros


# --- intervals that hold together -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", quick(["group-size", "tabulation", "top-down"]))
def test_simultaneous_intervals_cover_all_counts_at_once(kind):
    rng = np.random.default_rng(3)
    names = [f"{a}{i}" for a in "ABC" for i in range(3)]
    runs, covered = 60, 0
    rows = pd.DataFrame({"from": rng.choice(names, 600), "to": rng.choice(names, 600)})
    rows = rows.assign(from_state=rows["from"].str[0], to_state=rows["to"].str[0], n=1, home=rows.index // 3)
    common = {"epsilon": 1, "regions_from_data": True}
    options = {
        "tabulation": {"levels": ["from_state", "from"], "attributes": ["to_state"], "delta": 1e-6},
        "top-down": TRIP_OPTIONS,
        "group-size": {"levels": ["from_state", "from"], "group": ["from", "home"], "max_size": 4},
    }[kind]
    more = {"tabulation": {"attributes_from_data": True}, "group-size": {"groups_from_data": True}}.get(
        kind, {}
    )
    value = "groups" if kind == "group-size" else "count"
    make = partial(release, rows, kind, **{**common, **options, **more})
    exact = make(noise=SimulatedNoise(0), **{"epsilon": 1e7}).table
    by = [name for name in exact.columns if name != value]
    for seed in range(runs):
        table = make(noise=SimulatedNoise(seed), confidence=0.9, simultaneous=True).table
        both = table.merge(exact, on=by, how="left", suffixes=("", " true")).fillna({f"{value} true": 0})
        true = both[f"{value} true"]
        covered += ((both["lower"] <= true) & (true <= both["upper"])).all()
    assert covered >= (0.9 - 3 * math.sqrt(0.09 / runs)) * runs
    alone = make(noise=SimulatedNoise(1), confidence=0.9).table
    together = make(noise=SimulatedNoise(1), confidence=0.9, simultaneous=True).table
    assert (together["upper"] >= alone["upper"]).all()


def test_questions_that_hold_together_are_wider(tmp_path):
    path = tabulated().write(tmp_path / "out")
    texts = ["from_state=A", "from=A0|B1; to_state=A"]
    each = open_release(path).query(texts, confidence=0.9)
    both = open_release(path).query(texts, confidence=0.9, simultaneous=True)
    assert both[ENDS].equals(open_release(path).query(texts, confidence=0.95)[ENDS])
    assert ((both["upper"] - both["lower"]) > (each["upper"] - each["lower"])).all()


# --- who asks for them ------------------------------------------------------------------------------------


GROUPS = {"levels": ["s", "c"], "group": ["c", "g"], "regions_from_data": True, "groups_from_data": True}
TABLES = {"levels": ["s", "c"], "regions_from_data": True, "attributes_from_data": True, "delta": 1e-6}
NAMED = PEOPLE.rename(columns={"a": "lower"})


def test_what_cannot_have_intervals_is_refused_before_noise_is_drawn():
    with pytest.raises(InputError, match="no intervals for releases of tabulation: leave out"):
        check_confidence(replace(MECHANISMS["tabulation"], module="json"), 0.9)
    for options, message in (
        ({"confidence": 90}, "between 0 and 1"),
        ({"simultaneous": True}, "simultaneous says what confidence means"),
    ):
        with pytest.raises(InputError, match=message):
            release(PEOPLE, "group-size", epsilon=1, noise=Undrawn(), max_size=9, **GROUPS, **options)
    tables = {**TABLES, "epsilon": 1, "attributes": ["lower"], "noise": SimulatedNoise(1)}
    with pytest.raises(InputError, match="have a column 'lower' already"):
        release(NAMED, "tabulation", confidence=0.9, **tables)
    assert "lower" in release(NAMED, "tabulation", **tables).table


@pytest.mark.parametrize("method", ["least-squares", "whole", "hierarchy-qip"])
def test_repairs_of_counts_with_errors_have_the_columns_too(tmp_path, method):
    rows = [("A", None, 100, 12.0), ("A", "A1", 40, 3.0), ("A", "A2", 70, 4.0), ("B", "B1", 5, 2.0)]
    pd.DataFrame(rows, columns=["county", "town", "n", "error"]).to_csv(tmp_path / "given.csv", index=False)
    words = ["repair", str(tmp_path / "given.csv"), "--levels", "county,town", "--count", "n"]
    words += ["--standard-error", "error", "--method", method, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*words, "--confidence", "0.9"])
    assert done.exit_code == 0, done.output
    assert FAILS not in verdicts(tmp_path / "out").values()
    table = open_release(tmp_path / "out").table.set_index("region")
    assert 70 - 1.645 * 4 - 1 < table.loc["A2", "lower"] < 70 < table.loc["A2", "upper"] < 70 + 1.645 * 4 + 1
    given = pd.DataFrame(rows, columns=["county", "town", "n", "error"]).drop(columns="error")
    with pytest.raises(InputError, match="its counts were given without standard errors"):
        with_intervals(repair(given, levels=["county", "town"], count="n", method="whole"), 0.9)


def test_the_command_writes_them(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    words = ["release", "group-size", str(tmp_path / "people.csv"), "--levels", "s,c", "--group", "c"]
    words += [
        "--group",
        "g",
        "--regions-from-data",
        "--groups-from-data",
        "--max-size",
        "4",
        "--epsilon",
        "1",
    ]
    words += ["--out", str(tmp_path / "out"), "--overwrite", "--simulate", "1"]
    for more, about in (
        (["--confidence", "0"], None),
        ([], (0.9, False, "each true count is")),
        (["--simultaneous"], (0.9, True, "all true counts are")),
        (["--confidence", "0.95", "--simultaneous"], (0.95, True, "all true counts are")),
    ):
        done = CliRunner().invoke(main, [*words, *more])
        assert done.exit_code == 0, done.output
        opened = open_release(tmp_path / "out")
        if about is None:
            assert "intervals" not in opened.manifest
        else:
            *of, which = about
            said = f"{which} between lower and upper with a probability of at least {100 * of[0]:g} %"
            expected = {"confidence": of[0], "simultaneous": of[1], "covers": said}
            assert opened.manifest["intervals"] == expected
            assert f"Intervals: {said}." in " ".join(done.output.split())
        assert (ENDS[0] in opened.table.columns) == (about is not None)
        assert FAILS not in verdicts(tmp_path / "out").values()
    assert "give that" in CliRunner().invoke(main, [*words, "--confidence", "0", "--simultaneous"]).output
    assert len(sizes("M_c^dp").table.columns) + 2 == len(opened.table.columns)
    assert as_written(sizes("M_c^dp")).ends is None


def test_the_command_leaves_out_what_is_not_known(tmp_path, monkeypatch):
    NAMED.to_csv(tmp_path / "people.csv", index=False)
    words = ["release", "tabulation", str(tmp_path / "people.csv"), "--levels", "s,c", "--delta", "1e-6"]
    words += ["--attribute", "lower", "--attribute-from-data", "--regions-from-data", "--epsilon", "1"]
    words += ["--out", str(tmp_path / "out"), "--overwrite", "--simulate", "1"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "intervals" not in open_release(tmp_path / "out").manifest
    assert CliRunner().invoke(main, [*words, "--confidence", "0.9"]).exit_code != 0
    made = sizes("M_c^dp")
    known = if_known(made).intervals
    assert known is not None
    assert (known["confidence"], known["simultaneous"]) == (0.9, False)
    monkeypatch.setattr(files, "LARGE", len(made.counts) - 1)
    assert if_known(made).intervals is None
    given = pd.DataFrame({"county": ["A", "B"], "n": [3, 4]})
    assert if_known(repair(given, levels=["county"], count="n", method="whole")).intervals is None


@pytest.mark.parametrize("method", ["M_c^dp", "M_H^dp"])
def test_without_noise_intervals_hold_the_counts(method):
    """The variance of the noise is 0 in floats."""
    noise = SimulatedNoise(1)
    made = release(PEOPLE, "group-size", epsilon=1e6, noise=noise, method=method, max_size=4, **GROUPS)
    table = with_intervals(made, 0.9).table
    assert (table["groups"] - 2 <= table["lower"]).all()
    assert (table["lower"] <= table["groups"]).all()
    assert (table["groups"] <= table["upper"]).all()


def test_an_evaluation_counts_the_intervals_that_cover():
    """Of rows, by level and class of the true count; sums of rows and counts without a row have none."""
    flows = {"axes": {"o": ["s", "c"], "d": ["c"]}, "regions_from_data": True, "delta": 1e-6}
    make = partial(release, PEOPLE, "top-down", **flows)
    table = make(epsilon=1, noise=SimulatedNoise(3), confidence=0.5).table
    by = [name for name in table.columns if name not in ("count", *ENDS)]
    exact = make(epsilon=1e7, noise=SimulatedNoise(0)).table
    both = table.merge(exact, on=by, how="left", suffixes=("", " true")).fillna({"count true": 0})
    both["ok"] = (both["lower"] <= both["count true"]) & (both["count true"] <= both["upper"])
    axes = {"o": "c", "d": "c"}
    found = evaluate(make(epsilon=1, noise=SimulatedNoise(3), confidence=0.5), PEOPLE, axes=axes)
    assert found.errors["covered"].tolist() == pytest.approx(both.groupby("level")["ok"].mean().tolist())
    last = both[both["level"] == both["level"].max()]
    classes = found.by_size[found.by_size["level"] == found.errors["level"].iloc[-1]].set_index("true_count")
    assert classes.loc["0", "covered"] == pytest.approx(last[last["count true"] == 0]["ok"].mean())
    assert "covered" not in evaluate(make(epsilon=1, noise=SimulatedNoise(3)), PEOPLE, axes=axes).errors
    options = {**TABLES, "attributes": ["a", "b"], "confidence": 0.9}
    made = release(PEOPLE, "tabulation", epsilon=1, noise=SimulatedNoise(1), **options)
    shares = evaluate(made, PEOPLE).errors.set_index("level")["covered"]
    assert shares.notna().tolist() == [name.endswith("every cell") for name in shares.index]


@pytest.mark.parametrize("simultaneous", [False, True])
def test_the_report_says_how_wide_intervals_are(simultaneous):
    made = with_intervals(sizes("M_c^dp"), 0.9, simultaneous)
    manifest = made.manifest()
    text = release_report(made.with_ends, manifest)
    said = "all true counts are between" if simultaneous else "each true count is between"
    assert "How wrong a count may be" in text
    assert said in text
    assert release_report(made.table, manifest) == text  # of a large table as of a small one
    assert "How wrong a count may be" not in release_report(made.counts, sizes("M_c^dp").manifest())


@pytest.mark.parametrize("kind", ["csv", "excel", "sdmx-csv"])
def test_copies_have_the_intervals_and_blank_those_of_suppressed_counts(tmp_path, made, kind):
    copy = copy_of(made["tabulation"], suppress_below=6)
    path = write_copy(copy, kind, tmp_path / ("out.xlsx" if kind == "excel" else "out.csv"))
    read = pd.read_excel(path) if kind == "excel" else pd.read_csv(path)
    read = read.rename(columns=str.lower)
    table, blank = open_release(made["tabulation"]).table, copy.table["suppressed"].to_numpy()
    assert blank.any()
    assert read[ENDS].isna().all(axis=1).tolist() == blank.tolist()
    assert read[ENDS][~blank].astype(int).equals(table[ENDS][~blank])
    assert "at least 90 %" in copy.about["Intervals"]


def test_a_plan_gives_the_widths_of_the_intervals():
    """Before intervals are cut to what is public: those of a release with many people, but for whole ends."""
    found = plan("top-down", epsilon=1, delta=1e-6, axes={"a": {"x": 2}, "b": {"y": 2}}, confidence=0.9).table
    for deviation, width in found[["noise_deviation", "interval_width"]].to_numpy():
        assert width == pytest.approx(2 * 1.6448536 * deviation + 1)
    options = {"levels": ["s=3", "c=4"], "max_size": 4}
    sizes, cumulative = (
        plan("group-size", epsilon=1, method=method, confidence=0.9, **options).table
        for method in ("M_H^dp", "M_c^dp")
    )
    assert (sizes["interval_width"] > 2 * 1.64 * sizes["noise_deviation"]).all()
    assert (cumulative["interval_width"] > 2 * 1.64 * math.sqrt(2) * cumulative["noise_deviation"]).all()
    assert "interval_width" not in plan("group-size", epsilon=1, **options).table
    none = plan("count-of-counts", epsilon=1, levels=["s=3"], groups=9, max_size=4, confidence=0.9)
    assert "do not follow from this plan" in none.notes[-1]
