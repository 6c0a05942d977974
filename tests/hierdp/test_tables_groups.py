"""Entities, a table of all groups, and regions in common forms (Kuo et al. 2018, §3)."""

import subprocess
import sys
from collections import Counter

import ibis
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import hierdp.tables.sizes as counting
from hierdp import release
from hierdp.cli import main
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Prefixes, flows, group_sizes, read_hrc, read_parents, read_regions
from hierdp.tables.sizes import group_runs

pytestmark = pytest.mark.slow

LIST = "the table of groups"

# --- entities + groups + regions -------------------------------------------------------------------------

HOMES = pd.DataFrame({"g": ["001", "1", "2", "é"], "s": ["A", "A", "B", "B"], "c": ["a", "a", "b", "c"]})


@st.composite
def listed_groups(draw):
    homes = draw(
        st.dictionaries(st.sampled_from(["001", "1", "2", "é", "x"]), st.sampled_from("abc"), min_size=1)
    )
    named = st.tuples(st.sampled_from(sorted(homes)), st.integers(0, 3))
    return homes, draw(st.lists(named, min_size=1, max_size=20))


@pytest.mark.parametrize("shape", ["counts", "rows"])
@given(listed_groups(), st.integers(1, 5))
@settings(max_examples=8, deadline=None)
def test_listed_groups_match_plain_python(shape, drawn, max_size):
    homes, rows = drawn
    sizes = Counter(dict.fromkeys(homes, 0))
    people = pd.DataFrame(rows, columns=["g", "n"])
    if shape == "rows":
        people, options = people[["g"]], {}
        sizes.update(people.g)
    else:
        options = {"entities": "n"}
        for g, n in rows:
            sizes[g] += n
    groups = pd.DataFrame({"g": list(homes), "c": list(homes.values())})
    found = group_sizes(people, groups=groups, levels=["c"], group="g", max_size=max_size, **options)
    expected = Counter((homes[g], min(n, max_size)) for g, n in sizes.items())
    expected += Counter(("all", min(n, max_size)) for n in sizes.values())
    names = np.concatenate(found.hierarchy.names)
    got = {(names[r], k): int(n) for (r, k), n in np.ndenumerate(found.counts) if n}
    assert got == expected
    runs = group_runs(people, groups=groups, levels=["c"], group="g", max_size=max_size, **options)
    assert np.array_equal(runs.runs.dense(max_size), found.counts)


def test_groups_without_an_entity_have_size_0(tmp_path):
    people = pd.DataFrame({"g": ["001", "001", "é"]})
    HOMES.to_csv(tmp_path / "groups.csv", index=False)
    for groups in (HOMES, tmp_path / "groups.csv"):
        sizes = group_sizes(people, groups=groups, levels=["s", "c"], group=["g"], max_size=3)
        assert sizes.counts[0].tolist() == [2, 1, 1, 0]
        places = Hierarchy.from_columns(HOMES, ["s", "c"])
        again = group_sizes(people, groups=groups, regions=places, region="c", group=["g"], max_size=3)
        assert again.counts.tolist() == sizes.counts.tolist()


def test_groups_numbered_in_both_tables():
    people, homes = pd.DataFrame({"g": [7, 7, 8]}), pd.DataFrame({"g": [7.0, 8.0, 9.0], "c": ["a", "a", "b"]})
    sizes = group_sizes(people, groups=homes, levels=["c"], group=["g"], max_size=2)
    assert sizes.counts.tolist() == [[1, 1, 1], [0, 1, 1], [1, 0, 0]]


def test_groups_named_by_two_columns():
    people = pd.DataFrame({"street": ["x", "x", "y"], "number": [1, 1, 1]})
    homes = pd.DataFrame({"street": ["x", "x", "y"], "number": [1, 2, 1], "c": ["a", "a", "b"]})
    sizes = group_sizes(people, groups=homes, levels=["c"], group=["street", "number"], max_size=2)
    assert sizes.counts.tolist() == [[1, 1, 1], [1, 0, 1], [0, 1, 0]]


