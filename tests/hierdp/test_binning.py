"""Bins of numbers, dates and names: where values fall, what is refused, and ranges in words."""

from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hierdp.counts.axes import Dates, Names, Numbers, axis_of, span, tree_order
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Database, read_regions
from hierdp.tables.binning import Histogram, histogram


def test_numbers_fall_where_bins_say():
    rng = np.random.default_rng(0)
    for low, high, bins in [
        (0, 100, 20),
        (-5, 5, None),
        (0.0, 1.0, 7),
        (-0.3, 0.6, 9),
        (10**15, 10**15 + 64, 8),
    ]:
        axis = Numbers("v", low, high, bins)
        values = np.minimum(rng.uniform(low, high, 500), np.nextafter(float(high), low))
        values[:3] = [low, axis.edges(1), np.nextafter(high, low)]
        found = histogram(pd.DataFrame({"v": values}), [axis]).counts
        cuts = np.searchsorted(axis.edges(np.arange(axis.bins)), values, "right") - 1
        # A value at an edge that is not a float may fall on either side of it.
        assert np.abs(found - np.bincount(cuts, minlength=axis.bins)).sum() <= 2
        assert found.sum() == 500


def test_whole_numbers_are_binned_exactly():
    values = np.arange(-7, 35)
    found = histogram(pd.DataFrame({"v": values}), [Numbers("v", -7, 35, 14)]).counts
    assert found.tolist() == [3] * 14
    assert (
        histogram(pd.DataFrame({"v": values.astype(str)}), [Numbers("v", -7, 35)]).counts.tolist() == [1] * 42
    )
    assert Numbers("v", 0, 10, 5).edges([0, 5]).dtype == np.int64
    assert Numbers("v", 0, 10, 4).edges([1]).tolist() == [2.5]


def test_dates_fall_on_their_days():
    days = ["2013-01-01", "2013-01-07", "2013-01-08", "2013-01-28"]
    axis = Dates("d", "2013-01-01", "2013-01-29", 4)
    for column in (
        days,
        pd.to_datetime(days),
        pd.to_datetime([f"{d} 23:59:59" for d in days]),
        pd.to_datetime(days).date,
    ):
        assert histogram(pd.DataFrame({"d": column}), [axis]).counts.tolist() == [2, 1, 0, 1]
    old = Dates("d", "1969-12-01", "1970-01-02")
    counts = histogram(pd.DataFrame({"d": ["1969-12-31 12:00", "1970-01-01"]}), [old]).counts
    assert counts.tolist() == [0] * 30 + [1, 1]
    assert axis.labels == ["2013-01-01", "2013-01-08", "2013-01-15", "2013-01-22"]
    assert [e.tolist() for e in axis.ends([0, 2], [1, 4])] == [
        ["2013-01-01", "2013-01-15"], ["2013-01-08", "2013-01-29"]
    ]  # fmt: skip


KEPT = []
"""Connections of relations: with the oldest DuckDB, these do not keep theirs open."""


def zoned(kind, folder):
    """The column t in a table of some kind: 00:30 and 12:00 on 1 January and 00:10 on 2 January in Berlin."""
    clocks = pd.DatetimeIndex(["2024-01-01 00:30", "2024-01-01 12:00", "2024-01-02 00:10"])
    frame = pd.DataFrame({"t": clocks.tz_localize("Europe/Berlin")})
    if kind == "offset":
        return pd.DataFrame({"t": clocks.tz_localize("+01:00")})
    if kind == "mixed":
        return pd.DataFrame({"t": [clocks[0].tz_localize("-05:00"), *frame.t[1:]]}, dtype=object)
    if kind == "arrow":
        return pa.Table.from_pandas(frame)
    if kind == "text":
        return pd.DataFrame({"t": [at.isoformat() for at in frame.t]})
    if kind == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return folder / "t.parquet"
    if kind == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    connection = duckdb.connect(folder / "t.duckdb")
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    if kind == "relation":
        KEPT.append(connection)
        return connection.table("t")
    if kind == "parquet of DuckDB":
        connection.execute(f"COPY t TO '{folder}/t.parquet'")
        return folder / "t.parquet"
    connection.close()
    return Database(str(folder / "t.duckdb"), "t") if kind == "database" else frame


