"""What the models of partitions of values into runs share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import runs
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Witness
from models.programs import paths
from models.programs.program import Program


class Partition:
    """A model whose answers mark the first of the values of each run.

    - values, array, shape (n,) or (n, features)
    - clusters: the number of runs; None if it is free.
    """

    values: Any
    clusters: int | None

    def _program(self, number: Callable[[Any], Number]) -> Program:
        """The program with each cost made into a float or a fraction."""
        raise NotImplementedError

    @property
    def _size(self) -> int:
        return len(np.asarray(self.values))

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