def test_the_unknown_group():
    people = pd.DataFrame({"g": ["001", None, "", "nobody's", "nobody's", "else's"]})
    homes = pd.concat([HOMES, pd.DataFrame({"g": ["h"], "s": [None], "c": ["z"]})])
    sizes = group_sizes(people, groups=homes, levels=["s", "c"], group=["g"], max_size=9, unknown="?")
    names = np.concatenate(sizes.hierarchy.names).tolist()
    assert names == ["all", "?", "A", "B", "?", "a", "b", "c"]
    strangers = sizes.counts[4]  # the group without a region, and the five rows without a listed group
    assert np.flatnonzero(strangers).tolist() == [0, 5]
    assert sizes.groups == 6
    everybody = people[people.g == "001"]
    again = group_sizes(everybody, groups=homes, levels=["s", "c"], group=["g"], max_size=9, unknown="?")
    assert again.counts[4].tolist() == [2, *[0] * 9]  # it exists whether or not a row needs it
    capped = group_sizes(people, groups=homes, levels=["s", "c"], group=["g"], max_size=3, unknown="?")
    assert capped.counts[4].tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("people", "homes", "message"),
    [
        ({"g": ["001", None]}, {}, "row 2, column 'g': the group is missing"),
        ({"g": ["001", "9"]}, {}, "the group g='9' is in the data and not in the table of groups; add it"),
        ({"h": ["001"]}, {}, "no column 'g' in the data"),
        ({"g": ["001"]}, {"h": ["001"], "s": "A", "c": "a"}, "no column 'g' in the table of groups"),
        ({"g": ["001"]}, {"g": ["001"], "s": "A"}, "no column 'c' in the table of groups"),
        ({"g": ["1"]}, {"g": ["1", "1"], "s": "A", "c": "a"}, "'1' has two rows in the table of groups"),
        ({"g": ["1"]}, {"g": ["1", "1"], "s": "A", "c": ["a", "b"]}, "the group g='1' has two rows"),
        ({"g": ["1"]}, {"g": ["1", None], "s": "A", "c": "a"}, "row 2 of the table of groups, column 'g'"),
        ({"g": ["1"]}, {"g": ["1", "2"], "s": "A", "c": ["a", None]}, "of the table of groups, column 'c'"),
        ({"g": ["1"]}, {"g": [], "s": [], "c": []}, "the table of groups has no rows"),
        ({"g": []}, {}, "the table has no rows"),
    ],
)  # fmt: skip
def test_bad_tables_of_groups(people, homes, message):
    homes = pd.DataFrame(homes, dtype=object) if homes else HOMES
    with pytest.raises(InputError, match=message):
        group_sizes(
            pd.DataFrame(people, dtype=object), groups=homes, levels=["s", "c"], group=["g"], max_size=3
        )


def test_a_listed_group_in_a_region_that_is_not_there():
    places = Hierarchy.from_columns({"c": ["a", "b"]}, ["c"])
    with pytest.raises(InputError, match=r"column 'c' has 1 region\(s\) not in the table of regions: 'c'"):
        group_sizes(HOMES[["g"]], groups=HOMES, regions=places, region="c", group=["g"], max_size=3)


def test_no_listed_group_is_called_as_the_unknown_one():
    with pytest.raises(
        InputError, match="row 4 of the table of groups, column 'g': a group is already called 'é'"
    ):
        group_sizes(HOMES[["g"]], groups=HOMES, levels=["c"], group=["g"], max_size=3, unknown="é")


# --- codes -----------------------------------------------------------------------------------------------

FIPS = Prefixes("fips", {"state": 2, "county": 5})


