"""What is to be optimal: each post-processing step of the papers as an explicit model.

Every model holds its data, and gives its `program()`, its exact `objective(x)`, the `violations(x)` of an
answer, and a `certificate(x)` that proves an answer optimal or says by how much it may miss.
"""

from models.budget_split import BudgetSplit
from models.certificate import Certificate
from models.chebyshev import Chebyshev
from models.clustering import Clustering
from models.constrained_inference import ConstrainedInference
from models.controlled_rounding import ControlledRounding
from models.cost_table import CostTable
from models.cumulative_qip import CumulativeQIP
from models.fixed_sum import FixedSum
from models.group_matching import GroupMatching
from models.hierarchy_qip import HierarchyQIP
from models.isotonic import Isotonic
from models.merging import Merging
from models.model import Model
from models.non_negative_inference import NonNegativeInference
from models.program import Program
from models.segmentation import Segmentation
from models.simplex_qp import SimplexQP
from models.sparsest_chebyshev import SparsestChebyshev
from models.strategy_sdp import StrategySDP
from models.tree import Tree
from models.tree_chebyshev import TreeChebyshev
from models.tree_matching import TreeMatching
from models.witnesses.lagrangian import lagrangian_bound
from models.witnesses.program_certificate import lagrangian_certificate

__all__ = [
    "BudgetSplit",
    "Certificate",
    "Chebyshev",
    "Clustering",
    "ConstrainedInference",
    "ControlledRounding",
    "CostTable",
    "CumulativeQIP",
    "FixedSum",
    "GroupMatching",
    "HierarchyQIP",
    "Isotonic",
    "Merging",
    "Model",
    "NonNegativeInference",
    "Program",
    "Segmentation",
    "SimplexQP",
    "SparsestChebyshev",
    "StrategySDP",
    "Tree",
    "TreeChebyshev",
    "TreeMatching",
    "lagrangian_bound",
    "lagrangian_certificate",
]
