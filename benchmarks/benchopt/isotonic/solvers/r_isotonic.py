"""R's isotonic regressions: of the packages isotone and Iso, and of R itself."""

import numpy as np
import rpy2.robjects as robjects
from benchopt import BaseSolver
from rpy2.robjects.packages import isinstalled

FITS = {
    "isotone": "function(y, p) isotone::gpava(seq_along(y), y, solver ="
    " if (p == 1) isotone::weighted.median else weighted.mean)$x",
    "Iso": "function(y, p) Iso::pava(y)",
    "stats": "function(y, p) stats::isoreg(y)$yf",
}


class Solver(BaseSolver):
    name = "R"
    requirements = ["r-base", "rpy2"]
    parameters = {"package": [*FITS]}

    def skip(self, p, **_):
        if not isinstalled(self.package):
            return True, f'install.packages("{self.package}")'
        return (True, "only squares") if p == 1 and self.package != "isotone" else (False, None)

    def set_objective(self, y, p, **_):
        self.p, self.y = p, robjects.FloatVector(y.astype(np.float64))
        self.fit = robjects.r(FITS[self.package])

    def run(self, _):
        self.x = np.array(self.fit(self.y, self.p))

    def get_result(self):
        return {"x": self.x}
