"""Tables to counts: against a plain reference, on the shipped flights, and for all mistakes in rows."""

import gzip
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp import SimulatedNoise, release
from hierdp.counts.hierarchy import Hierarchy
from hierdp.data import AIRPORTS, FLIGHTS
from hierdp.errors import InputError
from hierdp.tables import Axis, flows, group_sizes, read, read_regions
from tests.marks import quick

COMMUTING = Path(__file__).parents[3] / "shared" / "data" / "us-commuting-2009-2013.parquet"

STATES = {"01": ["01001", "01003"], "1": ["1001"], "Åland": ["Jomala, västra", 'a "b"', "c|\t;\nd"]}
COUNTY_OF = {county: state for state, counties in STATES.items() for county in counties}
COUNTY = st.sampled_from(list(COUNTY_OF))
PLACES = Hierarchy.from_columns({"s": list(COUNTY_OF.values()), "c": list(COUNTY_OF)}, ["s", "c"])


def write(frame, path):
    """A frame in the form that a test needs: in memory, or as a CSV or Parquet file."""
    if path is None:
        return frame
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.fixture(scope="module", params=[None, "t.csv", "t.parquet"], ids=["frame", "csv", "parquet"])
def target(request, tmp_path_factory):
    return request.param and tmp_path_factory.mktemp("tables") / request.param


# --- against a plain reference ---------------------------------------------------------------------------


def plain_sizes(rows, max_size, unknown):
    """(Level, region) → Counter of sizes, by dictionaries; `group_sizes` computes this in SQL."""
    size, home = Counter(), {}
    if unknown is not None:  # the unnamed group of each region is public, so it exists even without rows
        home = {(unknown, county): county for county in [*COUNTY_OF, unknown]}
        size = Counter(dict.fromkeys(home, 0))
    for county, group, n in rows:
        county = county if county in COUNTY_OF else unknown
        key = (group, None) if group is not None else (unknown, county)
        size[key] += n
        home[key] = county
    out = defaultdict(Counter)
    for key, n in size.items():
        for region in enumerate(("all", COUNTY_OF.get(home[key], unknown), home[key])):
            out[region][min(n, max_size)] += 1
    return out


def plain_flows(rows, unknown):
    cells = Counter()
    for origin, destination, n in rows:
        cells[tuple(c if c in COUNTY_OF else unknown for c in (origin, destination))] += n
    return {cell: n for cell, n in cells.items() if n}


def some(values, missing):
    return st.one_of(values, st.sampled_from([None, "nowhere"])) if missing else values


@st.composite
def group_rows(draw, missing):
    homes = draw(st.lists(some(COUNTY, missing), min_size=1, max_size=8))
    row = st.integers(0, len(homes) - 1).flatmap(
        lambda g: st.tuples(st.just(homes[g]), st.just(f"{g:03d}"), st.integers(0, 4))
    )
    lost = st.tuples(some(COUNTY, missing), st.none(), st.integers(0, 4))
    return draw(st.lists(st.one_of(row, lost) if missing else row, min_size=1, max_size=20))


@pytest.mark.parametrize("target", quick([None, "t.csv", "t.parquet"]), indirect=True)
@pytest.mark.parametrize("unknown", [None, "?"])
@given(data=st.data(), max_size=st.integers(1, 6))
@settings(max_examples=6, deadline=None)
def test_group_sizes_match_plain_python(target, unknown, data, max_size):
    rows = data.draw(group_rows(missing=unknown is not None))
    frame = pd.DataFrame(rows, columns=["c", "g", "n"]).astype({"c": object, "g": object})
    source = write(frame, target)
    sizes = group_sizes(
        source, regions=PLACES, region="c", group=["g"], entities="n", max_size=max_size, unknown=unknown
    )
    expected = plain_sizes(rows, max_size, unknown)
    places = sizes.hierarchy
    assert sizes.counts.shape == (places.size, max_size + 1)
    assert sizes.counts.dtype == np.int64
    frame = places.frame()
    for region, row in zip(zip(frame.level, frame.region, strict=True), sizes.counts, strict=True):
        assert {k: n for k, n in enumerate(row) if n} == expected[region]
    assert sizes.groups == expected[0, "all"].total()