@pytest.mark.parametrize(
    "kind",
    [
        "frame",
        "offset",
        "mixed",
        "arrow",
        "text",
        "parquet",
        "csv",
        "relation",
        "parquet of DuckDB",
        "database",
    ],
)
def test_timestamps_with_a_zone_count_on_the_day_of_its_clock(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    axes = [Dates("t", "2023-12-31", "2024-01-03")]
    if kind in ("relation", "parquet of DuckDB", "database"):  # which keep the moment, but not the zone
        with pytest.raises(InputError, match="column 't' contains timestamps in UTC, whose day depends"):
            histogram(zoned(kind, tmp_path), axes)
    else:
        assert histogram(zoned(kind, tmp_path), axes).counts.tolist() == [0, 2, 1]


def test_days_have_the_names_of_dates():
    clocks = pd.DatetimeIndex(["2024-01-01", "2024-01-02 00:10"])
    for column in (clocks, clocks.tz_localize("Europe/Berlin")):
        rows = pd.DataFrame({"t": column})
        for places in (read_regions(rows, ["t"]), Hierarchy.from_columns(rows, ["t"])):
            assert places.names[1].tolist() == ["2024-01-01", "2024-01-02 00:10:00"]


def test_letters_with_accents_are_the_same_in_one_piece_and_in_two():
    rows = pd.DataFrame({"town": ["\u00c9vora", "E\u0301vora"]})
    for places in (read_regions(rows, ["town"]), Hierarchy.from_columns(rows, ["town"])):
        assert places.names[1].tolist() == ["\u00c9vora"]
        assert histogram(rows, [("town", (places, "town"))]).counts.tolist() == [2]


def test_names_come_in_the_order_of_their_hierarchy():
    rows = pd.DataFrame({"state": list("BABA"), "town": list("wxyz"), "n": [1, 2, 3, 4]})
    found = histogram(rows, [("town", ["state", "town"])], count="n")
    assert found.axes[0].labels == ["x", "z", "w", "y"]
    assert found.counts.tolist() == [2, 4, 1, 3]
    places = Hierarchy.from_columns({"state": list("BABAC"), "town": list("wxyzq")}, ["state", "town"])
    known = histogram(rows, [("town", (places, "town"))], count="n")
    assert known.axes[0].labels == ["x", "z", "w", "y", "q"]
    assert known.counts.tolist() == [2, 4, 1, 3, 0]
    more = pd.concat([rows, pd.DataFrame({"state": [None, "A"], "town": ["x", "nowhere"], "n": [50, 7]})])
    with pytest.raises(InputError, match="column 'town' has 1 region"):
        histogram(more, [("town", (places, "town"))], count="n")
    kept = histogram(more, [("town", (places, "town"))], count="n", unknown="?")
    assert dict(zip(kept.axes[0].labels, kept.counts.tolist(), strict=True)) == {
        "x": 52, "z": 4, "w": 1, "y": 3, "q": 0, "?": 7
    }  # fmt: skip


def test_every_region_is_a_run_of_leaves():
    rng = np.random.default_rng(1)
    columns = {"a": rng.integers(0, 3, 40).astype(str), "c": np.arange(40).astype(str)}
    columns["b"] = np.char.add(columns["a"], rng.integers(0, 4, 40).astype(str))
    places = Hierarchy.from_columns(columns, ["a", "b", "c"])
    names = Names.of("c", places)
    mine = places.columns()
    at = {name: i for i, name in enumerate(mine["c"])}
    for level in ("a", "b"):
        regions = [mine[level][at[name]] for name in names.names]
        assert sum(x != y for x, y in pairwise(regions)) == len(set(regions)) - 1
    assert [sorted(order.tolist()) for order in tree_order(places)] == [
        list(range(n)) for n in places.tree.level_sizes
    ]


def test_several_dimensions_mix():
    rows = pd.DataFrame({"v": [0, 5, 9], "d": ["2013-01-02"] * 3, "who": ["b", "a", "b"]})
    axes = [("who", ["who"]), Numbers("v", 0, 10, 2), Dates("d", "2013-01-01", "2013-01-04")]
    found = histogram(rows, axes)
    assert found.counts.shape == (2, 2, 3)
    assert np.argwhere(found.counts).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 1]]
    assert [axis.name for axis in found.axes] == ["who", "v", "d"]
    assert histogram(rows, axes[:2]).counts.tolist() == [[0, 1], [1, 1]]


JANUARY = Dates("v", "2013-01-01", "2013-02-01")


@pytest.mark.parametrize(
    ("values", "axis", "message"),
    [
        ([1, None], Numbers("v", 0, 10), "row 2, column 'v': the number is missing"),
        ([1.0, np.nan], Numbers("v", 0, 10), "row 2, column 'v': the number is missing"),
        (["1", " "], Numbers("v", 0, 10), "row 2, column 'v': the number is missing"),
        (["1", "one"], Numbers("v", 0, 10), "row 2, column 'v': the value is not a number"),
        ([1, 10], Numbers("v", 0, 10), "row 2, column 'v': the value is outside the bins"),
        ([1, -1], Numbers("v", 0, 10), "row 2, column 'v': the value is outside the bins"),
        ([True, False], Numbers("v", 0, 10), "column 'v' contains boolean; expected numbers"),
        (["2013-01-01", None], JANUARY, "row 2, column 'v': the date is missing"),
        (["2013-01-01", "x"], JANUARY, "row 2, column 'v': the value is not a date"),
        (["2013-01-01", "2013-02-01"], JANUARY, "row 2, column 'v': the value is out"),
        ([1, 2], JANUARY, "column 'v' contains int64; expected dates"),
        ([1, 2], Numbers("w", 0, 1), "no column 'w' in the data"),
        ([], Numbers("v", 0, 10), "the table has no rows"),
    ],
)  # fmt: skip
def test_values_outside_the_bins_are_refused_by_row(values, axis, message):
    with pytest.raises(InputError, match=message):
        histogram(pd.DataFrame({"v": values}), [axis])


