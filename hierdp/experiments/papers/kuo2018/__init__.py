"""Kuo et al. 2018, repeated: the tables of §6.2, Figures 1, 4, 5, 6; explanations of the Taxi column
and of the naive row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns, cumulative_of, runs_of_cumulative, unattributed
from hierdp.data import commuting
from hierdp.data.blocks import FILE, hawaiian
from hierdp.data.blocks import blocks as blocks_of
from hierdp.data.housing import GROUPS, WEST_COAST, housing
from hierdp.data.taxi import taxi
from hierdp.execution.resume import Row
from hierdp.experiments.papers.kuo2018.shared_seed import OneSeed, TheirDraws
from hierdp.experiments.run import all_rows, by_level, crossed, noise_for, present, said, seed_for, summed_up
from hierdp.experiments.study import Part, Study
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.mechanism import Measured, weights_of
from hierdp.mechanisms.count_of_counts.plan import MAX_SIZE, CountOfCountsPlan, budgets_of, plan_of
from hierdp.mechanisms.count_of_counts.top_down import at_once, bottom_up, runs_of
from hierdp.mechanisms.count_of_counts.top_down import top_down as merged_down
from hierdp.metrics.runs import earth_movers_runs, omniscient, size_run_errors
from hierdp.privacy.budget import GEOMETRIC, Spend
from hierdp.privacy.noise import Drawn, Law, Noise, SimulatedNoise, geometric
from hierdp.record.step import Step
from hierdp.reports import plots
from models import FixedSum, GroupMatching, Isotonic, Merging, Tree, TreeMatching
from models.arithmetic.arrays import Ints
from solvers import solve
from solvers.fast.tree_matching import shared_out, top_down

BOTTOM_UP = {
    "part. synth.": ((78_459.0, 1_512.2, 24.9), (32_480.0, 1_000.3, 80.1)),
    "White": ((448_909.0, 8_722.0, 152.3), (17_000.0, 1_511.8, 363.8)),
    "Hawaiian": ((13_968.0, 270.1, 4.3), (1_381.0, 117.7, 21.6)),
    "Taxi": ((20_731.0, 10_405.5, 772.8), (10_547.0, 5_431.5, 1_601.8)),
}
"""As published (§6.2.2): earth mover's distance per region at levels 0, 1, 2, of bottom-up and of Hc."""

REGIONS = {
    "part. synth.": (1, 52, 3_221), "White": (1, 52, 3_221), "Hawaiian": (1, 52, 3_221), "Taxi": (1, 2, 28),
}  # fmt: skip
"""Regions of each level: the states, with the District of Columbia and Puerto Rico, and all their
counties."""

NAIVE = {
    "Synthetic": 4_462_728_374, "White": 4_809_679_734, "Hawaiian": 4_027_891_692, "Taxi": 208_977_518,
}  # fmt: skip
"""As published (§6.2.1), ε = 1."""

README = 2_801
"""The authors' README: root of the taxi data alone, Hc with p = 1, ε = 1, seed 20 of NumPy's RandomState."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - table_runs: runs for the bottom-up table on the taxi data, for each kind of noise.
    - epsilons: privacy budgets per level, as in the figures.
    - max_size: K.
    - coast_runs, nation_runs: runs on the West Coast's housing, and on the whole nation's, which takes
      minutes.
    - housing_groups: groups of the nation's synthetic housing, in the bottom-up table and the naive row.
    - sized_groups: groups of the nation's housing in the figures. Hg draws a number for every group, and the
      paper's number takes about 25 minutes of one processor.
    - vertices: whether the naive program with p = 1 is also solved by HiGHS, which takes a minute and a half.
    - joint_runs: runs of the matching of all levels at once.
    """

    runs: int = 10
    coast_runs: int = 3
    nation_runs: int = 1
    table_runs: int = 30
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0)
    max_size: int = MAX_SIZE
    housing_groups: int = GROUPS
    sized_groups: int = GROUPS
    vertices: bool = True
    joint_runs: int = 10