@pytest.mark.parametrize("target", quick([None, "t.csv", "t.parquet"]), indirect=True)
@pytest.mark.parametrize("unknown", [None, "?"])
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_flows_match_plain_python(target, unknown, data):
    place = some(COUNTY, unknown is not None)
    rows = data.draw(st.lists(st.tuples(place, place, st.integers(0, 2**40)), min_size=1, max_size=20))
    frame = pd.DataFrame(rows, columns=["o", "d", "n"]).astype({"o": object, "d": object})
    axes = {"origin": (PLACES, "o"), "destination": Axis(PLACES, ("d",))}
    table = flows(write(frame, target), axes=axes, count="n", unknown=unknown)
    expected = plain_flows(rows, unknown)
    names = [axis.names[-1] for axis in table.axes]
    found = {(names[0][a], names[1][b]): int(n) for (a, b), n in zip(table.cells, table.counts, strict=True)}
    assert found == expected
    assert table.total == sum(expected.values())
    assert table.cells.tolist() == sorted(table.cells.tolist())
    assert table.cells.shape == (len(expected), 2)
    assert (table.cells.dtype, table.counts.dtype) == (np.int64, np.int64)
    assert table.axis_names == ("origin", "destination")


@pytest.mark.parametrize("target", quick([None, "t.csv", "t.parquet"]), indirect=True)
@given(rows=st.lists(st.tuples(COUNTY, COUNTY), min_size=1, max_size=20))
@settings(max_examples=6, deadline=None)
def test_regions_from_the_data(target, rows):
    frame = pd.DataFrame([(COUNTY_OF[o], o, d) for o, d in rows], columns=["s", "o", "d"])
    source = write(frame, target)
    table = flows(source, axes={"from": ["s", "o"], "to": "d"})
    assert [list(names) for names in table.axes[0].names[1:]] == [sorted(set(frame.s)), sorted(set(frame.o))]
    assert list(table.axes[1].names[1]) == sorted(set(frame.d))
    assert table.total == len(rows)
    sizes = group_sizes(source, levels=["s", "o"], group=["s", "o", "d"], max_size=99)
    assert sizes.counts[0] @ np.arange(100) == len(rows)
    assert sizes.groups == len(set(rows))
    assert sizes.hierarchy.levels == ("root", "s", "o")


def test_a_row_with_a_level_missing_goes_to_the_unknown():
    frame = pd.DataFrame({"s": ["A", "A", None], "c": ["a", None, "z"], "n": [1, 2, 4]})
    table = flows(frame, axes={"at": ["s", "c"]}, count="n", unknown="?")
    assert [list(names) for names in table.axes[0].names] == [["all"], ["?", "A"], ["?", "a"]]
    assert table.counts.tolist() == [6, 1]


