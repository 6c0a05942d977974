"""How many groups of each size each region has."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.counts.hierarchy import Hierarchy
from models.arithmetic.arrays import Ints


@dataclass(frozen=True, eq=False)
class GroupSizes:
    """How many groups of each size each region has. True counts: not for release.

    Parameters
    ----------
    hierarchy : Hierarchy
    counts : int64 array, shape (regions, max_size + 1)
        ``counts[r, k]`` groups of size k in region r; regions of all levels, in level order.
    """

    hierarchy: Hierarchy
    counts: Ints

    @property
    def groups(self) -> int:
        """Number of groups. It is public, as in the papers."""
        return int(self.counts[0].sum())
