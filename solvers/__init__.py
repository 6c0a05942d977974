"""Solve a model: with fast specialised algorithms, or with exact backends.

>>> from models import Chebyshev
>>> solve(Chebyshev([5, 3, -2], total=4)).x
array([3, 1, 0])
"""

from typing import TYPE_CHECKING

from solvers.assertion import assert_optimal
from solvers.backends.table import Backend, backends
from solvers.prove import prove
from solvers.solution import Solution
from solvers.solve import solve

__all__ = ["Backend", "Solution", "assert_optimal", "backends", "prove", "solve"]
__distribution__ = "hierdp"  # `hierdp` refuses a package of this name without it
__version__: str

if not TYPE_CHECKING:
    from models.on_demand import on_demand

    __getattr__, __dir__ = on_demand(__name__, __all__, {})
