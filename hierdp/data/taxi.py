"""The Taxi data of Kuo et al. 2018: taxis by pickups, in Manhattan, its halves and its 28 neighbourhoods.

It does not ship; the authors publish it in their repository `yzk5145/coco`, folder `data`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import GroupSizes

UPPER = 18
"""The first 18 neighbourhoods lie in the first half, the other 10 in the second."""


def taxi(folder: Path, max_size: int | None = None) -> GroupSizes:
    """The groups by size; those larger than `max_size` are left out (as Fioretto & Van Hentenryck 2019 do).

    Parameters
    ----------
    folder : path
        Holds ``taxi_level1.npy``, ``taxi_level2.npy``, ``taxi_level3.npy``; their entry 0 counts size 1.
    max_size : int, optional
        Default: the largest size there is.

    Raises
    ------
    InputError
        If a file is missing or the three do not add up.
    """
    levels = []
    for number in (1, 2, 3):
        path = folder / f"taxi_level{number}.npy"
        if not path.exists():
            raise InputError(f"there is no {path}: get the folder `data` of the repository yzk5145/coco")
        levels.append(np.atleast_2d(np.load(path)).astype(np.int64))
    hoods = levels[2]
    columns = {
        "half": ["upper" if i < UPPER else "lower" for i in range(len(hoods))],
        "neighbourhood": [f"{i:02}" for i in range(len(hoods))],
    }
    # Sorted by name, "lower" comes first, and within each half the neighbourhoods keep their order.
    places = Hierarchy.from_columns(columns, ["half", "neighbourhood"], "Manhattan", "borough")
    counts = np.zeros((places.size, hoods.shape[1] + 1), dtype=np.int64)
    counts[:, 1:] = places.tree.sum_up(hoods)
    if (counts[0, 1:] != levels[0][0]).any() or (counts[1:3, 1:] != levels[1][::-1]).any():
        raise InputError(f"the files in {folder} do not add up: the halves are not the sums of their rows")
    return GroupSizes(places, counts if max_size is None else counts[:, : max_size + 1].copy())
