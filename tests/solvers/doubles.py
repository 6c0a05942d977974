"""A backend whose behaviour is chosen by the name of the program's first block."""

import os
import signal
import time

import numpy as np

from solvers.backends import session
from solvers.solution import Answer, NoAnswer


class Session(session.Session):
    def __init__(self, program, threads):  # noqa: ARG002
        self.order = program.blocks[0].name
        self.size = program.size
        if self.order == "never_stated":
            time.sleep(3600)
        if self.order == "refuse":
            raise NoAnswer("size_limit", "two variables are too many")

    def run(self, seconds):  # noqa: ARG002
        if self.order == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.order == "leave":
            os._exit(3)
        if self.order == "hang":
            time.sleep(3600)
        if self.order == "dawdle":
            time.sleep(0.5)
        if self.order == "eat":
            raise MemoryError("no more")
        if self.order == "hoard":
            return Answer("feasible", np.empty(2**28)[: self.size] * 0)
        if self.order == "stumble":
            raise RuntimeError("out of luck")
        return Answer("feasible", np.full(self.size, 0.5), None, "it stopped short")