@pytest.mark.parametrize(
    ("group", "counts"),
    [
        ("g", [[1, 2, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]]),
        (["g", "h"], [[1, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]),
    ],
)
def test_unnamed_groups_are_one_a_region_whatever_else_names_them(group, counts):
    """The region "?" also has an unnamed group, without entities."""
    frame = pd.DataFrame(
        {"c": ["a", "a", "b", "a"], "g": [None, None, None, "x"], "h": ["1", "2", "3", None]}
    )
    assert group_sizes(frame, levels="c", group=group, max_size=3, unknown="?").counts.tolist() == counts


def test_ids_of_other_types():
    frame = pd.DataFrame(
        {"c": [1.0, 2.0, None], "b": [True, False, True], "g": pd.Categorical(["x", "y", "z"])}
    )
    sizes = group_sizes(frame, levels=["c"], group=["g"], max_size=1, unknown="?")
    assert list(sizes.hierarchy.names[1]) == ["1", "2", "?"]
    assert list(flows(frame, axes={"b": ["b"]}).axes[0].names[1]) == ["false", "true"]
    places = Hierarchy.from_columns(frame, ["b"])
    assert flows(frame, axes={"b": (places, "b")}).counts.tolist() == [1, 2]


COUNT_TYPES = [
    np.array([2, 3], dtype=np.int8),
    np.array([2, 3], dtype=np.uint64),
    np.array([2.0, 3.0]),
    np.array(["2", " 3.0 "], dtype=object),
    np.array(["+2", "3."], dtype=object),
    pa.array([2, 3], pa.decimal128(20, 2)),
    pd.array([2, 3], dtype="Int64"),
]


@pytest.mark.parametrize("counts", COUNT_TYPES, ids=range(len(COUNT_TYPES)))
def test_counts_of_any_numeric_type(counts):
    table = flows(pa.table({"c": ["a", "b"], "n": counts}), axes={"c": ["c"]}, count="n")
    assert table.counts.tolist() == [2, 3]


def test_counts_are_exact():
    frame = pd.DataFrame({"c": ["a", "b"], "n": [2**57 + 1, 2**57 - 2]})
    assert flows(frame, axes={"c": ["c"]}, count="n").total == 2**58 - 1
    sizes = group_sizes(pd.concat([frame] * 9), levels="c", group="c", entities="n", max_size=5)
    assert sizes.counts[:, 5].tolist() == [2, 1, 1]


def test_an_ibis_table_is_a_source():
    table = ibis.memtable({"c": ["a", "a"]})
    assert read(table) is table
    assert flows(table, axes={"c": ["c"]}).total == 2


def test_all_zero_flows():
    table = flows(pd.DataFrame({"c": ["a"], "n": [0]}), axes={"c": ["c"]}, count="n")
    assert table.cells.shape == (0, 1)
    assert table.total == 0


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_is_taken_as_it_stands(tmp_path, delimiter, newline):
    path = tmp_path / "a [1]*.csv"
    lines = [("id", '"n o"'), ("001", "5"), ("#2", '""'), ('"q""r"', "é"), ("NA", "-")]
    text = "\ufeff" + "".join(delimiter.join(line) + newline for line in lines)
    path.write_text(text, encoding="utf-8", newline="")
    assert read(path).to_pyarrow().to_pylist() == [
        {"id": "001", "n o": "5"},
        {"id": "#2", "n o": None},
        {"id": 'q"r', "n o": "é"},
        {"id": "NA", "n o": "-"},
    ]


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_line_end_of_another_kind_within_quotes_is_part_of_a_name(tmp_path, ends):
    inside = b"\n" if ends == b"\r\n" else ends
    (tmp_path / "in.csv").write_bytes(ends.join([b"a,n", b"x,1", b'"y' + inside + b'z",2', b""]))
    assert flows(tmp_path / "in.csv", axes={"a": ["a"]}, count="n").counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, r"no file '.*none\.csv'"),
        ("none.parquet", None, "no file"),
        ("a.parquet", b"not parquet", "cannot read .*check that the file is complete"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"c,n\n", "the table has no rows"),
        ("a.csv", b"c,c\na,1\n", "two columns are called 'c'"),
        ("a.csv", b"c,C\na,1\n", "two columns are called 'C'"),
        ("a.csv", b"c,\na,1\n", "column 2 has no name"),
        ("a.csv", gzip.compress(b"c,n\nx,77\n", mtime=0), r"is compressed \(gzip\): unpack it first"),
        ("a.csv", b"PK\x03\x04" + bytes(30), r"is compressed \(zip\)"),
        ("a.csv", b"PAR1" + bytes(30), r"Parquet: end its name in \.parquet"),
        ("a.csv", b"c,n\r\nx,1\ny,77\r\n", r"end in different ways \('CR LF', 'LF'\)"),
        ("a.csv", b"c,n\nx,1\ry,77\n", r"end in different ways \('LF', 'CR'\)"),
        ("a.csv", b"c,n\na,1\nb,77,9\n", "line 3 of the CSV file cannot be read"),
        ("a.csv", b"c,n\na,1\nb\n", "line 3 of the CSV file cannot be read"),
        ("a.csv", b"c,n\na,1\n\xff\xfe,77\n", "line 3 of the CSV file cannot be read"),
        ("a.csv", b"\xff\xfec,n\na,77\n", "is UTF-16, not UTF-8: save it as"),
        ("a.csv", "c,n\na,77\n".encode("utf-16-le"), "is UTF-16, not UTF-8: save it as"),
        ("a.csv", b"c,K\xf6ln\na,77\n", "the header of .* is not UTF-8: .* if it is Latin 1"),
        ("a.tsv", b"c\tn\na\t77\n", r"semicolons, tabs or bars, rename it to \.csv"),
        ("a.csv.gz", b"x", "unpack it first"),
        ("a.xlsx", b"x", "export the sheet as CSV"),
        ("a.csv", b'c,n\n"a,77\n', "line .* of the CSV file cannot be read"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        flows(path, axes={"c": ["c"]}, count="n")
    assert "77" not in shown(caught.value, tmp_path)


def shown(error, place):
    """The messages of an error and its causes, without a path, whose name has the number of the test run."""
    messages = ""
    while error is not None:
        messages += str(error).replace(str(place), "")
        error = error.__cause__ or error.__context__
    return messages


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame({"c": ["a", 1]}), "column 'c' contains incompatible types"),
        (pd.DataFrame([["a", "b"]], columns=["c", "c"]), "two columns are called 'c'"),
        (pa.table([["a"], ["b"]], names=["c", "c"]), "two columns are called 'c'"),
        (7, r"cannot read a table from int: give a path, .* Database\(url, ta"),
        (None, "cannot read a table from NoneType"),
        (pd.DataFrame({"c": []}), "the table has no rows"),
    ],
)
def test_bad_sources(source, message):
    with pytest.raises(InputError, match=message):
        flows(source, axes={"c": ["c"]})


