"""What is measured of the true counts: sums or choices, their noise, their share of the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hierdp.privacy.budget import CHOICE, GAUSSIAN, GEOMETRIC
from hierdp.privacy.decaying_threshold import DECAYING, decay_of
from hierdp.privacy.noise import Law, Threshold, delta_of, dropping
from hierdp.privacy.threshold import Changes
from models import Tree
from models.arithmetic.arrays import Ints


class Parents(NamedTuple):
    """Nodes whose children a query measures: the answers to the children add up to theirs.

    - at, int64 array, shape (n,): which answers to the query before are theirs; they were chosen by their
      noise.
    - offsets, int64 array, shape (n + 1,): the first child of each.
    - public: the count of a single node that is public, and no answer to a query before.
    """

    at: Ints
    offsets: Ints
    public: int | None = None


@dataclass(frozen=True, eq=False)
class Query:
    """A question about the true counts, which is answered with noise.

    - name: as the budget names it.
    - sensitivity: the most that one person changes: in L1 norm for double-geometric noise, in L2 norm for
      Gaussian noise, and of a score for a private choice.
    - loss: the share of the budget: ε, or ρ for Gaussian noise.
    - of: from the true counts to the answers without noise: an array, or arrays of them in their order if
      they are `in_parts`. For a private choice, to an array of scores for each answer; if they are made in
      sequence, to a function from those made so far to the next scores.
    - noise: which noise, by its name in a budget.
    - groups, int64 array, shape (true counts,): if the answers are sums, and each true count is part of one:
      the number of that sum. It may depend on earlier answers.
    - level: if the answers are those of nodes of a level of a public tree, and add up to their parents' if
      both have equally many: the tree and the level. A node may have several answers, one after the other.
    - nodes (int64 array): with `level`: which nodes of the level have answers, from 0, in increasing order;
      those of the others are 0. Default: all.
    - cells, int64 array, shape (cells of a node,): with `level`, if a node has a true count of each of
      several cells, and its answers are sums of these, each cell in one of them: the number of that answer.
    - parents: if the answers are those of the children of some nodes: these nodes.
    - threshold: if only noisy counts that reach a threshold are recorded. Then `answers` is the number of all
      counts, and `of` gives the positions of the positive ones, in ascending order, and these counts.
    - splits: if the answers are decisions which nodes of a tree are split, 1 or 0 for each node with
      children, and `of` gives the counts of all nodes.
    - allowed: whether these answers of a private choice, or decisions, exist.
    - in_sequence: whether each answer is a private choice that depends on those before it; they share the
      loss equally.
    - which: what the answers depend on beside their name, if none of the above says it: queries of one name
      for which these are equal are of the same sums.
    - in_parts: whether the true answers are made in parts, because they may be many. Then the noisy ones have
      32 bits where these suffice.
    """

    name: str
    sensitivity: int | float
    loss: float
    answers: int
    of: Callable[[Any], Any]
    noise: str = GEOMETRIC
    groups: Ints | None = None
    level: tuple[Tree, int] | None = None
    nodes: Ints | None = None
    cells: Ints | None = None
    parents: Parents | None = None
    threshold: Threshold | None = None
    splits: Tree | None = None
    allowed: Callable[[Ints], bool] | None = None
    in_sequence: bool = False
    in_parts: bool = False
    which: tuple[Ints, ...] | None = None

    @property
    def law(self) -> Law:
        """What is drawn for it."""
        return Law(self.name, self.sensitivity, self.loss, self.noise, self.threshold)

    @property
    def times(self) -> int:
        """The number of measurements that the query stands for."""
        return self.answers if self.in_sequence else 1

    @property
    def noisy(self) -> bool:
        """Whether the answers are the true ones plus noise."""
        return self.noise in (GEOMETRIC, GAUSSIAN)

    @property
    def delta(self) -> float | None:
        """The δ of a threshold; None without one."""
        return None if self.threshold is None else delta_of(*self.threshold, self.loss)


def counts(name: str, loss: float, size: int) -> Query:
    """All true counts themselves; one person changes one of them by 1."""
    return Query(name, 1, loss, size, lambda truth: truth, groups=np.arange(size))


def sums(name: str, loss: float, groups: Ints) -> Query:
    """Sums of true counts by group, of which one person changes one by 1.

    - loss: ε.
    - groups, int64 array, shape (true counts,): the group of each count, from 0; no group is empty.
    """
    return Query(name, 1, loss, int(groups.max()) + 1, lambda truth: sums_by(truth, groups), groups=groups)


def level_sums(name: str, loss: float, tree: Tree, level: int) -> Query:
    """Sums of true counts, those of a tree's leaves, by the nodes of a level; one person changes one by 1."""
    nodes = tree.nodes_of(level)

    def of(truth: Ints) -> Ints:
        return np.asarray(tree.sum_up(truth)[nodes])

    return Query(name, 1, loss, nodes.stop - nodes.start, of, level=(tree, level))


