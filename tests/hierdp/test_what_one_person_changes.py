"""What one person can change: all neighbours of small tables, with several rows a person and without lists.

A person with any rows joins a table. Every vector that a mechanism measures may change by at most its
sensitivity, in the norm of its noise, times the rows of a person where the sensitivity is that of one row.
What is taken from the data and published exactly (regions, groups, categories) may gain at most one entry for
each counted row. docs/privacy.md states it.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import universe

from hierdp import release
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from tests.marks import quick

PLACES = Hierarchy.flat("place", ["A", "B", "C"])

ROWS = [("A", "1", 1), ("A", "2", 0), ("B", "3", 2), ("C", "4", 1), (None, "5", 1), ("A", None, 3)]
"""Rows that a person may have: place, home, number. Homes 4 and 5, and place C, may be theirs alone."""

LINES = [[ROWS[kind] for kind in kinds] for kinds in universe.joined((), 3, range(len(ROWS)))]

MANY = [[("A", f"own {i}", 1) for i in range(40)], [(p, f"{p} {i}", i % 3) for p in "ABC" for i in range(9)]]
"""Persons with a home for each of their many rows."""

OTHERS = [[("A", "1", 1), ("B", "3", 1)], [("A", "2", 1)] * 3, [("B", "6", 0)], [("A", "1", 2)]]

HOMES = {"group": ["home"], "unknown": "?"}
LEVELS = {**HOMES, "levels": ["place"], "regions_from_data": True}
LISTED = {**HOMES, "regions": PLACES, "region": "place"}
HIDDEN = {**LISTED, "group_budget": 0.3, "max_size": 9}
SEEN = {"regions_from_data": True, "unknown": "?"}
PLACE = {"axes": {"at": ["place"], "to": (PLACES, "to")}, **SEEN, "delta": 1e-6, "bounded": False}
DISTINCT = {"axes": {"to": (PLACES, "to")}, "delta": 1e-6, "bounded": False, "distinct": True}
"""Without a region for unknown places, which stands for many: then `distinct` lowers no sensitivity."""

TABLE = {"levels": ["place"], **SEEN, "delta": 1e-6, "bounded": False, "attributes": {"kind": None},
         "attributes_from_data": True}  # fmt: skip

PUBLIC = {"groups_from_data": True, "max_size": 9}
SIZES = {"groups_from_data": True, "max_size": 4}
BOTH = {**LISTED, "group_budget": 0.3, "size_budget": 0.2, "entities": "n"}
PLACES_SEEN = {"axes": [("place", ["place"])], **SEEN}

BY_MECHANISM = {
    "count-of-counts": {
        "private groups, Hc": HIDDEN,
        "private groups, Hg": {**HIDDEN, "method": "Hg"},
        "private groups, naive": {**HIDDEN, "method": "naive"},
        "private groups, no list of regions": {**LEVELS, "group_budget": 0.3, "max_size": 9},
        "private groups, entities": {**HIDDEN, "entities": "n"},
        "private groups, Hg, entities": {**HIDDEN, "entities": "n", "method": "Hg"},
        "private groups, naive, entities": {**HIDDEN, "entities": "n", "method": "naive"},
        "private groups, none empty": {**HIDDEN, "smallest": 1},
        "private groups, Hg, no empty, entities": {
            **HIDDEN,
            "smallest": 1,
            "entities": "n",
            "method": "Hg",
        },
        "private groups and largest size": BOTH,
        "private groups, bottom-up Hg": {**HIDDEN, "method": "bottom-up Hg"},
        "groups in the data, Hc": {**LISTED, **PUBLIC},
        "groups in the data, Hg, entities": {**LEVELS, **PUBLIC, "entities": "n", "method": "Hg"},
        "private groups and largest size, zCDP": {**BOTH, "delta": 1e-6},
        "groups in the data, Hg, zCDP": {**LISTED, **PUBLIC, "method": "Hg", "delta": 1e-6},
    },
    "group-size": {
        "group-size, entities, zCDP": {**LISTED, **SIZES, "entities": "n", "method": "M_H^dp", "delta": 1e-6},
        "group-size, shares": {**LEVELS, **SIZES, "shares": [1, 3]},
        "group-size": {**LEVELS, **SIZES},
        "group-size, entities": {**LISTED, **SIZES, "entities": "n", "method": "M_H^dp"},
    },
    "top-down": {
        "top-down": PLACE,
        "top-down, distinct": DISTINCT,
        "top-down, count": {**PLACE, "count": "n"},
        "top-down VanillaGauss, distinct": {**DISTINCT, "method": "VanillaGauss"},
    },
    "tabulation": {"tabulation": TABLE, "tabulation, count": {**TABLE, "count": "n"}},
    "range-query": {
        "range-query": {"axes": [("place", ["place"]), Numbers("age", 0, 4)], **SEEN},
        "range-query, count": {**PLACES_SEEN, "count": "n"},
        "range-query, Wavelet": {**PLACES_SEEN, "method": "Wavelet"},
    },
    "clustering": {
        "clustering": {**PLACES_SEEN, "method": "NF", "count": "n"},
        "clustering, GS": {"axes": [Numbers("age", 0, 4)], "method": "GS"},
    },
}
CASES = {
    case: (mechanism, options) for mechanism, cases in BY_MECHANISM.items() for case, options in cases.items()
}
FIRST = [next(iter(cases)) for cases in BY_MECHANISM.values()]
"""A case of each mechanism."""


BINS = ("range-query", "clustering")
"""Mechanisms whose regions are bins, of which the settings have the number."""


def table(people):
    rows = [(f"p{i}", *line) for i, lines in enumerate(people) for line in lines]
    frame = pd.DataFrame(rows, columns=["id", "place", "home", "n"])
    return frame.assign(to=frame.place.fillna("B"), kind=frame.home.fillna("-").str[0], age=frame.n)


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    """The guarantee holds for each key, so neighbours are compared under the same key."""
    monkeypatch.setattr("hierdp.tables.persons.secrets.token_hex", lambda _: "a key")


def run(case, people, rows, by_row=False):
    """What is published exactly, and the ledger with all vectors that are measured."""
    mechanism, options = CASES[case]
    noise = universe.Fixed()
    own = {"most_per_row": rows} if by_row else {"person": "id", "rows_per_person": rows}
    made = release(table(people), mechanism, epsilon=1.0, noise=noise, **options, **own)
    listed = {(axis, str(name)) for axis, places in made.regions.items() for name in places.names[-1]}
    listed |= {("kind", name) for name in made.settings.get("plan", {}).get("attributes", {}).get("kind", ())}
    axes = made.settings.get("range_query", made.settings).get("axes", ())
    listed |= {(axis["name"], i) for axis in axes if mechanism in BINS for i in range(axis["bins"])}
    groups = 0 if made.settings.get("groups_are") != "public" else made.settings["groups"]
    if mechanism == "group-size":
        groups = made.settings["groups"]
    return listed, groups, made.ledger, noise.queried


def compare(case, without, joined, rows, by_row=False):
    """The person's loss as a part of the budget; None if what is published exactly differs."""
    listed, groups, ledger, before = without
    listed_then, groups_then, _, after = run(case, [*OTHERS, joined], rows, by_row)
    new = Counter(what for what, _ in listed_then - listed)
    assert listed <= listed_then
    assert all(more <= rows for more in new.values()), new
    # Each new region comes with its group for rows without a group.
    assert 0 <= groups_then - groups <= rows + len(listed_then - listed)
    if listed != listed_then or groups != groups_then:
        return None
    times, loss = ledger.person.times, 0.0
    for spend, norm, away in universe.changes(before, after):
        # A Gaussian sensitivity is a square root, which differs from the exact one in its last digit.
        share = away ** (1 / norm) / spend.sensitivity
        assert share <= times * (1 + 1e-12), (spend.query, joined)
        loss += spend.epsilon * share if norm == 1 else spend.rho * share**2
    allowed = ledger.rho if ledger.zcdp else ledger.epsilon
    assert loss <= allowed * (1 + 1e-9), joined  # a sum of floats
    return loss / allowed


