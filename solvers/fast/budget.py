"""The budget split in closed form: shares in proportion to the cube roots of the weights."""

from __future__ import annotations

import numpy as np

from models import BudgetSplit
from models.arithmetic.arrays import Floats


def solve_budget(model: BudgetSplit) -> tuple[Floats, None]:
    """The optimum (Qardaji, Yang & Li 2013, §3.5); the shares add up to ε within rounding."""
    weights, epsilon = model.data
    roots = np.cbrt(weights)
    return np.asarray(epsilon * (roots / roots.sum())), None
