"""The runs, as rows of measurements that are not averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns, cumulative_of, unattributed
from hierdp.execution.resume import Row
from hierdp.experiments.papers.kuo2018.fits import fitted, released
from hierdp.experiments.papers.kuo2018.settings import Settings
from hierdp.experiments.papers.kuo2018.shared_seed import OneSeed, TheirDraws
from hierdp.experiments.run import all_rows, crossed, noise_for, seed_for
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.mechanism import Measured, weights_of
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, budgets_of, plan_of
from hierdp.mechanisms.count_of_counts.top_down import at_once, bottom_up, runs_of
from hierdp.metrics.runs import earth_movers_runs, size_run_errors
from hierdp.privacy.budget import GEOMETRIC, Spend
from hierdp.privacy.noise import Drawn, Law, Noise, SimulatedNoise, geometric
from models import GroupMatching, Merging, Tree, TreeMatching
from models.arithmetic.arrays import Ints
from solvers import solve
from solvers.fast.tree_matching import shared_out, top_down

if TYPE_CHECKING:
    from pandas import DataFrame


BINS = 100
"""Number of parts of Figure 1, in order of the groups' size."""

MOST_L1 = 2_000_000
"""Largest number of groups for Hg with p = 1, whose noisy sizes are not pooled."""

ORIGINAL = "weighted, matched by original estimates"
"""Algorithm 1's line 12 as printed; it differs from "weighted" from three levels on."""

Known = tuple[SizeRuns, int]
"""Data, and the smallest size that a group may have: 1 if it is public that no group is empty."""


def accuracy(
    sets: dict[str, Known], methods: Sequence[tuple[str, str]], settings: Settings, seed: int, what: str
) -> DataFrame:
    """Error by level of every run, for pairs of method and merge.

    In a run, every level is measured once by each method that is used there; all combinations share these
    estimates.
    """
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    return all_rows(_accuracy, cases, what, (sets, list(methods), settings, seed, what))


def _accuracy(
    sets: dict[str, Known], methods: Sequence[tuple[str, str]], settings: Settings, seed: int, what: str,
    name: str, epsilon: float, run: int,
) -> list[Row]:  # fmt: skip
    data, smallest = sets[name]
    levels, most = data.hierarchy.levels, settings.max_size
    total = epsilon * len(levels)
    plans = [plan_of(one, levels, merge=merge, max_size=most, smallest=smallest) for one, merge in methods]
    found = {
        form: measure(
            data,
            total,
            FastDraws(seed_for(seed, what, name, epsilon, run, form)),
            plan_of(form, levels, max_size=most, smallest=smallest),
        )
        for form in dict.fromkeys(level.name for plan in plans for level in plan.methods)
    }
    rows: list[Row] = []
    for (method, merge), plan in zip(methods, plans, strict=True):
        combined = _combined(found, data.hierarchy.tree, plan, total)
        case = {"method": method, "merging": merge}
        rows += _errors(data, post_process(combined, data.hierarchy, plan), case)
        if merge == "weighted" and len(levels) > 2:
            printed = top_down_by_original(data.hierarchy.tree, combined.runs, combined.weights)
            rows += _errors(data, printed, {**case, "merging": ORIGINAL})
    return rows


def _combined(found: dict[str, Measured], tree: Tree, plan: CountOfCountsPlan, epsilon: float) -> Measured:
    """The estimates of each level by the method that the plan has there."""
    parts = []
    for level, method in enumerate(plan.methods):
        nodes = tree.nodes_of(level)
        parts.append(found[method.name].runs.between(nodes.start, nodes.stop))
    estimates = Runs.stacked(parts)
    weights = weights_of(estimates, tree.level, plan, budgets_of(plan, epsilon))
    return replace(found[plan.methods[0].name], runs=estimates, weights=weights)


def bottom_up_table(sets: dict[str, tuple[Known, int]], settings: Settings, seed: int) -> DataFrame:
    """Bottom-up and top-down Hc at ε = 1 in total, with independent noise and with one seed in all regions.

    Each set has its own number of runs. The taxis are run twice: with the lowest of Hc's optimal fits, as in
    a release, and with the middle fit.
    """
    cases = [
        case
        for name, (_, number) in sets.items()
        for case in crossed(
            data=[name], run=range(number), method=("bottom-up", "Hc"), noise=("independent", "one seed"),
            fit=("lowest", "middle") if name == "taxi" else ("lowest",),
        )
    ]  # fmt: skip
    return all_rows(_bottom_up_table, cases, "bottom-up table", (sets, settings, seed))


def _bottom_up_table(
    sets: dict[str, tuple[Known, int]], settings: Settings, seed: int,
    name: str, run: int, method: str, noise: str, fit: str,
) -> list[Row]:  # fmt: skip
    (data, smallest), one = sets[name][0], seed_for(seed, "table", name, run)
    source: Noise = OneSeed(one) if noise == "one seed" else SimulatedNoise(one)
    if fit == "lowest":
        plan = plan_of(method, data.hierarchy.levels, max_size=settings.max_size, smallest=smallest)
        found = measure(data, 1.0, source, plan, batched=False)  # one seed repeats with each region
        made = post_process(found, data.hierarchy, plan)
    else:
        made = released(data, 1.0, source, settings.max_size, fit, method == "Hc")
    return _errors(data, made, {})


