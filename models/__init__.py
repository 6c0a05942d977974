"""Each post-processing step of the papers as an explicit optimization model.

Every model holds its data and has a `program()`, an exact `objective(x)`, the `violations(x)` of an answer,
and a `certificate(x)` that proves an answer optimal or bounds how far it is from the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.block_inference import BlockInference as BlockInference
    from models.budget_split import BudgetSplit as BudgetSplit
    from models.certificate import Certificate as Certificate
    from models.change_points import ChangePoints as ChangePoints
    from models.chebyshev import Chebyshev as Chebyshev
    from models.clustering import Clustering as Clustering
    from models.constrained_inference import ConstrainedInference as ConstrainedInference
    from models.controlled_rounding import ControlledRounding as ControlledRounding
    from models.cost_table import CostTable as CostTable
    from models.cumulative_qip import CumulativeQIP as CumulativeQIP
    from models.fixed_sum import FixedSum as FixedSum
    from models.group_matching import GroupMatching as GroupMatching
    from models.hierarchy_qip import HierarchyQIP as HierarchyQIP
    from models.isotonic import Isotonic as Isotonic
    from models.joint_tables import JointTables as JointTables
    from models.merging import Merging as Merging
    from models.min_cost_flow import MinCostFlow as MinCostFlow
    from models.model import Model as Model
    from models.non_negative_inference import NonNegativeInference as NonNegativeInference
    from models.programs.program import Program as Program
    from models.reconciliation import Reconciliation as Reconciliation
    from models.segmentation import Segmentation as Segmentation
    from models.simplex_qp import SimplexQP as SimplexQP
    from models.sparsest_chebyshev import SparsestChebyshev as SparsestChebyshev
    from models.strategy_sdp import StrategySDP as StrategySDP
    from models.tree import Tree as Tree
    from models.tree_absolute import TreeAbsolute as TreeAbsolute
    from models.tree_chebyshev import TreeChebyshev as TreeChebyshev
    from models.tree_matching import TreeMatching as TreeMatching
    from models.wasserstein_distance import WassersteinDistance as WassersteinDistance
    from models.witnesses.lagrangian import lagrangian_bound as lagrangian_bound
    from models.witnesses.program_certificate import lagrangian_certificate as lagrangian_certificate
    from models.workload import Workload as Workload
    from models.workload_least_squares import WorkloadLeastSquares as WorkloadLeastSquares
    from models.workload_rounding import WorkloadRounding as WorkloadRounding

# The names are repeated here: type checkers follow only imports, and real imports would load every module.
_WHERE = {
    "BlockInference": "models.block_inference",
    "BudgetSplit": "models.budget_split",
    "Certificate": "models.certificate",
    "ChangePoints": "models.change_points",
    "Chebyshev": "models.chebyshev",
    "Clustering": "models.clustering",
    "ConstrainedInference": "models.constrained_inference",
    "ControlledRounding": "models.controlled_rounding",
    "CostTable": "models.cost_table",
    "CumulativeQIP": "models.cumulative_qip",
    "FixedSum": "models.fixed_sum",
    "GroupMatching": "models.group_matching",
    "HierarchyQIP": "models.hierarchy_qip",
    "Isotonic": "models.isotonic",
    "JointTables": "models.joint_tables",
    "Merging": "models.merging",
    "MinCostFlow": "models.min_cost_flow",
    "Model": "models.model",
    "NonNegativeInference": "models.non_negative_inference",
    "Program": "models.programs.program",
    "Reconciliation": "models.reconciliation",
    "Segmentation": "models.segmentation",
    "SimplexQP": "models.simplex_qp",
    "SparsestChebyshev": "models.sparsest_chebyshev",
    "StrategySDP": "models.strategy_sdp",
    "Tree": "models.tree",
    "TreeAbsolute": "models.tree_absolute",
    "TreeChebyshev": "models.tree_chebyshev",
    "TreeMatching": "models.tree_matching",
    "WassersteinDistance": "models.wasserstein_distance",
    "Workload": "models.workload",
    "WorkloadLeastSquares": "models.workload_least_squares",
    "WorkloadRounding": "models.workload_rounding",
    "lagrangian_bound": "models.witnesses.lagrangian",
    "lagrangian_certificate": "models.witnesses.program_certificate",
}

__all__ = list(_WHERE)
__version__: str
__distribution__ = "hierdp"  # `hierdp` refuses a package of this name without it


if not TYPE_CHECKING:  # so one model's kernels do not load all the others'
    from models.on_demand import on_demand

    __getattr__, __dir__ = on_demand(__name__, __all__, _WHERE)
