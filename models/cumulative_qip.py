"""Monotone and consistent cumulative counts over a tree (M_c; Fioretto & Van Hentenryck 2019, Fig. 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of, fractional, tolerance_for, too_far
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows, Term
from models.programs.trees import children_sums
from models.synthetic import nation_counts, noise, random_noisy
from models.tree import Tree
from models.witnesses.branches import least
from models.witnesses.cumulative import Data, read_off


@dataclass(frozen=True, eq=False)
class CumulativeQIP:
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
    (2, ['C3 monotone: node 1: x[1, 0] = 2 > x[1, 1] = 1'])
    """

    tree: Tree
    noisy: ArrayLike
    total: int
    integer: bool = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {"relaxed": {"integer": False}}

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy, ndim=2)
        if noisy.shape[0] != self.tree.size or noisy.shape[1] == 0:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs a row for each of the {self.tree.size} nodes "
                "of the tree and a column for each size"
            )
        object.__setattr__(self, "total", exact.as_total("total", self.total))
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
        nodes, sizes = self.counts.shape
        step = scipy.sparse.diags([-np.ones(sizes - 1), np.ones(sizes - 1)], [0, 1], shape=(sizes - 1, sizes))
        rises = scipy.sparse.kron(scipy.sparse.identity(nodes), step, format="csr")
        upper, lower = np.full((nodes, sizes), self.total), np.zeros((nodes, sizes), np.int64)
        lower[0, -1] = self.total
        rows = [children_sums("C4 consistency", self.tree, sizes)]
        if sizes > 1:
            many = nodes * (sizes - 1)
            rows.append(Rows("C3 monotone", rises, np.zeros(many), np.full(many, INFINITY)))
        return Program(
            "CumulativeQIP",
            [Block("x", (nodes, sizes), lower, upper, self.integer)],
            rows,
            [Term("quadratic", np.arange(nodes * sizes), 1, self.counts.ravel())],
        )

    def objective(self, x: Any) -> Number:
        """Σ (ĉ − c̃)², an `int` for integer data, however large."""
        away = exact.difference(answer_of(x, self.counts.shape, self.integer), self.counts)
        return exact.dot(away, away)

    def violations(self, x: Any) -> list[str]:
        """Broken totals and sums of children, falls, negative counts and fractions, named as in the paper."""
        x = answer_of(x, self.counts.shape, self.integer)
        return self._broken(x, self._near(x))

    def _near(self, x: Array) -> Array:
        """The answer that x stands for: of floats over the reals, its leaves without falls, and their sums.

        They are scaled to the total.
        """
        if self.integer or exact.is_exact(x):
            return x
        leaves = np.maximum(x[self.tree.leaves], 0.0)
        near = np.asarray(self.tree.sum_up(np.maximum.accumulate(leaves, axis=1)))
        groups = float(near[0, -1])
        if groups > 0:
            near *= self.total / groups
        return near

    def _broken(self, x: Array, near: Array) -> list[str]:
        """The violations; `near` is the feasible answer beside x, which of exact answers is x itself."""
        slack = 0 if self.integer else tolerance_for(x, self.counts, np.array([self.total]))
        far = [] if near is x else too_far(x, near, slack)
        empty = self.total > 0 and not near[0, -1]  # no factor gives these counts the total
        if near is not x and not far and not empty:
            return []
        x = exact.widened(x, 2 * self.tree.size)
        found = [f"C5 {text}" for text in fractional(x)] if self.integer else []
        found += [f"C5 x >= 0: x[{r}, {i}] = {x[r, i]}" for r, i in np.argwhere(x < -slack)]
        for r, i in np.argwhere(x[:, 1:] < x[:, :-1] - slack):
            found.append(f"C3 monotone: node {r}: x[{r}, {i}] = {x[r, i]} > x[{r}, {i + 1}] = {x[r, i + 1]}")
        inner = self.tree.internal
        sums = self.tree.child_sums(x) if inner.size else x[:0]
        for k, i in np.argwhere(np.abs(sums - x[inner]) > slack):
            r = inner[k]
            found.append(f"C4 consistency: node {r}, size {i}: children sum to {sums[k, i]}, not {x[r, i]}")
        if empty or abs(x[0, -1] - self.total) > slack:
            found.append(f"C2 total: x[0, {x.shape[1] - 1}] = {x[0, -1]}, not {self.total}")
        return found or far

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Compute the bound that a witness proves, and compare the answer with it.

        The witness is a mapping of arrays. `prices`, shape (internal nodes, sizes), are prices y of (C4).
        A second array is one of two:

        - `rises`, integers, shape (leaves, sizes): 1 where the leaves' rows may rise. The prices of (C3)
          follow from it in one pass. It is for the relaxation.
        - `falls`, shape (nodes, sizes − 1): the prices μ ≥ 0 of (C3). It is for whole numbers.

        With `branches`, a tree of cases (`models.witnesses.branches`), `prices` and `falls` have one more
        axis in front, one set of prices for each case that is not split further.

        For feasible x, Σ y·(children − parent) is 0 and Σ μ·(x_i − x_i+1) is at most 0. Adding twice their
        sum to (C1) therefore does not increase it, and the minimum, cell by cell, is at most the optimum
        (`models.witnesses.cumulative`, in whole numbers). Over whole numbers the minimum is over whole
        values, and for whole data the bound is rounded up.

        Without a witness, prices and rises are read off the answer; for an optimal answer of the relaxation
        they leave no gap.

        Raises
        ------
        ValueError
            If the answer or the witness is not of the right shape or type, or prices are not finite.
        """
        x = answer_of(x, self.counts.shape, self.integer)
        near = self._near(x)
        if broken := self._broken(x, near):
            return infeasible(self.objective(x), broken)
        x = near
        objective = self.objective(x)
        if not exact.is_exact(self.counts) and not math.isfinite(objective):
            return judge(objective, math.inf, False, {}, "the objective overflows")
        data = Data(self.tree, self.counts, self.total, self.integer)
        held = read_off(data, x) if witness is None else witness
        proved = least(data, held)
        if self.integer and exact.is_exact(self.counts):
            whole = self.counts.dtype != object or all(value == value // 1 for value in self.counts.flat)
            low = math.ceil(proved) if whole else proved
            return judge(objective, objective - low, True, held, LEFT)
        large = max(rounding.reach(self.counts), float(self.total))
        return judge_exactly(Fraction(objective), proved, False, held, LEFT, min(1.0, large * large))

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
