"""With presolve, COPT calls an answer optimal that costs a third more: three variables, two rows.

minimize x² + (y − 1)² + z² with x ≤ y ≤ z. The optimum is 1/2, at (0, 1/2, 1/2); COPT says 2/3.
"""

import coptpy
from coptpy import COPT

FINDING = {
    "solver": "COPT", "package": "coptpy", "first seen": "8.0.7",
    "says": "2/3 is optimal; the optimum is 1/2",
    "option": "Presolve, on by default",
    "workaround": "Presolve=0",
}  # fmt: skip


def solved(presolve):
    model = coptpy.Envr().createModel()
    model.setParam("Presolve", presolve)
    x, y, z = (model.addVar(lb=-COPT.INFINITY) for _ in range(3))
    model.addConstrs([y - x >= 0, z - y >= 0])
    model.setObjective(x * x + (y - 1) * (y - 1) + z * z)
    model.solve()
    return model.status == COPT.OPTIMAL, model.objval


def still():
    called, cost = solved(-1)
    return called and cost > 0.6


if __name__ == "__main__":
    for presolve in (-1, 0):
        called, cost = solved(presolve)
        print(f"presolve {presolve}: called optimal: {called}, objective {cost:.6f}; optimum 0.5")