QUICK = Settings(
    runs=1, table_runs=3, coast_runs=1, nation_runs=0, epsilons=(0.1,), vertices=False, joint_runs=2
)
QUICK_NOTE = (
    "One run of the figures at 0.1 per level, on data of full size: fewer groups would turn the order of Hg "
    "and Hc round. Errors of one run at the root vary by a tenth, and nothing follows for other budgets: Hg "
    "gains on Hc as the budget grows."
)
"""What cannot be concluded from the quick settings."""


def fitted(noisy: Ints, groups: int, fit: str) -> Ints:
    """An optimal monotone fit of cumulative counts (p = 1): `fit` is lowest, middle (of the ends) or highest.

    The fast path takes the lowest; other solvers return other optima. All are optimal, because every fit
    between two optimal ones is, and rounding keeps it optimal.
    """
    low, high = (np.zeros(0, np.int64),) * 2
    if fit != "highest":
        low = _lowest(noisy, groups)
    if fit != "lowest":
        high = groups - _lowest(groups - noisy[::-1], groups)[::-1]
    if fit == "middle":
        return np.rint((low + high) / 2).astype(np.int64)
    return low if fit == "lowest" else high


def released(data: SizeRuns, epsilon: float, noise: Noise, max_size: int, fit: str, top: bool) -> Runs:
    """Count-of-counts by Hc, top-down or bottom-up, if groups are known not to be empty."""
    tree, true = data.hierarchy.tree, data.runs.capped(max_size)
    rows: list[tuple[Ints, Ints]] = []
    share = epsilon / (tree.depth + 1) if top else epsilon
    for r in range(0 if top else int(tree.level_start[-2]), tree.size):
        sizes, counts = true.of(r)
        groups = int(counts.sum())
        if groups == 0:
            rows.append((sizes, counts))
            continue
        noisy = noise.draw(geometric("Hc", 1, share), cumulative_of(sizes, counts, max_size)[1:]).answers
        rows.append(runs_of_cumulative(np.append(fitted(noisy, groups, fit), groups), 1))
    runs = Runs.from_rows(rows)
    return merged_down(tree, runs, runs.counts) if top else bottom_up(tree, runs)


def _lowest(noisy: Ints, groups: int) -> Ints:
    model = Isotonic(noisy, p=1, lower=0, upper=groups, integer=True)
    return np.asarray(Step.solve("Hc", model).solution.x)


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


# Which error the naive method has (§4.1): ties of its rounding, negative counts, p = 1 in place of p = 2.
#
# Kuo et al. print 208,977,518 (Taxi), 4,027,891,692 (Hawaiian) and 4,462,728,374 (Synthetic). The whole-
# number optimum of the program that they print has other errors by an order of magnitude.
#
# - *Ties.* The noisy counts are whole, so all positive x = y − λ have the same fractional part, and the
#   rounding may raise any r of them. Its errors lie between those of raising the smallest and the largest
#   sizes.
# - *Negative counts set to 0, and nothing else.* The counts then add up to more than G.
# - *p = 1.* If the positive counts exceed G by D, every x with 0 ≤ x ≤ max(y, 0) and Σ x = G is optimal:
#   all lose D in all. The error depends on where a solver takes D away, which nothing in the program
#   decides.

EPSILON = 1.0


def answer_rows(sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int) -> DataFrame:
    """The errors of the root's answers at ε = 1, for each run; the solvers' vertices for the first run."""
    cases = crossed(data=sets, run=range(settings.runs))
    return all_rows(_answer_rows, cases, "naive answers", (sets, settings, seed))


def _answer_rows(
    sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int, name: str, run: int
) -> list[Row]:
    true, smallest = sets[name]
    truth = dense(true, settings.max_size, smallest)
    noise = SimulatedNoise(seed_for(seed, "naive face", name, run))
    noisy = noise.draw(geometric("sizes", 2, EPSILON), truth).answers
    answers = answers_of(noisy, int(truth.sum()))
    if settings.vertices and run == 0:
        answers |= {f"p = 1, HiGHS, {way}": vertex(noisy, int(truth.sum()), way) for way in HIGHS}
    return [{"answer": what, "emd": distance(truth, x)} for what, x in answers.items()]