@pytest.mark.slow
@pytest.mark.parametrize(("case", "rows"), [(case, 2 - i % 2) for i, case in enumerate(CASES)])
def test_no_person_changes_more_than_the_sensitivities(case, rows):
    """Each single row, choices of two and three, and many; some choice changes a good part of the bound."""
    worst = 0.0
    before = run(case, OTHERS, rows)
    for lines in [*LINES[: len(ROWS)], *LINES[len(ROWS) + rows :: 8], *MANY]:
        worst = max(worst, compare(case, before, lines, rows) or 0.0)
    assert worst > 0.3


@pytest.mark.parametrize("case", quick(CASES, slow=lambda case: case not in FIRST))
def test_a_person_with_many_rows_changes_no_more_than_with_few(case):
    before = run(case, OTHERS, 2)
    for lines in [*MANY, [("A", "1", 1), ("C", "4", 1), ("A", "own", 0)]]:
        compare(case, before, lines, 2)


NUMBERS = [
    case
    for case, (_, options) in CASES.items()
    if {"count", "entities"} & options.keys() and not options.get("distinct")
]
"""Cases with a column of numbers, of which a row may be bounded."""


NEVER_MORE = "numbers of groups", "group sizes", "sizes by"
"""Queries that a row changes no more than an entity: it is in one group, whose size changes once."""


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("case", quick(NUMBERS, first=1))
def test_a_row_changes_what_the_sensitivities_of_its_bound_say(case, rows):
    """A row with any number joins, in a place or home of others or of its own.

    No query changes by more than its sensitivity times the bound. Some row changes it by exactly so much, or
    by its sensitivity if more is impossible (`NEVER_MORE`).
    """
    before, reached = run(case, OTHERS, rows, by_row=True), Counter()
    for place, home in (("A", "2"), ("B", "own"), ("A", None)):
        for n in (0, 1, 3, 10**12):
            joined = [(place, home, n)]
            if compare(case, before, joined, rows, by_row=True) is None:
                continue
            after = run(case, [*OTHERS, joined], rows, by_row=True)[3]
            for spend, norm, away in universe.changes(before[3], after):
                share = away ** (1 / norm) / spend.sensitivity / before[2].person.times
                reached[spend.query] = max(reached[spend.query], share)
    for query, share in reached.items():
        if "size_budget" in CASES[case][1] and query != "largest size":
            continue  # all sizes above an answer that is fixed here are one
        # A Gaussian sensitivity is a square root, rounded up.
        assert share == pytest.approx(1 / rows if query.startswith(NEVER_MORE) else 1, rel=1e-12), query


