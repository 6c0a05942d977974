"""Reconciled forecasts: coherent, proved, in the manner of hierarchicalforecast."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import hierdp.forecasting.reconciler
from hierdp import execution, repair
from hierdp.checking import FAILS, check
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.forecasting import Reconciler, aggregate, reconcile_file
from hierdp.forecasting.reconciler import shrinkage
from hierdp.forecasting.structure import structure_of
from hierdp.forecasting.tables import summing_of
from hierdp.record.step import NotSolved
from models import Reconciliation
from solvers import solve
from tests.marks import quick

TREE = [["state"], ["state", "shop"]]
CROSSED = [["state"], ["product"], ["state", "product"]]


def sales(seed=0, dates=4):
    rng = np.random.default_rng(seed)
    rows = [
        {"state": s, "shop": f"{s}{k}", "product": p, "ds": d, "y": float(rng.poisson(2))}
        for s in "AB"
        for k in range(3)
        for p in "xyz"
        for d in range(dates)
    ]
    return pd.DataFrame(rows)


def forecasts(spec, seed=0, dates=4):
    """Noisy forecasts of every series, the summing matrix, and the levels."""
    table, summing, tags = aggregate(sales(seed, dates), spec)
    rng = np.random.default_rng(seed)
    given = table.assign(naive=table.y + rng.normal(0, 2, len(table)), other=table.y - 1).drop(columns="y")
    return given, summing, tags


def reconciled(reconciler, spec, column="naive", **options):
    """Base and reconciled forecasts, shape (series, dates), and the matrix that says how they add up."""
    given, summing, tags = forecasts(spec)
    found = reconciler.reconcile(given, summing, tags, **options)
    both = (found.pivot(index="unique_id", columns="ds", values=name).loc[summing.ids].to_numpy()
            for name in (column, f"{column}/{reconciler.name}"))  # fmt: skip
    return (*both, summing.matrix.toarray())


@pytest.mark.parametrize("spec", [TREE, CROSSED])
@pytest.mark.parametrize("weights", ["ols", "wls_struct"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nonnegative": False},
        {"whole": True},
        {"loss": "absolute"},
        {"loss": "largest"},
        {"fixed": ["state"]},
        {"upper": 30},
    ],
    ids=str,
)
def test_every_option_gives_coherent_forecasts_and_proofs(spec, weights, options):
    reconciler = Reconciler(weights, **options)
    base, made, matrix = reconciled(reconciler, spec)
    bottom = matrix.shape[1]
    slack = 0 if reconciler.whole else 1e-9  # sums of at most 18 numbers below 100, in floats
    np.testing.assert_allclose(made, matrix @ made[-bottom:], rtol=0, atol=slack)
    if options.get("nonnegative", True):
        assert made.min() >= -slack
    if reconciler.whole:
        assert made.dtype == np.int64
    if options.get("fixed"):
        np.testing.assert_allclose(made[:2], base[:2], rtol=0, atol=slack)
    exactly = not (reconciler.whole and spec is CROSSED)
    assert all(proof.gap is not None and (proof.optimal or not exactly) for proof in reconciler.certificates)


@pytest.mark.parametrize("spec", [TREE, CROSSED])
def test_least_squares_is_the_projection(spec):
    base, made, matrix = reconciled(Reconciler("ols", nonnegative=False), spec)
    expected = matrix @ np.linalg.lstsq(matrix, base, rcond=None)[0]
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-9)  # a well-conditioned system of 18 columns


def test_many_dates_at_once_are_the_same_as_each_alone():
    given, summing, _ = forecasts(TREE)
    values = given.pivot(index="unique_id", columns="ds", values="naive").loc[summing.ids].to_numpy()
    together = Reconciler("wls_struct").fit_predict(summing.matrix, values)["mean"]
    structure, weights = structure_of(summing.matrix), 1 / structure_of(summing.matrix).counts
    for column, made in zip(values.T, together.T, strict=True):
        alone = solve(Reconciliation(column, structure.aggregate, structure.part, weights), "fast").x
        np.testing.assert_allclose(made, alone, rtol=0, atol=1e-9)  # numbers below 100, two methods in floats


@pytest.mark.parametrize("options", quick([{"whole": True}, {}]), ids=str)
def test_processes_give_the_same(options, monkeypatch):
    for name in ("NODES", "BESIDE"):
        monkeypatch.setattr(hierdp.forecasting.reconciler, name, 1)  # a task for each date
    given, summing, _ = forecasts(TREE)
    alone, shared = Reconciler(**options), Reconciler(**options)
    with execution.using(workers=2):
        made = shared.reconcile(given, summing)
    pd.testing.assert_frame_equal(made, alone.reconcile(given, summing))
    for ours, theirs in zip(shared.certificates, alone.certificates, strict=True):
        assert ours.optimal
        assert theirs.optimal
        # Sums of a hundred floats, by NumPy in a new process and by a loop where Numba is loaded.
        assert float(ours.objective) == pytest.approx(float(theirs.objective), rel=1e-12)


DAYS = pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"])


def test_sums_are_those_of_the_rows_there_are():
    table = pd.DataFrame({"shop": "s", "item": list("123"), "ds": DAYS, "y": [10, 20, 30]})
    long, _, _ = aggregate(table, [["shop"], ["shop", "item"]])
    assert long.y[long.unique_id == "s"].tolist() == [10, 20, 30]
    assert len(long) == 6
    with pytest.raises(InputError, match="series 's/2' has no 'y' for ds 2020-02-01: give the value"):
        aggregate(table.assign(y=[10, None, 30]), [["shop"], ["shop", "item"]])
    with pytest.raises(InputError, match="a row of series 's/1' has no ds"):
        aggregate(table.assign(ds=[None, *DAYS[1:]]), [["shop"], ["shop", "item"]])


@pytest.mark.parametrize(("brands", "items"), [(["a/b", "a"], ["c", "b/c"]), (["a", "a/b"], ["b", "x"])])
def test_names_with_the_separator_are_refused_if_two_series_get_the_same(brands, items):
    table = pd.DataFrame({"brand": brands, "item": items, "ds": 1, "y": [1.0, 2.0]})
    with pytest.raises(InputError, match="two series are called 'a/b"):
        aggregate(table, [["brand"], ["brand", "item"]])


KINDS = {
    "text": lambda names: pd.Series(names, dtype=object).map(lambda name: name and str(name)),
    "integer": lambda names: pd.Series(names, dtype=float if None in names else int),
    "float": lambda names: pd.Series(names, dtype=float),
    "nullable": lambda names: pd.Series(names, dtype="Int64"),
    "category": lambda names: pd.Series(pd.Categorical(names, [5, 1, 2, 3, 4])),
}


@pytest.mark.parametrize("kind", ["csv", "parquet", None])
@pytest.mark.parametrize("of_parents", KINDS)
@pytest.mark.parametrize("of_forecasts", ["text", "integer", "float"])
def test_names_are_the_same_as_numbers_and_as_text(of_forecasts, of_parents, kind, tmp_path):
    series = KINDS[of_forecasts]([1, 2, 3])
    given = pd.DataFrame({"unique_id": series, "ds": 1, "m": [10.0, 4, 5]})
    rows = {"unique_id": KINDS[of_parents]([1, 2, 3]), "parent": KINDS[of_parents]([None, 1, 1])}
    parents = pd.DataFrame(rows)
    past = pd.DataFrame({"unique_id": series, "ds": 0, "y": 1.0, "m": 2.0})
    if kind is None:
        made = Reconciler("wls_var", fixed=["1"]).reconcile(given, parents, {"2": [2]}, past)
        assert made.unique_id.tolist() == series.tolist()
    else:
        files = [tmp_path / f"{name}.{kind}" for name in ("given", "parents", "past", "made")]
        for frame, file in zip((given, parents, past), files, strict=False):
            frame.to_csv(file, index=False) if kind == "csv" else frame.to_parquet(file)
        command = ["reconcile", *files[:2], "--past", files[2], "--weights", "wls_var", "--fixed", "1"]
        done = CliRunner().invoke(main, [str(word) for word in (*command, "--out", files[3])])
        assert done.exit_code == 0, done.output
        made = pd.read_csv(files[3]) if kind == "csv" else pd.read_parquet(files[3])
    assert made.iloc[:, -1].tolist() == pytest.approx([10, 4.5, 5.5], rel=1e-12)


def test_numbers_name_the_series_of_a_matrix_and_of_aggregate():
    rows = pd.DataFrame({"a": [1.0, 1.0, 2.0], "b": pd.Categorical([7, 8, 7], [9, 7, 8]), "ds": 1, "y": 1})
    _, summing, _ = aggregate(rows, [["a"], ["a", "b"]])
    assert summing.ids.tolist() == ["1", "2", "1/7", "1/8", "2/7"]
    matrix = pd.DataFrame({"unique_id": [0.0, 1.0, 2.0], "1": [1, 1, 0], "2": [1, 0, 1]})
    assert summing_of(matrix, "unique_id").ids.tolist() == ["0", "1", "2"]


def test_series_of_unequal_length_are_weighed_by_the_residuals_they_have():
    given = pd.DataFrame({"unique_id": list("TAB"), "ds": 9, "m": [12.0, 4.0, 5.0]})
    parents = pd.DataFrame({"unique_id": list("TAB"), "parent": [None, "T", "T"]})
    errors = {"T": [1, -1, 1], "A": [0.5, -0.5, 0.5], "B": [2, -2]}
    rows = [(name, -t, 1.0, 1 + e) for name, found in errors.items() for t, e in enumerate(found)]
    past = pd.DataFrame(rows, columns=["unique_id", "ds", "y", "m"])
    made = Reconciler("wls_var").reconcile(given, parents, Y_df=past)
    expected = Reconciler([1, 4, 1 / 4]).reconcile(given, parents)
    np.testing.assert_allclose(made.iloc[:, -1], expected.iloc[:, -1], rtol=1e-12)
    with pytest.raises(InputError, match="series 'B' lacks some past values"):
        Reconciler("mint_shrink").reconcile(given, parents, Y_df=past)
    with pytest.raises(InputError, match="series 'B' lacks past values"):
        Reconciler("wls_var").reconcile(given, parents, Y_df=past[past.unique_id != "B"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"m-lo-90": 1.0}, "column 'm-lo-90' is a quantile or an end of an interval"),
        ({"m-hi-99.5": 1.0}, "Reconcile samples"),
        ({"yhat_lower": 1.0}, "end of an interval"),
        ({"m-q-0.1": 1.0}, "a quantile"),
        ({"p10": 1.0}, "a quantile"),
        ({0.9: 1.0}, "column '0.9' is a quantile"),
        ({"index": 1}, "column 'index' is an index, not a forecast"),
        ({"Unnamed: 0": 1}, "is an index"),
        ({"holiday": True}, "column 'holiday' contains booleans; expected numbers"),
        ({"seen": pd.Timestamp(0)}, "column 'seen' contains datetime64; expected numbers"),
    ],
)
def test_columns_that_are_no_forecasts_are_refused(columns, message):
    given, summing, _ = forecasts(TREE)
    with pytest.raises(InputError, match=message):
        Reconciler().reconcile(given.join(pd.DataFrame(columns, given.index)), summing)


def test_the_folds_of_a_cross_validation_stay_or_are_named():
    given, summing, _ = forecasts(TREE)
    made = Reconciler().reconcile(given.assign(cutoff=DAYS[0], median=given.naive, arima_p2=1.0), summing)
    assert (made.cutoff == DAYS[0]).all()
    assert not any(column.startswith("cutoff/") for column in made)
    folds = pd.concat([given.assign(cutoff=6), given.assign(cutoff=7)])
    with pytest.raises(InputError, match="has two rows for ds 0: reconcile each 'cutoff' by itself"):
        Reconciler().reconcile(folds, summing)


def test_dates_stay_dates():
    table = sales().assign(ds=pd.Timestamp("2026-01-01"))
    long, _, _ = aggregate(table, TREE)
    assert long.ds.dtype == table.ds.dtype
    assert long.y.sum() == 2 * table.y.sum()  # of two levels


def test_wls_var_weighs_by_past_residuals():
    given, summing, _ = forecasts(TREE)
    past, _, _ = aggregate(sales(1, 30), TREE)
    past["naive"] = past.y + np.random.default_rng(2).normal(0, 1 + past.y)
    reconciler = Reconciler("wls_var")
    found = reconciler.reconcile(given.drop(columns="other"), summing, Y_df=past)
    variance = (past.y - past.naive).pow(2).groupby(past.unique_id).mean()[summing.ids].to_numpy()
    other = Reconciler(1 / variance).reconcile(given.drop(columns="other"), summing)
    np.testing.assert_allclose(found.iloc[:, -1], other.iloc[:, -1], rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="needs Y_df with the in-sample forecasts of 'naive'"):
        reconciler.reconcile(given, summing)


def past_and_fitted(summing):
    past, _, _ = aggregate(sales(1, 30), CROSSED)
    values = past.pivot(index="unique_id", columns="ds", values="y").loc[summing.ids].to_numpy()
    return values, values + np.random.default_rng(2).normal(0, 1 + values) + 3


def test_shrunk_covariances_are_those_of_hierarchicalforecast():
    theirs = pytest.importorskip("hierarchicalforecast.utils")
    past, fitted = past_and_fitted(forecasts(CROSSED)[1])
    share, away = shrinkage(past - fitted)
    full = away @ away.T / (away.shape[1] - 1)
    ours = share * np.diag(np.diag(full)) + (1 - share) * full
    found = theirs._shrunk_covariance_schaferstrimmer_no_nans(np.ascontiguousarray(past - fitted), 2e-8)
    np.testing.assert_allclose(ours, found, rtol=1e-6)  # theirs adds 2e-8 to the diagonal


def test_shrunk_covariances_are_those_by_definition():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(5, 12)) + rng.normal(size=12)
    share, away = shrinkage(residuals)
    unit = away / away.std(axis=1, ddof=1, keepdims=True)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    products = {(i, j): unit[i] * unit[j] for i, j in pairs}
    variance = sum(12 / 11**3 * ((w - w.mean()) ** 2).sum() for w in products.values())
    expected = variance / sum((w.sum() / 11) ** 2 for w in products.values())
    assert share == pytest.approx(min(1, expected), rel=1e-12)  # sums of a few hundred numbers


@pytest.mark.parametrize("nonnegative", [False, True])
def test_full_covariances(nonnegative):
    given, summing, _ = forecasts(CROSSED)
    past, fitted = past_and_fitted(summing)
    values = given.pivot(index="unique_id", columns="ds", values="naive").loc[summing.ids].to_numpy()
    reconciler = Reconciler("mint_shrink", nonnegative=nonnegative)
    made = reconciler.fit_predict(summing.matrix, values, past, fitted)["mean"]
    assert all(proof.optimal for proof in reconciler.certificates)
    share, away = shrinkage(past - fitted)
    full = away @ away.T / (away.shape[1] - 1)
    inverse = np.linalg.inv(share * np.diag(np.diag(full)) + (1 - share) * full)
    matrix = summing.matrix.toarray()
    if nonnegative:  # no better along the line to any other coherent forecasts
        rng = np.random.default_rng(3)
        for _ in range(20):
            other = matrix @ rng.exponential(2, (matrix.shape[1], values.shape[1]))
            slope = np.einsum("it,ij,jt->t", other - made, inverse, made - values)
            assert slope.min() > -1e-6  # costs of some hundreds, proved to 1e-7 of them
    else:
        expected = matrix @ np.linalg.solve(matrix.T @ inverse @ matrix, matrix.T @ inverse @ values)
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)  # a system of condition 1e4


def test_whole_forecasts_take_weights_and_numbers_of_any_size():
    matrix = np.vstack([np.ones((1, 6)), np.repeat(np.eye(2), 3, axis=1), np.eye(6)])
    base = np.random.default_rng(0).normal(0, 1e6, (9, 2))
    reconciler = Reconciler(10.0 ** np.array([-9, -5, -5, 3, 0, -2, -1, -1, -3]), whole=True)
    made = reconciler.fit_predict(matrix, base)["mean"]
    np.testing.assert_array_equal(made, matrix @ made[3:])
    assert all(proof.optimal for proof in reconciler.certificates)


def test_a_tree_is_found_below_other_levels_and_chains():
    matrix = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    structure = structure_of(matrix)
    assert structure.is_tree
    parent = dict(zip(structure.part.tolist(), structure.aggregate.tolist(), strict=True))
    assert parent == {1: 0, 2: 0, 3: 1, 4: 1, 5: 2}
    values = np.arange(12.0).reshape(6, 2)
    assert np.array_equal(structure.gathered(structure.spread(values), 2), values)
    assert not structure_of(np.vstack([[[1, 1, 0], [0, 1, 1]], np.eye(3)])).is_tree


def test_series_may_be_fixed_by_name():
    given, summing, tags = forecasts(TREE)
    found = Reconciler(fixed=["A"]).reconcile(given, summing, tags)
    own = found[found.unique_id == "A"]
    np.testing.assert_allclose(own["naive/Reconciler_weights-ols_fixed-A"], own.naive, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reconciler("mint_cov"), "no weights 'mint_cov'; there are .*'mint_shrink'"),
        (lambda: Reconciler("mint_shrink", whole=True), "need not be whole"),
        (lambda: Reconciler("mint_shrink").fit_predict(np.eye(2), np.ones((2, 1))), "needs past values"),
        (lambda: Reconciler("wls"), "no weights 'wls'; did you mean 'ols' or 'wls_var'"),
        (lambda: Reconciler(loss="l1"), "no loss 'l1'"),
        (lambda: Reconciler(fixed="state"), "must be a list"),
        (lambda: structure_of([[1, 1], [1, 0]]), "must be the identity"),
        (lambda: structure_of([[2, 0], [1, 0], [0, 1]]), "0 and 1 only"),
        (lambda: structure_of([[0, 0], [1, 0], [0, 1]]), "row 0 .* sums nothing"),
        (lambda: aggregate(sales(), [["city"]]), "no column 'city'"),
        (lambda: aggregate(sales(), [["shop"], ["state"]]), "the last level has no column 'shop'"),
        (lambda: aggregate(sales().assign(shop=None), TREE), "row 1, column 'shop': the name is missing"),
        (lambda: aggregate(sales().assign(y="1"), TREE), "column 'y' contains text"),
        (lambda: aggregate(sales()[:0], TREE), "the table has no rows"),
        (lambda: Reconciler().fit_predict(np.eye(2), np.ones((2, 1)), level=[90]), "Reconcile samples"),
        (lambda: Reconciler(fixed=["stat"]).reconcile(*forecasts(TREE)), "no level 'stat'; did you mean"),
        (lambda: Reconciler().fit_predict(np.eye(2), np.array([[1], [np.inf]])), "series 1 is not finite"),
        (lambda: Reconciler([[1], [1]]).fit_predict(np.eye(2), np.ones((2, 1))), r"shape \(2, 1\)"),
        (lambda: Reconciler([1, -1]).fit_predict(np.eye(2), np.ones((2, 1))), "2 positive numbers"),
        (lambda: Reconciler(lower=3, upper=2).fit_predict(np.eye(2), np.ones((2, 1))), "lower bound 3.0 is"),
    ],
)
def test_wrong_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_tables_with_missing_or_doubled_rows_are_refused():
    given, summing, _ = forecasts(TREE)
    with pytest.raises(InputError, match="series 'A' has no 'naive' for ds 0"):
        Reconciler().reconcile(given[1:], summing)
    with pytest.raises(InputError, match="series 'A' has two rows for ds 0"):
        Reconciler().reconcile(pd.concat([given, given[:1]]), summing)
    with pytest.raises(InputError, match="1 series have no forecasts, the first of them 'A'"):
        Reconciler().reconcile(given[given.unique_id != "A"], summing)
    with pytest.raises(InputError, match="column 'naive' contains text"):
        Reconciler().reconcile(given.assign(naive="1"), summing)


def test_bounds_that_leave_no_answer_are_reported():
    with pytest.raises(NotSolved, match="no forecasts keep all bounds"):
        Reconciler(lower=[0, 1, 1], upper=[1, 9, 9]).fit_predict([[1, 1], [1, 0], [0, 1]], np.ones((3, 1)))


def test_it_is_a_reconciler_of_hierarchicalforecast():
    core = pytest.importorskip("hierarchicalforecast.core")
    given, summing, tags = forecasts(TREE)
    matrix = pd.DataFrame(summing.matrix.toarray(), columns=summing.ids[-18 // 3 :])
    matrix.insert(0, "unique_id", summing.ids)
    reconciler = Reconciler("wls_struct")
    theirs = core.HierarchicalReconciliation([reconciler]).reconcile(given, tags=tags, S_df=matrix)
    ours = reconciler.reconcile(given, summing, tags)
    for column in ("naive", "other"):
        name = f"{column}/{reconciler.name}"
        both = theirs.merge(ours, on=["unique_id", "ds"])
        np.testing.assert_allclose(both[f"{name}_x"], both[f"{name}_y"], rtol=0, atol=1e-9)


def test_files_and_arrow_tables_are_read(tmp_path):
    given, summing, _ = forecasts(TREE)
    given.to_parquet(tmp_path / "forecasts.parquet")
    expected = Reconciler().reconcile(given, summing)
    for source in (tmp_path / "forecasts.parquet", pa.Table.from_pandas(given, preserve_index=False)):
        pd.testing.assert_frame_equal(Reconciler().reconcile(source, summing), expected)


def test_time_zones_and_their_repeated_hour_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    hours = pd.date_range("2024-10-26 22:00", periods=4, freq="h", tz="UTC").tz_convert("Europe/Berlin")
    given, summing, _ = forecasts(TREE)
    given["ds"] = hours[given.ds]
    given.to_parquet(tmp_path / "forecasts.parquet")
    expected = Reconciler().reconcile(given, summing)
    reconcile_file(Reconciler(), tmp_path / "forecasts.parquet", summing, tmp_path / "made.parquet")
    for made in (
        pd.read_parquet(tmp_path / "made.parquet"),
        Reconciler().reconcile(tmp_path / "forecasts.parquet", summing),
    ):
        assert str(made.ds.dt.tz) == "Europe/Berlin"
        pd.testing.assert_frame_equal(
            made.sort_values(["ds", "unique_id"], ignore_index=True),
            expected.sort_values(["ds", "unique_id"], ignore_index=True),
            check_dtype=False, rtol=0, atol=1e-9,  # numbers below 100
        )  # fmt: skip


def test_polars_in_and_out():
    polars = pytest.importorskip("polars")
    given, summing, _ = forecasts(TREE)
    found = Reconciler().reconcile(polars.from_pandas(given), summing)
    assert isinstance(found, polars.DataFrame)
    assert found["naive/Reconciler_weights-ols"].min() >= 0


METHODS = ["least-squares", "non-negative", "whole", "hierarchy-qip", "chebyshev", "least-absolute"]


@pytest.mark.parametrize("method", METHODS)
def test_repair_takes_many_tables_at_once(method, tmp_path):
    given, _, _ = forecasts(TREE, dates=3)
    names = given.unique_id.str.split("/", expand=True)
    table = given.assign(state=names[0], shop=names[1], naive=given.naive.round().astype(int))
    table = table.rename(columns={"ds": "day"}).assign(model="m")
    made = repair(table, levels=["state", "shop"], count="naive", method=method, by=["day", "model"])
    for day, part in table.groupby("day"):
        alone = repair(part, levels=["state", "shop"], count="naive", method=method).table
        own = made.table[made.table.region.str.startswith(f"{day}/m")]
        assert own.region.str.removeprefix(f"{day}/m/").tolist()[1:] == alone.region.tolist()[1:]
        # Numbers below 100 by the same method; whole ones are the same.
        np.testing.assert_allclose(own["count"], alone["count"], rtol=0, atol=1e-9)
    made.write(tmp_path / "made")
    assert not [one for one in check(tmp_path / "made") if one.verdict == FAILS]


def test_a_row_without_its_table_is_named():
    table = pd.DataFrame({"day": [1, None], "shop": ["x", "y"], "n": [1, 2]})
    with pytest.raises(InputError, match="row 2 has no day: each row belongs to a table"):
        repair(table, levels=["shop"], count="n", by=["day"])


def test_parents_may_be_given_in_place_of_a_matrix():
    given, summing, tags = forecasts(TREE)
    pairs = [(name, name.partition("/")[0]) for name in tags["state/shop"]]
    parents = pd.DataFrame([("A", None), *pairs], columns=["unique_id", "parent"])
    expected = Reconciler().reconcile(given, summing)
    pd.testing.assert_frame_equal(Reconciler().reconcile(given, parents), expected)
    twice = {"unique_id": ["b", "b", "l", "r"], "parent": ["l", "r", "top", "top"]}
    assert summing_of(pd.DataFrame(twice), "unique_id").matrix.toarray().tolist() == [[1], [1], [1], [1]]
    with pytest.raises(InputError, match="is its own parent"):
        summing_of(pd.DataFrame({"unique_id": ["x", "y"], "parent": ["y", "x"]}), "unique_id")


@pytest.mark.parametrize("values", [1, 100, 1 << 22])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_command_reconciles_files(kind, values, tmp_path, monkeypatch):
    monkeypatch.setattr(hierdp.forecasting.files, "VALUES", values)
    given, summing, tags = forecasts(CROSSED)
    matrix = pd.DataFrame(summing.matrix.toarray(), columns=summing.ids[-6:]).assign(unique_id=summing.ids)
    if kind == "csv":
        given.to_csv(tmp_path / "forecasts.csv", index=False)
    else:
        given.to_parquet(tmp_path / "forecasts.parquet")
    matrix.to_csv(tmp_path / "summing.csv", index=False)
    files = [str(tmp_path / name) for name in (f"forecasts.{kind}", "summing.csv", f"made.{kind}")]
    whole = values > 100  # the best whole forecasts of several dates are not unique
    command = ["reconcile", *files[:2], "--weights", "wls_struct", *["--whole"] * whole, "--out", files[2]]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "All forecasts are proved optimal" in done.output
    made = pd.read_csv(files[2]) if kind == "csv" else pd.read_parquet(files[2])
    expected = Reconciler("wls_struct", whole=whole).reconcile(given, summing, tags)
    expected = expected.sort_values(["ds", "unique_id"], ignore_index=True)
    # Newton's method ends when sums hold to 13 digits.
    pd.testing.assert_frame_equal(made, expected, check_dtype=False, rtol=0, atol=1e-10)
    again = CliRunner().invoke(main, command)
    assert again.exit_code == 2
    assert "give --overwrite" in again.output


def test_nothing_is_written_if_a_later_date_lacks_a_value(tmp_path, monkeypatch):
    monkeypatch.setattr(hierdp.forecasting.files, "VALUES", 1)
    given, summing, _ = forecasts(CROSSED)
    given.loc[given.index[given.ds == 3][0], "naive"] = np.nan
    given.to_parquet(tmp_path / "forecasts.parquet")
    with pytest.raises(InputError, match="has no 'naive' for ds 3"):
        reconcile_file(Reconciler(), tmp_path / "forecasts.parquet", summing, tmp_path / "made.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["forecasts.parquet"]
    with pytest.raises(InputError, match="no column 'day'"):
        reconcile_file(
            Reconciler(), tmp_path / "forecasts.parquet", summing, tmp_path / "made.csv", time_col="day"
        )


class Series:
    """What `Reconciler.transform` needs of a TimeSeries of darts."""

    def __init__(self, values, components, hierarchy):
        self.components, self.hierarchy, self.all_values = pd.Index(components), hierarchy, lambda: values

    def with_values(self, values):
        return Series(values, self.components, self.hierarchy)

    def values(self):
        return self.all_values()[:, :, 0]

    def __getitem__(self, names):
        return Series(self.all_values()[:, self.components.get_indexer(names)], names, self.hierarchy)


def of_darts(values, components, hierarchy):
    darts = pytest.importorskip("darts")
    days = pd.date_range("2026-01-01", periods=len(values))
    series = darts.TimeSeries.from_times_and_values(days, values, columns=components)
    return series.with_hierarchy(hierarchy)


@pytest.mark.parametrize("kind", [Series, of_darts])
def test_time_series_of_darts_are_transformed(kind):
    rng = np.random.default_rng(0)
    names, hierarchy = ["x", "total", "a", "y"], {"x": ["a"], "y": ["a"], "a": ["total"]}
    values, residuals = rng.normal(3, 2, (5, 4, 7)), rng.normal(0, [[[1], [9], [9], [1]]], (50, 4, 1))
    reconciler = Reconciler(whole=True)
    made = reconciler.transform(kind(values, names, hierarchy))
    x, total, a, y = made.all_values().swapaxes(0, 1)
    np.testing.assert_array_equal(total, a)
    np.testing.assert_array_equal(a, x + y)
    assert all(proof.optimal for proof in reconciler.certificates)
    reconciler = Reconciler("wls_var", nonnegative=False)
    made = reconciler.transform(kind(values, names, hierarchy), kind(residuals, names, hierarchy))
    own, parts = 1 / (residuals[:, :, 0] ** 2).mean(axis=0), np.array([[1, 0], [1, 1], [1, 1], [0, 1]])
    weighed = parts.T * own
    expected = np.linalg.solve(weighed @ parts, weighed @ values.swapaxes(0, 1).reshape(4, -1))
    # A system of two unknowns, of numbers below 10.
    np.testing.assert_allclose(
        made.all_values()[:, [0, 3]].swapaxes(0, 1).reshape(2, -1), expected, atol=1e-10
    )
