"""M_c^dp: exactness without noise, and the paper's algorithm in plain loops."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from doubles import Double, added, group_sizes, hierarchy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.group_size import m_c_dp, measure, post_process
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import Step
from hierdp.tables import GroupSizes
from hierdp.tables import group_sizes as read_sizes
from tests.marks import quick

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)


def released(release, data):
    """The table of a release as an array, shape (regions, sizes)."""
    frame = release.table
    assert list(frame) == ["level", "level_name", "region", "parent", "size", "groups"]
    places = data.hierarchy.frame().fillna({"parent": ""})  # pandas 2 has None, pandas 3 nan
    repeated = places.loc[places.index.repeat(data.counts.shape[1])].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame[list(places)].fillna({"parent": ""}), repeated)
    assert (frame["size"] == np.tile(np.arange(data.counts.shape[1]), len(places))).all()
    return frame["groups"].to_numpy().reshape(data.counts.shape)


# --- sensitivity (of groups: see test_sensitivity_proof) ------------------------------------------------

PLACES = pd.DataFrame({"county": ["A", "A", "B"], "town": ["a", "b", "c"]})


@pytest.mark.parametrize("region", quick(["a", "b", "elsewhere", None], every=2))
@pytest.mark.parametrize("before", [0, 1, 3])
def test_sensitivity_of_an_entity_without_a_group(region, before):
    """The group of entities without a group exists even if empty; else G would reveal its first entity."""
    places = [{"town": "a", "home": "1"}, {"town": "b", "home": "2"}]
    levels = []
    for number in (before, before + 1):
        rows = pd.DataFrame([*places, *[{"town": region, "home": None}] * number])
        regions = Hierarchy.from_columns(PLACES, ["county", "town"])
        data = read_sizes(rows, regions=regions, region="town", group=["home"], max_size=5, unknown="unknown")
        noise = Double()
        measure(data, 1.0, noise)
        levels.append((data.groups, noise.true))
    (groups, less), (other_groups, more) = levels
    assert groups == other_groups
    assert [int(np.abs(a - b).sum()) for a, b in zip(less, more, strict=True)] == [1, 1, 1]


def test_the_noise_is_drawn_as_the_ledger_says():
    noise = Double()
    places = hierarchy([[0, 0], [0, 0, 1]])
    data = GroupSizes(places, places.tree.sum_up(np.array([[1, 2, 0], [0, 0, 4], [5, 0, 1]])))
    release = m_c_dp(data, 0.9, noise)
    assert [spend.sensitivity for spend in noise.spends] == [1, 1, 1]
    assert [spend.epsilon for spend in noise.spends] == pytest.approx([0.3] * 3)
    assert sum(spend.epsilon for spend in release.ledger.spends) <= 0.9 * (1 + 1e-12)
    assert release.ledger.delta == 0
    assert release.ledger.epsilon == 0.9
    assert "groups are public" in release.ledger.neighbours
    assert [true.shape for true in noise.true] == [(1, 3), (2, 3), (3, 3)]


# --- without noise, and with -----------------------------------------------------------------------------


@given(group_sizes())
@quiet
def test_no_noise_gives_the_truth(data):
    assert (released(m_c_dp(data, 1.0, Double()), data) == data.counts).all()


@given(group_sizes(), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.5, 5.0]))
@quiet
def test_releases_are_consistent(data, seed, epsilon):
    release = m_c_dp(data, epsilon, SimulatedNoise(seed))
    counts = released(release, data)
    assert counts.dtype == np.int64
    assert (counts >= 0).all()
    assert (counts.sum(axis=1)[0]) == data.groups
    tree = data.hierarchy.tree
    assert (counts == tree.sum_up(counts[tree.nodes_of(tree.depth)])).all()
    assert all(bool(step.solution.certificate) for step in release.steps)
    assert release.ledger.spent == pytest.approx(epsilon)
    again = m_c_dp(data, epsilon, SimulatedNoise(seed))
    assert again.table.to_csv() == release.table.to_csv()


@pytest.mark.parametrize("data", [[[0, 0, 0]], [[4, 0, 0], [0, 0, 0]], [[0, 0, 1]]])
@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_tables(data, seed):
    places = hierarchy([[0] * len(data)])
    sizes = GroupSizes(places, places.tree.sum_up(np.array(data)))
    counts = released(m_c_dp(sizes, 0.1, SimulatedNoise(seed)), sizes)
    assert counts[0].sum() == sizes.groups
    assert (counts[1:].sum(axis=0) == counts[0]).all()


# --- inputs of post-processing ---------------------------------------------------------------------------


@given(group_sizes(), st.integers(0, 2**32 - 1))
@quiet
def test_post_processing_needs_noisy_counts_and_public_facts_only(data, seed):
    noisy, _ = measure(data, 1.0, SimulatedNoise(seed))
    before = noisy.copy()
    counts = post_process(noisy, data.hierarchy, data.groups, METHODS["M_c^dp"], Step.solve)
    assert (noisy == before).all()
    release = m_c_dp(data, 1.0, SimulatedNoise(seed))
    assert (counts == release.steps[-1].solution.x).all()
    assert (counts.ravel() == release.table["groups"]).all()
    assert (np.concatenate([one.answers for one in release.measurements]) == noisy.ravel()).all()


def test_a_release_holds_nothing_of_the_true_table():
    places = hierarchy([[0, 0]])
    data = GroupSizes(places, places.tree.sum_up(np.array([[900, 20, 4], [1, 70, 50]])))
    release = m_c_dp(data, 0.5, SimulatedNoise(4))

    def reached(thing, seen):
        if id(thing) in seen:
            return
        seen[id(thing)] = thing
        inside = getattr(thing, "__dict__", {}).values()
        for part in (*inside, *(thing if isinstance(thing, list | tuple) else ())):
            reached(part, seen)

    seen = {}
    reached(tuple(getattr(release, field.name) for field in fields(release)), seen)
    assert not any(isinstance(thing, GroupSizes) for thing in seen.values())
    for thing in seen.values():
        if isinstance(thing, np.ndarray) and thing.shape == data.counts.shape:
            assert (thing != data.counts).any()
            assert (thing != np.cumsum(data.counts, axis=-1)).any()
        assert not (isinstance(thing, np.ndarray) and np.shares_memory(thing, data.counts))


# --- the paper's algorithm in plain Python ---------------------------------------------------------------


def plain_isotonic(noisy, groups):
    """The minimum of Σ (c − c̃)² over whole 0 ≤ c₀ ≤ c₁ ≤ … ≤ G, by a table of all values."""
    best = [0] * (groups + 1)
    for y in noisy:
        own = [best[v] + (v - y) ** 2 for v in range(groups + 1)]
        best = [min(own[: v + 1]) for v in range(groups + 1)]
    return best[groups]


def min_plus(a, b):
    return [min(a[i] + b[k - i] for i in range(k + 1)) for k in range(len(a))]


def plain_hierarchy(places, noisy, groups):
    """The minimum of Σ (n̂ − ñ)² over consistent counts, by cost tables over 0 … G as in Fig. 5."""
    tree = places.tree
    table = {}
    for node in reversed(range(tree.size)):
        children = [c for c in range(tree.size) if tree.parent[c] == node]
        for size in range(noisy.shape[1]):
            below = None
            for child in children:
                below = table[child, size] if below is None else min_plus(below, table[child, size])
            own = [(k - int(noisy[node, size])) ** 2 for k in range(groups + 1)]
            table[node, size] = own if below is None else [a + b for a, b in zip(own, below, strict=True)]
    whole = table[0, 0]
    for size in range(1, noisy.shape[1]):
        whole = min_plus(whole, table[0, size])
    return whole[groups]


@given(group_sizes(largest=2), st.integers(0, 2**32 - 1), st.integers(0, 4))
@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
def test_plain_reference(data, seed, spread):
    noise = added(seed, spread)
    release = m_c_dp(data, 1.0, noise)
    fit, last = release.steps
    nodes = [row for level in noise.noisy for row in level]
    assert len(fit.problems) == len(nodes) == data.hierarchy.size
    # Noise is added to each region's number of groups of at most each size.
    for true, counts in zip((row for level in noise.true for row in level), data.counts, strict=True):
        assert true.tolist() == [sum(counts[: k + 1]) for k in range(len(counts))]
    # Lines 2 and 3: the nearest monotone whole numbers.
    repaired, costs = [], 0
    for row, x in zip(nodes, fit.solution.x.reshape(len(nodes), -1).tolist(), strict=True):
        assert x == sorted(x)
        assert 0 <= x[0] <= x[-1] <= data.groups
        cost = sum((a - int(b)) ** 2 for a, b in zip(x, row, strict=True))
        assert cost == plain_isotonic(row.tolist(), data.groups)
        costs += cost
        repaired.append([a - b for a, b in zip(x, [0, *x], strict=False)])
    assert costs == fit.solution.objective
    # Lines 4 and 5: differences, and the consistent counts nearest to them.
    assert last.model.counts.tolist() == repaired
    counts = released(release, data)
    cost = sum((int(a) - b) ** 2 for a, b in zip(counts.ravel(), np.ravel(repaired), strict=True))
    assert cost == last.solution.objective
    assert cost == plain_hierarchy(data.hierarchy, np.array(repaired), data.groups)
