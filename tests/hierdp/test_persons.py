"""At most a given number of each person's rows count, selected by that person's rows alone."""

from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Axis, flows, group_sizes
from hierdp.tables.binning import histogram
from hierdp.tables.persons import Persons, bounded, once, row_text
from hierdp.tables.sizes import group_runs
from hierdp.tables.sources import read, run
from hierdp.tables.tabulated import cross_table

PLACES = Hierarchy.flat("place", ["A", "B"])
HOMES = pd.DataFrame({"place": ["A", "A", "B"], "home": ["1", "2", "3"]})


def table(*people):
    """A row for each place and home of each person; person i has the i-th list."""
    rows = [(f"p{i}", place, home) for i, lines in enumerate(people) for place, home in lines]
    return pd.DataFrame(rows, columns=["id", "place", "home"], dtype=object)


def kept(frame, persons, amount="n"):
    rows = read(frame.rename(columns={"id": "person"}))
    return run(bounded(rows, persons, amount)).to_pandas()


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_each_person_counts_in_full_or_up_to_the_bound(most):
    rng = np.random.default_rng(most)
    frame = pd.DataFrame(
        {"id": rng.integers(0, 9, 60), "at": rng.integers(0, 4, 60), "n": rng.integers(0, 5, 60)}
    )
    frame["who"] = frame.id
    found = kept(frame, Persons("id", most)).groupby("who").n.sum()
    assert found.to_dict() == frame.groupby("who").n.sum().clip(upper=most).to_dict()


def test_huge_counts_of_a_person_do_not_overflow():
    frame = pd.DataFrame({"id": "p", "at": range(5), "n": 2**62})
    assert sorted(kept(frame, Persons("id", 2)).n) == [0, 0, 0, 0, 2]


def test_selected_rows_do_not_depend_on_other_persons():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": rng.integers(0, 9, 60), "at": rng.integers(0, 50, 60), "n": 1})
    frame["who"] = frame.id
    persons, by = Persons("id", 3, "a key"), ["who", "at", "n"]

    def sorted_rows(part):
        found = kept(part, persons)
        return found.sort_values(by).reset_index(drop=True)

    whole = sorted_rows(frame.sample(frac=1, random_state=1))
    for who in range(9):
        without = sorted_rows(frame[frame.id != who])
        assert without.equals(whole[whole.who != who].reset_index(drop=True))


def test_the_key_decides_which_rows_are_picked():
    frame = pd.DataFrame({"id": 1, "at": np.arange(40), "n": 1})
    picks = {tuple(kept(frame, Persons("id", 20, key)).query("n > 0")["at"].sort_values()) for key in "abcd"}
    assert len(picks) == 4
    assert Persons("id").key != Persons("id").key


def test_rows_with_equal_concatenation_have_different_hashes():
    """Without lengths, `1` + `12` and `11` + `2` would be one text, as would a missing and an empty one."""
    frame = pd.DataFrame({"id": "p", "a": ["1", "11", "", None], "b": ["12", "2", "x", "x"], "n": 1})
    rows = read(frame.rename(columns={"id": "person"}))
    texts = rows.select(text=row_text(rows, ["person", "a", "b", "n"]))
    assert len(set(run(texts)["text"].to_pylist())) == 4


def test_once_counts_a_person_once_a_cell():
    frame = pd.DataFrame({"person": ["p", "p", "p", "q"], "at0": [0, 0, 1, 0], "n": [2, 1, 0, 9]})
    found = run(once(read(frame), ["at0"], "n").order_by(["person", "at0"])).to_pydict()
    assert found == {"person": ["p", "p", "q"], "at0": [0, 1, 0], "n": [1, 0, 1]}


CELLS = [("A", "1"), ("A", "2"), ("B", "3")]
"""The cells that a row may be in: place and home."""

LINES = [lines for n in range(4) for lines in combinations_with_replacement(CELLS, n)]
"""All possible rows of one person, up to three."""


def of_bins(frame, persons):
    return [histogram(frame, [("place", (PLACES, "place"))], persons=persons).counts]


def of_cells(frame, persons, distinct=False):
    found = flows(frame, axes={"at": (PLACES, "place")}, persons=persons, distinct=distinct)
    counts = np.zeros(2, dtype=np.int64)
    counts[found.cells[:, 0]] = found.counts
    return [counts]


