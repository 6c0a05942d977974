"""The programs to compare, by model and size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.peers import shared
from models import (
    BudgetSplit,
    Chebyshev,
    Clustering,
    ConstrainedInference,
    ControlledRounding,
    CostTable,
    CumulativeQIP,
    FixedSum,
    GroupMatching,
    HierarchyQIP,
    Isotonic,
    Merging,
    NonNegativeInference,
    Segmentation,
    SimplexQP,
    SparsestChebyshev,
    StrategySDP,
    Tree,
    TreeChebyshev,
    TreeMatching,
)
from models.synthetic import heavy_tailed, noise

OURS = {"hierdp": shared.fast_path, "hierdp, proved": shared.certified}

Job = Callable[[Any], Any]


@dataclass(frozen=True)
class Contest:
    """A model, its instances by size, and the programs that solve it.

    `peers`: by name, where the program is (``cvxpy.isotonic`` is that function of `with_cvxpy`) and the
    largest size to run it on; or, in words, why there is no program.
    """

    name: str
    make: Callable[[Any, int], Any]
    peers: dict[str, tuple[str, int] | str]
    sizes: tuple[int, ...]

    def entrants(self, size: int) -> dict[str, Job]:
        """The programs to run at a size."""
        at = {name: where for name, where in self.peers.items() if not isinstance(where, str)}
        return {**OURS, **{name: partial(_run, job) for name, (job, most) in at.items() if size <= most}}

    @property
    def cannot(self) -> dict[str, str]:
        """The libraries without a program, and why."""
        return {name: why for name, why in self.peers.items() if isinstance(why, str)}


def _run(where: str, model: Any) -> Any:
    library, _, name = where.partition(".")
    return getattr(import_module(f"benchmarks.peers.with_{library}"), name)(model)


def _hierarchy(rng: Any, cells: int) -> HierarchyQIP:
    """A nation, states of ten counties, ten sizes.

    Not `HierarchyQIP.typical`, whose larger instances have more sizes: plain programs must be able to solve
    the small instances, and the large ones should differ from these only in the number of regions.
    """
    counties = max(10, cells // 11)
    states = max(1, counties // 10)
    tree = Tree([np.zeros(states, int), np.sort(np.arange(counties) % states)])
    true = tree.sum_up(heavy_tailed(rng, (counties, 10)))
    return HierarchyQIP(tree, true + noise(rng, true.shape, 5.0), int(true[0].sum()))


ALL = 10**9
HIGHS = "Pyomo, HiGHS"


def both(name: str, most: int, pyomo: str = "pyomo") -> dict[str, tuple[str, int] | str]:
    """A plain program in each library, up to a feasible size."""
    return {"cvxpy": (f"cvxpy.{name}", most), HIGHS: (f"{pyomo}.{name}", most)}


def over_trees(name: str, most: int) -> dict[str, tuple[str, int] | str]:
    """A plain program in each library, for models over trees."""
    return both(name, most, "pyomo_trees")


CONTESTS = (
    Contest("Isotonic, L2", Isotonic.typical, {
        "scikit-learn": ("others.scikit_isotonic", ALL), "SciPy": ("others.scipy_isotonic", ALL),
        **both("isotonic", 2_000)}, (2_000, 1_000_000)),
    Contest("Isotonic, L1", partial(Isotonic.typical, p=1), both("isotonic", 2_000), (2_000, 1_000_000)),
    Contest("Clustering", Clustering.typical, both("path", 50), (50, 65_536)),
    Contest("Clustering into 16", partial(Clustering.typical, noise_scale=0.0, clusters=16), {
        "kmeans1d": ("others.kmeans1d", ALL), "scikit-learn": ("others.scikit_kmeans", ALL),
        **both("path", 50)}, (50, 65_536)),
    Contest("Segmentation", Segmentation.typical,
            {"ruptures, PELT": ("others.ruptures_pelt", 2_000), **both("path", 50)}, (50, 2_000, 65_536)),
    Contest("Segmentation into 16", partial(Segmentation.typical, clusters=16),
            {"ruptures, Dynp": ("others.ruptures_dynamic", 500), **both("path", 50)}, (50, 500, 4_096)),
    Contest("GroupMatching", GroupMatching.typical, {
        "SciPy, assignment": ("others.scipy_assignment", 200),
        "SciPy, linprog": ("others.scipy_transport", 200), **both("matching", 200)}, (200, 1_000_000)),
    Contest("Merging", Merging.typical,
            {"NumPy": ("others.numpy_merging", ALL), **both("merging", 200)}, (200, 1_000_000)),
    Contest("SimplexQP", SimplexQP.typical,
            {"cvxpy, rounded": ("cvxpy.fixed_sum_rounded", 2_000), **both("fixed_sum", 100)},
            (100, 2_000, 1_000_000)),
    Contest("FixedSum, L1", partial(FixedSum.typical, p=1), both("fixed_sum", 2_000), (2_000, 1_000_000)),
    Contest("Chebyshev", Chebyshev.typical,
            {"inf-tda": ("others.inf_tda", 2_000), **both("chebyshev", 2_000)}, (2_000, 1_000_000)),
    Contest("SparsestChebyshev", SparsestChebyshev.typical,
            {"inf-tda": ("others.inf_tda", 100), **both("sparsest", 100)}, (100, 1_000_000)),
    Contest("ControlledRounding", ControlledRounding.typical,
            {"numpy.rint": ("others.numpy_rounding", ALL), **both("rounding", 2_000)}, (2_000, 1_000_000)),
    Contest("CostTable", CostTable.typical, both("cost_table", 2_000), (2_000, 1_000_000)),
    Contest("HierarchyQIP", _hierarchy,
            {"cvxpy, rounded": ("cvxpy.hierarchy_rounded", 1_100), **over_trees("hierarchy", 110)},
            (110, 1_100, 1_100_000)),
    Contest("CumulativeQIP, relaxed", partial(CumulativeQIP.typical, integer=False),
            over_trees("cumulative", 1_000), (1_000, 20_000)),
    Contest("TreeMatching", TreeMatching.typical, over_trees("tree_matching", 1_000), (1_000, 100_000)),
    Contest("TreeChebyshev", TreeChebyshev.typical, over_trees("tree_chebyshev", 1_000), (1_000, 1_000_000)),
    Contest("ConstrainedInference", ConstrainedInference.typical,
            {"OpenDP": ("others.opendp_inference", ALL), **over_trees("inference", 1_000)},
            (1_000, 1_000_000)),
    Contest("NonNegativeInference", NonNegativeInference.typical,
            {"SciPy, NNLS": ("others.scipy_nnls", 1_000), **over_trees("non_negative", 1_000)},
            (1_000, 1_000_000)),
    Contest("NonNegativeInference, integer", partial(NonNegativeInference.typical, integer=True),
            over_trees("non_negative", 200), (200, 1_000_000)),
    Contest("BudgetSplit", BudgetSplit.typical,
            {"SciPy, SLSQP": ("others.scipy_budget", 30), **both("budget", 30)}, (30,)),
    Contest("StrategySDP", StrategySDP.typical,
            {"cvxpy": ("cvxpy.strategy", 400), HIGHS: "Pyomo has no semidefinite matrices"}, (400, 4_096)),
)  # fmt: skip