def test_regions_from_a_file(target):
    source = write(pd.DataFrame({"s": list(COUNTY_OF.values()), "c": list(COUNTY_OF)}), target)
    places = read_regions(source, ["s", "c"], root="world", root_level="top")
    assert places.levels == ("top", "s", "c")
    assert places.names[0][0] == "world"
    assert places.columns()["c"].tolist() == sorted(COUNTY_OF)


@pytest.mark.parametrize(
    ("rows", "levels", "message"),
    [
        ([("A", "x"), ("B", "x")], ["s", "c"], "'x' of level 'c' has two parents, 'A', 'B'"),
        ([("A", "x"), ("B", None)], ["s", "c"], "row 2, column 'c': the region is missing"),
        ([("A", "x"), ("", "y")], ["s", "c"], "row 2, column 's': the region is missing"),
        ([("A", "x")], ["s", "d"], "no column 'd' in the table of regions; its columns are 's', 'c'"),
        ([("A", "x")], ["s", "s"], "a level is repeated"),
        ([("A", "x")], [], "no column of regions"),
        ([], ["s"], "no rows"),
    ],
)
def test_bad_regions(target, rows, levels, message):
    source = write(pd.DataFrame(rows, columns=["s", "c"], dtype=object), target)
    with pytest.raises(InputError, match=message):
        read_regions(source, levels)


# --- rows ------------------------------------------------------------------------------------------------

# Valid counts are 7777 here, so that a message that contains a count is detected.
ROWS = {"s": ["A", "A", "B"], "c": ["a", "b", "d"], "g": ["x", "y", "z"], "n": [7777, 7777, 7777]}
AB = Hierarchy.flat("c", ["a", "b"])


def bad(column, row, value):
    values = list(ROWS[column])
    values[row - 1] = value
    return ROWS | {column: values}


COUNTS = [
    (None, "row 2, column 'n': the count is missing"),
    (float("nan"), "row 2, column 'n': the count is missing"),
    (-7777, "row 2, column 'n': the count is negative"),
    (-7777.5, "row 2, column 'n': the count is negative"),
    (77.77, "row 2, column 'n': the count is fractional"),
    (2**63, "row 2, column 'n': the count is too large"),
    (1e300, "row 2, column 'n': the count is too large"),
    (float("inf"), "row 2, column 'n': the count is (too large|not a number)"),
    (float("-inf"), "row 2, column 'n': the count is (negative|not a number)"),
]


