"""Sums of cells of which any two nest: what their bounds imply for each of them, and for any set of cells.

Tables whose nested sums are between whole bounds are a generalised polymatroid (Frank & Tardos 1988), and the
whole ones among them an M♮-convex set (Murota 2003). So the least and the most of any set of cells T are
whole. And whole tables of siblings can add up to a given one if and only if it has, in each set of cells T,
at least the sum of their least, and at most the sum of their most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from models import Workload
from models.arithmetic.arrays import Array, Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class NestedSums:
    """Sums of cells as a tree: the parts of a sum are disjoint and cover it. The last one has all cells.

    - answers: for each sum, its positions among the answers of a workload; none if no answer is this sum.
    - parts: for each sum, the sums that divide it, which come before it; none if it is not divided.
    """

    answers: list[Ints]
    parts: list[Ints]

    @classmethod
    def of(cls, sums: Workload, chosen: Flags, zeros: Flags) -> NestedSums | tuple[int, int]:
        """The chosen answers of a workload on the cells that can be positive; two that cross if any do.

        - chosen, shape (sums.size,)
        - zeros, shape (cells,)
        """
        possible = sums.matrix[:, ~zeros]
        rows = np.flatnonzero(chosen & (np.asarray(possible.sum(axis=1)).ravel() > 0))
        every = scipy.sparse.csr_matrix(np.ones((1, possible.shape[1])))
        masks = scipy.sparse.vstack([possible[rows], every], "csr")
        size = np.asarray(masks.sum(axis=1)).ravel().astype(np.int64)
        common = (masks @ masks.T).tocsr()
        common.sort_indices()
        common = common.tocoo()  # pairs that share cells, in order
        one, other, shared = common.row, common.col, common.data.astype(np.int64)
        for k in np.flatnonzero(shared < np.minimum(size[one], size[other]))[:1]:
            return int(rows[one[k]]), int(rows[other[k]])
        same = np.arange(size.size)  # the first of those with the same cells
        alike = size[one] == size[other]
        np.minimum.at(same, one[alike], other[alike])
        first = np.unique(same)
        order = first[np.argsort(size[first], kind="stable")]
        above = np.full(size.size, -1)  # the smallest that contains it
        inside = size[one] < size[other]
        one, other = one[inside], same[other[inside]]
        smallest = np.lexsort((size[other], one))
        child, at = np.unique(one[smallest], return_index=True)
        above[child] = other[smallest][at]
        below: dict[int, list[int]] = {}
        covered = np.zeros(size.size, np.int64)
        np.add.at(covered, above[order[:-1]], size[order[:-1]])
        found = cls([], [])
        members = np.argsort(same, kind="stable")
        groups = np.split(members, np.flatnonzero(np.diff(same[members])) + 1)
        answers = {int(same[group[0]]): rows[group[group < rows.size]] for group in groups}
        for k in order.tolist():
            parts = below.get(k, [])
            if parts and covered[k] < size[k]:
                parts.append(found._add([], []))
            below.setdefault(int(above[k]), []).append(found._add(answers[k], parts))
        return found

    def _add(self, answers: Sequence[int] | Ints, parts: Sequence[int]) -> int:
        self.answers.append(np.array(answers, np.int64))
        self.parts.append(np.array(parts, np.int64))
        return len(self.parts) - 1

    @property
    def divided(self) -> list[int]:
        """The sums with parts, from small to large."""
        return [k for k, parts in enumerate(self.parts) if parts.size]

    @cached_property
    def are_disjoint(self) -> bool:
        """Whether no bounded sum contains another one; then bounds of all regions add up."""
        return self.divided in ([], [len(self.parts) - 1]) and not self.answers[-1].size

    def leaves(self, k: int) -> list[int]:
        """The undivided sums in a sum."""
        return [leaf for part in self.parts[k].tolist() for leaf in self.leaves(part)] or [k]

    def inside(self, k: int) -> list[int]:
        """The divided sums in a sum, from small to large, and the sum itself."""
        parts = [one for part in self.parts[k].tolist() if self.parts[part].size for one in self.inside(part)]
        return [*parts, k]

    def added_up(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Bounds of each sum: its own, and those of its parts added up. They may contradict each other.

        - lower, upper, float arrays, shape (regions, answers): bounds of the workload's answers.

        Returns pair of float arrays, shape (sums, regions).
        """
        low, high = np.zeros((len(self.parts), len(lower))), np.full((len(self.parts), len(lower)), np.inf)
        for k, these in enumerate(self.answers):
            if these.size:
                low[k] = np.maximum(lower[:, these].max(axis=1), 0)
                high[k] = upper[:, these].min(axis=1)
        for k in self.divided:
            low[k] = np.maximum(low[k], low[self.parts[k]].sum(axis=0))
            high[k] = np.minimum(high[k], high[self.parts[k]].sum(axis=0))
        return low, high

    def tight(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The least and the most that each sum can be; `low` and `high` are as from `added_up`."""
        low, high = low.copy(), high.copy()
        for k in self.divided[::-1]:
            parts = self.parts[k]
            least, most = low[parts], high[parts]
            tighten(least, most, low[k], high[k])
            low[parts], high[parts] = least, most
        return low, high

    def raise_bounds(self, lower: Floats, upper: Floats, low: Floats, high: Floats) -> None:
        """Tighten bounds of answers, in place, where they and other sums do not already imply it.

        - lower, upper, float arrays, shape (regions, answers)
        - low, high, float arrays, shape (sums, regions): what each sum must also be between.
        """
        held = self.tight(*self.added_up(lower, upper))
        for k, these in enumerate(self.answers):
            if these.size:
                more, less = low[k] > held[0][k], high[k] < held[1][k]
                lower[more, these[0]] = low[k, more]
                upper[less, these[0]] = high[k, less]

    def extremes(self, k: int, chosen: Flags, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The least and the most that some undivided sums can have together, in tables that keep all bounds.

        As a sum grows from its lower bound, the most that its chosen parts can have grows with it at first,
        and then stays; the least stays at first, and then grows.

        - k: the sum that they are in.
        - chosen, shape (sums,): the undivided sums.
        - low, high, float arrays, shape (sums, regions): as from `tight`.

        Returns pair of float arrays, shape (regions,).
        """
        room = high - low
        most, least = np.where(chosen[:, None], low, 0.0), np.where(chosen[:, None], low, 0.0)
        grows, stays = np.where(chosen[:, None], room, 0.0), np.where(chosen[:, None], 0.0, room)
        for j in self.inside(k):
            parts = self.parts[j]
            if not parts.size:
                continue
            above = low[j] - low[parts].sum(axis=0)
            first, second = grows[parts].sum(axis=0), stays[parts].sum(axis=0)
            most[j] = most[parts].sum(axis=0) + np.minimum(above, first)
            grows[j] = np.minimum(np.maximum(first - above, 0), room[j])
            least[j] = least[parts].sum(axis=0) + np.maximum(above - second, 0)
            stays[j] = np.minimum(np.maximum(second - above, 0), room[j])
        return least[k], most[k] + grows[k]


def _along_first(each: Array) -> Array:
    return np.asarray(each.sum(axis=0))


def tighten(
    low: Floats, high: Floats, least: Floats, most: Floats, added: Callable[[Array], Array] = _along_first
) -> None:
    """Tighten, in place, bounds of numbers whose sum is between two others.

    - added: what each number adds up to, with others. Default: all along the first axis.
    """
    infinite = np.isinf(high)
    finite = np.where(infinite, 0, high)
    others = added(finite) - finite
    unbounded = added(infinite.astype(np.int64)) - infinite > 0
    rest = added(low) - low
    np.maximum(low, np.where(unbounded, 0, least - others), out=low)
    np.minimum(high, most - rest, out=high)
