"""The runs, as rows of measurements that are not averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns, cumulative_of, unattributed
from hierdp.execution.resume import Row
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.mechanism import Measured, weights_of
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, budgets_of, plan_of
from hierdp.mechanisms.count_of_counts.top_down import at_once, runs_of
from hierdp.metrics.runs import earth_movers_runs, size_run_errors
from hierdp.privacy.noise import Noise, SimulatedNoise
from hierdp.reproduce.kuo2018.by_original import top_down_by_original
from hierdp.reproduce.kuo2018.fast_draws import FastDraws
from hierdp.reproduce.kuo2018.fits import fitted, released
from hierdp.reproduce.kuo2018.settings import Settings
from hierdp.reproduce.kuo2018.shared_seed import OneSeed, TheirDraws
from hierdp.reproduce.runs import all_rows, crossed, noise_for, seed_for
from models import Tree, TreeMatching
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
    noisy = TheirDraws(20).geometric(true, "Hc", 1, 1.0).counts
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
