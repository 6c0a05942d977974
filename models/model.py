"""The interface of every model: the contract between models, backends and certificates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from models.arithmetic import door
from models.arithmetic.answers import FEASIBILITY_TOLERANCE, tolerance_for, too_far
from models.arithmetic.arrays import Array, Floats
from models.arithmetic.exact import Number, together
from models.arithmetic.rounding import reach
from models.certificate import Certificate, Witness, infeasible
from models.check.checker import Structure, check, in_floats, violations
from models.check.floats import broken_in_floats
from models.check.reader import read_prices
from models.programs.costs import Table
from models.programs.program import Program
from models.programs.terms import Block


class Model(Protocol):
    """A post-processing step as an optimization problem; a frozen dataclass of arrays.

    Optional: ``row_prices(witness) -> array``, the witness as one price for each row of `program`.
    `models.lagrangian_bound` at these prices is at least the certificate's bound; `hierdp check` compares
    the two. With it may come what `models.witnesses.row_proofs` needs for that, and to write proofs down:
    ``program_answer(x) -> array``, if an answer is not simply the first block of `program`;
    ``exact_program()``, if `program` is `rounded`, or takes longer; ``program_size``, if `program` may have
    far more variables than the answer, so that it is not built in vain; and ``apart(x, witness)``, the
    problems side by side, if the bound is rounded up for each of them.

    Optional: ``variables(x) -> array``, all variables of `program` at an answer, and
    ``from_row_prices(x, prices) -> witness``, the reverse of ``row_prices``. With these, `solvers.prove`
    finds prices through a backend if there is no fast path.

    The class also declares what is special about a model, so that no other file needs to know its name:

    - ``typical(rng, size, **options) -> model``: an instance as hard as those of releases, with about `size`
      numbers and the model's own options. Benchmarks measure it; default: `random`.
    - ``variants``, dict of dicts: by name, the options of each variant that benchmarks measure. Default: one
      variant, without options.
    - ``random_up_to``, int: size beyond which instances of `random` cost too much. Default: no limit.
    - ``relaxed() -> model or None``: the model over the reals, on which solvers over the reals are compared;
      None if the model is over the reals already, or has no such version.
    - ``always_proved``, bool: whether the fast path proves every answer. Default: True.
    """

    def program(self) -> Program:
        """The model as a neutral program; its first block is the answer, in the model's own order."""

    def objective(self, x: Any) -> Number:
        """The objective at an answer, exact for integer data."""

    def violations(self, x: Any) -> list[str]:
        """Every constraint that the answer breaks, by name; empty for a feasible answer."""

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check a witness: prove that the answer is optimal, or bound how far it is from the optimum.

        It never searches. Without a witness it may read one off the answer, in one pass. The bound is at most
        the optimum for any witness: an unusable one proves nothing, or raises a ValueError.
        """

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """An instance for tests, of about `size` variables; edge cases (ties, zeros, extremes) are common."""


class ByProgram(Model):
    """A model that is its program: blocks with costs, and rows with operators; the rest follows from it.

    A subclass is a frozen dataclass with one method, `program`. The answer is the first block. It may also
    have `repaired`, if answers over the reals are floats; `auxiliary`, if there are further blocks; and
    `read`, if `models.check.reader` cannot read prices off its answers.
    """

    def repaired(self, x: Floats) -> Floats:
        """The answer that x stands for, which keeps all bounds and rows up to rounding; default: x itself.

        A row that is broken by little may be worth much: in a chain of a million entries, falls of 1e-6 add
        up. So an answer in floats is judged as a feasible one beside it.
        """
        return x

    def auxiliary(self, x: Array) -> dict[str, Array]:  # noqa: ARG002
        """The other blocks at an answer, by name: the best values for it."""
        return {}

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:
        """Prices read off an answer, by the name of their rows; see `models.check.reader`."""
        return read_prices(self._structure, values, near)

    def completed(self, values: dict[str, Array], prices: dict[str, Array]) -> dict[str, Array]:  # noqa: ARG002
        """Prices, and those of further rows that the answer determines; default: as they are."""
        return prices

    def within(self, values: dict[str, Array]) -> Structure:  # noqa: ARG002
        """Blocks and rows that prices are checked with; default: those of the program.

        Their bounds may be narrower, if every feasible answer that costs less than this one keeps them.
        """
        return self._structure

    @cached_property
    def _structure(self) -> Structure:
        structure = self.program().structure
        assert structure is not None
        return structure

    def objective(self, x: Any) -> Number:
        """The cost of an answer; exact where answer and data are whole numbers or Fractions."""
        values = self._values(self._answer(x))
        try:
            return sum(
                (block.cost.value(values[block.name]) for block in self._structure[0] if block.cost), 0
            )
        except OverflowError:
            raise ValueError("a number beyond 1e308 has no place beside floats") from None

    def violations(self, x: Any) -> list[str]:
        """Every bound, row and integrality that an answer breaks; empty for a feasible answer."""
        x = self._answer(x)
        if self._structure[0][0].integer or x.dtype.kind != "f":
            return [*violations(self._structure, self._values(x))]
        near, far = self._beside(x)
        return [*(far or broken_in_floats(self._structure, self._values(near)))]

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prove by prices of the rows that the answer is optimal, or bound how far it is from the optimum.

        The bound holds for any prices (`models.check.checker`). Without a witness, they are read off x.

        Parameters
        ----------
        x : array
            Over the reals and in floats, it stands for the answer of `repaired`, if that is nearby: the
            objective is then its own.
        witness : mapping, optional
            Prices by the name of their rows in `program`, one for each row.
        """
        x = self._answer(x)
        block = self._structure[0][0]
        floats = not block.integer and x.dtype.kind == "f"
        if floats:
            near, far = self._beside(x)
            if far:
                return infeasible(self.objective(x), far)
            x = near
        values = self._values(x)
        exact_answer = not floats and not block.integer and in_floats(self._structure[0], values)
        if exact_answer and (broken := violations(self._structure, values)):
            return infeasible(self.objective(x), broken)
        structure = self.within(values)
        if witness is not None and (prices := self._prices(witness)):
            return check(structure, values, self.completed(values, prices))
        proof = check(structure, values, self.read(values, 0.0))
        others: list[dict[str, Array]] = []
        if not proof.optimal and proof.bound is not None:
            free = ((rows.name, next(iter(rows.operators.values()))) for rows in self._structure[1])
            others.append({name: np.zeros(operator.rows, np.int64) for name, operator in free})
            if floats:  # entries of a float solver's answer lie near the kinks of costs and near bounds
                size = FEASIBILITY_TOLERANCE * reach(x, *_numbers_of(block))
                others.append(self.read(values, size))
        proofs = proof, *(check(structure, values, prices) for prices in others)
        return max(proofs, key=lambda each: -math.inf if each.bound is None else each.bound)

    def row_prices(self, witness: Witness) -> Array:
        """The prices of all rows of `program`, put end to end; 0 where the witness has none."""
        given = self._prices(witness)
        none = np.zeros(1, np.int64)
        return together(
            [given.get(rows.name, np.broadcast_to(none, rows.count)).ravel() for rows in self._structure[1]]
        )

    def from_row_prices(self, x: Any, prices: Any) -> Witness:  # noqa: ARG002
        """The reverse of `row_prices`."""
        rows = self._structure[1]
        cuts = np.cumsum([0, *(part.count for part in rows)])
        flat = door.numbers("prices", prices, (int(cuts[-1]),))
        return {part.name: flat[a:b] for part, a, b in zip(rows, cuts[:-1], cuts[1:], strict=True)}

    def variables(self, x: Any) -> Array:
        """All variables of `program` at an answer, put end to end."""
        values = self._values(self._answer(x))
        return together([values[block.name].ravel() for block in self._structure[0]])

    def relaxed(self) -> Self | None:
        """The model over the reals; None if it is over the reals already, or has no such version."""
        if not getattr(self, "integer", False):
            return None
        try:
            return replace(self, integer=False)  # type: ignore[type-var]
        except ValueError:
            return None

    def _answer(self, x: Any) -> Array:
        block = self._structure[0][0]
        return door.answer(x, block.shape, block.integer)

    def _values(self, x: Array) -> dict[str, Array]:
        return {self._structure[0][0].name: x, **self.auxiliary(x)}

    def _beside(self, x: Floats) -> tuple[Floats, Sequence[str]]:
        """The feasible answer beside x, and what is wrong if it is not near."""
        near = self.repaired(x)
        if near is x:
            return x, []
        far = too_far(x, near, tolerance_for(x, *_numbers_of(self._structure[0][0])))
        return near, (far and broken_in_floats(self._structure, self._values(x))) or far

    def _prices(self, witness: Witness) -> dict[str, Array]:
        found = {}
        for rows in self._structure[1]:
            operator = next(iter(rows.operators.values()))
            price = door.prices(witness, rows.name, operator.rows)
            if price is not None:
                found[rows.name] = price
        return found


def _numbers_of(block: Block) -> Iterator[Array]:
    """The finite data of a block: centers and bounds."""
    if block.cost is not None and not isinstance(block.cost, Table):
        yield np.atleast_1d(block.cost.data[0])
    for side in (block.lower, block.upper):
        limits = np.asarray(side, float)
        yield limits[np.isfinite(limits)].ravel()
