"""What models of one parent's children share: the sums that constrain the children's histograms."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.certificate import Witness
from models.programs.terms import INFINITY
from models.workload import Workload

LATER = {"later": True}
"""Metadata of a field that files of instances leave out where it is None, as the benchmark's do."""


class OfChildren:
    """A model of the histograms of one parent's children, with bounds on sums of their cells.

    With `offsets`, there is a problem for each of several parents, side by side; ``parent`` and prices of its
    cells then have a row for each.

    A dataclass that inherits from it has the fields below, and ``data``, whose first array has a row for each
    child.
    """

    workload: Workload
    parent: ArrayLike | None
    rules: Workload | None
    lower: ArrayLike | None
    upper: ArrayLike | None
    offsets: ArrayLike | None

    each_child: ClassVar[tuple[str, ...]]
    """The fields with a row for each child."""

    @property
    def data(self) -> tuple[Array, Array]:
        """The children's values, and the weights."""
        raise NotImplementedError

    @cached_property
    def children(self) -> int:
        """Number of children."""
        return len(self.data[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an answer: children by cells."""
        return self.children, self.workload.cells

    @cached_property
    def cuts(self) -> Ints:
        """The first child of each problem, then the number of children; shape (problems + 1,)."""
        return np.array([0, self.children]) if self.offsets is None else np.asarray(self.offsets)

    @property
    def problems(self) -> int:
        """Number of problems side by side: one for each parent."""
        return self.cuts.size - 1

    @property
    def parents(self) -> Array:
        """The sums of the children's histograms; shape (problems, cells)."""
        return np.reshape(np.asarray(self.parent), (-1, self.workload.cells))

    @property
    def home(self) -> Ints:
        """The problem of each child."""
        return np.repeat(np.arange(self.problems), np.diff(self.cuts))

    @property
    def price_shape(self) -> tuple[int, ...]:
        """The shape of the prices of the parent's cells: (cells,), or with offsets (problems, cells)."""
        return (self.workload.cells,) if self.offsets is None else (self.problems, self.workload.cells)

    def by_child(self, each: Array) -> Array:
        """What each child's problem has; shape (problems, n), or (n,) if there is one, → (children, n)."""
        return each if self.offsets is None else each[self.home]

    def by_problem(self, each: Array) -> Array:
        """The sums over the children of each problem; shape (children, n) → (problems, n)."""
        return np.asarray(np.add.reduceat(exact.widened(each, len(each)), self.cuts[:-1], axis=0))

    def part(self, problem: int) -> tuple[Self, slice]:
        """One of the problems side by side as a model of its own, and the slice of its children."""
        if self.offsets is None:
            return self, slice(None)
        here = slice(int(self.cuts[problem]), int(self.cuts[problem + 1]))
        held = {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}
        rows = {name: held[name][here] for name in self.each_child if held[name] is not None}
        one = object.__new__(type(self))  # its data were checked with all
        one.__dict__.update({**held, **rows, "parent": self.parents[problem], "offsets": None})
        return one, here

    def witness_of(self, witness: Witness, problem: int) -> Witness:
        """The part of a witness that is about one of the problems side by side."""
        here = self.part(problem)[1]
        at = {"prices": problem, "parent": [problem]}
        return {name: part[at.get(name, here)] for name, part in witness.items()}

    def check_offsets(self) -> None:
        """Check `offsets`, and replace them by a read-only array.

        Raises `ValueError` if they do not divide the children, or there is no parent.
        """
        if self.offsets is None:
            return
        offsets = door.data("offsets", self.offsets)
        if self.parent is None:
            raise ValueError("offsets divide the children among parents; give a row of `parent` for each")
        if offsets.dtype != np.int64 or offsets.size < 2 or offsets[0] or offsets[-1] != self.children:
            raise ValueError(f"offsets must go from 0 to the number of children, {self.children}")
        wrong = np.flatnonzero(np.diff(offsets) < 1)
        if wrong.size:
            raise ValueError(f"offsets[{wrong[0] + 1}] is not above the one before: each parent has children")
        object.__setattr__(self, "offsets", offsets)

    def named_cell(self, problem: int, cell: int) -> str:
        """A cell of a parent, for messages."""
        return f"cell {cell}" if self.offsets is None else f"parent {problem}, cell {cell}"

    @property
    def answer_size(self) -> int:
        """How many numbers an answer holds: one for each child and cell."""
        return self.children * self.workload.cells

    @property
    def sides(self) -> tuple[Array, Array]:
        """``(lower, upper)`` of the rules, shape (children, rules.size) each."""
        if self.rules is None:
            return np.zeros((self.children, 0)), np.zeros((self.children, 0))
        return np.asarray(self.lower), np.asarray(self.upper)


def for_each_child(name: str, values: Array, children: int, each: int) -> Array:
    """One row for each child, read-only; shape (each,) or (children, each) → (children, each).

    Raises `ValueError` if the values have another shape.
    """
    if values.shape not in ((each,), (1, each), (children, each)):
        raise ValueError(
            f"{name} has shape {values.shape}; it needs {each} entries, or {each} for each of the "
            f"{children} children"
        )
    found = np.array(np.broadcast_to(values, (children, each)))
    found.flags.writeable = False
    return found


def keep_bounds(model: Any, rules: Workload | None, children: int, whole: bool = False) -> None:
    """Check a model's bounds of each child's sums, and keep a row for each; infinite where none was given.

    - model: with a workload over the attributes of the rules; its `lower` and `upper` have the shape (),
      (rules.size,) or (children, rules.size).
    - rules: the sums; None if there are none.

    Raises `ValueError` if a bound has a wrong shape or is not a number, or if there are bounds without rules.
    """
    if rules is None:
        if model.lower is not None or model.upper is not None:
            raise ValueError("lower and upper are bounds of rules; there are no rules")
        return
    if rules.shape != model.workload.shape:
        raise ValueError(f"rules are over the shape {rules.shape}, not {model.workload.shape}")
    for name, missing in (("lower", -INFINITY), ("upper", INFINITY)):
        side = getattr(model, name)
        side = door.sides(name, missing if side is None else side)
        if side.ndim == 0:
            side = np.broadcast_to(side, (rules.size,))
        object.__setattr__(model, name, for_each_child(name, side, children, rules.size))
        if whole and not door.are_whole(side):
            raise ValueError(f"{name} must be whole numbers, or infinite where there is no bound")