def readme(data: SizeRuns, max_size: int) -> dict[str, int]:
    """The root alone, with the authors' own draws (seed 20, ε = 1): the error of five optimal fits."""
    sizes, counts = data.runs.of(0)
    true = cumulative_of(sizes, counts, max_size)[1:]
    noisy = TheirDraws(20).draw(geometric("Hc", 1, 1.0), true).answers
    low, high = (fitted(noisy, data.groups, fit) for fit in ("lowest", "highest"))
    fits = {
        "lowest": low,
        "middle, rounded down": (low + high) // 2,
        "middle, rounded to even": np.rint((low + high) / 2).astype(np.int64),
        "middle, rounded up": (low + high + 1) // 2,
        "highest": high,
    }
    return {name: int(np.abs(x - true).sum()) for name, x in fits.items()}


def naive(sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int) -> DataFrame:
    """The root's error by every method for one region, ε = 1; each data set with its smallest size."""
    methods = ("naive", "Hc", "Hc2", "Hg", "Hg1")
    cases = [
        case
        for case in crossed(data=sets, method=methods, run=range(settings.runs))
        if case["method"] != "Hg1" or sets[case["data"]][0].groups[0] <= MOST_L1
    ]
    return all_rows(_naive, cases, "methods of one region", (sets, settings, seed))


def _naive(
    sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int, name: str, method: str, run: int
) -> list[Row]:
    true, smallest = sets[name][0].capped(settings.max_size), sets[name][1]
    noise = FastDraws(seed_for(seed, "naive", name, method, run))
    emd = earth_movers_runs(true, _estimate(true, method, settings.max_size, smallest, noise))[0]
    return [{"emd": emd}]


def _estimate(true: Runs, method: str, max_size: int, smallest: int, noise: Noise) -> Runs:
    """The estimate of a region by itself, the first one, at ε = 1."""
    places = Hierarchy.from_columns({"region": ["alone"]}, ["region"])
    plan = plan_of(f"bottom-up {method}", places.levels, max_size=max_size, smallest=smallest)
    data = SizeRuns(places, true.between(0, 1).summed_up(places.tree))
    return measure(data, 1.0, noise, plan).runs.between(1, 2)


def by_rank(data: SizeRuns, settings: Settings, seed: int) -> DataFrame:
    """Figure 1: the errors of the sizes of the root's groups, in order of size, at ε = 1."""
    cases = crossed(method=("Hg", "Hc"), run=range(settings.runs))
    given = data.runs.capped(settings.max_size), data.groups, settings, seed
    table = all_rows(_by_rank, cases, "errors by size", given)
    table.attrs["groups"] = data.groups
    return table


def _by_rank(runs: Runs, groups: int, settings: Settings, seed: int, method: str, run: int) -> list[Row]:
    sizes = unattributed(*runs.of(0), 0, groups)
    cuts = np.linspace(0, groups, BINS + 1).astype(np.int64)[:-1]
    found = _estimate(runs, method, settings.max_size, 1, noise_for(seed, "figure 1", method, run))
    away = np.abs(unattributed(*found.of(0), 0, groups) - sizes)
    return [
        {"group": start, "true_size": size, "error": total}
        for start, size, total in zip(cuts, sizes[cuts], np.add.reduceat(away, cuts), strict=True)
    ]


def joint(data: SizeRuns, settings: Settings, seed: int) -> DataFrame:
    """Top-down matching, matching of all levels at once, and the release, from the same estimates."""
    cases = crossed(epsilon=settings.epsilons, run=range(settings.joint_runs))
    return all_rows(_joint, cases, "all levels at once", (data, settings, seed))


def _joint(data: SizeRuns, settings: Settings, seed: int, epsilon: float, run: int) -> list[Row]:
    tree, rows = data.hierarchy.tree, list[Row]()
    plan = plan_of("Hc", data.hierarchy.levels, max_size=settings.max_size, smallest=1)
    measured = measure(data, epsilon * (tree.depth + 1), noise_for(seed, "joint", epsilon, run), plan)
    model = TreeMatching(tree, [measured.runs.of(r) for r in range(tree.size)])
    made = {
        "top down, merged": post_process(measured, data.hierarchy, plan),
        "family by family": runs_of(model, shared_out(model, top_down(model))),
        "all levels at once": at_once(tree, measured.runs),
    }
    for name, found in made.items():
        cost = int(earth_movers_runs(measured.runs, found).sum())
        rows += _errors(data, found, {"method": name, "cost": cost})
    return rows


