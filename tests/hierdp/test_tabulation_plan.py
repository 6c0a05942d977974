"""A tabulation's plan: its forms, its cells, its exact shares, and messages that name the culprit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.budget import ONE_PERSON, person_unit, shares
from hierdp.mechanisms.tabulation.measure import level_queries
from hierdp.mechanisms.tabulation.plan import plan_of, shipped
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.tables import Axis, Prefixes
from hierdp.tables.tabulated import cross_table

LEVELS = ["root", "state", "county"]
PLACES = Hierarchy.from_columns({"state": ["A", "B"], "county": ["A1", "B1"]}, LEVELS[1:])
ATTRIBUTES = {"group": ["a", "b", "c"], "age": ["old", "young"]}
TWO = {"two": {"attribute": "group", "categories": {"a or b": ["a", "b"], "c": ["c"]}}}
WHOLE = {
    "attributes": ATTRIBUTES,
    "recodes": TWO,
    "queries": ["total", "two*age", "detailed"],
    "level_shares": {"root": "1/2", "state": 0.25, "county": "0.25"},
    "query_shares": {
        "total": 0,
        "two*age": "1/3",
        "detailed": "2/3",
        "county": {"total": "1/7", "two*age": "2/7", "detailed": "4/7"},
    },
    "invariants": ["state:total"],
    "bounds": [
        "county:total:0..9",
        {"level": "state", "query": "two", "lower": {"A": 1}, "answer": {"two": "c"}},
    ],
    "zeros": ["group=c,age=young", {"two": "a or b", "age": ["old"]}],
    "passes": [["total"], ["two*age", "detailed"]],
    "rounding": ["total", "detailed"],
    "weights": {"total": "3/2"},
}


def test_a_plan_and_its_dict_are_one():
    plan = plan_of(WHOLE)
    again = plan_of(plan.as_dict())
    assert again.as_dict() == plan.as_dict()
    assert set(plan.as_dict()) == set(WHOLE)
    assert again.zeros == ({"group": ("c",), "age": ("young",)}, {"two": ("a or b",), "age": ("old",)})
    assert again.level_shares == {"root": Fraction(1, 2), "state": Fraction(1, 4), "county": Fraction(1, 4)}


def test_options_and_a_file_make_the_same_plan(tmp_path):
    ages = tmp_path / "ages.csv"
    ages.write_text("age\nold\nyoung\n")
    file = tmp_path / "plan.toml"
    file.write_text(
        'queries = ["total", "group * age"]\nzeros = [{ group = "c", age = "young" }]\n'
        'invariants = ["state:total"]\npasses = [["total"], ["group*age"]]\n[attributes]\n'
        'group = ["a", "b", "c"]\nage = ["old", "young"]\n[level_shares]\nroot = 0\nstate = 0.5\n'
        'county = "1/2"\n'
        '[query_shares.state]\ntotal = ""\n"group*age" = 1\n'
    )
    options = {
        "attributes": ["group=a, b,c", f"age={ages}"],
        "queries": ["total", "group*age"],
        "zeros": ["group=c, age=young"],
        "invariants": ["state:total"],
        "passes": ["total", "group * age"],
        "level_shares": ["root=0", "state=1/2", "county=0.5"],
        "query_shares": ["state:total=0", "state:group*age=1"],
    }
    assert plan_of(file).as_dict() == plan_of(**options).as_dict()
    assert plan_of(file, queries=["detailed", "total"], passes=[], query_shares=[]).queries[0] == "detailed"


def test_a_category_may_hold_a_comma():
    plan = plan_of(
        {"attributes": {"race": ["black, alone", "other"], "age": ["old"]}},
        zeros=["race=black, alone,age=old"],
    )
    assert plan.zeros == ({"race": ("black, alone",), "age": ("old",)},)


def test_queries_zeros_and_bounds_are_sums_of_the_right_cells():
    queries = Queries(plan_of(WHOLE))
    cells = np.arange(6)  # a old, a young, b old, b young, c old, c young
    total, a_or_b_old, a_or_b_young, c_old, c_young, *every = queries.workload.answers(cells)
    assert (total, a_or_b_old, a_or_b_young, c_old, c_young) == (15, 0 + 2, 1 + 3, 4, 5)
    assert every == cells.tolist()
    assert queries.labels("age*two") == ["a or b, old", "a or b, young", "c, old", "c, young"]
    assert np.flatnonzero(queries.zeros).tolist() == [0, 2, 5]
    assert queries.answers_of(queries.plan.bounds[1]).tolist() == [False, True]
    assert queries.refines("two*age", "two")
    assert not queries.refines("two*age", "group")


def named(queries, unit):
    """The share of each measurement, by its name."""
    return {query.name: share.part for share, query in level_queries(queries, PLACES, unit, 1.0)}


def test_without_shares_they_are_equal_and_what_is_public_is_not_measured():
    queries = Queries(plan_of({"attributes": ATTRIBUTES}, invariants=["state:age"]))
    found = named(queries, person_unit(bounded=False))
    third = Fraction(1, 3)
    expected = {f"{query} by {level}": third / 2 for level in LEVELS[:2] for query in ("group", "detailed")}
    expected |= {f"{query} by county": third / 4 for query in ("total", "group", "age", "detailed")}
    assert found == expected
    alone = Queries(plan_of({"attributes": ATTRIBUTES}, queries=["total"]))
    assert list(named(alone, ONE_PERSON)) == ["total by state", "total by county"]


def test_shares_are_exact_and_rounded_down():
    queries = Queries(plan_of(WHOLE))
    assert [one.part for one in shares(queries, LEVELS, ONE_PERSON)] == [
        *(Fraction(1, 2) * Fraction(k, 3) for k in (1, 2)),
        *(Fraction(1, 4) * Fraction(k, 3) for k in (1, 2)),
        *(Fraction(1, 4) * Fraction(k, 7) for k in (1, 2, 4)),
    ]
    rho = 0.1
    parts = [query.loss for _, query in level_queries(queries, PLACES, ONE_PERSON, rho)]
    assert sum(map(Fraction, parts)) <= Fraction(rho)
    assert sum(parts) == pytest.approx(rho, rel=1e-15)


def test_the_plan_of_2020_spends_exactly_its_budget():
    assert shipped() == ["redistricting-2020"]
    plan = plan_of("redistricting-2020")
    levels = ["root", "state", "county", "tract", "block_group", "block"]
    plan.check_levels(levels)
    queries = Queries(plan)
    assert queries.shape == (8, 2, 2, 63)
    assert sum(plan.level_shares.values()) == 1
    for level in levels:
        assert sum(plan.query_shares[level].values()) == 1
    found = shares(queries, levels, ONE_PERSON)
    assert sum(one.part for one in found) == 1
    assert len(found) == 6 * 11 - 1  # the nation's total is public
    assert found[-1].part == Fraction(165, 4099) * Fraction(3945, 4097)
    assert queries.zeros.sum() == 2 * 63  # nobody under 18 in nursing facilities
    assert plan_of(plan.as_dict()).as_dict() == plan.as_dict()


def wrong(**changed):
    return {name: value for name, value in {**WHOLE, **changed}.items() if value is not None}


def recoded(categories):
    return wrong(recodes={"two": {"attribute": "group", "categories": categories}})


def by_level(root, state=0):
    return wrong(level_shares={"root": root, "state": state, "county": 0})


BAD = {
    "an entry": (wrong(querys=["total"]), "entry 'querys'.*Did you mean 'queries'"),
    "no attributes": ({"attributes": {}}, "no attributes"),
    "a weight of 0": (wrong(weights={"total": 0}), "the weight of 'total' is 0: write a number above 0"),
    "a weight that is no number": (wrong(weights={"total": "x"}), "the weight of 'total' is 'x'"),
    "a weight of no query": (wrong(weights={"sex": 2}), "a weight or a share is of query 'sex'"),
    "an attribute of a query": (
        wrong(queries=["gruop"]),
        "query 'gruop' names attribute 'gruop'.*mean 'group'",
    ),
    "an attribute twice": (wrong(queries=["group*two"]), "names attribute 'group' twice"),
    "a query twice": (wrong(queries=["age", "age"]), "query 'age' is given twice"),
    "a query of another name": (
        wrong(queries=["detailed", "age*group"], query_shares=None, passes=None, rounding=None, weights=None),
        "'detailed' and 'age\\*group' are the same",
    ),
    "the name of an attribute": ({"attributes": {"level": ["a"]}}, "attribute 'level': choose another name"),
    "a category twice": ({"attributes": {"age": ["a", "a"]}}, "category 'a' is given twice"),
    "a recode's attribute": (
        wrong(recodes={"two": {**TWO["two"], "attribute": "sex"}}),
        "recode 'two' is of attribute 'sex'",
    ),
    "a recode's category": (recoded({"x": ["a", "d"], "c": ["b", "c"]}), "recode 'two': category 'd'"),
    "a category without a coarser one": (
        recoded({"a or b": ["a"], "c": ["c"]}),
        "no coarser category for 'b'",
    ),
    "a category with two": (recoded({"a or b": ["a", "b"], "c": ["b", "c"]}), "category 'b' twice"),
    "shares of the levels": (by_level(1, "1/100"), "levels add up to 101/100, more than the budget"),
    "shares of the queries": (
        wrong(query_shares={"total": "1/2", "two*age": "1/2", "detailed": "0.01"}),
        "queries on every level add up to 101/100",
    ),
    "a share": (by_level("half"), "share of 'root' is 'half'"),
    "a share under 0": (by_level(-0.1), "share of 'root' is -0.1"),
    "a level without a share": (wrong(level_shares={"root": 1}), "level 'state' has no share"),
    "a query without a share": (wrong(query_shares={"total": 1}), "query 'two\\*age' has no share"),
    "a level without queries": (
        wrong(query_shares={"total": 0, "two*age": 0, "detailed": 0}),
        "level 'root' has a share of the budget, and none",
    ),
    "a level": (wrong(invariants=["stat:total"]), "names level 'stat'.*mean 'state'"),
    "an invariant": (wrong(invariants=["total"]), "write LEVEL:QUERY"),
    "an invariant's query": (wrong(invariants=["state:sex"]), "query 'sex' names attribute 'sex'"),
    "an invariant twice": (wrong(invariants=["state:total", "state:total"]), "'state:total' is given twice"),
    "a zero's category": (wrong(zeros=["group=d"]), "category 'd' is not one of attribute 'group'"),
    "a zero's attribute": (wrong(zeros=[{"sex": "x"}]), "names attribute 'sex'"),
    "a bound's text": (wrong(bounds=["county:total:5"]), "write LEVEL:QUERY:LOWER..UPPER"),
    "a bound that no table keeps": (
        wrong(bounds=["county:total:5..4"]),
        "no table can keep the bound on county:total: from 5 to 4",
    ),
    "a bound under 0": (
        wrong(bounds=[{"level": "state", "query": "total", "upper": {"A": -1}}]),
        "no table can keep.*region 'A'",
    ),
    "a bound on zeros": (wrong(bounds=["county:detailed:1.."]), "all cells of 'a, old' are structural zeros"),
    "a bound's answers": (
        wrong(bounds=[{"level": "state", "query": "age", "lower": 1, "answer": {"two": "c"}}]),
        "on answers by 'two', which that query does not count",
    ),
    "a pass": (wrong(passes=[["age"]]), "query 'age', which is not in the plan"),
    "a category of no use": (wrong(attributes={"group": "a", "age": []}), "attribute 'age' needs categories"),
    "too many cells": (
        {"attributes": {name: [str(i) for i in range(200)] for name in "xyz"}},
        "8,000,000 combinations",
    ),
}


def measured(stated):
    plan = plan_of(stated)
    plan.check_levels(LEVELS)
    return shares(Queries(plan), LEVELS, ONE_PERSON)


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_plan_is_refused_by_name(case):
    stated, words = BAD[case]
    with pytest.raises(InputError, match=words):
        measured(stated)


def test_a_plan_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no plan 'nowhere.toml'.*'redistricting-2020'"):
        plan_of("nowhere.toml")
    (tmp_path / "broken.toml").write_text("a = ")
    with pytest.raises(InputError, match="is not a TOML file"):
        plan_of(tmp_path / "broken.toml")


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "code": rng.choice(["01001", "01003", "02001"], n),
            "group": rng.choice(["a", "b"], n),
            "age": rng.choice([7, 70], n),
            "n": rng.integers(0, 5, n),
        }
    )


def test_the_reader_counts_each_row_in_its_cell():
    people = rows()
    axis = Axis.of(Prefixes("code", {"state": 2, "county": 5}))
    found = cross_table(people, axis=axis, attributes={"group": ["b", "c", "a"], "age": None}, count="n")
    assert found.categories == {"group": ("b", "c", "a"), "age": ("7", "70")}
    by = people.astype({"age": str}).groupby(["code", "group", "age"])["n"].sum()
    expected = [
        [by.get((code, group, age), 0) for group in ("b", "c", "a") for age in ("7", "70")]
        for code in ("01001", "01003", "02001")
    ]
    assert found.counts.tolist() == expected
    assert cross_table(people, axis=axis, attributes={"group": None}).counts.sum() == len(people)


def test_the_reader_names_what_is_wrong():
    axis, people = Axis.of(["code"]), rows()
    with pytest.raises(InputError, match=r"column 'group' has 1 categories.*'b'"):
        cross_table(people, axis=axis, attributes={"group": ["a"]})
    with pytest.raises(InputError, match="row 3, column 'group': the category is missing"):
        cross_table(
            people.assign(group=people.group.mask(people.index == 2)), axis=axis, attributes={"group": None}
        )
    with pytest.raises(InputError, match="column 'n': the counts add up to too large"):
        cross_table(people.assign(n=2**50), axis=axis, attributes={"group": None}, count="n")
    torn = people.assign(state=[str(i % 2) for i in range(len(people))])
    with pytest.raises(InputError, match="region '01001' of level 'code' has two parents"):
        cross_table(torn, axis=Axis.of(["state", "code"]), attributes={"group": None})
