"""Who is held against whom, on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks import instances as i
from benchmarks.peers import shared
from models import BudgetSplit, Chebyshev, FixedSum, HierarchyQIP, SimplexQP, Tree

OURS = {"hierdp": shared.fast_path, "hierdp, proved": shared.certified}

Job = Callable[[Any], Any]


@dataclass(frozen=True)
class Contest:
    """A model, its instances by size, and the programs that solve it.

    `peers`: by name, where the program is (``cvxpy.isotonic`` is that function of `with_cvxpy`) and the size
    up to which it is asked; or, in words, why there is none.
    """

    name: str
    make: Callable[[Any, int], Any]
    peers: dict[str, tuple[str, int] | str]
    sizes: tuple[int, ...]

    def entrants(self, size: int) -> dict[str, Job]:
        """Who takes part at a size."""
        at = {name: where for name, where in self.peers.items() if not isinstance(where, str)}
        return {**OURS, **{name: partial(_run, job) for name, (job, most) in at.items() if size <= most}}

    @property
    def cannot(self) -> dict[str, str]:
        """Libraries that have no program of it, and why."""
        return {name: why for name, why in self.peers.items() if isinstance(why, str)}


def _run(where: str, model: Any) -> Any:
    library, _, name = where.partition(".")
    return getattr(import_module(f"benchmarks.peers.with_{library}"), name)(model)


def _hierarchy(rng: Any, cells: int) -> HierarchyQIP:
    """A nation, states of ten counties, ten sizes."""
    counties = max(10, cells // 11)
    states = max(1, counties // 10)
    tree = Tree([np.zeros(states, int), np.sort(np.arange(counties) % states)])
    true = tree.sum_up(i.heavy(rng, (counties, 10)))
    return HierarchyQIP(tree, true + i.noise(rng, true.shape, 5.0), int(true[0].sum()))


ALL = 10**9
HIGHS = "Pyomo, HiGHS"


def both(name: str, most: int, pyomo: str = "pyomo") -> dict[str, tuple[str, int] | str]:
    """A plain program by each library, up to a size that they manage."""
    return {"cvxpy": (f"cvxpy.{name}", most), HIGHS: (f"{pyomo}.{name}", most)}


def over_trees(name: str, most: int) -> dict[str, tuple[str, int] | str]:
    """The same for the models over trees."""
    return both(name, most, "pyomo_trees")


CONTESTS = (
    Contest(
        "Isotonic, L2",
        i.isotonic(),
        {
            "scikit-learn": ("others.scikit_isotonic", ALL),
            "SciPy": ("others.scipy_isotonic", ALL),
            **both("isotonic", 2_000),
        },
        (2_000, 1_000_000),
    ),
    Contest("Isotonic, L1", i.isotonic(p=1), both("isotonic", 2_000), (2_000, 1_000_000)),
    Contest("Clustering", i.clustering(), both("path", 50), (50, 65_536)),
    Contest(
        "Clustering into 16",
        i.clustering(16, 0.0),
        {
            "kmeans1d": ("others.kmeans1d", ALL),
            "scikit-learn": ("others.scikit_kmeans", ALL),
            **both("path", 50),
        },
        (50, 65_536),
    ),
    Contest(
        "Segmentation",
        i.segmentation(),
        {"ruptures, PELT": ("others.ruptures_pelt", 2_000), **both("path", 50)},
        (50, 2_000, 65_536),
    ),
    Contest(
        "Segmentation into 16",
        i.segmentation(16),
        {"ruptures, Dynp": ("others.ruptures_dynamic", 500), **both("path", 50)},
        (50, 500, 4_096),
    ),
    Contest(
        "GroupMatching",
        i.matching,
        {
            "SciPy, assignment": ("others.scipy_assignment", 200),
            "SciPy, linprog": ("others.scipy_transport", 200),
            **both("matching", 200),
        },
        (200, 1_000_000),
    ),
    Contest(
        "Merging",
        i.merging,
        {"NumPy": ("others.numpy_merging", ALL), **both("merging", 200)},
        (200, 1_000_000),
    ),
    Contest(
        "SimplexQP",
        i.of_total(SimplexQP),
        {"cvxpy, rounded": ("cvxpy.fixed_sum_rounded", 2_000), **both("fixed_sum", 100)},
        (100, 2_000, 1_000_000),
    ),
    Contest("FixedSum, L1", i.of_total(FixedSum, p=1), both("fixed_sum", 2_000), (2_000, 1_000_000)),
    Contest(
        "Chebyshev",
        i.of_total(Chebyshev),
        {"inf-tda": ("others.inf_tda", 2_000), **both("chebyshev", 2_000)},
        (2_000, 1_000_000),
    ),
    Contest(
        "SparsestChebyshev",
        i.sparsest,
        {"inf-tda": ("others.inf_tda", 100), **both("sparsest", 100)},
        (100, 1_000_000),
    ),
    Contest(
        "ControlledRounding",
        i.rounding,
        {"numpy.rint": ("others.numpy_rounding", ALL), **both("rounding", 2_000)},
        (2_000, 1_000_000),
    ),
    Contest("CostTable", i.cost_table, both("cost_table", 2_000), (2_000, 1_000_000)),
    Contest(
        "HierarchyQIP",
        _hierarchy,
        {"cvxpy, rounded": ("cvxpy.hierarchy_rounded", 1_100), **over_trees("hierarchy", 110)},
        (110, 1_100, 1_100_000),
    ),
    Contest("CumulativeQIP, relaxed", i.cumulative, over_trees("cumulative", 1_000), (1_000, 20_000)),
    Contest("TreeMatching", i.tree_matching, over_trees("tree_matching", 1_000), (1_000, 100_000)),
    Contest("TreeChebyshev", i.tree_chebyshev, over_trees("tree_chebyshev", 1_000), (1_000, 1_000_000)),
    Contest(
        "ConstrainedInference",
        i.inference,
        {"OpenDP": ("others.opendp_inference", ALL), **over_trees("inference", 1_000)},
        (1_000, 1_000_000),
    ),
    Contest(
        "NonNegativeInference",
        i.non_negative(False),
        {"SciPy, NNLS": ("others.scipy_nnls", 1_000), **over_trees("non_negative", 1_000)},
        (1_000, 1_000_000),
    ),
    Contest(
        "NonNegativeInference, integer",
        i.non_negative(True),
        over_trees("non_negative", 200),
        (200, 1_000_000),
    ),
    Contest(
        "BudgetSplit",
        lambda rng, n: BudgetSplit(rng.uniform(1, 1e6, n), 1.0),
        {"SciPy, SLSQP": ("others.scipy_budget", 30), **both("budget", 30)},
        (30,),
    ),
    Contest(
        "StrategySDP",
        i.strategy,
        {"cvxpy": ("cvxpy.strategy", 400), HIGHS: "Pyomo has no semidefinite matrices"},
        (400, 4_096),
    ),
)
