"""What the models of partitions of values into runs share."""

from __future__ import annotations

from collections.abc import Callable, Container
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from models import runs
from models.arithmetic import exact, rounding
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import Sums, sums_of
from models.certificate import Certificate, Witness, judge
from models.programs import paths
from models.programs.program import Program

FEW = 40
"""Answers to so many values that are not optimal are compared exactly with the best, too."""


class Partition:
    """A model whose answers mark the first of the values of each run.

    - values, array, shape (n,) or (n, features)
    - clusters: the number of runs; None if it is free.
    """

    values: Any
    clusters: int | None
    exact_up_to: ClassVar[int] = 100
    """Number of values up to which the fast path cuts whole (or `Fraction`) ones exactly."""

    def run_cost(self, first: int, end: int) -> Number:
        """Cost of the run of values ``first … end − 1``; a `Fraction` for exact values."""
        raise NotImplementedError

    @property
    def allowed(self) -> Container[tuple[int, int]] | None:
        """The runs ``(first, end)`` that there may be; None: all."""
        return None

    @property
    def places(self) -> Ints:
        """Where runs may begin and end."""
        return np.arange(self._size + 1)

    @property
    def in_fractions(self) -> bool:
        """Whether the model is small enough, and its values exact, for a fast path in whole numbers."""
        return exact.is_exact(np.asarray(self.values)) and self.places.size <= self.exact_up_to + 1

    def _program(self, number: Callable[[Any], Number]) -> Program:
        """The program with each cost made into a float or a fraction."""
        allowed, rounded = self.allowed, number is float or not exact.is_exact(np.asarray(self.values))

        def cost(first: int, end: int) -> Number:
            return number(self.run_cost(first, end) if allowed is None or (first, end) in allowed else 0)

        return paths.path_program(type(self).__name__, self._size, cost, self.clusters, rounded, allowed)

    @property
    def _size(self) -> int:
        return len(np.asarray(self.values))

    def sums(self) -> Sums:
        """The running sums of values and squares from which costs in floats are computed."""
        return sums_of(np.asarray(self.values))

    def program(self) -> Program:
        """The shortest path through the values; see `models.programs.paths.path_program`.

        Raises `ValueError` if there are more than `models.programs.paths.PROGRAM_UP_TO` values.
        """
        return self._program(float)

    def exact_program(self) -> Program:
        """The same program with costs in fractions; `program` rounds them to floats, as solvers need them."""
        return self._program(Fraction)

    def program_answer(self, x: Any) -> Array:
        """An answer as all variables of the program: its marks, and its runs."""
        return paths.path_answer(runs.starts_of(x, self._size), self._size)

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows, if the number of runs is free: the potentials."""
        return paths.path_prices(witness["potentials"])

    def violations(self, x: Any) -> list[str]:
        """A first value that begins no run, marks other than 0 and 1, a wrong number of runs."""
        return runs.broken(x, self._size, self.clusters)

    def _judge(
        self,
        objective: Number,
        bound: float,
        paid: Number,
        sure: Number,
        proof: Witness,
        more: float,
        least: Callable[[], Fraction | None],
    ) -> Certificate:
        """The certificate from a bound in floats; for exact values, from a comparison of the best cuts.

        - bound: what potentials prove, rounding included, but for what is `paid` in any case.
        - sure: a bound that holds without them.
        - more: added to the `unit` of `models.arithmetic.rounding.of_runs`.
        - least: the least cost, exactly; None if too many cuts are near it. It is only asked for if floats do
          not tell the answer from the best, or there are few values.
        """
        values, reason = np.asarray(self.values), "another partition may cost less"
        rounded = rounding.of_runs(values, more)
        nearly = judge(objective, objective - max(bound + paid, sure), False, proof, reason, rounded)
        if not exact.is_exact(values):
            return nearly
        held = Fraction(bound) + Fraction(paid) - Fraction(rounded.error) if np.isfinite(bound) else sure
        held = max(held, Fraction(sure))
        if held < objective and (nearly.optimal or values.size <= FEW) and (best := least()) is not None:
            held = max(held, min(Fraction(objective), best))
        return judge(objective, objective - held, True, proof, reason)
