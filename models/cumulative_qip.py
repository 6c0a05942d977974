"""Monotone and consistent cumulative counts over a tree (M_c; Fioretto & Van Hentenryck 2019, Fig. 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, judge
from models.check.checker import cost_unit
from models.check.reader import prices_of_steps
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Children, Rises, Steps
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import nation_counts, noise, random_noisy
from models.tree import Tree
from models.witnesses.lagrangian import lagrangian_bound

DIGITS = 20
"""Binary digits after the point of prices for whole numbers that are read off an answer."""


@dataclass(frozen=True, eq=False)
class CumulativeQIP(ByProgram):
    """Monotone, consistent cumulative counts nearest to noisy ones.

    M_c of Fioretto & Van Hentenryck 2019, Fig. 7:

        minimize    Σ_r ‖ĉ^r − c̃^r‖²                                   (C1)
        subject to  ĉ^root_N = G                                        (C2)
                    ĉ^r_i ≤ ĉ^r_{i+1}                  for all r, i     (C3)
                    Σ_{c child of r} ĉ^c_i = ĉ^r_i     for all r, i     (C4)
                    ĉ^r_i ∈ {0, 1, …}                  for all r, i     (C5)

    With ``integer=False``, (C5) is ĉ ≥ 0: the relaxation M_c^r before rounding.

    Parameters
    ----------
    tree : Tree
        The regions; one without children is a leaf.
    noisy : array, shape (nodes, sizes)
        Noisy cumulative counts c̃, one row per region in level order.
    total : int
        The public number of groups G ≥ 0.
    integer : bool

    Raises
    ------
    ValueError
        If the shapes do not fit or G is negative.

    Examples
    --------
    >>> model = CumulativeQIP(Tree([[0, 0]]), [[3, 5], [2, 1], [0, 3]], total=5)
    >>> model.objective([[3, 5], [2, 2], [1, 3]]), model.violations([[3, 5], [2, 1], [1, 4]])
    (2, ['C3 monotone: the step of row 1 to entry 1 is -1, not at least 0'])
    """

    tree: Tree
    noisy: ArrayLike
    total: int
    integer: bool = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {"relaxed": {"integer": False}}

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy, ndim=2)
        if noisy.shape[0] != self.tree.size or noisy.shape[1] == 0:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs a row for each of the {self.tree.size} nodes "
                "of the tree and a column for each size"
            )
        object.__setattr__(self, "total", door.total("total", self.total))
        object.__setattr__(self, "noisy", noisy)

    @property
    def counts(self) -> Array:
        """The noisy cumulative counts as an array, shape (nodes, sizes)."""
        return np.asarray(self.noisy)

    @property
    def always_proved(self) -> bool:
        """Whether the fast path proves every answer: over whole numbers its search may stop at a limit."""
        return not self.integer

    def program(self) -> Program:
        """(C1)–(C5), with ``x[r, i]`` = ĉ^r_i."""
        shape = nodes, sizes = self.counts.shape
        lower = np.zeros(shape, np.int64)
        lower[0, -1] = self.total
        block = Block("x", shape, lower, self.total, self.integer, Square(self.counts))
        rows = [Rows("C4 consistency", {"x": Children(self.tree, shape)}, 0, 0)]
        if sizes > 1:
            rows.append(Rows("C3 monotone", {"x": Rises(np.arange(nodes), shape)}, 0, INFINITY))
        return Program("CumulativeQIP", [block], rows)

    def repaired(self, x: Floats) -> Floats:
        """Its leaves without falls, and their sums, scaled to the total."""
        leaves = np.maximum(x[self.tree.leaves], 0.0)
        near: Floats = np.asarray(self.tree.sum_up(np.maximum.accumulate(leaves, axis=1)))
        groups = float(near[0, -1])
        if groups > 0:
            near *= self.total / groups
        near[0, -1] = self.total
        return near

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:
        """Prices that prove an optimal answer of the relaxation, in one pass.

        At an optimum, a region's count differs from the noisy one by half its price less its parent's. This
        determines the prices down the tree, except the price of the total. Each leaf whose last run is
        positive determines that price, and for an optimal answer all agree; here it is their mean.
        """
        tree, x = self.tree, self._read(values["x"], values["x"])
        away = 2 * (x - self._read(self.counts, values["x"]))
        own = np.full(tree.size, -1)
        own[tree.internal] = np.arange(tree.internal.size)
        prices = away[tree.internal]
        prices[:1, -1] = 0
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            inner = np.flatnonzero(own[nodes] >= 0) + nodes.start
            prices[own[inner]] += prices[own[tree.parent[inner]]]
        if tree.depth:
            leaves = x[tree.leaves]
            positive = leaves[:, -1] > 0
            last = positive[:, None] & (leaves >= leaves[:, -1:] - near)
            charge = (away[tree.leaves] + prices[own[tree.parent[tree.leaves]]]) * last
            prices[:, -1] -= charge.sum() / max(1, np.count_nonzero(positive))
        return self.with_rises(values["x"], prices, near)

    def _read(self, numbers: Array, answer: Array) -> Array:
        """Numbers as Fractions for an exact answer over the reals, otherwise as floats."""
        exactly = not self.integer and exact.is_exact(answer) and exact.is_exact(self.counts)
        return exact.fractions(numbers) if exactly else np.asarray(numbers, np.float64)

    def with_rises(self, x: Array, prices: Array, near: float = 0.0) -> dict[str, Array]:
        """Prices of consistency, and with them those of each leaf's steps that are read off an answer."""
        found = {"C4 consistency": prices}
        tree, sizes = self.tree, x.shape[1]
        if sizes > 1:
            own = np.zeros(tree.size, np.int64)
            own[tree.internal] = np.arange(tree.internal.size)
            leaves = self._read(x[tree.leaves], x)
            begins = np.append(np.ones((len(leaves), 1), bool), leaves[:, 1:] > leaves[:, :-1] + near, axis=1)
            starts = np.flatnonzero(begins)
            charge = -2 * self._read(self.counts[tree.leaves], x)
            if tree.depth:
                charge += prices[own[tree.parent[tree.leaves]]]
            # All cells of a run get the same minimum, the mean of their own ones, as far as prices >= 0 can.
            lengths = np.diff(starts, append=begins.size)
            middle = np.clip(np.add.reduceat(charge.ravel(), starts) / lengths / -2, 0, self.total)
            level = np.repeat(middle, lengths).reshape(leaves.shape)
            if not tree.depth:
                level[0, starts[-1] :] = self.total
            slope = 2 * level + charge
            left = np.where(level <= near, -INFINITY, slope)
            right = np.where(level >= self.total - near, INFINITY, slope)
            if not tree.depth:
                left[0, -1] = -INFINITY  # the total is fixed
            steps = np.zeros((tree.size, sizes - 1), slope.dtype)
            chains = Steps(leaves.size, np.arange(0, leaves.size, sizes))
            steps[tree.leaves] = prices_of_steps(
                chains, leaves.ravel(), left.ravel(), right.ravel(), INFINITY, near
            ).reshape(-1, sizes - 1)
            found["C3 monotone"] = steps
        if self.integer:  # a few binary digits, so that the proof is one of whole numbers
            found = {name: np.rint(price * 2.0**DIGITS) / 2.0**DIGITS for name, price in found.items()}
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices of (C3) and (C4), which prove an answer of the relaxation, or bound the gap of a whole one.

        For whole numbers the witness may have `branches`, an integer array of shape (cases, 4): a tree of
        cases with case 0 at its root. A case ``(cell, value, below, above)`` with ``cell >= 0`` splits into
        the case `below`, where that cell is at most `value`, and the case `above`, where it is at least
        ``value + 1``: a whole number is one or the other. A case ``(-1, k, ., .)`` is bounded by the k-th set
        of prices over its remaining domain; prices have one more axis in front. Every answer is in one of the
        cases, so the least of their bounds holds for all answers.
        """
        if not (isinstance(witness, Mapping) and "branches" in witness):
            proof = super().certificate(x, witness)
            if self.integer or witness is None or proof.optimal or proof.bound is None:
                return proof
            # Prices that a search found in floats are a little off; those read off an exact answer are not.
            other = super().certificate(x)
            return other if other.bound is not None and other.bound > proof.bound else proof
        plain = super().certificate(x, {})
        if plain.bound is None:
            return plain
        least, unit = self._least(witness), cost_unit(self._structure[0])
        if unit and least < INFINITY:
            least = Fraction(math.ceil(least * unit), unit)
        return judge(plain.objective, plain.objective - least, True, witness, LEFT)

    def _least(self, witness: Witness) -> Number:
        """The least bound of all cases."""
        if not self.integer:
            raise ValueError("branches are for whole numbers")
        rows = self._structure[1]
        shapes = [(-1, *next(iter(part.operators.values())).rows) for part in rows]
        given = [
            door.exact_array(witness, part.name, shape) for part, shape in zip(rows, shapes, strict=True)
        ]
        sets = [held for held in given if held is not None]
        if len(sets) < len(rows):
            raise ValueError(
                f"branches need a set of prices of {rows[0].name} and {rows[-1].name} for each case"
            )
        cases = _tree(witness["branches"], min(map(len, sets)), self.counts.size)
        program = self.program()
        shape, found = self.counts.shape, []
        lower, upper = (
            np.broadcast_to(np.asarray(side), shape)
            for side in (program.blocks[0].lower, program.blocks[0].upper)
        )
        waiting = [(0, lower.astype(np.int64), upper.astype(np.int64))]
        while waiting:
            case, low, high = waiting.pop()
            cell, value, below, above = cases[case].tolist()
            if cell < 0:
                block = replace(program.blocks[0], lower=low, upper=high)
                prices = np.concatenate([held[value].ravel() for held in sets])
                found.append(lagrangian_bound(replace(program, blocks=[block]), prices))
                continue
            less, more = high.copy(), low.copy()
            less.flat[cell] = min(less.flat[cell], value)
            more.flat[cell] = max(more.flat[cell], value + 1)
            waiting += [(below, low, less), (above, more, high)]
        return min(found)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape with cumulative counts from `random_noisy`, plus noise."""
        tree = Tree.random(rng, int(rng.integers(0, 3)), branching=3, ragged=bool(rng.random() < 0.3))
        sizes = max(1, size // tree.size)
        true = np.cumsum(np.maximum(random_noisy(rng, (tree.leaves.size, sizes)), 0), axis=1)
        counts = np.asarray(tree.sum_up(true), dtype=np.int64)
        return cls(tree, counts + rng.integers(-3, 4, size=counts.shape), int(counts[0, -1]))

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Cumulative counts by up to a thousand sizes in a nation, its states and their counties."""
        tree, true = nation_counts(rng, size, most=1_000)
        true = np.cumsum(true, axis=1)
        return cls(tree, true + noise(rng, true.shape), int(true[0, -1]), **options)


def _tree(values: Any, sets: int, cells: int) -> Array:
    """Check that `branches` is a tree: every case except the first is named exactly once.

    A cycle or a second path to a case would name it twice.
    """
    cases = np.asarray(values)
    whole = np.issubdtype(cases.dtype, np.signedinteger)
    if cases.ndim != 2 or cases.shape[1] != 4 or not len(cases) or not whole:
        raise ValueError("branches must be an array of integers, of shape (cases, 4)")
    cases = cases.astype(np.int64)
    splits = cases[:, 0] >= 0
    named = cases[splits, 2:].ravel()
    if not np.array_equal(np.sort(named), np.arange(1, len(cases))):
        raise ValueError("branches must be a tree: each case but the first is named once")
    if np.any(cases[:, 0] >= cells) or np.any(np.abs(cases[splits, 1]) >= 2**62):
        raise ValueError("branches must split cells of the model, at values under 2**62")
    priced = cases[~splits, 1]
    if np.any((priced < 0) | (priced >= sets)):
        raise ValueError(f"branches must name one of {sets} sets of prices")
    return cases