def test_clipping_puts_what_is_outside_into_the_end_bins():
    rows = pd.DataFrame({"v": [-1e300, -1, 0, 9, 10, np.inf]})
    assert histogram(rows, [Numbers("v", 0, 10, 5)], clip=True).counts.tolist() == [3, 0, 0, 0, 3]
    with pytest.raises(InputError, match="missing"):
        histogram(pd.DataFrame({"v": [np.nan]}), [Numbers("v", 0, 10, 5)], clip=True)


def test_counts_are_checked():
    rows = pd.DataFrame({"v": [1, 2], "n": [3, -1]})
    with pytest.raises(InputError, match="the count is negative"):
        histogram(rows, [Numbers("v", 0, 10)], count="n")
    huge = pd.DataFrame({"v": [1, 2], "n": [2**62, 2**62]})
    with pytest.raises(InputError, match="more than 64 bits hold"):
        histogram(huge, [Numbers("v", 0, 10)], count="n")
    with pytest.raises(InputError, match="use fewer"):
        histogram(pd.DataFrame({"v": [1], "w": [1]}), [Numbers("v", 0, 2**14), Numbers("w", 0, 2**14)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Numbers("v", 5, 5), "the end must exceed the start"),
        (lambda: Numbers("v", 0, float("inf"), 3), "the end must exceed"),
        (lambda: Numbers("v", 0.5, 2), "give their number"),
        (lambda: Numbers("v", 0, 10, -1), "must be in 1 … 134,217,728, got -1"),
        (lambda: Numbers("v", 0, 10, 0), "must be in 1 … 134,217,728, got 0"),
        (lambda: Dates("v", "2013-01-01", "2013-01-11", 0), "must be in 1 … 134,217,728, got 0"),
        (lambda: Numbers("v", 0, 10, 2.0), "bins must be a whole number, got 2.0"),
        (lambda: Numbers("v", "0", 10), "low must be a number, got '0'"),
        (lambda: Numbers("v", 0, True), "high must be a number, got True"),
        (lambda: Numbers(["v"], 0, 10), "the name of an axis must be"),
        (lambda: Numbers("v", 0, 10**12), "must be in 1 … 134,217,728"),
        (lambda: Dates("v", "2013-01-01", "2012-01-01"), "the end must exceed"),
        (lambda: Dates("v", "2013-01-01", "soon"), "'soon' is not a date"),
        (lambda: Dates("v", "2013-01-01", "2013-01-11", 3), "not a multiple of 3"),
        (
            lambda: Histogram(np.ones(3, int), (Numbers("v", 0, 4),)),
            r"shape \(3,\); the axes have \(4,\) bins",
        ),
        (lambda: Histogram(np.array([1, -1]), (Numbers("v", 0, 2),)), "whole numbers of at least 0"),
        (lambda: Histogram(np.ones(2), (Numbers("v", 0, 2),)), "whole numbers of at least 0"),
        (lambda: Histogram.of(np.ones((2, 2), int), "v", "v"), "two axes have the same name"),
        (lambda: Histogram(np.array(3), ()), "the axes have"),
    ],
)
def test_invalid_bins_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_ranges_in_words():
    ages = Numbers("age", 0, 100, 20)
    assert span(ages, "20", "65") == (4, 13)
    assert span(ages, "", "") == (0, 20)
    assert span(ages, "20", "20") == (4, 4)
    tenths = Numbers("t", 0.0, 1.0, 10)
    assert [tenths.position(f"{k / 10}") for k in range(11)] == list(range(11))
    days = Dates("d", "2013-01-01", "2014-01-01")
    assert span(days, "2013-03-01", "2013-04-01") == (59, 90)
    names = Names("who", np.array(["x", "b", "c"], dtype=object))
    assert span(names, "x", "b") == (0, 2)
    assert span(names, "b", "b") == (1, 2)
    assert span(names, "c", "") == (2, 3)
    for axis, low, high, message in [
        (ages, "21", "", "21 is inside a bin, from 20 to 25"),
        (ages, "", "105", "105 is not within 0 … 100"),
        (ages, "x", "", "'x' is not a number"),
        (ages, "nan", "", "nan is not within"),
        (ages, "65", "20", "20 comes before 65"),
        (days, "1.1.2013", "", "is not a date"),
        (names, "q", "", "unknown name 'q'; there are 'x', 'b', 'c'"),
        (names, "c", "x", "x comes before c"),
    ]:
        with pytest.raises(InputError, match=message):
            span(axis, low, high)


def test_axes_round_trip_through_a_manifest():
    for axis in (Numbers("v", -3, 9, 4), Dates("d", "2013-01-01", "2013-01-15", 2)):
        assert axis_of(axis.as_dict(), ()) == axis
    names = axis_of({"kind": "names", "name": "who", "bins": 2}, ["b", "a"])
    assert names.labels == ["b", "a"]
