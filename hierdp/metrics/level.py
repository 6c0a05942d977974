"""One level of a release beside its true counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.metrics.cells import cell_errors
from models.arithmetic.arrays import Ints


@dataclass(frozen=True, eq=False)
class Level:
    """Counts of the cells of one level. True counts: not for release.

    Attributes
    ----------
    name : str
    true, released : arrays of one shape
        Cells that are 0 in both may be left out.
    cells : int
        The number of cells, those left out included.
    names : callable
        The names of the cells at given positions.
    more : mapping of str to float
        The field's own metrics.
    given : array, optional
        The counts that a repair was given; NaN where there was none.
    sums : bool
        Whether the cells are sums of several rows of the release.
    """

    name: str
    true: NDArray[Any]
    released: NDArray[Any]
    cells: int
    names: Callable[[Ints], Sequence[str]] = field(repr=False)
    more: Mapping[str, Any] = field(default_factory=dict)
    given: NDArray[Any] | None = None
    sums: bool = False

    def errors(self) -> dict[str, Any]:
        """The metrics of the level; of a repair, also the mean error of what it was given."""
        found = {"level": self.name, **cell_errors(self.true, self.released, self.cells), **self.more}
        if self.given is not None:
            there = ~np.isnan(self.given)
            away = np.abs(self.given[there] - self.true[there])
            found["given_mean_error"] = float(away.mean()) if away.size else np.nan
        return found


def sparse_level(
    name: str,
    true: tuple[Ints, NDArray[Any]],
    released: tuple[Ints, NDArray[Any]],
    cells: int,
    names: Callable[[Ints], Sequence[str]],
    **more: Any,
) -> Level:
    """A level from two sparse tables, each with the distinct keys of its cells, and their counts.

    `names` gives the names of keys.
    """
    keys = np.union1d(true[0], released[0])

    def among(own: Ints, counts: NDArray[Any]) -> NDArray[Any]:
        held = np.zeros(keys.size, counts.dtype)
        held[np.searchsorted(keys, own)] = counts
        return held

    return Level(name, among(*true), among(*released), cells, lambda at: names(keys[at]), **more)