def dense(true: Runs, max_size: int, smallest: int) -> Ints:
    """The root's groups of each size from `smallest` to K."""
    sizes, counts = true.capped(max_size).of(0)
    cells = np.zeros(max_size + 1 - smallest, np.int64)
    cells[sizes - smallest] = counts
    return cells


def distance(true: Ints, found: Any) -> float:
    """Earth mover's distance by Lemma 1, also if the totals differ."""
    return float(np.abs(np.cumsum(true) - np.cumsum(found)).sum())


def answers_of(noisy: Ints, groups: int) -> dict[str, Any]:
    """Answers that §4.1 allows, or might have meant."""
    positive = np.maximum(noisy, 0)
    return {
        "p = 2, whole-number optimum": np.asarray(solve(FixedSum(noisy, groups, p=2)).x),
        "p = 2, rounded up at the smallest sizes": rounded(noisy, groups, last=False),
        "p = 2, rounded up at the largest sizes": rounded(noisy, groups, last=True),
        "negative counts set to 0, nothing else": positive,
        "p = 1, fast path": np.asarray(solve(FixedSum(noisy, groups, p=1)).x),
        "p = 1, reduced at the largest sizes": reduced(positive, groups, np.arange(noisy.size)[::-1]),
        "p = 1, reduced at the smallest sizes": reduced(positive, groups, np.arange(noisy.size)),
        "p = 1, reduced in proportion": positive * (groups / max(1, int(positive.sum()))),
    }


def rounded(noisy: Ints, groups: int, last: bool) -> Ints:
    """The real optimum max(y − λ, 0), rounded down, and up in the first or the last of the positive cells."""
    ordered = np.sort(noisy)[::-1]
    excess = np.cumsum(ordered) - groups
    used = int(np.flatnonzero(ordered * np.arange(1, noisy.size + 1) > excess)[-1]) + 1
    whole, part = divmod(-int(excess[used - 1]), used)  # −λ = whole + part/used
    x = np.maximum(noisy + whole, 0)
    up = np.flatnonzero(noisy * used + whole * used + part > 0)
    x[up[up.size - part :] if last else up[:part]] += 1
    return np.asarray(x)


def reduced(positive: Ints, groups: int, order: Ints) -> Ints:
    """Take the excess over `groups` away from the cells in this order, each down to 0."""
    kept = positive[order]
    before = np.cumsum(kept) - kept
    x = np.empty_like(positive)
    x[order] = kept - np.clip(int(positive.sum()) - groups - before, 0, kept)
    return x


HIGHS = {"interior point": "highs-ipm", "dual simplex": "highs-ds"}


def vertex(noisy: Ints, groups: int, way: str) -> Any:
    """The answer of HiGHS to the linear program of p = 1: minimize Σ (u + v), x − u + v = y, Σ x = G."""
    import scipy

    n, one = noisy.size, scipy.sparse.identity(noisy.size, format="csr")
    total = scipy.sparse.hstack([np.ones((1, n)), scipy.sparse.csr_matrix((1, 2 * n))])
    matrix = scipy.sparse.vstack([scipy.sparse.hstack([one, -one, one]), total]).tocsc()
    cost = np.concatenate([np.zeros(n), np.ones(2 * n)])
    linprog: Callable[..., Any] = scipy.optimize.linprog
    found = linprog(cost, A_eq=matrix, b_eq=np.append(noisy, groups), method=HIGHS[way])
    return found.x[:n]


Line = tuple[str, str]
"""A method and a merge."""


def about(sets: Mapping[str, SizeRuns]) -> Part:
    """Statistics of the data."""
    rows = [
        {
            "data": name, "hierarchy": ", ".join(f"{n:,}" for n in data.hierarchy.tree.level_sizes),
            "groups": data.groups, "entities": int(data.runs.people[0]),
            "sizes": int(data.runs.distinct[0]), "largest": int(data.runs.of(0)[0].max()),
        }
        for name, data in sets.items()
    ]  # fmt: skip
    texts = [
        "Housing: the paper's recipe, with the national shares of sizes for every state. Hawaiian: the "
        "nation's blocks, placed in states and counties at random. Taxi: exactly the paper's data."
    ]
    return Part("data", "The data", texts, {"data": pd.DataFrame(rows)})


