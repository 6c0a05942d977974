"""Constraints that a method could only find impossible after noise is drawn are refused before."""

import itertools

import numpy as np
import pandas as pd
import pytest
from doubles import Undrawn

from hierdp import SimulatedNoise, release
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation import lookahead
from hierdp.mechanisms.tabulation.lookahead import refuse_dead_ends
from hierdp.mechanisms.tabulation.problem import Constraints
from models import Tree, Workload
from tests.marks import quick

CELLS = Workload.marginals((2, 2), [(0, 1)])
CHAIN = Workload.marginals((2, 2), [(), (0,), (0, 1)])
TREE = Hierarchy(
    ("root", "state", "county"), [["all"], ["A", "B"], ["A1", "A2", "B1"]], Tree([[0, 0], [0, 0, 1]])
)
EVERY = np.array(list(itertools.product(range(3), repeat=4)))
"""All tables of a county, which has at most 2 persons in each cell."""


def bounds(rng):
    """Bounds on totals, groups and cells, around a table that may break one; some are invariants."""
    leaves = rng.integers(0, 3, (3, 4))
    lower, upper = [], []
    for true in (leaves.sum(axis=0)[None], np.stack([leaves[:2].sum(axis=0), leaves[2]]), leaves):
        answers = CHAIN.answers(true).astype(float)
        low, high = (rng.integers(0, 3, answers.shape) for _ in range(2))
        some = rng.random((2, *answers.shape)) < rng.choice([0.2, 0.5])
        lower.append(np.where(some[0], np.maximum(answers - low, 0), 0))
        upper.append(np.where(some[1], answers + high, np.inf))
    upper[2][:, 3:] = np.minimum(upper[2][:, 3:], 2)
    if rng.random() < 0.5:
        for low, high in zip(lower, upper, strict=True):  # no bounds on groups
            low[:, 1:3], high[:, 1:3] = 0, np.inf
    if rng.random() < 0.2:
        lower[1][0, 0] = upper[1][0, 0] = leaves[:2].sum() + rng.integers(1, 4)
    return Constraints(np.zeros(4, bool), CHAIN, lower, upper, [f"sum {i}" for i in range(7)])


def kept(held, level, region, tables):
    answers = CHAIN.answers(np.asarray(tables).reshape(-1, 4))
    inside = (held.lower[level][region] <= answers) & (answers <= held.upper[level][region])
    return {tuple(one) for one in np.asarray(tables).reshape(-1, 4)[inside.all(axis=1)].tolist()}


def added(one, other):
    return {tuple(map(sum, zip(a, b, strict=True))) for a in one for b in other}


def reachable(held):
    """By enumeration: the tables of each region that leave its counties tables."""
    counties = [kept(held, 2, region, EVERY) for region in range(3)]
    states = [kept(held, 1, 0, list(added(*counties[:2]))), kept(held, 1, 1, list(counties[2]))]
    return kept(held, 0, 0, list(added(*states))), states


def dead_ends(held):
    """By enumeration: whether a state, or the nation, may get a table that leaves its regions none."""
    nation, states = reachable(held)
    tall = held.tightened(TREE)
    every = [list(itertools.product(range(most + 1), repeat=4)) for most in (6, 4, 2)]
    return bool(
        kept(tall, 0, 0, every[0]) - nation
        or kept(tall, 1, 0, every[1]) - states[0]
        or kept(tall, 1, 1, every[2]) - states[1]
    )


def verdict(held, monkeypatch, most_parts):
    """Whether constraints are found to contradict each other, refused or accepted."""
    monkeypatch.setattr(lookahead, "MOST_PARTS", most_parts)
    try:
        tall = held.tightened(TREE)
    except InputError as why:
        return "contradict" if "contradict each other" in str(why) else str(why)
    try:
        refuse_dead_ends("TopDown", CELLS, tall, TREE)
    except InputError as why:
        return "refused" if "cannot be divided among its regions" in str(why) else str(why)
    return "accepted"


@pytest.mark.parametrize("seeds", quick([(0, 2, 5, 17), range(20, 250)], first=1))
def test_exactly_the_constraints_with_dead_ends_are_refused(seeds, monkeypatch):
    """By enumeration; the reasons that decide about many parts accept none of the others."""
    monkeypatch.setattr(lookahead, "refuse_contradictions", lambda *_: None)  # see the next tests
    seen = []
    for seed in seeds:
        held = bounds(np.random.default_rng(seed))
        found = verdict(held, monkeypatch, 10)
        if found == "contradict":
            assert not reachable(held)[0]
        else:
            assert reachable(held)[0] or found == "refused"
            assert (found == "refused") == dead_ends(held)
            quickly = verdict(held, monkeypatch, 1)
            assert quickly == "refused" or found == "accepted"
            seen.append(quickly + " by reasons")
        seen.append(found)
    assert len(set(seen)) == (5 if len(seeds) > 99 else 4)