@pytest.mark.parametrize("suffix", [None, ".csv", ".parquet"])
def test_codes_spell_out_levels(tmp_path, suffix):
    rows = pd.DataFrame({"fips": ["01001", "01003", "02001", "01003"], "g": [1, 2, 3, 4]})
    source = rows
    if suffix == ".csv":
        rows.to_csv(source := tmp_path / "in.csv", index=False)
    elif suffix == ".parquet":
        rows.to_parquet(source := tmp_path / "in.parquet")
    sizes = group_sizes(source, levels=FIPS, group=["g"], max_size=2)
    assert sizes.hierarchy.levels == ("root", "state", "county")
    assert [names.tolist() for names in sizes.hierarchy.names[1:]] == [
        ["01", "02"],
        ["01001", "01003", "02001"],
    ]
    assert sizes.counts[:, 1].tolist() == [4, 3, 1, 1, 2, 1]
    axes = {"from": FIPS, "to": Prefixes("fips", {"state": 2, "rest": 5})}
    table = flows(source, axes=axes)
    assert [axis.levels for axis in table.axes] == [("root", "state", "county"), ("root", "state", "rest")]
    places = read_regions(source, FIPS, root="US", root_level="nation")
    assert repr(places) == "Hierarchy(nation: 1, state: 2, county: 3)"
    made = release(source, "group-size", epsilon=1, levels=FIPS, group=["g"], max_size=2,
        regions_from_data=True, groups_from_data=True)  # fmt: skip
    assert made.finest()[["state", "county"]].drop_duplicates().to_numpy().tolist() == [
        ["01", "01001"], ["01", "01003"], ["02", "02001"]]  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (
            ["01001", "1001"],
            "row 2, column 'fips': the code does not have 5 characters; did it lose leading zeros",
        ),
        ([1001, 12001], "row 1, column 'fips': the code does not have 5 characters"),
        (["01001", "0100123"], "row 2, column 'fips': the code does not have 5"),
        (["01001", None], "row 2, column 'fips': the region is missing"),
    ],
)
def test_bad_codes(codes, message):
    rows = pd.DataFrame({"fips": codes, "g": [1, 2]})
    for call in (
        lambda: group_sizes(rows, levels=FIPS, group=["g"], max_size=2),
        lambda: flows(rows, axes={"at": FIPS}),
        lambda: read_regions(rows, FIPS),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_codes_and_the_unknown_region():
    rows = pd.DataFrame({"fips": ["01001", None, ""], "g": [1, 2, 3]})
    sizes = group_sizes(rows, levels=FIPS, group=["g"], max_size=1, unknown="?")
    assert sizes.hierarchy.names[2].tolist() == ["01001", "?"]
    assert sizes.counts.tolist() == [[2, 3], [1, 1], [1, 2], [1, 1], [1, 2]]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({}, "no prefixes"),
        ({"a": 0}, "lengths of prefixes must be whole numbers"),
        ({"a": 2.0}, "lengths of prefixes must be whole numbers"),
        ({"a": True}, "lengths of prefixes must be whole numbers"),
        ({"a": 2, "b": 2}, "become longer"),
        ({"a": 3, "b": 2}, "become longer"),
    ],
)
def test_bad_prefixes(lengths, message):
    with pytest.raises(InputError, match=message):
        Prefixes("fips", lengths)


# --- parents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [None, ".csv"])
def test_a_table_of_parents(tmp_path, suffix):
    rows = pd.DataFrame(
        {
            "id": ["US", "01", "02", "01001", "01003", "02001"],
            "in": [None, "US", "US", "01", "01", "02"],
            "kind": ["nation", "state", "state", "county", "county", "county"],
        }
    )
    source = rows
    if suffix:
        rows.to_csv(source := tmp_path / "in.csv", index=False)
    places = read_parents(source, "id", "in", "kind")
    assert places.levels == ("nation", "state", "county")
    assert [names.tolist() for names in places.names] == [["US"], ["01", "02"], ["01001", "01003", "02001"]]
    assert places.columns()["state"].tolist() == ["01", "01", "02"]
    assert read_parents(source, "id", "in").levels == ("root", "level 1", "level 2")


def test_parents_with_several_regions_at_the_top():
    rows = pd.DataFrame({"id": ["01001", "02001"], "in": ["01", "02"]})
    places = read_parents(rows, "id", "in", root="US", root_level="nation")
    assert repr(places) == "Hierarchy(nation: 1, level 1: 2, level 2: 2)"
    assert places.names[0].tolist() == ["US"]
    alone = read_parents(pd.DataFrame({"id": ["a", "b"], "in": [None, None]}), "id", "in")
    assert repr(alone) == "Hierarchy(root: 1, level 1: 2)"
    one = read_parents(pd.DataFrame({"id": ["a"], "in": [None]}), "id", "in", root="top")
    assert [names.tolist() for names in one.names] == [["top"], ["a"]]
    stated = read_parents(
        pd.DataFrame({"id": ["x", "y"], "in": ["a", "b"], "k": ["town", "town"]}), "id", "in", "k"
    )
    assert stated.levels == ("root", "top", "town")


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.randoms())
@settings(max_examples=12, deadline=None)
def test_parents_say_the_same_as_levels(widths, random):
    names = [["r"]]
    rows = [("r", None)]
    for depth, width in enumerate(widths):
        names.append([])
        for parent in names[depth]:
            for k in range(random.randint(1, width)):
                names[-1].append(f"{parent}.{k}")
                rows.append((names[-1][-1], parent))
    random.shuffle(rows)
    places = read_parents(pd.DataFrame(rows, columns=["id", "in"], dtype=object), "id", "in")
    assert [level.tolist() for level in places.names] == [sorted(level) for level in names]
    for level in range(1, len(names)):
        for at, name in enumerate(places.names[level]):
            assert places.path(level, at)[-2] == name.rpartition(".")[0]


def places(hierarchy):
    """The names of each level, each with its parent's."""
    frame = hierarchy.frame()
    return [list(zip(part.region, part.parent, strict=True)) for _, part in frame.groupby("level")][1:]