PUBLISHED = {
    "taxi": "Taxi", "housing, nation": "part. synth.", "Hawaiian": "Hawaiian",
    "Synthetic": "part. synth.", "White": "White",
}  # fmt: skip
"""The names of our data sets in the published table."""


def taxi_table(runs: DataFrame, readme: Mapping[str, int] | None) -> Part:
    """The bottom-up table: published, and ours with one seed for all regions and with independent noise."""
    rows: list[dict[str, Any]] = []
    for (name, method), mine in runs.groupby(["data", "method"], sort=False):
        if published := BOTTOM_UP.get(PUBLISHED.get(str(name), "")):
            levels = {f"level_{k}": value for k, value in enumerate(published[method == "Hc"])}
            rows.append({"data": name, "method": method, "noise": "published", "runs": 1, **levels})
        for (noise, fit), here in mine.groupby(["noise", "fit"], sort=False):
            row = {"data": name, "method": method, "noise": noise, "fit": fit, "runs": here.run.nunique()}
            rows.append(row | by_level(here.emd, here.level))
    texts = [
        "Earth mover's distance per region, total ε = 1; means, and the standard deviation of one run (std). "
        "Fit: which optimum of Hc's least absolute deviations. Coherence: published bottom-up errors over "
        "the most that they can be. README: the root alone, with the authors' draws (seed 20): five optimal "
        "fits."
    ]
    frames = {"bottom_up": pd.DataFrame(rows), "coherence": coherence()}
    if readme:
        frames["readme"] = pd.DataFrame([{**readme, "published": README}])
    return Part("table", "Bottom-up and top-down (§6.2.2)", texts, frames)


def coherence() -> DataFrame:
    """Evidence in the published bottom-up rows alone."""
    rows = []
    for name, ((root, middle, leaf), _) in BOTTOM_UP.items():
        _, inner, leaves = REGIONS[name]
        most = leaves * leaf
        row = {"data": name, "level_0": root, "at_most": most, "share": root / most}
        rows.append(row | {"level_1": middle, "at_most_1": most / inner, "share_1": middle * inner / most})
    return pd.DataFrame(rows)


NAIVE_NAMES = {**{name: name for name in NAIVE}, "taxi": "Taxi", "housing, nation": "Synthetic"}
"""The names of our data sets in the published row of the naive method."""


def naive_part(runs: DataFrame) -> Part:
    """The naive row, beside the other methods of one region."""
    found = runs.groupby(["data", "method"], sort=False).emd
    table = found.agg(runs="size", emd="mean", std="std").reset_index()
    printed = table.data.map(NAIVE_NAMES).map(NAIVE)
    table["published"] = printed.where(table.method == "naive")
    texts = ["The root alone at ε = 1: earth mover's distance, means, standard deviation of one run."]
    return Part("naive", "The naive method (§6.2.1)", texts, {"one_region": table})


def naive_answers(found: DataFrame) -> Part:
    """The naive row: what each explanation of the printed numbers would give."""
    table = (
        found.groupby(["data", "answer"], sort=False).emd.agg(["min", "mean", "max", "count"]).reset_index()
    )
    names = [name for name in dict.fromkeys(table.data) if NAIVE_NAMES.get(name) in NAIVE]
    printed = [{"data": name, "answer": "published", "mean": NAIVE[NAIVE_NAMES[name]]} for name in names]
    table = pd.concat([pd.DataFrame(printed), table], ignore_index=True)
    texts = [
        "The root alone at ε = 1. Reduced at the largest or smallest sizes: ends of the optima for p = 1."
    ]
    return Part("naive_answers", "The naive row: which answer?", texts, {"naive_answers": table})