def of_listed_groups(frame, persons):
    data = group_sizes(frame[["id", "home"]], group=["home"], groups=HOMES, regions=PLACES, region="place",
                       max_size=9, persons=persons)  # fmt: skip
    return list(np.cumsum(data.counts, axis=1)[1:])


def of_all_sizes(frame, persons):
    data = group_runs(frame[["id", "home"]], group=["home"], groups=HOMES, regions=PLACES, region="place",
                      persons=persons)  # fmt: skip
    sizes = [np.repeat(*data.runs.of(place)) for place in (1, 2)]
    return [np.sort(each) for each in sizes]


def of_tables(frame, persons):
    homes = {"home": ["1", "2", "3"]}
    return [cross_table(frame, axis=Axis(PLACES, ("place",)), attributes=homes, persons=persons).counts]


READERS = {
    "bins": of_bins,
    "cells": of_cells,
    "listed groups": of_listed_groups,
    "all sizes": of_all_sizes,
    "tables": of_tables,
}


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.slow
def test_no_person_changes_more_than_the_bound(reader, most):
    """Tables of two persons with up to three rows each, against the same tables without the second person."""
    persons, read_ = Persons("id", most, "k"), READERS[reader]
    furthest = 0
    without = {first: read_(table(first), persons) for first in LINES[1::17]}
    for (first, other), second in product(without.items(), LINES):
        one = read_(table(first, second), persons)
        moved = sum(int(np.abs(a - b).sum()) for a, b in zip(one, other, strict=True))
        assert moved <= most, (first, second)
        furthest = max(furthest, moved)
    assert furthest == most


@pytest.mark.parametrize("reader", READERS)
def test_a_person_with_many_rows_changes_no_more_than_the_bound(reader):
    persons, few = Persons("id", 2), table([("A", "1")] * 2)
    many = table([("A", "1")] * 2, [("A", "2"), ("B", "3")] * 3)
    one, other = READERS[reader](many, persons), READERS[reader](few, persons)
    assert sum(int(np.abs(a - b).sum()) for a, b in zip(one, other, strict=True)) == 2


def test_distinct_cells_of_a_person_count_once_each():
    rows = table([("A", "1")] * 5 + [("B", "3")], [("A", "1")])
    assert of_cells(rows, Persons("id", 5), distinct=True)[0].tolist() == [2, 1]
    assert sum(of_cells(rows, Persons("id", 1), distinct=True)[0]) == 2


def test_a_group_of_the_data_exists_only_if_one_of_its_rows_counts():
    rows = table([("A", "1"), ("A", "2"), ("B", "3")])
    for most in (1, 2, 3):
        persons = Persons("id", most, "a key")
        data = group_sizes(rows, levels=["place"], group=["home"], max_size=2, persons=persons)
        assert data.counts[0].tolist() == [0, most, 0]


def test_a_listed_group_stays_when_none_of_its_rows_counts():
    rows = table([("A", "1"), ("A", "2"), ("B", "3")])
    data = group_sizes(rows, levels=["place"], group=["home"], groups=HOMES, max_size=2,
                       persons=Persons("id", 1))  # fmt: skip
    assert data.counts[0].tolist() == [2, 1, 0]


def test_entities_of_a_row_count_up_to_the_bound():
    rows = pd.DataFrame({"id": ["p", "q"], "place": "A", "home": ["1", "2"], "people": [50, 2]})
    data = group_sizes(rows, levels=["place"], group=["home"], entities="people", max_size=99,
                       persons=Persons("id", 4))  # fmt: skip
    assert np.flatnonzero(data.counts[0]).tolist() == [2, 4]


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, 2**31])
def test_a_bound_that_is_no_number_of_rows_is_refused(rows):
    with pytest.raises(InputError, match=r"rows_per_person is .* whole number, 1 or more"):
        Persons("id", rows)


@pytest.mark.parametrize("reader", READERS)
def test_a_row_without_a_person_is_refused_by_its_number(reader):
    rows = table([("A", "1")], [("B", "3")])
    rows.loc[1, "id"] = None
    with pytest.raises(InputError, match=r"row 2.*column 'id': the person is missing"):
        READERS[reader](rows, Persons("id"))
    with pytest.raises(InputError, match="no column 'who'"):
        READERS[reader](rows, Persons("who"))