@pytest.mark.parametrize("target", quick([None, "t.csv", "t.parquet"]), indirect=True)
@pytest.mark.parametrize("call", ["flows", "group_sizes"])
@pytest.mark.parametrize(("value", "message"), COUNTS)
def test_bad_counts(target, call, value, message):
    if value == 1e300 and target is not None and target.suffix == ".csv":
        message = "the count is not a number"  # a CSV file has 1e+300, where digits are required
    refused(target, bad("n", 2, value), call, message)


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "missing"), ("  ", "missing"), ("many", "not a number"), ("7,777", "not a number"), ("1e3", "not"),
     ("NaN", "not a number"), ("inf", "not a number"),
     ("-77.0", "negative"), ("7777.7", "fractional"), (".7", "fractional"), ("9" * 19, "too large")],
)  # fmt: skip
def test_bad_counts_in_text(tmp_path, value, message):
    rows = bad("n", 3, value)
    rows = rows | {"n": [str(n) for n in rows["n"]]}
    for target in (None, tmp_path / "t.csv"):
        refused(target, rows, "flows", f"row 3, column 'n': the count is {message}")


@pytest.mark.parametrize("values", [[True] * 3, pd.to_datetime(["2020-01-01"] * 3)])
def test_counts_that_are_no_numbers(values):
    refused(None, ROWS | {"n": values}, "flows", "column 'n' contains .*, not counts")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int64", 2**62, "exact sums over 2 cells"),
        ("uint64", 2**63 - 1, "exact sums over 2 cells"),
        ("uint64", 2**63, "64 bits"),
        ("float64", 2**62, "exact sums over 2 cells"),
        ("float64", 2**63, "64 bits"),
        ("text", 2**63 - 1, "exact sums over 2 cells"),
        ("text", 2**63, "64 bits"),
    ],
)
def test_counts_at_the_end_of_64_bits(tmp_path, kind, value, message):
    """The largest int64 fits 64 bits; counts too large for exact sums over cells are refused nevertheless."""
    counts = [str(value), "0"] if kind == "text" else np.array([value, 0], kind)
    pd.DataFrame({"a": ["x", "y"], "n": counts}).to_parquet(tmp_path / "in.parquet")
    options = {"axes": {"a": ["a"]}, "count": "n", "delta": 1e-8, "regions_from_data": True}
    with pytest.raises(InputError, match=f"too large for {message}"):
        release(tmp_path / "in.parquet", "top-down", epsilon=1, noise=SimulatedNoise(1), **options)


def refused(target, rows, call, message, **options):
    source = write(pd.DataFrame(rows), target)
    if call == "flows":
        function, usual = flows, {"axes": {"at": ["s", "c"]}, "count": "n"}
    else:
        function, usual = group_sizes, {"levels": ["s", "c"], "group": ["g"], "entities": "n", "max_size": 5}
    with pytest.raises(InputError, match=message) as caught:
        function(source, **(usual | options))
    assert "777" not in shown(caught.value, target)


REGIONS = {"levels": None, "regions": AB, "region": "c"}
BAD_ROWS = [
    ("group_sizes", bad("g", 2, None), {}, "row 2, column 'g': the group is missing.*unknown=NAME"),
    ("group_sizes", bad("g", 2, ""), {}, "row 2, column 'g': the group is missing.*unknown=NAME"),
    ("group_sizes", bad("c", 3, None), {}, "row 3, column 'c': the region is missing.*unknown=NAME"),
    ("group_sizes", bad("s", 3, ""), {}, "row 3, column 's': the region is missing"),
    ("flows", bad("c", 3, None), {}, "row 3, column 'c': the region is missing.*unknown=NAME"),
    ("flows", bad("c", 3, ""), {"axes": {"at": (AB, "c")}}, "row 3, column 'c': the region is missing"),
    ("group_sizes", ROWS, REGIONS, r"column 'c' has 1 region\(s\) not in the table of regions: 'd'\. "),
    ("flows", ROWS, {"axes": {"at": (AB, "c")}}, r"column 'c' has 1 region\(s\) not in .*: 'd'\. "),
    ("flows", bad("n", 3, 0), {"axes": {"at": (AB, "c")}}, "not in the table of regions: 'd'"),
    ("group_sizes", bad("g", 2, "x"), {}, "group g='x' lies in two regions, 'a', 'b'.*as group=g group=c"),
    ("group_sizes", bad("g", 2, "x"), {"group": ["g", "s"]}, "the group g='x', s='A' lies in two regions"),
    ("group_sizes", bad("c", 3, "a"), {}, "region 'a' of level 'c' has two parents, 'A', 'B'"),
    ("flows", bad("c", 3, "a"), {}, "region 'a' of level 'c' has two parents, 'A', 'B'"),
    ("group_sizes", ROWS, {"unknown": "d"}, "already has a region 'd'"),
    ("flows", ROWS, {"unknown": "A"}, "already has a region 'A'"),
    ("group_sizes", ROWS, {"unknown": "y"}, "row 2, column 'g': a group is already called 'y'"),
    ("flows", ROWS | {"c": [None] * 3}, {"unknown": "?"}, "no row has a region in all of .* 's', 'c'"),
    ("flows", {k: v[:0] for k, v in ROWS.items()}, {}, "the table has no rows"),
    ("group_sizes", {k: v[:0] for k, v in ROWS.items()}, {}, "the table has no rows"),
    ("flows", ROWS | {"n": [2**62] * 3}, {}, "column 'n': the counts add up to more than 64 bits hold"),
]  # fmt: skip


