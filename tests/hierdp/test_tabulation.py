"""Tables of several attributes: what neighbours change, what is released, and what a check sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from doubles import Undrawn

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_table import plain
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation import mechanism, tabulate
from hierdp.mechanisms.tabulation.options import METHODS
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import counts_in, table_of
from hierdp.record.files import PROOFS
from hierdp.tables import Axis, Database
from hierdp.tables.tabulated import CrossTable, cross_table
from tests.marks import quick

PLACES = Hierarchy.from_columns({"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}, ["state", "county"])
ATTRIBUTES = {"group": ["a", "b", "c"], "age": ["old", "young"]}
TWO = {"two": {"attribute": "group", "categories": {"a": ["a"], "b or c": ["b", "c"]}}}
PLAN = {"attributes": ATTRIBUTES, "recodes": TWO, "queries": ["total", "two", "age", "detailed"]}
KEPT = {
    "invariants": ["state:total"],
    "bounds": [
        "county:two*age:1..40",
        {"level": "state", "query": "two", "lower": {"B": 2}, "answer": {"two": "a"}},
    ],
    "zeros": ["group=c,age=young"],
}
OPTIONS = {"delta": 1e-6, "regions": PLACES, "region": "county"}


def people(n=90, seed=1):
    """Rows of persons; nobody is in group c and young."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "county": rng.choice(["A1", "A2", "B1"], n, p=[0.5, 0.3, 0.2]),
            "group": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.choice(["old", "young"], n),
        }
    )
    return rows.assign(age=rows.age.mask(rows.group == "c", "old"))


def made(method="TopDown", rows=None, noise=None, epsilon=2.0, **options):
    rows = people() if rows is None else rows
    noise = noise or SimulatedNoise(3)
    return release(rows, "tabulation", epsilon=epsilon, noise=noise, method=method, **{**OPTIONS, **options})


# --- releases ----------------------------------------------------------------------------------------------


def sums(table, by):
    return table.groupby(by)["count"].sum()


@pytest.mark.parametrize("method", quick([name for name in METHODS if name != "GLS"], first=1))
def test_a_release_keeps_its_constraints_and_checks(method, tmp_path):
    rows = people()
    queries = ["total", *(["two"] if method != "BlueDown" else []), "age", "detailed"]
    found = made(method, rows, plan={**PLAN, **KEPT, "queries": queries})
    table = found.table
    assert table["count"].dtype == np.int64
    assert table["count"].min() > 0  # cells without persons have no row
    assert sums(table[table.level == 1], "region").to_dict() == {
        state: int(rows.county.str.startswith(state).sum()) for state in "AB"
    }
    assert not ((table.group == "c") & (table.age == "young")).any()
    counties = sums(table[table.level == 2].assign(two=table.group == "a"), ["region", "two", "age"])
    assert len(counties) == 12
    assert counties.between(1, 40).all()
    assert table[(table.region == "B") & (table.group == "a")]["count"].sum() >= 2
    assert found.ledger.spent <= found.ledger.rho
    stated = found.manifest()
    assert "the invariants state:total are the true counts" in " ".join(stated["cautions"])
    assert (
        "does not cover the invariants, which are published as they are: state:total"
        in found.ledger.neighbours
    )
    assert stated["taken_as_public"]["invariants"] == "state:total"
    lines = {line.check: line for line in check(found.write(tmp_path / "out"))}
    assert {name: line.why for name, line in lines.items() if line.verdict == FAILS} == {}
    assert lines["table from steps"].verdict == lines["budget: queries"].verdict == HOLDS
    finest = pd.read_parquet(tmp_path / "out" / "finest.parquet")
    assert list(finest.columns) == ["state", "county", "group", "age", "count"]


def test_a_large_release_saves_its_steps_at_once_with_the_same_files(tmp_path, monkeypatch):
    options = {"plan": PLAN, "attributes": ATTRIBUTES, "method": "BlueDown", "queries": ["total", "detailed"]}
    made(**options).write(tmp_path / "small", report=False)
    monkeypatch.setattr(mechanism.Tabulation, "MOST_IN_MEMORY", 35)
    large = made(**options)
    assert not large.steps.in_memory
    large.write(tmp_path / "large", report=False)
    for name in ("released.parquet", PROOFS):
        assert (tmp_path / "small" / name).read_bytes() == (tmp_path / "large" / name).read_bytes()
    assert [line.why for line in check(tmp_path / "large") if line.verdict == FAILS] == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["TopDown", "BlueDown"])