def test_a_region_without_parts_stands_at_every_level_below_its_own(tmp_path):
    rows = [("n", None), ("n1", "n"), ("n2", "n"), ("n11", "n1"), ("w", None), ("z", None), ("z1", "z")]
    parents = read_parents(pd.DataFrame(rows, columns=["id", "in"], dtype=object), "id", "in")
    assert places(parents) == [
        [("n", "all"), ("w", "all"), ("z", "all")],
        [("n1", "n"), ("n2", "n"), ("w", "w"), ("z1", "z")],
        [("n11", "n1"), ("n2", "n2"), ("w", "w"), ("z1", "z1")],
    ]
    (tmp_path / "r.hrc").write_text("n\n@n1\n@@n11\n\n@n2\nw\nz\n@z1\n", encoding="utf-8")
    same = read_hrc(tmp_path / "r.hrc")
    assert (places(same), same.levels) == (places(parents), parents.levels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no regions"),
        ("@a", "line 1, is more than one level below"),
        ("a\n@@b", "line 2, is more than one level below"),
        ("a\n@", "line 2, has no code"),
        ("a\n@b\nc\n@b", "region 'b' has two parents, 'a', 'c'"),
        ("a\n@b\n@b", "region 'b' has two"),
    ],
)
def test_wrong_hrc_files_are_refused_by_line(text, message, tmp_path):
    (tmp_path / "r.hrc").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_hrc(tmp_path / "r.hrc")
    with pytest.raises(InputError, match="cannot be read"):
        read_hrc(tmp_path / "none.hrc")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b"), ("a", "c")], "region 'a' has two parents, 'b', 'c'"),
        ([("a", "b"), ("a", None)], "region 'a' has two parents"),
        ([("a", "b"), ("a", "c"), ("d", "e")], r"unique names; or are the columns .* swapped\?"),
        ([("a", "b"), ("a", "c"), ("d", "b")], "has two parents, 'b', 'c': each region has .* unique names$"),
        ([("a", "b"), ("b", "a")], "region '[ab]' is its own ancestor"),
        ([("a", "a")], "region 'a' is its own ancestor"),
        ([("r", None), ("a", "r"), ("b", "R")], "region 'b' has the parent 'R', which has no row"),
        ([(None, "r")], "row 1, column 'id': the region is missing in the table of regions"),
        ([], "the table has no rows"),
    ],
)
def test_bad_parents(rows, message):
    with pytest.raises(InputError, match=message):
        read_parents(pd.DataFrame(rows, columns=["id", "in"], dtype=object), "id", "in")


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["n", "s", None], "row 3, column 'k': the level is missing"),
        (["n", "s", "c"], "region 'b' has level 'c', but other regions of the same depth have 's'"),
        (["n", "n", "n"], "regions of different depths have the same level: 'n', 'n'"),
    ],
)
def test_bad_levels_of_parents(levels, message):
    rows = pd.DataFrame({"id": ["r", "a", "b"], "in": [None, "r", "r"], "k": levels}, dtype=object)
    with pytest.raises(InputError, match=message):
        read_parents(rows, "id", "in", "k")


def test_a_region_with_two_levels():
    rows = pd.DataFrame({"id": ["a", "a"], "in": ["r", "r"], "k": ["x", "y"]})
    with pytest.raises(InputError, match="region 'a' has two levels"):
        read_parents(rows, "id", "in", "k")


# --- on the command line ---------------------------------------------------------------------------------


def files_of(folder):
    tables = {
        "people": {"g": ["001", "001", "2"], "fips": ["01001", "01001", "02001"]},
        "groups": {"g": ["001", "2", "3"], "fips": ["01001", "02001", "01003"]},
        "codes": {"fips": ["01001", "01003", "02001", "02003"]},
        "parents": {"id": ["01", "02", "01001", "01003", "02001"], "in": ["US", "US", "01", "01", "02"]},
    }
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)


COMMON = "--group g --max-size 3 --epsilon 1 --levels fips"


@pytest.mark.parametrize("mechanism", ["group-size", "count-of-counts"])
@pytest.mark.parametrize(
    ("options", "regions"),
    [
        ("--prefixes state=2,county=5 --regions-from-data --groups-from-data", ["01001", "02001"]),
        ("--prefixes state=2,county=5 --groups groups.csv", ["01001", "01003", "02001"]),
        (
            "--regions codes.csv --region-codes fips --prefixes state=2,county=5 --groups-from-data",
            ["01001", "01003", "02001", "02003"],
        ),
        ("--regions parents.csv --region-parents id,in --groups-from-data", ["01001", "01003", "02001"]),
        ("--regions parents.csv --region-parents id,in --groups groups.csv", ["01001", "01003", "02001"]),
    ],
)
def test_the_forms_of_regions(tmp_path, monkeypatch, mechanism, options, regions):
    files_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        main, ["release", mechanism, "people.csv", *COMMON.split(), *options.split(), "--out", "o"]
    )
    assert done.exit_code == 0, done.output
    listed = pd.read_csv("o/regions.csv", dtype=str)
    assert listed.region[listed.level == "2"].tolist() == regions