@pytest.mark.parametrize("target", quick([None, "t.csv", "t.parquet"]), indirect=True)
@pytest.mark.parametrize(("call", "rows", "options", "message"), BAD_ROWS)
def test_bad_rows(target, call, rows, options, message):
    refused(target, rows, call, message, **options)


BAD_CALLS = [
    (
        "group_sizes",
        {"group": ["gg"]},
        "no column 'gg' in the data; its columns are 's', 'c', 'g', 'n'. Did you",
    ),
    ("group_sizes", {"entities": "m"}, "no column 'm'"),
    ("group_sizes", {"levels": ["s", "d"]}, "no column 'd'"),
    ("group_sizes", {"levels": ["s", "s"]}, "a level is repeated"),
    ("group_sizes", {"levels": []}, "no column of regions"),
    ("group_sizes", {"group": []}, "no column of groups"),
    ("group_sizes", {"levels": None}, "give the regions by levels"),
    ("group_sizes", {"regions": AB, "region": "c"}, "give the regions by levels"),
    ("group_sizes", {"levels": None, "regions": AB}, "give the regions by levels"),
    ("group_sizes", {"levels": None, "regions": AB, "region": "d"}, "no column 'd'"),
    ("group_sizes", {"unknown": ""}, "non-empty"),
    *[
        ("group_sizes", {"max_size": k}, "max_size must be a whole number")
        for k in (0, -1, 2.5, "5", True, 2**31)
    ],
    ("group_sizes", {"max_size": 2**31 - 1}, "do not fit; choose a smaller max_size"),
    ("flows", {"axes": {}}, "no axes"),
    ("flows", {"axes": {"at": []}}, "no column of regions"),
    ("flows", {"axes": {"at": ["d"]}}, "no column 'd'"),
    ("flows", {"axes": {"at": (AB, "d")}}, "no column 'd'"),
    ("flows", {"axes": {"at": (AB, ["s", "c"])}}, "with a hierarchy, give one column"),
    ("flows", {"count": "m"}, "no column 'm'"),
]


@pytest.mark.parametrize(("call", "options", "message"), BAD_CALLS)
def test_bad_calls(call, options, message):
    refused(None, ROWS, call, message, **options)


def test_at_most_five_regions_are_listed():
    rows = pd.DataFrame({"c": [f"{i:02d}" for i in range(9)]})
    with pytest.raises(InputError, match=r"has 9 .*: '00', '01', '02', '03', '04' and 4 more"):
        flows(rows, axes={"c": (AB, "c")})


# --- lazy tables, and objects that are not tables --------------------------------------------------------


def test_a_relation_of_duckdb_is_a_table():
    connection = duckdb.connect()
    connection.execute("create table trips as select 'a' c, 2 n union all select 'b', 3")
    for rows in (connection.table("trips"), connection.sql("select * from trips")):
        table = flows(rows, axes={"c": (AB, "c")}, count="n")
        assert table.counts.tolist() == [2, 3]
    broken = connection.sql("select cast(c as int) c, n from trips")
    with pytest.raises(
        InputError, match=r"cannot read the table \(ConversionException of DuckDB\)"
    ) as refused:
        read(broken)
    assert refused.value.__cause__ is None  # it would quote the value
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (duckdb.connect, r"a DuckDB connection is not a table; give connection.table\('people'\)"),
        (ibis.duckdb.connect, "an Ibis connection is not a table"),
        (lambda: sqlite3.connect(":memory:"), r"from a connection \(sqlite3\): give Database\(url, table="),
    ],
)
def test_a_connection_does_not_say_which_table(connection, message):
    with pytest.raises(InputError, match=message):
        read(connection())