@pytest.mark.parametrize(
    "case", ["private groups, entities", "top-down, count", "tabulation, count", "clustering"]
)
def test_a_row_with_a_large_number_changes_no_more_than_its_bound(case):
    """By every reader."""
    before = run(case, OTHERS, 3, by_row=True)
    assert compare(case, before, [("A", "2", 1000)], 3, by_row=True) > 0


def test_rows_beyond_the_bound_form_no_group():
    """One person with a home for each of 40 rows: the number of homes that is measured changes by one."""
    (*_, one), *_ = run("private groups, Hc", OTHERS, 1)[3]
    (*_, other), *_ = run("private groups, Hc", [*OTHERS, MANY[0]], 1)[3]
    assert np.abs(other - one).sum() == 1


def test_rows_with_no_entity_form_no_group_of_a_person():
    none = [("A", f"own {i}", 0) for i in range(9)]
    before = run("private groups, entities", OTHERS, 1)
    assert compare("private groups, entities", before, none, 1) == 0


def test_a_group_whose_rows_are_all_dropped_is_not_called_empty():
    """Neither without a list, where it does not exist, nor with one, where it has the smallest size."""
    listed = pd.DataFrame({"place": "A", "home": [f"own {i}" for i in range(40)]})
    own = {"group": ["home"], "smallest": 1, "max_size": 9, "person": "id", "rows_per_person": 1}
    hidden = {"regions": PLACES, "region": "place", "group_budget": 0.5}
    for how in (hidden, {"groups": listed, "regions": PLACES, "region": "place"}):
        noise = universe.Fixed()
        release(table([MANY[0]]), "count-of-counts", epsilon=1.0, noise=noise, **own, **how)
    *_, sizes = noise.queried[0]
    assert sizes.tolist()[0] == 40  # Hc: of size 1 or less
    rows = table([[("A", "own 0", 1)]])
    with pytest.raises(InputError, match="has an empty group"):
        release(rows, "count-of-counts", epsilon=1.0, group=["home"], smallest=1, max_size=9, groups=listed,
                regions=PLACES, region="place")  # fmt: skip


def test_regions_and_categories_of_the_data_are_those_of_rows_that_count():
    """A region that only rows beyond the bound are in is not published, nor is a category."""
    rows = table([[("A", "1", 1)], [("B", "2", 1), ("C", "3", 1)]])
    own = {"person": "id", "rows_per_person": 1}
    seen = {"regions_from_data": True, "delta": 1e-6, "bounded": False}
    made = release(rows, "tabulation", epsilon=1.0, levels=["place"], attributes={"home": None},
                   attributes_from_data=True, **seen, **own)  # fmt: skip
    assert [len(names) for names in made.regions["region"].names] == [1, 2]
    assert len(made.settings["plan"]["attributes"]["home"]) == 2
    made = release(rows, "top-down", epsilon=1.0, axes={"at": ["place"]}, **seen, **own)
    assert made.regions["at"].names[-1].size == 2
    none = table([[("A", "1", 0)]])
    with pytest.raises(InputError, match="no row counts, so column 'place' gives no region"):
        release(none, "top-down", epsilon=1.0, axes={"at": ["place"]}, count="n", **seen, **own)