def test_codes_on_axes(tmp_path, monkeypatch):
    files_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    common = "--epsilon 1 --prefixes state=2,county=5"
    for command in (
        "release top-down people.csv --axis at=fips --delta 1e-6 --regions-from-data --out a",
        "release top-down people.csv --axis at=fips --delta 1e-6 --regions codes.csv --region-codes fips "
        "--out b",
        "release range-query people.csv --names fips --method H_tree --regions-from-data --out c",
    ):
        done = CliRunner().invoke(main, [*command.split(), *common.split()])
        assert done.exit_code == 0, done.output
    assert pd.read_csv("b/regions.csv", dtype=str).shape == (7, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--prefixes 2,5", "write NAME=LENGTH, such as state=2,county=5"),
        ("--prefixes state=2,state=5", "write NAME=LENGTH"),
        ("--prefixes state=5,county=2", "prefixes must become longer"),
        ("--prefixes state=2,county=5 --levels state,fips", "with --prefixes, name one column"),
        ("--region-codes fips", "--region-codes says how to read --regions; give --regions as well"),
        ("--regions codes.csv --region-codes fips", "--region-codes needs --prefixes"),
        ("--regions codes.csv --region-levels fips --prefixes a=5", "--prefixes needs --region-codes"),
        (
            "--regions codes.csv --region-levels fips --region-codes fips",
            "name its columns by --region-levels",
        ),
        ("--regions parents.csv --region-parents id", "needs two or three columns"),
        ("--regions parents.csv --region-parents id,no", "no column 'no' in the table of regions"),
        ("--prefixes a=2,b=5 --groups none.csv", "no file 'none.csv'"),
    ],
)
def test_forms_that_do_not_fit(tmp_path, monkeypatch, options, message):
    files_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        main, ["release", "group-size", "people.csv", *COMMON.split(), *options.split(), "--out", "o"]
    )
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


# --- many ------------------------------------------------------------------------------------------------


def many(people, groups):
    return f"(SELECT (hash(range) % {groups})::BIGINT AS g FROM range({people}))"


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("kind", ["g", "g::VARCHAR AS g"])
def test_what_does_not_fit_into_memory_is_done_in_parts(monkeypatch, listed, kind):
    """Half a million groups in 30 MB, or in 80 MB with a table of groups."""
    run, runs = counting.run, []
    monkeypatch.setattr(counting, "run", lambda expression: runs.append(1) or run(expression))
    place = "(g % 7)::VARCHAR AS c"
    found = {}
    for limit in ("80MB" if listed else "30MB", "2GB"):
        connection = ibis.duckdb.connect(temp_directory="", memory_limit=limit, threads=1)
        connection.con.execute(f"CREATE VIEW p AS SELECT {kind}, {place} FROM {many(800_000, 500_000)}")
        every = "(SELECT range AS g FROM range(500000))"
        connection.con.execute(f"CREATE VIEW h AS SELECT {kind}, {place} FROM {every}")
        options = {"groups": connection.table("h")} if listed else {}
        runs.clear()
        sizes = group_sizes(connection.table("p"), **options, levels=["c"], group=["g"], max_size=20)
        found[limit] = sizes.counts.tolist(), len(runs)
    (small, in_parts), (large, at_once) = found.values()
    assert small == large
    assert np.dot(large[0], np.arange(21)) == 800_000
    assert at_once == 1
    assert in_parts > 3


def test_many_entities_in_little_memory(tmp_path):
    """Four million entities in 1.6 million groups; 100 million in 40 million groups take 25 times as much."""
    script = f"""
import duckdb, resource
duckdb.sql("COPY (SELECT g, printf('%05d', g % 3221) AS c FROM {many(4_000_000, 1_600_000)}) TO 'p.parquet'")
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    script = """
import resource
from hierdp.tables import Prefixes, group_sizes
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = group_sizes("p.parquet", levels=Prefixes("c", {"state": 2, "county": 5}), group=["g"], max_size=20)
assert sizes.counts[0] @ range(21) == 4_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert int(done.stdout) * 1024 < 8e9 / 8  # libraries and DuckDB's buffers do not grow 25 times
