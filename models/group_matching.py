"""The matching of a parent's groups with its children's that changes sizes least (Kuo et al. 2018, §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.certificate import Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of

Table = ArrayLike | tuple[ArrayLike, ArrayLike]
"""Runs of groups of one size: a pair of arrays ``(sizes, counts)``, or an array of shape (runs, 2)."""

PAIR = np.dtype([("parent", np.int64), ("child", np.int64), ("count", np.int64)])
"""One entry of a sparse matching: `count` groups of a parent's run are groups of a child's run."""

RUNS_APART = 100
"""Runs for each problem that `GroupMatching.apart` gives, on average: their programs are dense, so small."""


@dataclass(frozen=True, eq=False)
class GroupMatching:
    """The perfect matching of a parent's groups with its children's that changes sizes least.

        minimize    Σ_{i,j} x_ij · |s_i − s_j|          Kuo et al. 2018, §5.2: the weight of an edge
        subject to  Σ_j x_ij = count of run i of τ       is |τ.Ĥg[i] − c.Ĥg[j]|
                    Σ_i x_ij = count of run j of c
                    x ≥ 0, x integer

    Groups of one size in one node are indistinguishable, so groups are given, and matched, in runs: x_ij is
    how many groups of the parent's run i are matched with groups of run j, where j numbers the runs of all
    children, child by child. This is a transportation problem, and its linear program has whole optima.

    An answer is either a dense matrix of shape (parent runs, child runs), as in programs and from backends;
    or a sparse one-dimensional array of the dtype `PAIR` with fields ``parent``, ``child`` and ``count``, as
    from the fast path. `objective`, `violations` and `certificate` take both.

    Parameters
    ----------
    parent_sizes : table of runs
        A pair ``(sizes, counts)`` of int arrays, or one NumPy array of shape (runs, 2). Sizes may repeat
        and come in any order; counts may be 0.
    child_sizes : table of runs, sequence of such tables, or three int arrays
        One table per child; a single table stands for a single child. (Two plain lists are one pair of sizes
        and counts, never two runs.) Or the sizes, the counts and the children of all runs, child by child.

    Raises
    ------
    ValueError
        If a table is malformed or not of integers, a count is negative, a size is beyond 60 bits, or the
        parent and its children differ in their number of groups.

    Examples
    --------
    >>> model = GroupMatching(([1, 2], [300, 100]), [([1], [200]), ([1, 3], [100, 100])])
    >>> model.objective([[200, 100, 0], [0, 0, 100]])
    100
    >>> model.certificate([[200, 0, 100], [0, 100, 0]]).gap
    200
    >>> model.certificate(np.array([(0, 0, 200), (0, 1, 100), (1, 2, 100)], dtype=PAIR)).optimal
    True
    """

    parent_sizes: Table
    child_sizes: Table | Sequence[Table]

    def __post_init__(self) -> None:
        parent = as_runs("parent_sizes", self.parent_sizes)
        given: Any = self.child_sizes
        if isinstance(given, tuple) and len(given) == 3 and all(map(_is_flat, given)):
            child = door.data("child_sizes children", given[2])
            children: Any = (*as_runs("child_sizes", given[:2]), child)
            if child.dtype != np.int64 or child.shape != children[0].shape or (np.diff(child) < 0).any():
                raise ValueError("child_sizes: there must be a child for each run, in ascending order")
        elif _is_table(given):
            children = (as_runs("child_sizes", given),)
        else:
            children = tuple(as_runs(f"child_sizes[{c}]", table) for c, table in enumerate(given))
        object.__setattr__(self, "parent_sizes", parent)
        object.__setattr__(self, "child_sizes", children)
        above, below = self.groups, int(exact.total(self.children[1]))
        if above != below:
            raise ValueError(f"the parent has {above} groups, its children together {below}")
        if above >= 2**62:
            raise ValueError(f"there are {above} groups: beyond 62 bits")

    @property
    def parent(self) -> tuple[Ints, Ints]:
        """``(sizes, counts)`` of the parent's runs."""
        table: Any = self.parent_sizes
        return table[0], table[1]

    @cached_property
    def children(self) -> tuple[Ints, Ints, Ints]:
        """``(sizes, counts, child)`` of all children's runs, child by child."""
        tables: Any = self.child_sizes
        if len(tables) == 3 and all(map(_is_flat, tables)):
            return tables[0], tables[1], tables[2]
        empty = [np.empty(0, np.int64)]
        return (
            np.concatenate(empty + [sizes for sizes, _ in tables]),
            np.concatenate(empty + [counts for _, counts in tables]),
            np.repeat(np.arange(len(tables)), [sizes.size for sizes, _ in tables]),
        )

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(exact.total(self.parent[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Runs of the parent, and of all children: the shape of a dense answer."""
        return self.parent[0].size, self.children[0].size

    @property
    def program_size(self) -> int:
        """How many variables `program` has: far more than a sparse answer."""
        return self.shape[0] * self.shape[1]

    def program(self) -> Program:
        """The transportation problem above, dense: for small tables of runs."""
        (sizes, counts), (child_sizes, child_counts, _) = self.parent, self.children
        p, c = self.shape
        i, j = (index.ravel() for index in np.indices((p, c)))
        each, ones = np.arange(p * c), np.ones(p * c)
        return Program(
            "GroupMatching",
            [Block("x", (p, c), 0, np.minimum.outer(counts, child_counts), True)],
            [
                rows_of("parent groups", (p, p * c), (i, each, ones), counts, counts),
                rows_of("child groups", (c, p * c), (j, each, ones), child_counts, child_counts),
            ],
            [Term("linear", each, np.abs(sizes[i] - child_sizes[j]))],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the potentials, the children's negated."""
        return np.concatenate([witness["parent_potential"], exact.negated(witness["child_potential"])])

    def program_answer(self, x: Any) -> Array:
        """A dense or a sparse answer as the program's variables; shape (parent runs, child runs)."""
        i, j, count = self.pairs(x)
        dense = np.zeros(self.shape, np.int64)
        np.add.at(dense, (i, j), count)
        return dense

    def apart(self, x: Any, witness: Witness) -> Iterator[tuple[GroupMatching, Array, Witness]]:
        """Problems of which this one is the sum, in order of size, with their answers and witnesses.

        Where the parent and its children have equally many groups of at most some size, an optimal matching,
        which `x` must be, matches no group of such a size with a larger one.
        """
        (sizes, counts), (child_sizes, child_counts, child) = self.parent, self.children
        both = np.concatenate([sizes, child_sizes])
        order = np.argsort(both, kind="stable")
        more = np.cumsum(exact.widened(np.concatenate([counts, -child_counts])[order], order.size))
        ends = np.flatnonzero((more[:-1] == 0) & (np.diff(both[order]) > 0)) + 1
        ends = ends[np.diff(ends // RUNS_APART, prepend=0) > 0]
        part = np.empty(order.size, np.int64)
        part[order] = np.searchsorted(ends, np.arange(order.size), side="right")
        pairs = self.pairs(x)
        i, j, count = (column[pairs[2] != 0] for column in pairs)
        above, below = part[: sizes.size], part[sizes.size :]
        potentials = np.asarray(witness["parent_potential"]), np.asarray(witness["child_potential"])
        split = [_by_part(of, ends.size + 1) for of in (above, below, above[i])]
        place = np.empty(order.size, np.int64)
        for own, under, pair in zip(*split, strict=True):
            place[own], place[sizes.size + under] = np.arange(own.size), np.arange(under.size)
            answer = np.empty(pair.size, PAIR)
            answer["parent"], answer["child"] = place[i[pair]], place[sizes.size + j[pair]]
            answer["count"] = count[pair]
            table = child_sizes[under], child_counts[under], child[under]
            prices = {"parent_potential": potentials[0][own], "child_potential": potentials[1][under]}
            yield GroupMatching((sizes[own], counts[own]), table), answer, prices

    def pairs(self, x: Any) -> tuple[Ints, Ints, Array]:
        """``(parent run, child run, count)`` of a dense or a sparse answer.

        Raises
        ------
        ValueError
            If a dense answer has the wrong shape, or a sparse one names a run that does not exist.
        """
        array = np.asarray(x)
        if array.dtype != PAIR:
            dense = door.answer(array, self.shape, integer=True)
            i, j = np.nonzero(dense)
            return i, j, dense[i, j]
        if array.ndim != 1:
            raise ValueError(f"a sparse answer must have 1 axis, got shape {array.shape}")
        for side, runs in zip(("parent", "child"), self.shape, strict=True):
            wrong = np.flatnonzero((array[side] < 0) | (array[side] >= runs))
            if wrong.size:
                k = wrong[0]
                raise ValueError(f"x[{k}] names {side} run {array[side][k]}; there are {runs}, from 0")
        return array["parent"], array["child"], array["count"]

    def objective(self, x: Any) -> exact.Number:
        """Σ |size − size′| over all matched groups, an `int` for whole answers."""
        i, j, count = self.pairs(x)
        return exact.dot(np.abs(self.parent[0][i] - self.children[0][j]), count)

    def violations(self, x: Any) -> list[str]:
        """Runs whose groups are not all matched, once each; counts that are negative or not whole."""
        i, j, count = self.pairs(x)
        found = [f"x >= 0: x[{i[k]}, {j[k]}] = {count[k]}" for k in np.flatnonzero(count < 0)]
        if not np.issubdtype(count.dtype, np.integer):
            for k in np.flatnonzero(count != count // 1):
                found.append(f"integer: x[{i[k]}, {j[k]}] = {count[k]}")
        count = exact.widened(count, count.size)
        for side, at, held in (("parent", i, self.parent[1]), ("child", j, self.children[1])):
            matched = np.zeros(held.size, dtype=count.dtype)
            np.add.at(matched, at, count)
            for run in np.flatnonzero(matched != held):
                found.append(f"{side} groups: run {run} has {held[run]}, matched are {matched[run]}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A potential for each run, checked in order of size; O(runs log runs).

        Let potentials differ by no more than the sizes do, |π(s) − π(s′)| ≤ |s − s′|. Then a matched pair
        costs at least π(s) − π(s′), so a matching costs at least Σ π over the parent's groups minus Σ π over
        the children's (Kantorovich & Rubinstein 1958). Only neighbours in order of size have to be compared.

        Without a witness, potentials are read off the sizes. Let D(s) be the number of the parent's groups of
        size at most s, minus the children's number. A matching carries at least |D(s)| groups over the step
        from s to s + 1. The potential that rises by 1 where D < 0 and falls by 1 where D > 0 proves Σ |D|,
        which is the cost of matching in order of size.

        Parameters
        ----------
        x : int array, shape (parent runs, child runs), or of the dtype `PAIR`
        witness : mapping, optional
            ``parent_potential`` and ``child_potential``, whole numbers, one for each run. If the potentials
            of two neighbours are further apart than their sizes, they prove nothing.
        """
        i, j, count = self.pairs(x)
        objective = exact.dot(np.abs(self.parent[0][i] - self.children[0][j]), count)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        (sizes, counts), (child_sizes, child_counts, _) = self.parent, self.children
        both = np.concatenate([sizes, child_sizes])
        order = np.argsort(both, kind="stable")
        steps = np.diff(both[order])
        parent = door.whole_array(witness, "parent_potential", sizes.shape)
        child = door.whole_array(witness, "child_potential", child_sizes.shape)
        if parent is None or child is None:
            more = np.cumsum(exact.widened(np.concatenate([counts, -child_counts])[order], order.size))
            rising = np.zeros(order.size, dtype=np.int64)
            np.cumsum(-np.sign(more[:-1]) * steps, out=rising[1:])
            potential = np.empty_like(rising)
            potential[order] = rising
            parent, child = potential[: sizes.size], potential[sizes.size :]
        else:
            rising = np.concatenate([parent, child])[order]
        bound = 0
        if np.all(np.abs(np.diff(rising)) <= steps):
            bound = max(0, int(exact.dot(parent, counts)) - int(exact.dot(child, child_counts)))
        proof = {"parent_potential": parent, "child_potential": child}
        reason = f"the sorted sizes are at distance {bound}: swapping partners would cost less"
        return judge(objective, objective - bound, True, proof, reason)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """A few children (some without groups), repeated sizes, empty and single runs, far outliers."""
        runs = max(1, int(np.sqrt(size)))
        children = int(rng.integers(1, 5))
        far = int(rng.choice([3, 10, 1000]))
        tables = []
        for _ in range(children):
            length = int(rng.integers(0, 2 + runs // children))
            tables.append((rng.integers(0, far, length), rng.integers(0, 6, length)))
        groups = sum(int(counts.sum()) for _, counts in tables)
        cuts = np.sort(rng.integers(0, groups + 1, size=int(rng.integers(0, runs))))
        counts = np.diff(np.concatenate([[0], cuts, [groups]]))
        return cls((rng.integers(0, far + 3, counts.size), counts), tables)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """`size` runs in all: half of them the parent's, the others those of ten children."""
        sizes = rng.permutation(2 * size)[: size // 2]
        groups = rng.integers(1, 20, sizes.size)
        moved = np.maximum(sizes + rng.integers(-50, 51, sizes.size), 0)
        children = zip(np.array_split(moved, 10), np.array_split(groups, 10), strict=True)
        return cls((sizes, groups), list(children), **options)


def _by_part(part: Ints, parts: int) -> list[Ints]:
    """The positions of the entries of each part, in ascending order."""
    return np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=parts))[:-1])


def _is_table(given: Any) -> bool:
    """Whether this is one table of runs, not a sequence of them."""
    if isinstance(given, np.ndarray):
        return given.ndim == 2
    return isinstance(given, tuple | list) and len(given) == 2 and all(map(_is_flat, given))


def _is_flat(side: Any) -> bool:
    try:
        return np.ndim(side) == 1
    except ValueError:  # ragged
        return False


def as_runs(name: str, given: Any) -> tuple[Ints, Ints]:
    """The sizes and counts of a table of runs; a ValueError says what is wrong with it."""
    if not _is_table(given) or (isinstance(given, np.ndarray) and given.shape[1] != 2):
        raise ValueError(f"{name} must be a pair (sizes, counts) or an array of shape (runs, 2)")
    sides = given.T if isinstance(given, np.ndarray) else given
    sizes, counts = door.data(f"{name} sizes", sides[0]), door.data(f"{name} counts", sides[1])
    for what, side in (("sizes", sizes), ("counts", counts)):
        if side.dtype != np.int64:
            raise ValueError(f"{name} {what} must be integers, got {side.dtype}")
    if sizes.size != counts.size:
        raise ValueError(f"{name} has {sizes.size} sizes but {counts.size} counts")
    wrong = np.flatnonzero(counts < 0)
    if wrong.size:
        raise ValueError(f"{name} counts[{wrong[0]}] is {counts[wrong[0]]}: a run has at least 0 groups")
    far = np.flatnonzero((sizes >= 2**60) | (sizes <= -(2**60)))
    if far.size:
        raise ValueError(f"{name} sizes[{far[0]}] is {sizes[far[0]]}: beyond 60 bits")
    return sizes, counts
