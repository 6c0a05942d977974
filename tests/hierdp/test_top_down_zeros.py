"""Structural zeros of top-down releases: cells that cannot be are neither measured nor filled."""

import numpy as np
import pandas as pd
import pytest

from hierdp import Hierarchy, release
from hierdp.checking import FAILS, check
from hierdp.errors import InputError
from hierdp.mechanisms.top_down.levels import Children, Level
from hierdp.mechanisms.top_down.zeros import Pair, Zeros
from hierdp.privacy.noise import SimulatedNoise
from tests.hierdp.changing import change_manifest

PLACES = Hierarchy.from_columns(
    {"state": ["A", "A", "A", "B", "C", "C"], "town": ["a", "b", "c", "d", "e", "f"]}, ["state", "town"]
)
"""State B has a single town, so that trips inside B are a structural zero, too."""


def trips(seed=0):
    rng = np.random.default_rng(seed)
    towns = PLACES.names[-1]
    rows = [(o, d, int(rng.integers(0, 9))) for o in towns for d in towns if o != d]
    return pd.DataFrame([row for row in rows if row[2]], columns=["from", "to", "trips"])


def failures(folder):
    return [line.check for line in check(folder) if line.verdict == FAILS]


def released(table, **options):
    axes = {"origin": (PLACES, "from"), "destination": (PLACES, "to")}
    return release(
        table,
        "top-down",
        axes=axes,
        count="trips",
        epsilon=1.0,
        delta=1e-6,
        noise=SimulatedNoise(0),
        **options,
    )


@pytest.mark.parametrize("method", ["InfTDA", "TDA_L2", "TDA"])
def test_no_trip_stays_and_the_release_is_checked(tmp_path, method):
    made = released(trips(), zeros="origin=destination", method=method)
    table = made.table
    finest = table[table["level"] == 4]
    assert (finest["origin"] != finest["destination"]).all()
    inside = (table["origin_level"] == "state") & (table["destination_level"] == "state")
    assert not (inside & (table["origin"] == "B") & (table["destination"] == "B")).any()
    assert (inside & (table["origin"] == "A") & (table["destination"] == "A")).any()
    assert not failures(made.write(tmp_path / "made"))
    without = released(trips(), method=method).table
    finest = without[without["level"] == 4]
    assert (finest["origin"] == finest["destination"]).any()  # the noise would put trips there


def test_a_changed_setting_of_zeros_is_noticed(tmp_path):
    made = released(trips(), zeros="origin=destination")
    folder = made.write(tmp_path / "made")
    change_manifest(folder, lambda manifest: manifest["settings"].pop("zeros"))
    assert "table from steps" in failures(folder)


def test_children_without_structural_zeros_are_those_of_all_pairs():
    """By enumeration: the children of some nodes, in order, without those whose only cell cannot be."""
    axes, rng = (PLACES, PLACES), np.random.default_rng(0)
    zeros = Zeros(axes, Pair(0, 1))
    tree = PLACES.tree
    for depths in ((1, 1), (2, 1), (1, 2), (1, 0), (0, 1)):
        axis = int(rng.integers(2)) if depths[0] == depths[1] else int(np.argmin(depths))
        sizes = [int(tree.level_sizes[d]) for d in depths]
        places = np.argwhere(np.ones(sizes, bool))
        above = Level(depths, places, np.ones(len(places), np.int64))
        possible = ~zeros.among(depths, places)
        above = Level(depths, places[possible], above.counts[possible])
        children = Children(tree, above, axis, zeros)
        everyone = Children(tree, above, axis)
        full = everyone.level(np.arange(everyone.size), np.ones(everyone.size, np.int64))
        kept = [not _only_itself(full.depths, row) for row in full.places]
        assert children.size == sum(kept)
        found = children.level(np.arange(children.size), np.ones(children.size, np.int64))
        assert np.array_equal(found.places, full.places[kept])
        parents = np.repeat(np.arange(len(above.counts)), np.diff(everyone.offsets))
        ranks = np.concatenate([np.arange(n) for n in np.diff(everyone.offsets)])
        assert np.array_equal(children.at(parents[kept], ranks[kept]), np.arange(children.size))
        assert np.array_equal(
            np.diff(children.offsets), np.bincount(parents[kept], minlength=len(above.counts))
        )


def _only_itself(depths, places):
    """Whether both regions consist of one and the same town."""
    tree = PLACES.tree
    towns = []
    for depth, place in zip(depths, places, strict=True):
        inside = np.zeros(tree.size)
        inside[tree.level_start[depth] + place] = 1
        for level in range(depth, tree.depth):
            nodes = tree.nodes_of(level + 1)
            inside[nodes] += inside[tree.nodes_of(level)][tree.levels[level]]
        towns.append(set(PLACES.names[-1][inside[tree.nodes_of(tree.depth)] > 0]))
    return len(towns[0]) == 1 and towns[0] == towns[1]


def test_trips_inside_the_unknown_region_can_be():
    regions = Hierarchy.flat("town", ["a", "b", "elsewhere"])
    zeros = Zeros((regions, regions), Pair(0, 1), "elsewhere")
    same = np.array([[i, i] for i in range(3)])
    names = [regions.names[-1][i] for i in range(3)]
    assert dict(zip(names, zeros.among((1, 1), same).tolist(), strict=True)) == {
        "a": True,
        "b": True,
        "elsewhere": False,
    }


@pytest.mark.parametrize(
    ("zeros", "options", "why"),
    [
        ("origin", {}, "give two of the axes 'origin', 'destination'"),
        ("origin=place", {}, "give two of the axes"),
        ("origin=destination", {"method": "SH"}, "SH takes no zeros"),
        ("origin=destination", {"method": "VanillaGauss"}, "VanillaGauss takes no zeros"),
    ],
)
def test_what_cannot_be_meant_is_refused(zeros, options, why):
    with pytest.raises(InputError, match=why):
        released(trips(), zeros=zeros, **options)


def test_a_table_with_such_trips_is_refused_without_telling_which():
    table = pd.concat([trips(), pd.DataFrame({"from": ["a"], "to": ["a"], "trips": [3]})])
    with pytest.raises(InputError, match="the table has rows with the same place") as caught:
        released(table, zeros="origin=destination")
    assert "'a'" not in str(caught.value)


def test_axes_without_a_common_place_are_refused():
    other = Hierarchy.flat("hour", ["1", "2"])
    table = pd.DataFrame({"from": ["a"], "hour": ["1"]})
    axes = {"origin": (PLACES, "from"), "hour": (other, "hour")}
    with pytest.raises(InputError, match="no place is in both axes"):
        release(table, "top-down", axes=axes, epsilon=1.0, delta=1e-6, zeros="origin=hour")