def test_releases_with_a_family_in_each_step_are_checked(method, tmp_path, monkeypatch):
    """As by a chosen solver. The answers of a level are in several steps."""
    options = {"plan": PLAN, "attributes": ATTRIBUTES, "method": method, "queries": ["total", "detailed"]}
    together = made(**options)
    assert [step.problems for step in together.steps if step.name.startswith("county by state, 1 to 2")] == [
        ("county in A", "county in B")
    ] * len([step for step in together.steps if "county" in step.name])
    lines = check(together.write(tmp_path / "together"))
    assert {line.check: line.why for line in lines if line.verdict == FAILS} == {}
    monkeypatch.setattr(mechanism, "CELLS", 0)
    alone = made(**options)
    assert "county in A: rounding" in [step.name for step in alone.steps]
    assert alone.settings == together.settings
    lines = check(alone.write(tmp_path / "alone"))
    assert {line.check: line.why for line in lines if line.verdict == FAILS} == {}


def test_least_squares_are_unbiased_with_standard_errors(tmp_path):
    """Far more counts are within two standard errors than within one, in the expected shares."""
    rows, off = people(), []
    plan = {"attributes": ATTRIBUTES, "queries": ["total", "age", "detailed"]}
    for seed in range(3):
        found = made("GLS", rows, SimulatedNoise(seed), plan=plan)
        true = cross_table(rows, axis=Axis(PLACES, ("county",)), attributes=ATTRIBUTES)
        queries = Queries(plan_of(plan))
        full = PLACES.tree.sum_up(true.counts)
        counts = [full[PLACES.tree.nodes_of(k)] for k in range(3)]
        exact = plain(table_of(queries, PLACES, counts, [np.ones(len(held)) for held in counts]))
        assert exact.drop(columns=["count", "standard_error"]).equals(
            found.table.drop(columns=["count", "standard_error"])
        )
        off.append((found.table["count"] - exact["count"]) / found.table["standard_error"])
    off = np.concatenate(off)  # 3 × 36 dependent numbers
    assert abs(off.mean()) < 0.4
    assert 0.5 < (np.abs(off) < 1).mean() < 0.85
    lines = check(found.write(tmp_path / "out"))
    assert [line.why for line in lines if line.verdict == FAILS] == []


def test_counts_are_read_back_from_a_table():
    queries, rng = Queries(plan_of(PLAN)), np.random.default_rng(0)
    counts = [rng.integers(0, 3, (size, 6)) for size in (1, 2, 3)]
    again = counts_in(table_of(queries, PLACES, counts), queries, PLACES)
    assert all(np.array_equal(one, other) for one, other in zip(counts, again, strict=True))
    twice = pd.concat([table_of(queries, PLACES, counts)] * 2)
    with pytest.raises(InputError, match="level 0 has two rows of one region and cell"):
        counts_in(twice, queries, PLACES)


# --- tampered releases -------------------------------------------------------------------------------------


def moved(table):
    """A person changes groups, on every level, so that all sums still hold."""
    table = table.copy()
    for level, region in enumerate(["all", "A", "A1"]):
        for group, more in (("a", -1), ("b", 1)):
            row = (
                (table.level == level)
                & (table.region == region)
                & (table.group == group)
                & (table.age == "old")
            )
            assert row.sum() == 1
            table.loc[row, "count"] += more
    return table


def in_zero(table):
    """A person in a combination that cannot be, on every level."""
    table = table.copy()
    old = (table.group == "c") & (table.age == "old") & (table.region.isin(["all", "A", "A1"]))
    assert old.sum() == 3
    table.loc[old, "age"] = "young"
    return table


def in_plan(**changed):
    return lambda one: replace(one, settings={**one.settings, "plan": {**one.settings["plan"], **changed}})


