"""InfTDA: exactness without noise, and the paper's algorithm in plain loops."""

import itertools
from collections import Counter

import numpy as np
import pytest
from doubles import Double, added, flows, hierarchy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hierdp.errors import InputError
from hierdp.mechanisms.top_down import inf_tda, refinements, true_table
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.privacy.rounding import root_of
from hierdp.tables import Flows

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)
DELTA = 1e-6


def table_of(axes, cells, names=None):
    """Flows from a mapping (leaf, leaf, …) → count."""
    keys = sorted(cell for cell in cells if cells[cell])
    places = np.array(keys, dtype=np.int64).reshape(len(keys), len(axes))
    names = names or tuple(f"axis {i}" for i in range(len(axes)))
    return Flows(tuple(axes), names, places, np.array([cells[key] for key in keys], dtype=np.int64))


def ancestor(tree, depth, place):
    """The position, in the level at this depth, of the region that holds a leaf."""
    node = place + int(tree.level_start[tree.depth])
    while tree.level[node] > depth:
        node = int(tree.parent[node])
    return node - int(tree.level_start[depth])


AXES = (hierarchy([[0, 0], [0, 0, 1]], "o"), hierarchy([[0, 0]], "d"))
CELLS = list(itertools.product(range(3), range(2)))


def test_the_noise_is_drawn_as_the_ledger_says():
    noise = Double()
    release = inf_tda(table_of(AXES, Counter({(0, 0): 4, (2, 1): 3})), 1.0, DELTA, noise)
    assert [spend.sensitivity for spend in noise.spends] == [root_of(2)] * 3
    assert [spend.rho for spend in noise.spends] == pytest.approx([rho_of(1.0, DELTA) / 3] * 3)
    assert release.ledger.spent == pytest.approx(rho_of(1.0, DELTA))
    assert (release.ledger.epsilon, release.ledger.delta) == (1.0, DELTA)
    assert "the total are public" in release.ledger.neighbours


# --- without noise, and with -----------------------------------------------------------------------------


@given(flows(), st.data())
@quiet
def test_no_noise_gives_the_truth(data, draw):
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    release = inf_tda(data, 1.0, DELTA, Double(), first)
    truth = true_table(data, first)
    assert list(release.table) == list(truth)
    assert sorted(release.table.itertuples(index=False)) == sorted(truth.itertuples(index=False))
    assert truth[truth.level > 0]["count"].gt(0).all()


@given(flows(), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 1.0, 20.0]), st.data())
@quiet
def test_releases_are_consistent(data, seed, epsilon, draw):
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    noise = SimulatedNoise(seed)
    release = inf_tda(data, epsilon, DELTA, noise, first)
    table = release.table
    assert table["count"].dtype.kind == "i"
    assert ((table["count"] > 0) | (table.level == 0)).all()
    assert not table.duplicated([c for c in table if c != "count"]).any()
    assert table[table.level == 0]["count"].tolist() == [data.total]
    if data.total:
        assert (table.groupby("level")["count"].sum() == data.total).all()
    for above, below, axis in zip(
        range(len(release.steps)), range(1, len(release.steps) + 1), refinements(data, first), strict=True
    ):
        sums = Counter()
        for row in table[table.level == below].to_dict("records"):
            key = []
            for i, (name, tree) in enumerate(zip(data.axis_names, data.axes, strict=True)):
                region, level = row[name], tree.levels.index(row[f"{name}_level"])
                if i == axis:
                    region = tree.path(level, list(tree.names[level]).index(region))[-2]
                key.append(region)
            sums[tuple(key)] += row["count"]
        upper = table[(table.level == above) & (table["count"] > 0)]
        assert sums == {
            tuple(row[name] for name in data.axis_names): row["count"] for row in upper.to_dict("records")
        }
    assert all(bool(step.solution.certificate) for step in release.steps)
    assert release.ledger.spent == pytest.approx(rho_of(epsilon, DELTA))
    again = inf_tda(data, epsilon, DELTA, SimulatedNoise(seed), first)
    assert again.table.to_csv() == table.to_csv()


@given(flows(), st.integers(0, 2**32 - 1), st.data())
@quiet
def test_only_children_of_positive_regions_are_looked_at(data, seed, draw):
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    noise = added(seed, 3)
    release = inf_tda(data, 1.0, DELTA, noise, first)
    for level, (axis, true) in enumerate(zip(refinements(data, first), noise.true, strict=True)):
        tree, name = data.axes[axis], data.axis_names[axis]
        positive = release.table[(release.table.level == level) & (release.table["count"] > 0)]
        if level == 0:
            positive = release.table[release.table.level == 0]
        expected = 0
        for row in positive.to_dict("records"):
            depth = tree.levels.index(row[f"{name}_level"])
            node = tree.tree.level_start[depth] + list(tree.names[depth]).index(row[name])
            expected += int((tree.tree.parent == node).sum())
        assert true.size == expected


def test_order_of_axes():
    deep, shallow = hierarchy([[0], [0], [0]], "p"), hierarchy([[0, 0]], "q")
    data = table_of((deep, shallow), {(0, 1): 5}, ("from", "to"))
    assert refinements(data, None) == [1, 0, 0, 0]
    assert refinements(data, "to") == [1, 0, 0, 0]
    assert refinements(data, "from") == [0, 1, 0, 0]
    three = table_of((shallow, deep, deep), {(0, 0, 0): 1}, ("a", "b", "c"))
    assert refinements(three, "b") == [1, 2, 0, 1, 2, 1, 2]
    release = inf_tda(data, 1.0, DELTA, Double(), "from")
    assert release.settings["order"] == ["from", "to", "from", "from"]
    assert [spend.query for spend in release.ledger.spends][:2] == [
        "counts by from plevel1",
        "counts by from plevel1 × to qlevel1",
    ]
    with pytest.raises(InputError, match="no axis 'too'; did you mean 'to'\\? There are 'from', 'to'"):
        inf_tda(data, 1.0, DELTA, Double(), "too")