class LazyFrame:
    """A stand-in for that of Polars, which may not be installed."""

    def __init__(self, rows):
        self.rows = rows

    def collect(self):
        return self.rows


def test_a_lazy_frame_is_collected():
    rows = {"c": ["a", "b", "b"], "n": [1, 2, 3]}
    assert flows(LazyFrame(pa.table(rows)), axes={"c": (AB, "c")}, count="n").counts.tolist() == [1, 5]
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows)
    for table in (frame, frame.lazy(), frame.lazy().filter(polars.col("n") > 0)):
        assert flows(table, axes={"c": (AB, "c")}, count="n").counts.tolist() == [1, 5]
    with pytest.raises(InputError, match="ColumnNotFoundError of polars"):
        read(frame.lazy().select("absent"))


# --- real tables -----------------------------------------------------------------------------------------


def test_flights_end_to_end():
    places = read_regions(AIRPORTS, ["zone", "airport"], root="USA", root_level="nation")
    usual = {"regions": places, "region": "destination", "group": ["aircraft", "destination"]}
    with pytest.raises(InputError, match=r"column 'destination' has 4 .*: 'BQN', 'PSE', 'SJU', 'STT'"):
        flows(FLIGHTS, axes={"to": (places, "destination")}, count="flights")
    with pytest.raises(InputError, match=r"row 52665, column 'aircraft': the group is missing"):
        group_sizes(FLIGHTS, **usual, entities="flights", max_size=1_000)
    sizes = group_sizes(FLIGHTS, **usual, entities="flights", max_size=1_000, unknown="unknown")
    assert sizes.counts[0] @ np.arange(1_001) == 336_776
    assert sizes.counts[0, 1_000] == 0
    unnamed = places.names[-1].size + 1  # one in each airport, including the unknown one
    assert sizes.groups == 44_396 + unnamed
    assert (
        sizes.hierarchy.tree.child_sums(sizes.counts) == sizes.counts[sizes.hierarchy.tree.internal]
    ).all()
    zone = 1 + list(sizes.hierarchy.names[1]).index("unknown")
    assert sizes.counts[zone] @ np.arange(1_001) == 7_602


def test_flights_as_flows():
    places = read_regions(AIRPORTS, ["zone", "airport"])
    axes = {"origin": (places, "origin"), "destination": (places, "destination")}
    table = flows(FLIGHTS, axes=axes, count="flights", unknown="unknown")
    assert table.total == 336_776
    assert np.unique(table.cells[:, 0]).size == 3
    assert np.unique(table.cells[:, 1]).size == 105 - 4 + 1


@pytest.mark.slow
@pytest.mark.skipif(not COMMUTING.exists(), reason=f"{COMMUTING} is not here")
def test_commuting(tmp_path):
    axes = {"home": ["origin_state", "origin_county"], "work": ["dest_state", "dest_county"]}
    table = flows(COMMUTING, axes=axes, count="workers")
    assert table.total == 140_738_397
    assert table.cells.shape == (135_705, 2)
    assert [axis.names[-1].size for axis in table.axes] == [3_221, 3_221]
    assert table.axes[0].path(2, 0) == ("all", "01", "01001")
    pq.read_table(COMMUTING).to_pandas().to_csv(tmp_path / "c.csv", index=False)
    again = flows(tmp_path / "c.csv", axes=axes, count="workers")
    assert (again.cells == table.cells).all()
    assert (again.counts == table.counts).all()


def test_a_blank_in_a_key_is_found_at_its_row_although_equal_rows_are_summed_first():
    rows = pd.DataFrame({"c": ["a"] * 5 + [" b", "a"]})
    with pytest.raises(InputError, match=r"^row 6, column 'c': the name ' b' begins or ends with a blank"):
        flows(rows, axes={"c": ["c"]})
