"""HiGHS with one broken promise, which the argument names."""

from dataclasses import replace

from solvers.backends import highs
from solvers.backends.table import Backend
from solvers.solution import Answer, NoAnswer


class Session(highs.Session):
    def __init__(self, program, effort, how):
        self.how = how
        if how == "no licence":
            raise NoAnswer("unsupported", "there is no licence")
        super().__init__(replace(program, objective=[]) if how == "objective" else program, effort)
        if how == "gap":
            self._highs.setOptionValue("mip_rel_gap", 1e-4)

    def add_rows(self, rows):
        if self.how != "rows":
            super().add_rows(rows)

    def run(self, seconds):
        answer = super().run(seconds)
        if self.how == "prices" and answer.prices is not None:
            return replace(answer, prices=-answer.prices)
        if self.how == "bound" and answer.bound is not None:
            return replace(answer, bound=answer.bound + 0.1)
        if self.how in ("objective", "gap"):
            return replace(answer, bound=None)
        if self.how == "infeasible" and answer.status == "infeasible":
            return Answer("unbounded")
        if self.how == "silent" and answer.status == "infeasible":
            return Answer("numerical")
        if self.how == "limit" and answer.status in ("feasible", "time_limit"):
            return Answer("error", message="the time is over")
        return answer


def row(how):
    """The backend's row in the table of backends; over the reals, only the check of added rows adds rows."""
    takes = {"integer": how != "rows", "quadratic": True}
    return Backend(f"broken {how}", "x", "highspy", "x", __name__, argument=how, **takes)