def _errors(data: SizeRuns, made: Runs, case: Row) -> list[Row]:
    """One row for each level."""
    places = data.hierarchy
    found = size_run_errors(places.tree, places.levels, data.runs, made)
    return [
        {**case, "level": level, "name": name, "emd": emd}
        for level, name, emd in zip(found["level"], found["name"], found["emd_per_region"], strict=True)
    ]


BLOCK = 1 << 15
"""Draws at once: they fit into the processor's cache."""


class FastDraws(SimulatedNoise):
    """NOT PRIVATE: `SimulatedNoise` with faster draws of double-geometric noise, for millions of groups.

    For an exponential variable E and the scale s, ⌊s·E⌋ is geometric: P(⌊s·E⌋ = k) = (1 − a)·aᵏ with a =
    exp(−1/s). NumPy draws E several times faster than a geometric variable. It is a float, so the law holds
    only up to rounding.
    """

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `hierdp.privacy.noise.Noise.draw`."""
        if law.noise != GEOMETRIC:
            return super().draw(law, true)
        scale = law.sensitivity / law.loss
        noisy = np.array(true, np.int64)
        for start in range(0, noisy.size, BLOCK):
            part = noisy[start : start + BLOCK]
            draws = self._rng.standard_exponential(2 * part.size)
            draws *= scale
            whole = draws.astype(np.int64)
            part += whole[: part.size]
            part -= whole[part.size :]
        spend = Spend(law.name, GEOMETRIC, law.sensitivity, scale, law.loss, None, False)
        return Drawn(noisy, spend)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of one level, as runs sorted by node, original size and updated size."""

    node: Ints
    original: Ints
    updated: Ints
    weights: NDArray[Any]
    counts: Ints

    @classmethod
    def of(cls, node: Ints, original: Ints, updated: Ints, weights: NDArray[Any], counts: Ints) -> Groups:
        """From runs in any order."""
        order = np.lexsort((weights, updated, original, node))
        return cls(*(part[order] for part in (node, original, updated, weights, counts)))


def top_down_by_original(tree: Tree, runs: Runs, weights: NDArray[Any]) -> Runs:
    """Algorithm 1 as printed: a node's groups are matched by their original estimates, not updated ones.

    Line 12 prints ``Match(τ.Ĥ, …)``, the estimate from before the node was itself updated. Line 13 merges
    with the updated sizes ``τ.Ĥ′g``. A release matches by the updated sizes
    (`hierdp.mechanisms.count_of_counts.top_down.top_down`). So does the authors' program (repository
    yzk5145/coco, `matching_back_substitution_across_hierarchy`). The two differ from three levels on. Groups
    of one original size are matched arbitrarily, by the paper; here in order of their updated sizes.
    """
    row = runs.row
    done = _level(tree, runs, weights, row, 0)
    for level in range(1, tree.depth + 1):
        below = _level(tree, runs, weights, row, level)
        done = _merged(done, below, np.asarray(tree.levels[level - 1]))
    leaves = Runs.added(done.node, done.updated, done.counts, int(tree.level_sizes[-1]))
    return bottom_up(tree, leaves)


def _level(tree: Tree, runs: Runs, weights: NDArray[Any], row: Ints, level: int) -> Groups:
    nodes = tree.nodes_of(level)
    here = (row >= nodes.start) & (row < nodes.stop)
    sizes = runs.sizes[here]
    return Groups.of(row[here] - nodes.start, sizes, sizes, weights[here], runs.counts[here])


def _merged(above: Groups, below: Groups, parents: Ints) -> Groups:
    """The groups of the level below, with updated sizes."""
    parts = []
    for node in np.unique(above.node):
        mine = np.flatnonzero(above.node == node)
        theirs = np.flatnonzero(parents[below.node] == node)
        parts.append(_pairs(above, mine, below, theirs))
    over, under, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
    weights = np.stack([above.weights[over], below.weights[under]])
    sizes = np.stack([above.updated[over], below.original[under]])
    updated = np.asarray(solve(Merging(sizes, weights, integer=True)).x)
    return Groups.of(below.node[under], below.original[under], updated, weights.sum(axis=0), counts)


def _pairs(above: Groups, mine: Ints, below: Groups, theirs: Ints) -> tuple[Ints, Ints, Ints]:
    """Runs of a node and of its children that belong together, with the number of groups."""
    sizes, first = np.unique(above.original[mine], return_index=True)
    counts = np.add.reduceat(above.counts[mine], first)
    child = below.node[theirs]
    families = [theirs[child == c] for c in np.unique(child)]
    model = GroupMatching((sizes, counts), [(below.original[part], below.counts[part]) for part in families])
    found = np.asarray(solve(model).x)
    under = np.concatenate(families)[found["child"]]
    order = np.lexsort((below.original[under], found["parent"]))
    ends, under = np.cumsum(found["count"][order]), under[order]
    # Both sides are in order of the node's original sizes; cut them at each other's ends.
    own = np.cumsum(above.counts[mine])
    cuts = np.union1d(ends, own)
    return mine[np.searchsorted(own, cuts)], under[np.searchsorted(ends, cuts)], np.diff(cuts, prepend=0)