def matching(runs: DataFrame) -> Part:
    """Line 12 of Algorithm 1: matching by updated and by original estimates."""
    means = runs.groupby(["data", "method", "epsilon", "level", "merging"], sort=False).emd.mean()
    table = means.unstack("merging").reset_index().rename_axis(columns=None)
    table = table.rename(columns={"weighted": "by_updated_estimates", ORIGINAL: "by_original_estimates"})
    table["ratio"] = table.by_original_estimates / table.by_updated_estimates
    texts = [
        "Line 12 of Algorithm 1 prints the estimates from before a node's own update; a release updates."
    ]
    return Part("matching", "Matching by updated or by original estimates", texts, {"matching": table})


def figure_1(rows: DataFrame) -> Part:
    """Figure 1: the errors by size of group."""
    means = rows.groupby(["group", "true_size", "method"]).error.mean().unstack("method")
    table = means.add_prefix("error_").rename_axis(columns=None).reset_index()
    drawn, panels = plots.figure(8.5, 4.2, panels=1, rows=2)
    width = np.diff(table.group, append=rows.attrs["groups"])
    for axes, method in zip(panels, ("Hg", "Hc"), strict=True):
        axes.bar(table.group, table[f"error_{method}"], width, align="edge", color=plots.COLOURS[0])
        plots.label(axes, NAMES[method], y="error (trips)")
        axes.set_xlim(0, rows.attrs["groups"])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[1].set_xlabel("groups in order of size (the cumulative sum of their counts)")
    marks = _marks(table, rows.attrs["groups"])
    above = panels[0].secondary_xaxis("top")
    above.set_xticks([at for at, _ in marks], [f"{size:,}" for _, size in marks], fontsize=7)
    above.set_xlabel("true size (trips)", fontsize=8)
    texts = ["Taxi, the root at ε = 1: errors added up over each hundredth of the groups in order of size."]
    return Part("figure1", "Figure 1: where the errors are", texts, {"figure1": table}, drawn)


def figure(
    number: int, runs: DataFrame, lines: Sequence[Line], sets: Mapping[str, SizeRuns], texts: Sequence[str]
) -> Part:
    """A panel per data set and level, a line per method, and an omniscient method as a reference."""
    here = pd.concat([runs[(runs.method == m) & (runs.merging == g)] for m, g in lines])
    here = here[here.data.isin(list(sets))]
    by = ["data", "level", "name", "method", "merging", "epsilon"]
    groups = here.groupby(by, sort=False).emd
    table = groups.agg(["mean", "std", "count"]).reset_index()
    table["error_of_mean"] = table["std"] / np.sqrt(table["count"])
    known = []
    for name, data in sets.items():
        places = data.hierarchy
        for epsilon in sorted(set(table.epsilon)):
            every = omniscient(places.tree, places.levels, data.runs, epsilon * len(places.levels))
            known += [{"data": name, "epsilon": epsilon, **row} for row in every.to_dict("records")]
    yardstick = pd.DataFrame(known)
    drawn = _grid(table, yardstick, lines, sets)
    title = {4: "weighted and plain merging", 5: "two levels", 6: "three levels"}[number]
    said = [
        *texts,
        "Means, with bars of one standard deviation of the mean. Dotted: the expected error of an omniscient "
        "method, which knows the sizes that occur in each region.",
    ]
    frames = {f"figure{number}": table, f"omniscient{number}": yardstick}
    return Part(f"figure{number}", f"Figure {number}: {title}", said, frames, drawn)


def joint_part(rows: DataFrame) -> Part:
    """Matching all levels at once: its objective, and its errors."""
    best = rows[rows.method == "all levels at once"].set_index(["epsilon", "run", "level"]).cost

    def compared(mine: DataFrame) -> dict[str, Any]:
        cost = mine.set_index(["epsilon", "run", "level"]).cost
        found = {"runs": mine.run.nunique(), "distance_to_estimates": cost.mean()}
        levels = {f"level_{level}": emd.mean() for level, emd in mine.groupby("level").emd}
        return found | {"excess": (cost / best[cost.index] - 1).mean()} | levels

    table = summed_up(rows.rename(columns={"epsilon": "epsilon_a_level"}).assign(epsilon=rows.epsilon),
                      ["epsilon_a_level", "method"], compared)  # fmt: skip
    texts = [
        "Taxi, Hc at each level, from the same estimates. Distance: the sum over all regions of the earth "
        "mover's distances to the estimates, and its excess over the proved minimum (`models.TreeMatching`). "
        "Family by family: Algorithm 2 down the tree, with medians. Merged: Algorithm 1. Levels: distance "
        "per region from the truth."
    ]
    return Part("joint", "All levels at once", texts, {"joint": table})


