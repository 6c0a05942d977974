"""OSQP, with its own accuracy."""

import osqp
import scipy.sparse as sp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "OSQP"
    requirements = ["pip::osqp"]
    parameters = {"eps": [1e-3, 1e-8]}

    def set_objective(self, diagonal, slope, rows, lower, upper, size, **_):
        self.size = size
        self.given = sp.diags(diagonal, format="csc"), slope, rows, lower, upper

    def run(self, _):
        solver = osqp.OSQP()
        solver.setup(*self.given, eps_abs=self.eps, eps_rel=self.eps, max_iter=100_000, verbose=False)
        self.x = solver.solve().x

    def get_result(self):
        return {"x": self.x[: self.size]}
