"""What is to be optimal: each post-processing step of the papers as an explicit model.

Every model holds its data, and gives its `program()`, its exact `objective(x)`, the `violations(x)` of an
answer, and a `certificate(x)` that proves an answer optimal or says by how much it may miss.
"""

from models.certificate import Certificate
from models.chebyshev import Chebyshev
from models.cost_table import CostTable
from models.cumulative_qip import CumulativeQIP
from models.hierarchy_qip import HierarchyQIP
from models.isotonic import Isotonic
from models.model import Model
from models.program import Program
from models.sparsest_chebyshev import SparsestChebyshev
from models.tree import Tree
from models.tree_chebyshev import TreeChebyshev

__all__ = [
    "Certificate",
    "Chebyshev",
    "CostTable",
    "CumulativeQIP",
    "HierarchyQIP",
    "Isotonic",
    "Model",
    "Program",
    "SparsestChebyshev",
    "Tree",
    "TreeChebyshev",
]
