"""A backend that misbehaves in the way that its argument names."""

import os
import signal
import time
from dataclasses import replace

import numpy as np

from solvers.backends import session, table
from solvers.solution import Answer


class Session(session.Session):
    def __init__(self, program, effort, how):
        from solvers.backends.highs import Session as Highs

        self.how, self.size = how, program.size
        self.any = Highs(replace(program, objective=[]), effort)  # its answers only satisfy the rows

    def run(self, seconds):
        if self.how == "lie":
            return Answer("optimal", self.any.run(seconds).variables)
        if self.how == "lie well":
            found = self.any.run(seconds).variables
            return Answer("optimal", found, 1e9)  # with a bound that supports the claim
        if self.how == "break":
            return Answer("optimal", np.zeros(self.size))
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "eat":
            raise MemoryError("no more")
        time.sleep(3600)
        return Answer("error")


def misbehaving(how):
    """The backend's row in the table of backends."""
    takes = {"integer": True, "quadratic": True, "integer_quadratic": True, "absolute": True, "table": True}
    return table.Backend(f"pretend to {how}", "x", "numpy", "x", __name__, argument=how, **takes)
