"""hierdp's fast path, with the certificate that proves its answer."""

from benchopt import BaseSolver

from solvers import solve


class Solver(BaseSolver):
    name = "hierdp"
    requirements = ["pip::hierdp"]

    def set_objective(self, model, **_):
        self.model = model

    def warm_up(self):
        self.run_once()  # compiles

    def run(self, _):
        self.found = solve(self.model)

    def get_result(self):
        return {"x": self.found.x}
