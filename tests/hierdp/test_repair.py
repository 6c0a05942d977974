"""hierdp.repair and hierdp repair: optimal by enumeration, checked like releases, clear about bad input."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_check import change_manifest

from hierdp import InputError, Measurements, SimulatedNoise, release, repair
from hierdp.checking import FAILS, check
from hierdp.checking.budget import check_budget
from hierdp.cli import main
from hierdp.execution import seal
from hierdp.mechanisms.registry import REPAIR
from hierdp.mechanisms.repair.methods import METHODS
from tests.marks import quick

LEVELS = ["state", "county"]
COLUMNS = {"levels": LEVELS, "count": "n"}
EVERY = "state,county,n,se\n,,12,1\nA,,9,2\nA,A1,4,1\nA,A2,4,1\nB,,4,2\nB,B1,-3,1\nB,B2,6,3\n"


def table(text=EVERY):
    from io import StringIO

    return pd.read_csv(StringIO(text))


def verdicts(made, folder):
    return {line.check: line for line in check(made.write(folder, overwrite=True))}


def weighted(rows, count_of):
    """Σ (count − n)² / se² over the rows that are given, for counts by region."""
    return sum((count_of[c or s or "all"] - n) ** 2 / se**2 for s, c, n, se in rows)


def sums_of(leaves):
    """Counts of all regions, from those of the counties."""
    found = dict(leaves)
    for county, count in leaves.items():
        for above in (county[0], "all"):
            found[above] = found.get(above, 0) + count
    return found


@pytest.mark.parametrize(
    ("method", "missing", "fixed"),
    [("hierarchy-qip", "B", "root"), ("hierarchy-qip", "", "state"), ("whole", "", ""), ("whole", "A", "")],
)
def test_no_whole_counts_are_nearer(method, missing, fixed):
    frame = table()
    frame = frame[~((frame.state == missing) & frame.county.isna())]
    made = repair(frame, **COLUMNS, standard_error="se", method=method, fixed=[fixed] if fixed else [])
    found = dict(zip(made.table.region, made.table["count"], strict=True))
    rows = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    kept = {"root": {"all": 12}, "state": {"A": 9, "B": 4}, "": {}}[fixed]
    costs = []
    for values in itertools.product(range(13), repeat=4):
        counts = sums_of(dict(zip(["A1", "A2", "B1", "B2"], values, strict=True)))
        if all(counts[region] == count for region, count in kept.items()):
            costs.append(weighted([row for row in rows if (row[1] or row[0] or "all") not in kept], counts))
    own = weighted([row for row in rows if (row[1] or row[0] or "all") not in kept], found)
    assert own == pytest.approx(min(costs), rel=1e-12)
    assert all(found[region] == count for region, count in kept.items())


@pytest.mark.parametrize(("missing", "fixed"), quick([("B", ""), ("", "root"), ("", "state")]))
def test_no_whole_counts_have_a_smaller_sum_of_absolute_changes(missing, fixed):
    frame = table(EVERY.replace("A1,4,1", "A1,4,0.5"))
    frame = frame[~((frame.state == missing) & frame.county.isna())]
    options = {"standard_error": "se", "method": "least-absolute", "fixed": [fixed] if fixed else []}
    made = repair(frame, **COLUMNS, **options)
    found = dict(zip(made.table.region, made.table["count"], strict=True))
    kept = {"root": {"all": 12}, "state": {"A": 9, "B": 4}, "": {}}[fixed]
    rows = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    rows = [row for row in rows if (row[1] or row[0] or "all") not in kept]

    def cost(counts):
        return sum(abs(counts[c or s or "all"] - n) / se for s, c, n, se in rows)

    every = (sums_of(dict(zip(["A1", "A2", "B1", "B2"], v, strict=True))) for v in np.ndindex(8, 13, 2, 9))
    assert cost(found) == min(cost(one) for one in every if kept.items() <= one.items())
    assert kept.items() <= found.items()
    assert made.settings["weights"] == "1 / standard error"


def test_a_window_without_a_fixed_level_holds_below_the_root():
    made = repair(table(), **COLUMNS, window=3).table.set_index("region")
    free = repair(table(), **COLUMNS).table.set_index("region")
    below = made[made.level > 0]
    assert (below["count"] - below.given).abs().max() == 3  # B1 goes from -3 to 0
    assert made["count"]["all"] == free["count"]["all"]
    counts = [sums_of(dict(zip(["A1", "A2", "B1", "B2"], v, strict=True))) for v in np.ndindex(8, 8, 1, 10)]
    given = table().fillna("").to_numpy().tolist()
    given = [(c or s, n) for s, c, n, _ in given if s]
    fitting = [one for one in counts if all(abs(one[region] - n) <= 3 for region, n in given)]
    least = min(
        sum((one[region] - n) ** 2 for region, n in given)
        for one in fitting
        if one["all"] == made["count"]["all"]
    )
    assert ((below["count"] - below.given) ** 2).sum() == least
    with pytest.raises(InputError, match="use a wider window"):
        repair(table(), **COLUMNS, window=2)


def test_least_squares_and_its_standard_errors_are_those_of_the_dense_estimate():
    frame = table(EVERY.replace("A,,9,2\n", ""))
    made = repair(frame, **COLUMNS, standard_error="se", method="least-squares").table.set_index("region")
    of_each = ["1111", "1000", "0100", "0011", "0010", "0001"]
    sums = np.array([list(map(float, one)) for one in of_each])
    weight = np.diag(1 / frame.se.to_numpy(float) ** 2)
    spread = np.linalg.inv(sums.T @ weight @ sums)
    best = spread @ sums.T @ weight @ frame.n.to_numpy(float)
    assert made["count"][["A1", "A2", "B1", "B2"]].to_numpy() == pytest.approx(best, rel=1e-9)
    assert made["count"]["A"] == pytest.approx(best[:2].sum(), rel=1e-9)
    errors = made.standard_error[["A1", "A2", "B1", "B2"]].to_numpy()
    assert errors == pytest.approx(np.sqrt(np.diag(spread)), rel=1e-9)
    assert made.standard_error["A"] == pytest.approx(np.sqrt(spread[:2, :2].sum()), rel=1e-9)


@pytest.mark.parametrize("method", quick(METHODS, slow=lambda name: name in ("non-negative", "whole")))
def test_a_repair_is_checked_like_a_release_and_claims_no_privacy(method, tmp_path):
    made = repair(table(), **COLUMNS, standard_error="se", method=method)
    found = verdicts(made, tmp_path / "out")
    assert {name for name, line in found.items() if line.verdict != "holds"} <= {
        *("fingerprint", "privacy", "total", "whole numbers", "non-negative")
    }
    assert found["privacy"].verdict == "not claimed"
    assert found["table from steps"].why == "the mechanism gives this table for these given counts and steps"
    assert "makes no claim of privacy" in (tmp_path / "out" / "report.html").read_text()
    assert (made.table["count"].dtype == np.int64) == (method not in ("least-squares", "non-negative"))


def test_a_changed_given_count_or_an_added_budget_fails_the_check(tmp_path):
    made = repair(table(), **COLUMNS)
    out = made.write(tmp_path / "out")
    path = out / "released.parquet"
    frame = pd.read_parquet(path)
    frame.loc[4, "given"] += 1
    frame.to_parquet(path, index=False)
    seal.seal(out)
    found = {line.check: line.verdict for line in check(out)}
    assert found["table from steps"] == FAILS
    made.write(out, overwrite=True)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["budget"] is None
    manifest["account"] = {"data": "x", "entry": 1, "digest": ""}
    assert [line.verdict for line in check_budget(manifest)] == [FAILS]
    change_manifest(out, lambda manifest: manifest.update(budget={"spends": []}))
    seal.seal(out)
    failed = {line.check: line.why for line in check(out) if line.verdict == FAILS}
    assert failed["manifest"].startswith("'budget' is {'spends': []}, but None follows")


@pytest.mark.parametrize("proofs", [True, False])
def test_nothing_was_measured_is_said_once(proofs, tmp_path):
    out = repair(table(), **COLUMNS, fixed=["root"]).write(tmp_path / "out", proofs=proofs)
    lines = [line for line in check(out) if line.check == "budget: queries"]
    assert [(line.verdict, line.why) for line in lines] == [("holds", "nothing was measured")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("fixed", []), ("fixed", ["state"]), ("window", 1), ("weights", "other"), ("total", 1), ("more", 1)],
)
def test_other_settings_do_not_give_the_repair(name, value, tmp_path):
    out = repair(table(), **COLUMNS, fixed=["root"]).write(tmp_path / "out")
    change_manifest(out, lambda manifest: manifest["settings"].update({name: value}))
    seal.seal(out)
    assert "table from steps" in {line.check for line in check(out) if line.verdict == FAILS}


def test_a_region_of_the_last_level_without_a_given_count_fails_the_check(tmp_path):
    out = repair(table(), **COLUMNS).write(tmp_path / "out")
    frame = pd.read_parquet(out / "released.parquet")
    frame.loc[4, "given"] = None
    frame.to_parquet(out / "released.parquet", index=False)
    (line,) = (line for line in check(out) if line.check == "table from steps")
    assert (line.verdict, line.why) == (FAILS, "a region of the last level has no given count")


def test_counts_that_the_steps_do_not_give_fail_the_check(tmp_path):
    out = repair(table(), **COLUMNS).write(tmp_path / "out")
    path = out / "released.parquet"
    frame = pd.read_parquet(path)
    frame.loc[frame.region == "A1", "count"] += 1
    frame.loc[frame.region == "A2", "count"] -= 1
    frame.to_parquet(path, index=False)
    seal.seal(out)
    (line,) = (line for line in check(out) if line.check == "table from steps")
    assert (line.verdict, line.why) == (FAILS, "row 4 of the table: 'count' is not what the steps give")


def test_without_a_fixed_total_it_is_that_of_least_squares():
    free = repair(table(), **COLUMNS, method="least-squares").table["count"][0]
    for method in ("hierarchy-qip", "chebyshev"):
        assert repair(table(), **COLUMNS, method=method).table["count"][0] == round(free)


def test_a_release_without_its_budget_fails_the_check(tmp_path):
    people = pd.DataFrame({"state": list("AAB"), "home": [1, 1, 2]})
    out = release(
        people, "group-size", epsilon=1, levels=["state"], group=["home"], max_size=2,
        groups=people.drop_duplicates(), noise=SimulatedNoise(0),
    ).write(tmp_path / "out")  # fmt: skip
    change_manifest(out, lambda manifest: manifest.update(budget=None, warning=None))
    seal.seal(out)
    failed = {line.check: line.why for line in check(out) if line.verdict == FAILS}
    assert failed["manifest"] == "this mechanism measures, but the manifest has no budget"


def test_windows_hold_below_the_fixed_level_and_name_the_region_where_they_are_too_narrow():
    frame = table(EVERY.replace("B,,4", "B,,3").replace("A,,9", "A,,9"))
    made = repair(frame, **COLUMNS, fixed=["state"], window=3).table
    below = made[made.level == 2]
    assert (below["count"] - below.given).abs().max() <= 3
    assert made["count"].tolist()[:3] == [12, 9, 3]
    with pytest.raises(InputError, match=r"no whole counts within 0 .* add up at state 'A': use a wider"):
        repair(table(EVERY.replace("B,B1,-3", "B,B1,0")), **COLUMNS, fixed=["state"], window=0)


@pytest.mark.parametrize(("error", "part"), [(None, ""), ("se", ""), (None, ".3"), ("se", ".6")])
def test_chebyshev_has_the_least_largest_change(error, part, tmp_path):
    frame = table(EVERY.replace("B,B1,-3,1", f"B,B1,5{part},1").replace("A,A1,4", f"A,A1,4{part}"))
    repaired = repair(frame, **COLUMNS, method="chebyshev", standard_error=error, fixed=["root"])
    made = repaired.table
    errors = np.array((2, 2, 1, 1, 1, 3) if error else (1,) * 6)
    away = ((made["count"] - made.given).abs()[1:] / errors).max()
    changes = (
        np.abs(np.array((a + b, c + d, a, b, c, d)) - made.given.to_numpy()[1:]) / errors
        for a, b, c, d in itertools.product(range(13), repeat=4)
        if a + b + c + d == 12
    )
    # Weights agree with 1/standard error to three digits or more, and counts are rounded to 2⁻²⁰.
    assert away == pytest.approx(min(change.max() for change in changes))
    assert made["count"].to_numpy()[0] == 12
    assert made.given.to_numpy()[3] == float(f"4{part}")
    assert verdicts(repaired, tmp_path / "out")["table from steps"].verdict == "holds"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (EVERY, {"levels": ["county", "state"]}, "state 'A' has no county.*levels in another order"),
        (EVERY, {"count": "m"}, "no column 'm' in the table of counts"),
        (EVERY, {"count": "state"}, "a column is named twice"),
        (EVERY + "B,B2,1,1\n", {}, r"county 'B2' has two rows, 7 and 8"),
        (EVERY + "C,,1,1\n", {}, r"row 8: state 'C' has no row of a county below it"),
        (EVERY.replace("A,A2", "B,A1"), {}, r"region 'A1' of level 'county' has two parents"),
        (EVERY.replace("A,,9", "A,,x"), {}, r"row 2, state 'A': column 'n' does not contain a finite number"),
        (EVERY.replace("A1,4", "A1,inf"), {}, "county 'A1': column 'n' does not contain a finite number"),
        (EVERY.replace("A1,4", "A1,"), {}, "county 'A1': column 'n' is empty. Leave out"),
        (EVERY.replace("A1,4,1", "A1,4,0"), {"standard_error": "se"}, "'A1': the standard error .* fix it"),
        (EVERY.replace(",,12,1", ",,12,"), {"standard_error": "se"}, "root 'all': column 'se' is empty"),
        (EVERY.replace("A1,4", "A1,4.5"), {"method": "whole"}, "the count of county 'A1' is not whole"),
        (EVERY.replace("A1,4", "A1,4e15"), {}, r"the count of county 'A1' is over 1.1e\+12"),
        (EVERY, {"method": "l1"}, "no method 'l1'"),
        (EVERY, {"method": "whole", "fixed": ["root"]}, "whole takes no fixed levels; use 'hierarchy-qip'"),
        (EVERY, {"method": "chebyshev", "window": 1}, "chebyshev takes no window"),
        (EVERY, {"window": -1}, "window is -1"),
        (EVERY, {"fixed": ["county"]}, "nothing is left to repair"),
        (EVERY, {"fixed": ["town"]}, "no level 'town' to fix"),
        (EVERY, {"fixed": ["root", "state"]}, "fixed count of root 'all' is not the sum"),
        (EVERY.replace("B,,4,2\n", ""), {"fixed": ["state"]}, "fixed count of state 'B' is missing"),
        (EVERY.replace("B,,4", "B,,-4"), {"fixed": ["state"]}, "fixed count of state 'B' is negative"),
        (EVERY.split("A,A1")[0], {}, "no row fills the last level, 'county'"),
        (EVERY.split(",,12")[0], {}, "the table of counts has no rows"),
    ],
)
def test_bad_input_is_refused_and_named(text, options, message):
    with pytest.raises(InputError, match=message):
        repair(table(text), **{**COLUMNS, **options})


def test_a_fixed_level_needs_no_standard_errors(tmp_path):
    frame = table(EVERY.replace(",,12,1", ",,12,"))
    made = repair(frame, **COLUMNS, standard_error="se", fixed=["root"])
    assert made.table["count"][0] == 12
    assert verdicts(made, tmp_path / "out")["table from steps"].verdict == "holds"


def test_the_command_writes_a_folder_and_refuses_to_replace_it(tmp_path):
    given, out = tmp_path / "noisy.csv", tmp_path / "out"
    given.write_text(EVERY)
    words = ["repair", given, "--levels", "state, county", "--count", "n", "--fixed", "root", "--out", out]
    made = CliRunner().invoke(main, list(map(str, words)))
    assert made.exit_code == 0, made.output
    assert "1 of 1 problems proved optimal; no noise added, no privacy claimed" in made.output
    assert CliRunner().invoke(main, ["check", str(out)]).exit_code == 0
    again = CliRunner().invoke(main, list(map(str, words)))
    assert again.exit_code == 2
    assert "exists; choose another folder" in again.output


def test_methods_are_those_of_the_registry():
    assert [method.name for method in REPAIR.methods] == list(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_repairs_of_random_hierarchies_are_proved_and_follow_from_their_steps(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows = [(f"s{s}", f"c{s}{c}", f"t{s}{c}{t}") for s in range(3) for c in range(3) for t in range(3)]
    rows = [row for row in rows if rng.random() < 0.7] or rows[:1]
    frame = pd.DataFrame(rows, columns=["s", "c", "t"]).assign(n=rng.integers(0, 40, len(rows)))
    parts = [frame.groupby(above, as_index=False).n.sum() for above in (["s", "c"], ["s"])]
    full = pd.concat([frame, *parts, pd.DataFrame({"n": [frame.n.sum()]})], ignore_index=True)
    full["se"] = rng.choice([0.5, 1, 7.3], len(full))
    noise = rng.normal(size=len(full)) * full.se * full.s.notna()
    full["n"] = full.n + (noise if seed % 2 else np.rint(noise).astype(int))
    kept = full.t.notna() | full.s.isna() | (rng.random(len(full)) < 0.7)
    full, columns = full[kept].sample(frac=1, random_state=seed), {"levels": ["s", "c", "t"], "count": "n"}
    for method, options in METHODS.items():
        if options.whole_only and seed % 2:
            continue
        for fixed in ([], ["root"]) if "fixed" in options.takes else ([],):
            made = repair(full, **columns, standard_error="se", method=method, fixed=fixed)
            found = verdicts(made, tmp_path / "out")
            assert not [line for line in found.values() if line.verdict == FAILS]
            assert found["table from steps"].verdict == "holds"


@pytest.mark.parametrize(
    ("options", "errors"),
    [
        (["--standard-error", "se"], [1, 2, 1, 1, 2, 1, 3]),
        (["--standard-error", "2.5"], [2.5] * 7),
        (["--scale", "3", "--law", "Gaussian"], [3] * 7),
        (["--scale", "se", "--law", "Laplace"], np.sqrt(2) * np.array([1, 2, 1, 1, 2, 1, 3])),
        (["--scale", "se", "--law", "law"], [1, 2, np.sqrt(2), 1, 2, 1, 3]),
    ],
)
def test_the_command_takes_standard_errors_or_scales_as_columns_or_numbers(options, errors, tmp_path):
    laws = ["Gaussian", "Gaussian", "Laplace", *["Gaussian"] * 4]
    table().assign(law=laws).to_csv(tmp_path / "in.csv", index=False)
    words = ["repair", tmp_path / "in.csv", "--levels", "state,county", "--count", "n", "--method"]
    words += ["least-squares", *options, "--out", tmp_path / "out"]
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 0, done.output
    made = pd.read_csv(tmp_path / "out" / "released.csv").set_index("region")
    order = ["all", "A", "A1", "A2", "B", "B1", "B2"]
    np.testing.assert_allclose(made.loc[order, "given_standard_error"], errors)


def test_each_table_takes_one_scale_for_all_counts():
    rows = pd.DataFrame({"day": list("mmtt"), "state": list("ABAB"), "n": [6, 2, 5, -3]})
    columns = {"by": "day", "levels": ["state"], "count": "n"}
    column = repair(rows.assign(se=2.0), **columns, standard_error="se").table
    for known in ({"standard_error": 2.0}, {"scale": 2, "law": "Gaussian"}):
        pd.testing.assert_frame_equal(repair(rows, **columns, **known).table, column)


@pytest.mark.parametrize("option", [{"standard_error": 5.0}, {"scale": 5.0, "law": "Laplace"}])
def test_measurements_have_their_own_errors(option):
    counts = Measurements.from_frame(table(EVERY), LEVELS, "n", standard_error="se")
    with pytest.raises(InputError, match=f"{next(iter(option))} does not apply: measurements have their own"):
        repair(counts, levels=LEVELS, **option)


def test_a_law_alone_says_nothing(tmp_path):
    table().to_csv(tmp_path / "in.csv", index=False)
    words = [
        "repair",
        str(tmp_path / "in.csv"),
        "--levels",
        "state,county",
        "--count",
        "n",
        "--law",
        "Laplace",
    ]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out")])
    assert "--law says what --scale means; give --scale as well" in done.output