def choices(
    name: str, sensitivity: int, loss: float, among: Sequence[int], scores: Callable[[Any], Sequence[Ints]]
) -> Query:
    """Private choices among disjoint parts of the data, of which one person changes one.

    - sensitivity: the most that one person changes a score.
    - loss: ε of all of them together, because one person is in one part.
    - among: the number of candidates of each choice.
    - scores: from the true counts to an array of whole scores for each choice.
    """
    most = np.asarray(among, dtype=np.int64)

    def allowed(chosen: Ints) -> bool:
        return bool(((chosen >= 0) & (chosen < most)).all())

    return Query(name, sensitivity, loss, most.size, scores, CHOICE, allowed=allowed)


def splits(name: str, loss: float, tree: Tree) -> Query:
    """Decisions which nodes of a tree over the true counts are split; see `decaying_threshold`.

    - loss: ε of all decisions together.
    - tree: public; its leaves have the true counts.
    """
    above = tree.parent[tree.internal[1:]]

    def allowed(split: Ints) -> bool:
        made: Ints = np.zeros(tree.size, dtype=np.int64)
        made[tree.internal] = split
        return bool((split >= 0).all() and (split[1:] <= made[above]).all() and split[0] <= 1)

    law = f"{DECAYING}{decay_of(loss, max(2, tree.most_children)).step}"
    return Query(name, 1, loss, tree.internal.size, tree.sum_up, law, splits=tree, allowed=allowed)


def over_threshold(
    name: str, changes: Changes, loss: float, answers: int, of: Callable[[Any], tuple[Ints, Ints]], least: int
) -> Query:
    """Noisy counts of positive counts, if they reach a threshold; (ε, δ)-DP.

    - changes: what one person changes.
    - loss: ε.
    - answers: the number of all counts, also of those that are 0.
    - of: from the true counts to the positions of the positive ones, in ascending order, and these counts.
    """
    hidden = Threshold(changes, least)
    return Query(name, changes.in_all, loss, answers, of, dropping(least), threshold=hidden)


def sums_by(values: Ints, groups: Ints) -> Ints:
    """The sum of the values, or rows of values, of each group; shape (groups, …)."""
    order = None if (np.diff(groups) >= 0).all() else np.argsort(groups, kind="stable")
    there, first = np.unique(groups if order is None else groups[order], return_index=True)
    found = np.zeros((int(groups.max()) + 1, *values.shape[1:]), dtype=np.int64)
    values = values if order is None else values[order]
    if values.size < 500 * there.size:
        found[there] = np.add.reduceat(values, first, dtype=np.int64)
        return found
    for group, begin, end in zip(there, first, np.append(first[1:], len(values)), strict=True):
        values[begin:end].sum(axis=0, out=found[group, ...])  # of many values, in a fifth of reduceat's time
    return found