@pytest.mark.parametrize("cells", [{}, {(0, 0): 1}])
@pytest.mark.parametrize("parents", [[[0]], [[0], [0]], [[0, 0, 0]]])
def test_the_smallest_tables(cells, parents):
    axes = (hierarchy(parents, "o"), hierarchy(parents, "d"))
    for seed in range(3):
        release = inf_tda(table_of(axes, cells), 0.1, DELTA, SimulatedNoise(seed))
        assert release.table[release.table.level == 0]["count"].tolist() == [sum(cells.values())]
        if cells:
            assert set(release.table.level) == set(range(2 * len(parents) + 1))


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [(0, DELTA, "epsilon"), ("x", DELTA, "epsilon"), (1, 0, "delta"), (1, 1, "delta"), (1, None, "delta")],
)
def test_bad_budget(epsilon, delta, message):
    with pytest.raises(InputError, match=message):
        inf_tda(table_of(AXES, {(0, 0): 1}), epsilon, delta)


@pytest.mark.parametrize("name", ["level", "count", "a_level"])
def test_axes_that_would_clash_with_columns_are_refused(name):
    noise = Double()
    with pytest.raises(InputError, match=f"an axis cannot be called '{name}': a column of the release"):
        inf_tda(table_of(AXES, {(0, 0): 1}, ("a", name)), 1.0, DELTA, noise)
    assert not noise.true


def test_more_possible_cells_than_64_bits():
    """Then the cells' keys take two words; 76 · 3000⁵ mod 2⁶⁴ is among the keys that begin with 0."""
    wide, names = hierarchy([[0] * 3000], "w"), tuple("abcdef")
    rng = np.random.default_rng(0)
    cells = {tuple(rng.choice([0, 76, 2000], 6).tolist()): int(rng.integers(1, 10**6)) for _ in range(60)}
    data = table_of((wide,) * 6, cells, names)
    table = inf_tda(data, 10.0, DELTA, Double()).table
    order = refinements(data, None)
    for level in range(1, 7):
        expected = Counter()
        for cell, n in cells.items():
            reached = [i in order[:level] for i in range(6)]
            expected[tuple(wide.names[d][c * d] for c, d in zip(cell, reached, strict=True))] += n
        here = table[table.level == level]
        found = dict(zip(here[list(names)].itertuples(index=False, name=None), here["count"], strict=True))
        assert found == expected


# --- the paper's algorithm in plain Python ---------------------------------------------------------------


def int_opt(y, c):
    """IntOpt, loop by loop (Boninsegna & Silvestri 2025, Alg. 2)."""
    s = c - sum(y)
    z = [max(-((-s) // len(y)), -v) for v in y]
    limit = max(map(abs, z))
    excess = sum(z) - s
    while True:
        for i in sorted(range(len(y)), key=lambda i: y[i]):
            lower = max(z[i] - excess, -y[i], -limit)
            if lower < z[i]:
                excess -= z[i] - lower
                z[i] = lower
        if excess == 0:
            return [a + b for a, b in zip(y, z, strict=True)]
        falling = sum(z[i] > -y[i] for i in range(len(y)))
        limit += max(1, excess // falling)


def plain(data, first, noise):
    """The algorithm by level, with dictionaries; `noise` has each level's noise in the order of the nodes."""
    depths = [0] * len(data.axes)
    above = {(0,) * len(data.axes): int(data.counts.sum())}
    levels = [above]
    for axis, extra in zip(refinements(data, first), noise, strict=True):
        depths[axis] += 1
        tree = data.axes[axis].tree
        true = Counter()
        for cell, n in zip(data.cells.tolist(), data.counts.tolist(), strict=True):
            where = zip(data.axes, depths, cell, strict=True)
            true[tuple(ancestor(a.tree, d, c) for a, d, c in where)] += n
        stream, here = iter(extra.tolist()), {}
        for node, count in above.items():
            parent = tree.level_start[depths[axis] - 1] + node[axis]
            children = [
                (*node[:axis], int(k - tree.level_start[depths[axis]]), *node[axis + 1 :])
                for k in range(tree.size)
                if tree.parent[k] == parent
            ]
            noisy = [true[child] + next(stream) for child in children]
            here |= {child: x for child, x in zip(children, int_opt(noisy, count), strict=True) if x > 0}
        assert next(stream, None) is None
        levels.append(here)
        above = here
    return levels


@given(flows(), st.integers(0, 2**32 - 1), st.integers(0, 12), st.data())
@quiet
def test_plain_reference(data, seed, spread, draw):
    if data.total == 0:  # the authors' loop divides by zero there; see test_the_smallest_tables
        return
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    noise = added(seed, spread)
    table = inf_tda(data, 1.0, DELTA, noise, first).table
    extra = [noisy - true for noisy, true in zip(noise.noisy, noise.true, strict=True)]
    for level, expected in enumerate(plain(data, first, extra)):
        here = {}
        for row in table[table.level == level].to_dict("records"):
            cell = []
            for name, axis in zip(data.axis_names, data.axes, strict=True):
                depth = axis.levels.index(row[f"{name}_level"])
                cell.append(list(axis.names[depth]).index(row[name]))
            here[tuple(cell)] = row["count"]
        assert here == expected
