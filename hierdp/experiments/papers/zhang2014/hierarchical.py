"""Does clustering help a hierarchical release? AHP at every region, followed by consistency."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.data.commuting import FILE, commuting
from hierdp.data.taxi import taxi
from hierdp.execution.resume import Row
from hierdp.experiments.papers.zhang2014.settings import Settings
from hierdp.experiments.run import all_rows, by_level, crossed, noise_for, present, summed_up
from hierdp.experiments.study import Part
from hierdp.mechanisms.clustering import METHODS
from hierdp.privacy.noise import Noise
from hierdp.record.step import Step
from hierdp.reports import plots
from models import BlockInference, HierarchyQIP, Tree, Workload
from models.arithmetic.arrays import Floats

if TYPE_CHECKING:
    from pandas import DataFrame

Regional = tuple[tuple[str, ...], Tree, NDArray[np.int64]]
"""Names of the levels, the tree, and true counts of shape (nodes, bins)."""

WAYS = (
    "Laplace", "AHP", "Laplace, inference", "AHP, inference", "Laplace, QIP", "AHP, QIP", "mixed, QIP",
    "Laplace, leaves only", "AHP, leaves only",
)  # fmt: skip
SHOWN = ("AHP", "Laplace, inference", "AHP, inference", "Laplace, QIP", "AHP, QIP", "mixed, QIP")


def parts(settings: Settings, data: Path | None, seed: int) -> list[Part]:
    """The experiment on the available data; no part if there are none."""
    sets = regional(data)
    if not sets:
        return []
    runs = errors(sets, settings, seed)
    text = (
        "Root mean squared errors per bin, by level; ± over runs. A histogram at every region, by noise on "
        "every bin (Laplace) or optimal clustering (AHP), with equal shares of ε; made consistent by "
        "BlockInference with equal variances (inference), or by HierarchyQIP with its total (QIP). Mixed: "
        "AHP at the leaves, plain noise above. Leaves only: all of ε at the leaves, added up."
    )
    frames = {f"hierarchical_{name}": _table(runs[runs.data == name]) for name in sets}
    drawn = _figure(runs, sets)
    return [Part("hierarchical", "AHP at every region of a hierarchy", [text], frames, drawn)]


def regional(data: Path | None) -> dict[str, Regional]:
    """Taxis by size in Manhattan, and workers by county of work in each home state."""
    sets: dict[str, Regional] = {}
    if there := present(data, "taxi"):
        taxis = taxi(there)
        sets["taxi"] = taxis.hierarchy.levels, taxis.hierarchy.tree, taxis.counts[:, 1:]
    if there := present(data, FILE):
        trips = commuting(there)
        counties = trips.axes[0]
        states = counties.tree.nodes_of(1)
        home = counties.tree.parent[counties.tree.leaves][trips.cells[:, 0]] - states.start
        tree = Tree([np.zeros(states.stop - states.start, np.int64)])
        leaves = np.zeros((tree.leaves.size, trips.axes[1].names[-1].size), dtype=np.int64)
        np.add.at(leaves, (home, trips.cells[:, 1]), trips.counts)
        sets["commuting"] = ("nation", "state"), tree, np.asarray(tree.sum_up(leaves))
    return sets


def errors(sets: Mapping[str, Regional], settings: Settings, seed: int) -> DataFrame:
    """Root mean squared error by level of every run."""
    cases = crossed(data=sets, epsilon=settings.hierarchy_epsilons, run=range(settings.hierarchy_runs))
    return all_rows(_errors, cases, "AHP at every region", (sets, seed))


def _errors(sets: Mapping[str, Regional], seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    levels, tree, true = sets[name]
    released = answers(tree, true, epsilon, noise_for(seed, "hierarchical", name, epsilon, run))
    return [
        {"way": way, "level": level, "rmse": float(np.sqrt(((counts - true)[nodes] ** 2).mean()))}
        for way, counts in released.items()
        for level, nodes in zip(levels, map(tree.nodes_of, range(len(levels))), strict=True)
    ]


def answers(tree: Tree, true: NDArray[np.int64], epsilon: float, noise: Noise) -> dict[str, Floats]:
    """The counts of each of `WAYS`, by name, shape (nodes, bins)."""
    share = epsilon / (tree.depth + 1)

    def each(method: str, counts: NDArray[np.int64], budget: float) -> Floats:
        return np.stack([METHODS[method].publish(row, budget, noise).counts for row in counts])

    plain, ahp = each("Laplace", true, share), each("AHP", true, share)
    mixed = plain.copy()
    mixed[tree.leaves] = ahp[tree.leaves]
    inferred = inference(tree, plain), inference(tree, ahp)
    totals = [max(0, round(float(counts[0].sum()))) for counts in inferred]
    leaves = [
        np.asarray(tree.sum_up(each(method, true[tree.leaves], epsilon))) for method in ("Laplace", "AHP")
    ]
    whole = [qip(tree, plain, totals[0]), qip(tree, ahp, totals[1]), qip(tree, mixed, totals[0])]
    return dict(zip(WAYS, (plain, ahp, *inferred, *whole, *leaves), strict=True))


def qip(tree: Tree, noisy: Floats, total: int) -> Floats:
    """The whole, non-negative, consistent counts nearest to the rounded noisy ones."""
    model = HierarchyQIP(tree, np.rint(noisy).astype(np.int64), total)
    return np.asarray(Step.solve("consistency of all regions", model).solution.x, dtype=np.float64)


def inference(tree: Tree, noisy: Floats) -> Floats:
    """Consistent counts by least squares, each bin by itself."""
    bins = Workload.marginals(noisy.shape[1:], [(0,)])
    model = BlockInference(tree, bins, noisy, np.ones((tree.depth + 1, 1)))
    return np.asarray(Step.solve("consistency of all regions", model).solution.x)


def _table(runs: DataFrame) -> DataFrame:
    return summed_up(
        runs,
        ["epsilon", "way"],
        lambda mine: {"runs": mine.run.nunique()} | by_level(mine.rmse, mine.level, "{}", "±_{}"),
    )


def _figure(runs: DataFrame, sets: Mapping[str, Regional]) -> Any:
    panels = [(name, level) for name, (levels, _, _) in sets.items() for level in levels]
    drawn, axes = plots.figure(2.6 * len(panels), 3.6, len(panels))
    for panel, (name, level) in zip(axes, panels, strict=True):
        mean = runs[(runs.data == name) & (runs.level == level)].groupby(["way", "epsilon"]).rmse.mean()
        for k, way in enumerate(SHOWN):
            ratio = (mean[way] / mean["Laplace"]).sort_index()
            panel.plot(ratio.index, ratio.to_numpy(), label=way, **plots.style(k))
        panel.axhline(1, color="#888888", linewidth=1)
        plots.label(panel, f"{name}: {level}", "ε, of all levels", log="xy", ticks=runs.epsilon)
    ends = np.array([panel.get_ylim() for panel in axes])
    for panel in axes:  # one scale for all, to compare them
        panel.set_ylim(ends[:, 0].min(), ends[:, 1].max())
        plots.plain_log(panel.yaxis)
    axes[0].set_ylabel("RMSE per bin over that of plain noise")
    plots.below(drawn, axes[:1], len(SHOWN))
    return drawn