TAMPERED = {
    "a person in another group": (lambda one: replace(one, counts=moved(one.table)), "table from steps"),
    "a person where none can be": (lambda one: replace(one, counts=in_zero(one.table)), "shape"),
    "another parent": (lambda one: replace(one, counts=one.table.assign(parent="B")), "shape"),
    "another name of a level": (lambda one: replace(one, counts=one.table.assign(level_name="x")), "shape"),
    "another level": (lambda one: replace(one, counts=one.table.assign(level=3)), "shape"),
    "another share": (
        in_plan(query_shares={"total": "1/2", "two": 0, "age": 0, "detailed": "1/2"}),
        "budget: queries",
    ),
    "no invariant": (in_plan(invariants=[]), "table from steps"),
    "a bound less": (in_plan(bounds=[]), "table from steps"),
    "a bound that does not hold": (in_plan(bounds=["county:total:0..1"]), "shape"),
    "another pass": (in_plan(passes=[["two"], ["total", "age", "detailed"]]), "table from steps"),
    "another unit": (
        lambda one: replace(one, settings={k: v for k, v in one.settings.items() if k != "total"}),
        "budget: queries",
    ),
    "another total": (
        lambda one: replace(one, settings={**one.settings, "total": one.settings["total"] + 1}),
        "table from steps",
    ),
    "rows of a person": (
        lambda one: replace(one, settings={**one.settings, "rows_a_person": 2}),
        "table from steps",
    ),
    "shares of levels": (
        in_plan(level_shares={"root": "1/4", "state": "1/4", "county": "1/2"}),
        "budget: queries",
    ),
    "another rounding": (in_plan(rounding=["detailed"]), "table from steps"),
    "weights": (in_plan(weights={"age": "2"}), "table from steps"),
    "a setting": (lambda one: replace(one, settings={**one.settings, "more": 1}), "table from steps"),
}


@pytest.fixture(scope="module")
def honest():
    found = made(plan={**PLAN, **KEPT}, epsilon=20)  # so that few cells are empty
    return replace(found, simulating=None)  # a changed table may be none that can be released again


@pytest.mark.parametrize("case", quick(TAMPERED, first=3))
def test_a_check_finds_what_was_changed(case, honest, tmp_path):
    change, failing = TAMPERED[case]
    lines = {line.check: line for line in check(change(honest).write(tmp_path / "out", report=False))}
    assert lines[failing].verdict == FAILS


# --- bad input ---------------------------------------------------------------------------------------------