def test_many_parts_with_fixed_totals_and_lower_bounds_are_accepted():
    sums = Workload.marginals((4, 4), [(), (0, 1)])
    lower, upper = [np.zeros((n, 17)) for n in (1, 2, 3)], [np.full((n, 17), np.inf) for n in (1, 2, 3)]
    lower[2][:, 1:] = np.random.default_rng(0).integers(0, 3, (3, 16))
    lower[2][:, 0] = upper[2][:, 0] = [50, 60, 70]
    names = [str(i) for i in range(17)]
    held = Constraints(np.zeros(16, bool), sums, lower, upper, names)
    cells = Workload.marginals((4, 4), [(0, 1)])
    refuse_dead_ends("TopDown", cells, held.tightened(TREE), TREE)
    upper[2][0, 1] = 20
    with pytest.raises(InputError, match="state 'A' might get a table that cannot be divided"):
        refuse_dead_ends("TopDown", cells, held.tightened(TREE), TREE)


# --- releases ----------------------------------------------------------------------------------------------

PEOPLE = pd.DataFrame(
    [["A1", *one] for one in ("ax", "ay", "bx", "cy")] + [["A2", *one] for one in ("ax", "by", "cx")],
    columns=["county", "group", "age"],
)
PLACES = Hierarchy.from_columns({"state": ["A", "A"], "county": ["A1", "A2"]}, ["state", "county"])
ATTRIBUTES = {"group": ["a", "b", "c"], "age": ["x", "y"]}


REFUSED = {
    "sums that cross": (
        {"bounds": ["county:group:1..", "county:age:1.."]},
        "'group = a' and 'age = x', which overlap without one containing the other",
    ),
    "invariants that cross": (
        {"invariants": ["county:group", "county:age"]},
        "'group = a' and 'age = x', which",
    ),
    "totals and upper bounds of some counties": (
        {
            "invariants": ["county:total"],
            "bounds": [{"level": "county", "query": "group*age", "upper": {"A1": 1, "A2": 2}}],
        },
        "state 'A' might get a table that cannot be divided among its regions: their bounds on 'group",
    ),
    "a total and its parts": (
        {"bounds": ["county:total:9..", "county:group:0..2"]},
        "county 'A1': total must be at least 9 and at most 6, with the bounds of the sums in it added up",
    ),
    "the nation's groups and their total": (
        {"bounds": ["root:group:3.."]},
        "root 'all': total must be at least 9 and at most 7, with the bounds of the sums in it added up",
    ),
    "the nation's parts": (
        {"bounds": ["root:group:3..", "root:age:0..3"]},
        "root all: no tables of counts satisfy all constraints",
    ),
    "three kinds of the nation": (
        {"bounds": ["root:two:0..6", "root:age:0..6", "root:last:0..6"]},
        "three or more kinds that cross",
    ),
    "all at once": (
        {"method": "Joint", "bounds": ["county:group:2..", "county:age:0..2"]},
        "no tables of counts satisfy all constraints; these contradict each other",
    ),
}


def made(noise, bounds=(), **options):
    """Bounds may be dicts."""
    two, last = {"a, b": ["a", "b"], "c": ["c"]}, {"a": ["a"], "b, c": ["b", "c"]}
    parts = {"two": two, "last": last}
    recodes = {name: {"attribute": "group", "categories": part} for name, part in parts.items()}
    plan = {"attributes": ATTRIBUTES, "recodes": recodes, "queries": ["total", "detailed"], "bounds": bounds}
    where = {"regions": PLACES, "region": "county", "plan": plan}
    return release(PEOPLE, "tabulation", epsilon=2, delta=1e-6, noise=noise, **{**where, **options})


@pytest.mark.parametrize("case", REFUSED)
def test_constraints_are_refused_before_noise_is_drawn(case):
    options, words = REFUSED[case]
    with pytest.raises(InputError, match=words):
        made(Undrawn(), **options)


def test_bounds_that_nest_are_kept():
    found = made(SimulatedNoise(0), invariants=["county:total"], bounds=["county:group:1.."])
    counties = found.table[found.table.level == 2].groupby(["region", "group"])["count"].sum()
    assert counties.groupby("region").sum().to_dict() == {"A1": 4, "A2": 3}
    assert len(counties) == 6
