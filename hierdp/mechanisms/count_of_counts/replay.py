"""Checks of releases by the methods of Kuo et al. 2018."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.count_of_counts.estimates import NoisyRegion, Sizes
from hierdp.mechanisms.count_of_counts.mechanism import (
    Measured,
    neighbours_of,
    post_process,
    settings_of,
    table_of,
    weights_of,
)
from hierdp.mechanisms.count_of_counts.plan import Plan, budgets_of, plan_of
from hierdp.mechanisms.count_of_counts.private import (
    LARGEST,
    MOST_SIZES,
    NUMBERS,
    groups_of,
    number_query,
    reserve,
)
from hierdp.mechanisms.count_of_counts.side_by_side import (
    estimated,
    measured_regions,
    step_name,
    steps_of,
)
from hierdp.mechanisms.words import BOTTOM_UP
from hierdp.privacy.expected import Expected, ExpectedSpend
from hierdp.privacy.twice import CountNoise, Twice, of_tree
from hierdp.record.compare import compare, compare_settings
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay
from hierdp.record.shape import shape_of_sizes
from hierdp.record.spool import Steps
from models import Tree
from models.arithmetic import exact
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


def expected_spends(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Expected:
    """The measurements of K and of the numbers of groups, if private, then of the sizes, level by level."""
    (places,) = regions.values()
    plan, levels = plan_in(manifest["settings"]), places.levels
    spends = [] if plan.size_budget is None else [ExpectedSpend(LARGEST, 1, plan.size_budget)]
    if plan.group_budget is not None:
        share = plan.group_budget / len(levels)
        spends += [ExpectedSpend(number_query(name), 1, share) for name in levels]
    if manifest["settings"]["groups"]:
        measured = levels[-1:] if plan.bottom_up else levels
        parts = zip(measured, plan.methods, budgets_of(plan, manifest["budget"]["epsilon"]), strict=True)
        spends += [ExpectedSpend(how.query(name), how.sensitivity, share) for name, how, share in parts]
    return neighbours_of(plan), spends


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """Repeat the post-processing from the noisy numbers of each region."""
    (places,) = regions.values()
    settings, tree = manifest["settings"], places.tree
    plan = plan_in(settings)
    if plan.name != manifest["mechanism"]:
        raise Differs(f"the mechanism is {manifest['mechanism']!r}, but the settings name {plan.name!r}")
    budgets = budgets_of(plan, manifest["budget"]["epsilon"])
    released = _released(table, places)
    groups, spends = released.groups, manifest["budget"]["spends"]
    if plan.size_budget is not None and 2 < settings["max_size"] < MOST_SIZES:
        saved.recover(LARGEST, np.array([settings["max_size"] - reserve(plan.size_budget)]))
    if plan.group_budget is not None:
        groups = _groups(saved, places, groups, [s for s in spends if s["query"].startswith(NUMBERS)])
    differences = _Differences(plan, tree)
    runs = _estimates(saved, plan, places, groups, Sizes(settings["max_size"], plan.smallest), differences)
    saved.twice += differences.twice(spends)
    weights = weights_of(runs, tree.level, plan, budgets)
    measured = Measured(runs, weights, groups, settings["max_size"], (), Steps())
    found = post_process(measured, places, plan, saved.solve)
    saved.end()
    compare(table, table_of(places, found))
    compare_settings(settings, settings_of(plan, places, settings["max_size"], int(groups[0])))
    return "it follows from the regions' estimates by matching and merging"


def plan_in(settings: Mapping[str, Any]) -> Plan:
    """The plan that the settings describe."""
    alone = "merge" not in settings
    method = " x ".join(settings["methods"])
    taken = ("merge", "size_budget", "group_budget", "shares")
    options = {name: settings[name] for name in taken if name in settings}
    largest, smallest = settings["max_size"], settings["smallest_size"]
    named = f"{BOTTOM_UP} {method}" if alone else method
    return plan_of(named, settings["levels"], max_size=largest, smallest=smallest, **options)


class _Differences:
    """Noisy groups by size of regions, less those of their children, where both were measured.

    They are taken in level order, and only the differences are held.
    """

    def __init__(self, plan: Plan, tree: Tree) -> None:
        self._plan, self._tree, self._left, self._children = plan, tree, dict[int, Ints](), dict[int, int]()
        forms = [] if plan.bottom_up else [method.form for method in plan.methods]
        # Numbers of groups that were measured, too, changed what was measured of their sizes.
        known = plan.group_budget is None
        self._twice = [known and above == below != "Hg" for above, below in pairwise(forms)]

    def add(self, region: int, noisy: Ints) -> None:
        """Take the noisy numbers of a region."""
        level, above = int(self._tree.level[region]), int(self._tree.parent[region])
        if level < len(self._twice) and self._twice[level]:
            self._left[region], self._children[region] = noisy.copy(), 0
        if above in self._left:
            self._left[above] -= noisy
            self._children[above] += 1

    def twice(self, spends: Sequence[Mapping[str, Any]]) -> Iterator[Twice]:
        """The differences of all families between two levels; none of a level without groups."""
        spends = spends[-len(self._plan.methods) :]
        for level in np.flatnonzero(self._twice).tolist():
            here = [r for r in self._left if self._tree.level[r] == level]
            if not here:
                continue
            laws = CountNoise.of(spends[level]), CountNoise.of(spends[level + 1])
            off = np.stack([self._left[r] for r in here])
            counts = np.repeat([self._children[r] for r in here], off.shape[1])
            what = f"sizes of levels {level} and {level + 1}"
            yield Twice(what, off.ravel().astype(float), laws[1], counts, laws[0])


def _groups(saved: Replay, places: Hierarchy, released: Ints, spends: list[Mapping[str, Any]]) -> Ints:
    """The numbers of groups that follow from the noisy ones; they must be those of the table."""
    noisy = saved.peek_noisy(NUMBERS, (places.tree.size, 1))[:, 0]
    for level, name in enumerate(places.levels):
        saved.recover(number_query(name), noisy[places.tree.nodes_of(level)])
    saved.twice += of_tree(places.tree, noisy, [CountNoise.of(spend) for spend in spends], NUMBERS)
    groups = groups_of(places.tree, noisy, int(released[0]), saved.solve)
    if groups is None:
        raise Differs("another total of groups is at least as near to the noisy numbers as the table's")
    if not np.array_equal(groups, released):
        raise Differs("the numbers of groups from the first steps are not those of the table")
    return groups


def _estimates(
    saved: Replay, plan: Plan, places: Hierarchy, groups: Ints, domain: Sizes, differences: _Differences
) -> Runs:
    """The saved estimates of single regions; `differences` takes the noisy numbers that each starts from."""
    tree, names = places.tree, np.concatenate(places.names)
    at, found = measured_regions(tree, groups, plan), list[Runs]()

    def region(r: int) -> NoisyRegion:
        level = int(tree.level[r])
        where = places.levels[level], str(names[r])
        return NoisyRegion(np.empty(0, np.int64), int(groups[r]), plan.method_of(level), domain, where)

    for shared in steps_of(at, tree.level, groups, plan, domain):
        # Before 0.2.0, each region had a step of its own.
        apart = [shared] if saved.side_by_side else [[r] for r in shared]
        for of in apart:
            regions = _with_noise(saved, [region(r) for r in of])
            for r, own in zip(of, regions, strict=True):
                differences.add(r, own.noisy)
                if own.weights is None and own.groups:
                    saved.recover(own.method.query(own.where[0]), own.noisy)
            found.append(estimated(regions, saved.solve).runs)
    return Runs.stacked(found).placed(at, tree.size)


def _with_noise(saved: Replay, regions: list[NoisyRegion]) -> list[NoisyRegion]:
    """The regions with what the next saved step says was measured of them."""
    if len(regions) == 1:
        return [_measured(saved, regions[0])]
    ends = np.cumsum([region.cells for region in regions])
    noisy = saved.peek_noisy(step_name(regions), (int(ends[-1]),))
    parts = zip(regions, np.split(noisy, ends[:-1]), strict=True)
    return [replace(region, noisy=own) for region, own in parts]


def _measured(saved: Replay, region: NoisyRegion) -> NoisyRegion:
    """What the next saved step says was measured of a region."""
    given = getattr(saved.peek(region.name, region.cells).model, "weights", None)
    if given is None:
        return replace(region, noisy=saved.peek_noisy(region.name, (region.cells,)))
    method, weights = region.method, np.asarray(given)
    pools = method.form == "Hg" and method.p == 2 and weights.dtype == np.int64
    if not pools or exact.total(weights) != region.cells:
        raise Differs(f"the numbers of step {region.name!r} do not stand for {region.cells} groups")
    return replace(region, noisy=saved.peek_noisy(region.name, weights.shape), weights=weights)


def _released(table: DataFrame, regions: Hierarchy) -> Runs:
    """The released groups, one row for each region."""
    import pandas as pd

    row = np.empty(len(table), dtype=np.int64)
    for level, names in enumerate(regions.names):
        here = (table["level"] == level).to_numpy()
        at = pd.Index(names, dtype=object).get_indexer(pd.Index(table.loc[here, "region"], dtype=object))
        if (at < 0).any():
            raise Differs(f"level {level} has a region that is not in the list of regions")
        row[here] = at + int(regions.tree.level_start[level])
    sizes, counts = (table[name].to_numpy(np.int64) for name in ("size", "groups"))
    return Runs.added(row, sizes, counts, regions.tree.size)


def one_by_one(manifest: Mapping[str, Any], _: Regions) -> bool:
    """Whether the steps were many, and so were saved one by one; `replay` always takes them so."""
    return sum(int(line["variables"]) for line in manifest["solved"]) > Steps.MOST


CHECKING = Checking(shape_of_sizes, expected_spends, replay, one_by_one=one_by_one)