NAMES = {"naive": "naive", "Hc": "$H_c$", "Hg": "$H_g$", "Hc2": "$H_c$ (p = 2)", "Hg1": "$H_g$ (p = 1)"}


def lines_of(methods: Sequence[str], merges: Sequence[str] = ("weighted",)) -> list[Line]:
    """Every method with every merge."""
    return [(method, merge) for method in methods for merge in merges]


def _marks(table: DataFrame, groups: int) -> list[tuple[int, int]]:
    """Positions at which a round size is first reached, not too close to each other."""
    marks = list[tuple[int, int]]()
    for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000):
        past = table.group[table.true_size >= size]
        if len(past) and (not marks or past.iloc[0] - marks[-1][0] > groups / 14):
            marks.append((int(past.iloc[0]), size))
    return marks


def _label(method: str, merge: str, several: bool) -> str:
    name = " × ".join(NAMES[one] for one in method.split(" x "))
    return f"{name}, {merge}" if several else name


def _grid(table: DataFrame, yardstick: DataFrame, lines: Sequence[Line], sets: Mapping[str, SizeRuns]) -> Any:
    columns = max(len(data.hierarchy.levels) for data in sets.values())
    drawn, panels = plots.figure(3.1 * columns + 0.6, 2.7 * len(sets) + 0.5, columns, len(sets))
    several = len({merge for _, merge in lines}) > 1
    order = list(dict.fromkeys(method for method, _ in lines))
    for place, axes in enumerate(panels):
        name, level = list(sets)[place // columns], place % columns
        here = table[(table.data == name) & (table.level == level)]
        for method, merge in lines:
            mine = here[(here.method == method) & (here.merging == merge)]
            kind = {**plots.style(order.index(method)), "markersize": 4, "linewidth": 1.1}
            if merge == "plain":
                kind |= {"linestyle": "--", "fillstyle": "none"}
            bars = mine.error_of_mean.fillna(0)
            label = _label(method, merge, several)
            axes.errorbar(mine.epsilon, mine["mean"], yerr=bars, capsize=2, label=label, **kind)
        known = yardstick[(yardstick.data == name) & (yardstick.level == level)]
        axes.plot(known.epsilon, known.emd_per_region, ":", color="#666666", label="omniscient")
        below = "privacy budget per level" * (place // columns == len(sets) - 1)
        left = "distance per region (entities)" * (level == 0)
        plots.label(axes, f"{name}: {here.name.iloc[0]}", below, left, "xy", here.epsilon)
        axes.tick_params(labelsize=7)
    plots.below(drawn, panels[:1], 2 * columns)
    return drawn


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is one of the paper's data sets (see `hierdp.data.blocks`), or a folder with ``taxi/`` (see
    `hierdp.data.taxi`), ``hawaiian/`` (see `hierdp.data.blocks`) and ``us-commuting-2009-2013.parquet``.
    Without them there are no taxis, no Hawaiian data, and the states' shares are synthetic. The same seed
    gives the same numbers.
    """
    two, three, listed, roots, more = (
        of_file(data, settings) if data and data.is_file() else of_folder(data, settings, seed)
    )
    taxis = three["taxi"][0] if "taxi" in three else None
    two_ways = lines_of(("Hc x Hc", "Hc x Hg", "Hg x Hc", "Hg x Hg"), ("weighted", "plain"))
    of_two = accuracy(two, two_ways, settings, seed, "two levels")
    of_three = accuracy(three, lines_of(THREE), settings, seed, "three levels")
    table = bottom_up_table(listed, settings, seed)
    drawn = {**three, **two, **more}
    two_sets, three_sets = ({name: known for name, (known, _) in sets.items()} for sets in (two, three))
    answers = answer_rows(roots, settings, seed)
    published = readme(taxis, settings.max_size) if taxis else None
    made = [
        about({name: known for name, (known, _) in drawn.items()}),
        taxi_table(table, published),
        naive_part(naive(roots, settings, seed)),
        naive_answers(answers),
        *([figure_1(by_rank(taxis, settings, seed))] if taxis else []),
        figure(4, of_two, two_ways, two_sets, ["The paper leaves out $H_g$ × $H_g$."]),
        figure(5, of_two, lines_of(("Hc x Hc", "Hg x Hg")), two_sets, ["Weighted merging."]),
        figure(6, of_three, lines_of(THREE), three_sets, ["Weighted merging."]),
        matching(of_three),
        *([joint_part(joint(taxis, settings, seed))] if taxis else []),
    ]
    return Study("Kuo et al. 2018, reproduced", made, said(settings, seed, drawn))


Sets = tuple[
    dict[str, Known], dict[str, Known], dict[str, tuple[Known, int]], dict[str, tuple[Runs, int]],
    dict[str, Known],
]  # fmt: skip
"""Data of two levels and of three; those of the table, with their runs; roots; and others to describe."""


def of_file(path: Path, settings: Settings) -> Sets:
    """One of the paper's data sets, by its name there. Groups may be empty, unless it is Synthetic."""
    known = blocks_of(path), int(path.stem == "Synthetic")
    name, two = path.stem, (without_leaves(known[0]), known[1])
    root = known[0].runs.between(0, 1), known[1]
    return {name: two}, {name: known}, {name: (known, settings.table_runs)}, {name: root}, {}


def of_folder(data: Path | None, settings: Settings, seed: int) -> Sets:
    """The data of the folder, and synthetic housing."""
    homes, taxis = present(data, commuting.FILE), present(data, "taxi")
    blocks = present(data, f"hawaiian/{FILE}")
    coast = WEST_COAST if homes else ("S01", "S02", "S03")
    three: dict[str, Known] = {"taxi": (SizeRuns.of(taxi(taxis)), 1)} if taxis else {}
    two = {name: (without_leaves(known), smallest) for name, (known, smallest) in three.items()}
    three["housing, West Coast"] = housing(seed, settings.sized_groups, homes, states=coast), 1
    two["housing"] = housing(seed, settings.sized_groups, homes, counties=False), 1
    nation = housing(seed, settings.housing_groups, homes, counties=settings.nation_runs > 0)
    west = housing(seed, settings.housing_groups, homes, states=coast)
    listed = {name: (three[name], settings.table_runs) for name in three if name == "taxi"}
    listed["housing, West Coast, all groups"] = (west, 1), settings.coast_runs
    if settings.nation_runs:
        listed["housing, nation"] = (nation, 1), settings.nation_runs
    roots = {name: (known.runs.between(0, 1), 1) for name, (known, _) in three.items() if name == "taxi"}
    roots["housing, nation"] = (nation.runs.between(0, 1), 1)
    if blocks is not None:
        three["Hawaiian, West Coast"] = hawaiian(blocks, seed, homes, states=coast), 0
        two["Hawaiian"] = hawaiian(blocks, seed, homes, counties=False), 0
        roots["Hawaiian"] = (two["Hawaiian"][0].runs.between(0, 1), 0)
        if settings.nation_runs:
            listed["Hawaiian"] = (hawaiian(blocks, seed, homes), 0), settings.nation_runs
    more = {"housing, West Coast, all groups": (west, 1), "housing, nation": (nation, 1)}
    return two, three, listed, roots, more


THREE = ("Hc x Hc x Hc", "Hg x Hg x Hg")


def without_leaves(data: SizeRuns) -> SizeRuns:
    """All levels except the last."""
    places = data.hierarchy
    columns = places.columns()
    kept = list(columns)[:-1]
    above = Hierarchy.from_columns(
        {name: columns[name] for name in kept}, kept, places.names[0][0], places.levels[0]
    )
    return SizeRuns(above, data.runs.between(0, above.size))
