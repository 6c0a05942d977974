"""ProxQP calls a feasible linear program infeasible if its rows are written as Gx ≤ h instead of −Gx ≥ −h.

The least absolute changes of (3, 1, 4) to increasing numbers v: minimize t₀ + t₁ + t₂ with v₀ ≤ v₁ ≤ v₂ and
|v − z| ≤ t. The optimum is 2, at v = (1, 1, 4) for example.
"""

import numpy as np
import proxsuite
from proxsuite import proxqp

one, none = np.eye(3), np.zeros((2, 3))
rising = np.array([[-1.0, 1, 0], [0, -1, 1]])
z = np.array([3.0, 1, 4])
rows = np.block([[rising, none], [-one, one], [one, one]])
least = np.concatenate([[0, 0], -z, z])
cost = np.array([0.0, 0, 0, 1, 1, 1])
infinite = np.full(8, np.inf)

for name, given in (
    ("rows ≥ least", (rows, least, infinite)),
    ("-rows ≤ -least", (-rows, -infinite, -least)),
):
    found = proxqp.dense.solve(np.zeros((6, 6)), cost, None, None, *given)
    status, version = found.info.status, proxsuite.__version__
    print(f"ProxQP {version}, {name}: {status}, objective {cost @ found.x:.6f}; optimum 2")
