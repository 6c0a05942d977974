"""The least and the largest that a sum of true counts can be, given bounds on other sums of them.

With a stated probability, the measurements put bounds on several sums of true counts, all at once. What these
bounds imply about another sum, together with all that is public (counts are at least 0, regions add up to
those above), is a pair of linear programs: the least and the largest value of the sum. Their ends are not
taken from a solver's answer. Any prices of the rows prove a bound on the optimum (`models.lagrangian_bound`,
in exact arithmetic), and this bound is the interval's end: a wrong answer can make the interval wider, never
wrong.

The bounds are a box: each sum has its own, and their probabilities of failing add up to that of the
interval. So it covers at least as often as it says, whatever the dependence between them. An ellipsoid around
all measurements is as safe only if its radius grows with their number. With the radius for one sum, cut to
counts of at least 0, it may cover too rarely (Batlle, Patil, Stanley, Lessig & Kuusela, arXiv 2310.02461).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from models import Program
from models.arithmetic.arrays import Floats, Ints
from models.programs.terms import Block, Term, rows_of


class Bound(NamedTuple):
    """A sum of some counts, times whole numbers, and the least and the largest that it can be."""

    at: Ints
    times: Ints
    low: float
    high: float


@dataclass(eq=False)
class Region:
    """Bounds that sums of unknown whole counts of at least 0 keep.

    - most, shape (counts,): the largest that each count can be; infinite if nothing is known.
    - wanted, shape (counts,): how often each is in the sum whose interval is sought.
    """

    most: Floats
    wanted: Ints
    bounds: list[Bound] = field(default_factory=list)

    def keep(self, at: Ints, times: ArrayLike, low: float, high: float) -> None:
        """Add the bounds of a sum, as whole numbers, since it is one."""
        close = [0.0 if math.isinf(end) else 1e-9 * max(1.0, abs(end)) for end in (low, high)]
        low, high = np.ceil(low - close[0]), np.floor(high + close[1])
        if at.size:
            self.bounds.append(Bound(at, np.broadcast_to(times, at.shape), float(low), float(high)))

    def program(self, sign: int) -> Program:
        """The sum, times a sign, minimized over the counts that keep all bounds."""
        size, count = self.wanted.size, len(self.bounds)
        rows = np.repeat(np.arange(count), [one.at.size for one in self.bounds])
        at, times = (np.concatenate([getattr(b, side) for b in self.bounds]) for side in ("at", "times"))
        low, high = (np.array([getattr(one, side) for one in self.bounds]) for side in ("low", "high"))
        return Program(
            "Region",
            [Block("count", (size,), 0, self.most)],
            [rows_of("bounds", (count, size), (rows, at, times), low, high)],
            [Term("linear", np.arange(size), sign * self.wanted)],
        )

    def interval(self) -> tuple[float, float] | None:
        """The least and the largest sum, as far as they are proved; None if no counts keep all bounds."""
        from solvers import prove, solve  # not for a check of a release's rows

        ends = []
        for sign in (1, -1):
            program = self.program(sign)
            solution = solve(program, "highs")
            if solution.status == "infeasible":
                return None
            bound: Any = None if solution.x is None else prove(program, solution.x).bound
            ends.append(-math.inf if bound is None or bound == -math.inf else math.ceil(bound))
        return max(0.0, ends[0]), -ends[1]
