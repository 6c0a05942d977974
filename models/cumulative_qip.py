"""Row 10: cumulative counts by size over a tree of regions, monotone and consistent at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import FLOAT_TOLERANCE, Certificate, Witness, infeasible
from models.cumulative_steps import Steps, squared, times_difference
from models.exact import Number
from models.hierarchy_qip import HierarchyQIP
from models.model import answer_of, fractional, random_noisy, tolerance_for
from models.program import INFINITY, Block, Program, Rows, Term
from models.projections import Consistent, monotone
from models.tree import Tree

Floats = NDArray[np.float64]
Projected = tuple[Floats, Floats, Floats, Floats]

_BETWEEN = 10
"""Rounds from one look at the gap to the next."""


@dataclass(frozen=True, eq=False)
class CumulativeQIP:
    """The M_c post-processing of Fioretto & Van Hentenryck 2019 (Fig. 7).

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
        Noisy cumulative counts c̃, a row a region in level order.
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
    def counts(self) -> NDArray[Any]:
        """The noisy cumulative counts as an array, shape (nodes, sizes)."""
        return np.asarray(self.noisy)

    def program(self) -> Program:
        """(C1)–(C5), with ``x[r, i]`` = ĉ^r_i."""
        nodes, sizes = self.counts.shape
        consistency = HierarchyQIP(self.tree, self.counts, self.total, self.integer).program().rows[1]
        step = scipy.sparse.diags([-np.ones(sizes - 1), np.ones(sizes - 1)], [0, 1], shape=(sizes - 1, sizes))
        rises = scipy.sparse.kron(scipy.sparse.identity(nodes), step, format="csr")
        upper = np.full((nodes, sizes), float(self.total))
        lower = np.zeros((nodes, sizes))
        lower[0, -1] = self.total
        rows = [Rows("C4 consistency", consistency.matrix, consistency.lower, consistency.upper)]
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
        away = answer_of(x, self.counts.shape, self.integer) - self.counts
        return exact.dot(away, away)

    def violations(self, x: Any) -> list[str]:
        """Broken totals, sums of children, falls, negative counts and fractions, by the paper's names."""
        x = answer_of(x, self.counts.shape, self.integer)
        slack = 0 if self.integer else tolerance_for(x)
        found = [f"C5 {text}" for text in fractional(x)] if self.integer else []
        found += [f"C5 x >= 0: x[{r}, {i}] = {x[r, i]}" for r, i in np.argwhere(x < -slack)]
        for r, i in np.argwhere(x[:, 1:] < x[:, :-1] - slack):
            found.append(f"C3 monotone: node {r}: x[{r}, {i}] = {x[r, i]} > x[{r}, {i + 1}] = {x[r, i + 1]}")
        inner = self.tree.internal
        sums = self.tree.child_sums(x) if inner.size else x[:0]
        for k, i in np.argwhere(np.abs(sums - x[inner]) > slack):
            r = inner[k]
            found.append(f"C4 consistency: node {r}, size {i}: children sum to {sums[k, i]}, not {x[r, i]}")
        if abs(x[0, -1] - self.total) > slack:
            found.append(f"C2 total: x[0, {x.shape[1] - 1}] = {x[0, -1]}, not {self.total}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """A lower bound from the relaxation's dual, and the gap to it.

        The dual prices come from `dykstra`, run until the relaxation's own gap, or that of x, is under half
        of `FLOAT_TOLERANCE` of its objective (or 10,000 rounds), and are checked here in floats. Over
        the reals the gap shows an answer optimal to that tolerance. Over whole numbers the same prices give a
        higher bound, the Lagrangian's least whole value, but no fast exact algorithm is known and a true gap
        may remain: it is reported, not hidden, and the answer is called optimal only where the bound, rounded
        up to a whole number, meets the objective.
        """
        x = answer_of(x, self.counts.shape, self.integer)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        real = np.asarray(x, dtype=np.float64)
        known = self.integer or "projected" in self.__dict__
        prices, nearest, consistent, _ = self.projected if known else self.dykstra(near=real)
        miss = _gap(real, (prices, nearest, consistent))
        rounding = FLOAT_TOLERANCE * max(1.0, abs(float(objective)))
        gap: Number = max(miss, 0.0)
        if self.integer and exact.is_exact(self.counts):
            # `consistent` minimizes the Lagrangian over the reals; the nearest whole numbers over those.
            miss -= float(np.sum((consistent - np.rint(consistent)) ** 2))
            gap = max(0, int(np.floor(miss + rounding)))
        optimal = gap == 0 if isinstance(gap, int) else gap <= rounding
        why = "the dual meets it" if optimal else "the bound is a dual one: a gap remains"
        return Certificate(bool(optimal), objective, objective - gap, gap, {"prices": prices}, why)

    @cached_property
    def projected(self) -> Projected:
        """`dykstra`, for the answer and for its certificate: whoever ran it, the prices prove themselves."""
        return self.dykstra()

    def dykstra(self, rounds: int = 10_000, near: Floats | None = None) -> Projected:
        """Project c̃ on the monotone and on the consistent counts in turns, with Dykstra's corrections.

        Consistent counts being a subspace, a round is a step up the gradient of the dual; Nesterov's
        momentum, dropped whenever it leads astray (O'Donoghue & Candès 2015), makes that some dozens of
        rounds in place of tens of thousands. It ends when the relaxation's gap is under half of
        `FLOAT_TOLERANCE` of its objective, or when the prices show as much of `near`, an answer of the
        relaxation: of an optimal one they do so sooner.

        Returns
        -------
        prices, monotone, consistent, feasible : float arrays, shape (nodes, sizes)
            `prices` is normal to the monotone set at `monotone`; `consistent` is the projection of
            ``noisy - prices``; `feasible` is an answer of the relaxation. The relaxation's duality gap is
            ``‖feasible − consistent‖² + 2⟨prices, monotone − feasible⟩``.
        """
        noisy = self.counts.astype(np.float64)
        tree = Consistent(self.tree)
        steps = Steps(tree, noisy, float(self.total))
        turn = 0
        while True:
            more = min(_BETWEEN, rounds - turn)
            steps.go(more)
            turn += more
            point = tree.project(noisy - steps.prices)
            dual = steps.prices, steps.nearest, point
            if near is not None and _proved(near, noisy, dual):
                return *dual, near
            feasible = self._feasible(point)
            if turn == rounds or _proved(feasible, noisy, dual):
                return *dual, feasible

    def _feasible(self, point: Floats) -> Floats:
        """A feasible answer near a consistent one: its leaves made monotone, their last cells made to fit."""
        leaves = monotone(np.concatenate([point[:1], point[self.tree.leaves]]), float(self.total))[1:]
        before = leaves[:, -2].sum() if leaves.shape[1] > 1 else 0.0
        if before > self.total:
            leaves *= self.total / before
            before = float(self.total)
        rest, most = self.total - before, leaves[:, -1].sum() - before
        lower = leaves[:, -2] if leaves.shape[1] > 1 else np.zeros(len(leaves))
        room = leaves[:, -1] - lower
        leaves[:, -1] = lower + (room * (rest / most) if most > 0 else rest / len(leaves))
        return np.asarray(self.tree.sum_up(leaves))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape with cumulated ugly counts and noise."""
        tree = Tree.random(rng, int(rng.integers(0, 3)), branching=3, ragged=bool(rng.random() < 0.3))
        sizes = max(1, size // tree.size)
        true = np.cumsum(np.maximum(random_noisy(rng, (tree.leaves.size, sizes)), 0), axis=1)
        counts = np.asarray(tree.sum_up(true), dtype=np.int64)
        return cls(tree, counts + rng.integers(-3, 4, size=counts.shape), int(counts[0, -1]))


def _gap(x: Floats, dual: tuple[Floats, Floats, Floats]) -> float:
    """What prices leave open of a consistent x: with them, where they are normal, and what they lead to.

    ‖x − b‖² + 2⟨p, a − x⟩: no large numbers are subtracted.
    """
    prices, nearest, point = dual
    return float(squared(x, point) + 2 * times_difference(prices, nearest, x))


def _proved(x: Floats, noisy: Floats, dual: tuple[Floats, Floats, Floats]) -> bool:
    """Whether that is half of the tolerance, or less."""
    return _gap(x, dual) <= 0.5 * FLOAT_TOLERANCE * max(1.0, float(squared(x, noisy)))