REFUSED = {
    "an invariant against a bound": (
        {"invariants": ["state:total"], "bounds": ["county:total:0..1"]},
        "state 'A': total must be at least 72 and at most 2",
    ),
    "bounds of levels": ({"bounds": ["county:total:90..", "state:total:0..91"]}, "state 'A': total must be"),
    "two bounds": (
        {"bounds": ["state:total:5..", "state:total:0..4"]},
        "bounds on total of state 'A': from 5 to 4",
    ),
    "a region of a bound": (
        {"plan": {**PLAN, "bounds": [{"level": "state", "query": "total", "upper": {"C": 1}}]}},
        "is in region 'C', which level 'state'",
    ),
    "a person in a zero": (
        {"zeros": ["group=a,age=old"]},
        "a row has group = a, age = old, a structural zero",
    ),
    "no query of every cell": (
        {"queries": ["total", "age"]},
        "level 'root' does not measure every cell, which TopDown needs",
    ),
    "weights of another method": (
        {"method": "BlueDown", "plan": {**PLAN, "weights": {"total": 2}}},
        "BlueDown takes no weights",
    ),
    "a query in no pass": ({"passes": ["total", "age,detailed"]}, "query 'two' must be in one of the passes"),
    "a query in two passes": (
        {"passes": ["total", "two,age,detailed,total"]},
        "query 'total' must be in one",
    ),
    "the last pass": ({"passes": ["detailed", "total,two,age"]}, "the last pass needs a query of every cell"),
    "rounding": ({"rounding": ["total"]}, "rounding needs a query of every cell"),
    "least squares with zeros": (
        {"zeros": ["group=c"], "method": "GLS"},
        "GLS takes no bounds and no structural zeros",
    ),
    "least squares with bounds": (
        {"bounds": ["county:total:1.."], "queries": ["total", "detailed"], "method": "GLS"},
        "GLS takes no bounds and no structural zeros",
    ),
    "recodes and GLS": ({"method": "GLS"}, "GLS does not use answers to the recoded query 'two'"),
    "recodes and BlueDown": (
        {"method": "BlueDown", "queries": ["two*age", "detailed"]},
        "BlueDown does not use answers to the recoded query 'two.age'.* choose TopDown or Joint",
    ),
    "a method": ({"method": "TopUp"}, "no method 'TopUp'"),
    "a person and a public total": ({"person": "who", "rows_per_person": 2}, "give bounded=False"),
    "a category": (
        {"plan": {**PLAN, "attributes": {**ATTRIBUTES, "age": ["old", "new"]}}},
        "column 'age' has 1 categories .*'young'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_input_is_refused_before_noise_is_drawn(case):
    options, words = REFUSED[case]
    rows = people().assign(who="x")
    rows.loc[:71, "county"], rows.loc[72:, "county"] = "A1", "B1"
    with pytest.raises(InputError, match=words):
        made(rows=rows, noise=Undrawn(), **{"plan": PLAN, **options})


def test_a_recoded_query_without_a_share_is_no_hindrance():
    shares = {"query_shares": {"total": "1/2", "two": 0, "age": 0, "detailed": "1/2"}}
    assert len(made("GLS", plan={**PLAN, **shares}).ledger.spends) == 6


def test_regions_that_are_no_tree_are_refused():
    rows = people().assign(state=lambda rows: np.where(rows.index % 2, "A", "B"))
    options = {"regions": None, "region": None, "levels": ["state", "county"], "regions_from_data": True}
    with pytest.raises(InputError, match="region 'A1' of level 'county' has two parents"):
        made(rows=rows, plan=PLAN, **options)


# --- the command line --------------------------------------------------------------------------------------


def test_a_query_is_measured_and_sql_gives_the_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    (tmp_path / "plan.toml").write_text('[attributes]\nage = ["old", "young"]\n')
    command = ["release", "tabulation", "--sql", "SELECT * FROM 'people.csv' WHERE \"group\" = 'a'"]
    command += [
        "--levels",
        "county",
        "--regions-from-data",
        "--plan",
        "plan.toml",
        "--query",
        "age",
        "--method",
    ]
    command += ["GLS", "--epsilon", "1", "--delta", "1e-8", "--simulate", "1", "--out", "out"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "age by county" in done.output
    assert "total by county" not in done.output
    found = pd.read_parquet("out/released.parquet")
    assert list(found.columns[4:]) == ["age", "count", "standard_error", "lower", "upper"]
    source = Database("", query="SELECT * FROM 'people.csv'")
    assert cross_table(source, axis=Axis.of(["county"]), attributes={"age": None}).counts.sum() == 90


def test_lists_of_categories_are_needed_or_the_statement(tmp_path):
    with pytest.raises(InputError) as refused:
        made(attributes=["age", "group=a,b,c"])
    assert "no public list of categories of 'age'" in str(refused.value)
    assert "that occur in the data (attributes_from_data=True)" in str(refused.value)
    found = made("GLS", attributes=["age", "group=a,b,c"], attributes_from_data=True)
    assert "the categories of attributes are those that occur in the data" in found.cautions[0]
    lines = {line.check: line.verdict for line in check(found.write(tmp_path / "out"))}
    assert lines["warnings"] == HOLDS


@pytest.mark.slow
def test_the_plan_of_2020_makes_a_release():
    """Two blocks in one state, with few persons of two races: 64 cells on six levels."""
    races = {**plan_of("redistricting-2020").attributes, "cenrace": ("white", "black")}
    plan = plan_of("redistricting-2020", attributes=races)
    levels = ["state", "county", "tract", "block_group", "block"]
    columns = {level: ["1", "1"] for level in levels[:-1]}
    places = Hierarchy.from_columns({**columns, "block": ["1", "2"]}, levels)
    queries = Queries(plan)
    counts = np.where(queries.zeros, 0, np.random.default_rng(0).poisson(9, (2, 64)))
    found = tabulate(CrossTable(places, races, counts), plan, 20.0, 1e-10, SimulatedNoise(1))
    assert found.ledger.spent == pytest.approx(found.ledger.rho, rel=1e-12)
    assert len(found.ledger.spends) == 6 * 11 - 1
    assert found.table[found.table.level == 1]["count"].sum() == counts.sum()
