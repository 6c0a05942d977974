"""Hierarchies: from columns and back, names to positions, and faulty tables of regions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.counts.hierarchy import Hierarchy, places_of
from hierdp.counts.size_table import as_categories, plain, unlike
from hierdp.errors import InputError
from models.tree import Tree

NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@st.composite
def regions(draw):
    """Rows (state, county, block) in which each region has one parent; some rows are repeated."""
    paths = draw(st.dictionaries(NAME, st.tuples(NAME, st.integers(0, 2)), min_size=1, max_size=12))
    rows = [(state, f"{state}/{county}", block) for block, (state, county) in paths.items()]
    return draw(st.permutations(rows + draw(st.lists(st.sampled_from(rows), max_size=4))))


LEVELS = ["state", "county", "block"]


@pytest.mark.slow
@given(regions())
@settings(max_examples=35, deadline=None)
def test_columns_round_trip(rows):
    table = pd.DataFrame(rows, columns=LEVELS, dtype=object)
    places = Hierarchy.from_columns(table, LEVELS, root="here", root_level="top")
    assert places.levels == ("top", *LEVELS)
    for level, names in zip(LEVELS, places.names[1:], strict=True):
        assert list(names) == sorted(set(table[level]))
    expected = sorted(set(rows), key=lambda row: row[2])
    assert list(zip(*places.columns().values(), strict=True)) == expected
    assert [places.path(3, i)[1:] for i in range(len(expected))] == expected
    again = Hierarchy.from_columns(places.columns(), LEVELS)
    assert all((a == b).all() for a, b in zip(again.tree.levels, places.tree.levels, strict=True))
    names = [row[2] for row in rows]
    assert list(places.names[-1][places.positions(names)]) == names
    frame = places.frame()
    assert len(frame) == places.size
    assert list(frame.region[1:]) == [name for level in places.names[1:] for name in level]
    parent = dict(zip(zip(frame.level, frame.region, strict=True), frame.parent, strict=True))
    assert all(parent[1, s] == "here" and parent[2, c] == s and parent[3, b] == c for s, c, b in rows)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["01", "1", "001"], ["001", "01", "1"]),
        ([10, 9, 9], ["10", "9"]),
        (np.array([3.0, 2.5]), ["2.5", "3"]),
        (["Åland", "Zürich", "Łódź", "東京"], ["Zürich", "Åland", "Łódź", "東京"]),
        (pd.Series(["b", "a"], dtype="category"), ["a", "b"]),
        (pa.array(["b", "a"]), ["a", "b"]),
        ([" a", "a", "NaN", "null"], [" a", "NaN", "a", "null"]),
        ([1, 1.0, "1", True], ["1"]),
        ([2**70, 2**70 + 1], [str(2**70), str(2**70 + 1)]),
    ],
)
def test_ids_of_any_type(values, names):
    places = Hierarchy.flat("id", values)
    assert list(places.names[1]) == names
    assert (places.positions(names) == np.arange(len(names))).all()


def test_positions_of_missing_and_unknown():
    places = Hierarchy.flat("id", ["a", "b"])
    assert list(places.positions(["b", None, "", "c", float("nan"), "a"])) == [1, -1, -1, -1, -1, 0]
    assert places.positions([]).shape == (0,)
    assert places.positions(np.array(["b", "a"])).dtype == np.int64


@pytest.mark.slow
def test_ten_million_positions():
    places = Hierarchy.flat("id", [f"{i:04d}" for i in range(3_000)])
    at = np.arange(10_000_000) % 3_000
    assert (places.positions(places.names[1][at]) == at).all()


def test_with_unknown():
    places = Hierarchy.from_columns({"a": ["x", "z"], "b": ["x1", "z1"]}, ["a", "b"], "top", "all")
    more = places.with_unknown("y")
    assert [list(names) for names in more.names] == [["top"], ["x", "y", "z"], ["x1", "y", "z1"]]
    assert more.path(2, int(more.positions(["y"])[0])) == ("top", "y", "y")
    assert more.levels == places.levels
    for name in ("top", "x", "z1"):
        with pytest.raises(InputError, match=f"already has a region '{name}'"):
            places.with_unknown(name)
    for name in ("", None):
        with pytest.raises(InputError, match="non-empty"):
            places.with_unknown(name)


def test_repr_and_path():
    places = Hierarchy.flat("id", ["a", "b"], root="USA", root_level="nation")
    assert repr(places) == "Hierarchy(nation: 1, id: 2)"
    assert places.path(0, 0) == ("USA",)
    for level, position in ((2, 0), (1, 2), (1, -1)):
        with pytest.raises(IndexError, match="no region"):
            places.path(level, position)


GOOD = {"state": ["A", "A", "B"], "county": ["1", "2", "3"]}


@pytest.mark.parametrize(
    ("columns", "levels", "message"),
    [
        (GOOD, [], "no levels"),
        (GOOD, ["state", "state"], "a level is repeated: 'root', 'state', 'state'"),
        (GOOD, ["root", "state"], "a level is repeated"),
        (GOOD, ["state", "conty"], "no column 'conty' .* are 'state', 'county'. Did you mean 'county'?"),
        (pd.DataFrame(GOOD), ["stat"], "no column 'stat' .* Did you mean 'state'?"),
        (
            GOOD | {"county": ["1", "2", "1"]},
            ["state", "county"],
            "'1' of level 'county' has two parents, 'A', 'B'",
        ),
        (
            GOOD | {"county": ["1", None, "3"]},
            ["state", "county"],
            "row 2, column 'county': the region is missing",
        ),
        (GOOD | {"state": ["A", "A", float("nan")]}, ["state", "county"], "row 3, column 'state'"),
        (GOOD | {"state": ["", "A", "B"]}, ["state"], "row 1, column 'state'"),
        (GOOD | {"state": np.array([1.0, np.nan, 2.0])}, ["state"], "row 2, column 'state'"),
        (
            GOOD | {"county": ["1", "2"]},
            ["state", "county"],
            "'county' has 2 rows; the columns before it have 3",
        ),
        ({"state": []}, ["state"], "no rows"),
    ],
)
def test_bad_columns(columns, levels, message):
    with pytest.raises(InputError, match=message):
        Hierarchy.from_columns(columns, levels)


def test_two_parents_says_what_to_do():
    with pytest.raises(InputError, match="make names unique, for example by prefixing"):
        Hierarchy.from_columns({"s": ["A", "B"], "c": ["x", "x"]}, ["s", "c"])


@pytest.mark.parametrize(
    ("levels", "names", "parents", "message"),
    [
        (("a", "b"), (["r"],), [[0]], "do not fit"),
        (("a",), (["r"],), [], "at least one level below"),
        (("a", "a"), (["r"], ["x"]), [[0]], "not all different"),
        (("a", "b"), (["r"], ["x"]), [[0, 0]], "1 names for 2 regions"),
        (("a", "b"), (["r"], ["x", "x"]), [[0, 0]], "the same name"),
        (("a", "b", "c"), (["r"], ["x", "y"], ["z"]), [[0, 0], [0]], "holds no region"),
    ],
)
def test_parts_that_do_not_fit(levels, names, parents, message):
    with pytest.raises(InputError, match=message):
        Hierarchy(levels, names, Tree(parents))


THREE = {"state": list("AAAB"), "county": ["1", "1", "2", "3"], "town": list("wxyz")}


@pytest.mark.parametrize(
    ("levels", "question"),
    [
        (["county", "state"], r"are the levels reversed\? From coarse to fine, 'state', 'county' would fit"),
        (["town", "county", "state"], r"reversed\? From coarse to fine, 'state', 'county', 'town' would fit"),
        (["state", "town", "county"], r"in another order\? From coarse to fine, 'state', 'county', 'town'"),
    ],
)
def test_levels_in_the_wrong_order_are_questioned(levels, question):
    with pytest.raises(InputError, match=f"has two parents, .*{question}.*make names unique"):
        Hierarchy.from_columns(THREE, levels)
    assert Hierarchy.from_columns(THREE, ["state", "county", "town"]).tree.depth == 3


def test_no_order_is_proposed_that_would_not_fit():
    crossed = {"state": list("AABB"), "county": list("1212")}
    for levels in (["state", "county"], ["county", "state"]):
        with pytest.raises(InputError, match=r"has two parents, .*: make names unique"):
            Hierarchy.from_columns(crossed, levels)
    missing = THREE | {"town": ["w", None, "y", "z"]}
    with pytest.raises(InputError, match=r"has two parents, .*: make names unique"):
        Hierarchy.from_columns(missing, ["county", "state", "town"])


def test_names_are_found_and_compared_however_categories_are_numbered():
    rng, known = np.random.default_rng(0), np.array(["c", "a", "b"], object)
    for size in (0, 1, 3, 40):  # fewer rows than categories, and more
        frames = []
        for kinds in (["x", "c", "b", "a", "q", "r", "s"], ["a", "q", "x", "c"]):
            column = pd.Series(as_categories(pd.Series(kinds).array, rng.integers(-1, len(kinds), size)))
            texts = plain(column.to_frame("name"))["name"]
            expected = [known.tolist().index(one) if one in known else -1 for one in texts.tolist()]
            assert places_of(column, known).tolist() == expected
            assert places_of(texts, known).tolist() == expected
            frames.append((column, texts.fillna("").tolist()))
        (one, ours), (other, theirs) = frames
        assert unlike(one, other).tolist() == [a != b for a, b in zip(ours, theirs, strict=True)]
