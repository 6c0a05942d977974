"""The Taxi data of Kuo et al. 2018: taxis by pickups in Manhattan, its halves and its 28 neighbourhoods.

The data are not included. The authors publish them in their repository `yzk5145/coco`, folder `data`. And
taxis that are made up, of the shape of those of Fioretto & Van Hentenryck 2019, which are not published.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import GroupSizes

UPPER = 18
"""The first 18 neighbourhoods are in the upper half, the other 10 in the lower."""


def taxi(folder: Path, max_size: int | None = None) -> GroupSizes:
    """The groups by size, without groups larger than `max_size` (as in Fioretto & Van Hentenryck 2019).

    - folder: a folder with ``taxi_level1.npy``, ``taxi_level2.npy``, ``taxi_level3.npy``; their entry 0
      counts size 1.
    - max_size: Default: the largest size in the data.

    Raises `InputError` if a file is missing or the three do not add up.
    """
    levels = []
    for number in (1, 2, 3):
        path = folder / f"taxi_level{number}.npy"
        if not path.exists():
            raise InputError(f"{path} does not exist; get the folder `data` of the repository yzk5145/coco")
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
        raise InputError(f"the files in {folder} do not fit: a level is not the sum of the level below")
    return GroupSizes(places, counts if max_size is None else counts[:, : max_size + 1].copy())


SIZES, BOROUGHS, ZONES, PICKUPS = 13_282, 6, 263, 24_489_743
"""Fioretto & Van Hentenryck 2019 (§9): taxis, which are as many as the possible sizes; regions; pickups."""


def made_up_taxis(seed: int = 0, sizes: int = SIZES) -> GroupSizes:
    """Taxis by pickups over city → 6 boroughs → 263 zones, with the paper's totals.

    As many taxis as sizes. Their pickups are exponential with the paper's mean, 1,844 of 13,282, and at most
    `sizes`. Zones have lognormal shares of the taxis, and are spread over the boroughs as evenly as possible.
    """
    rng = np.random.default_rng([seed, sizes])
    pickups = np.clip(np.rint(rng.exponential(PICKUPS / SIZES * sizes / SIZES, sizes)), 1, sizes)
    shares = rng.lognormal(0, 1, ZONES)
    zone = rng.choice(ZONES, sizes, p=shares / shares.sum())
    columns = {
        "borough": [f"{i % BOROUGHS}" for i in range(ZONES)],
        "zone": [f"{i % BOROUGHS}/{i:03}" for i in range(ZONES)],
    }
    places = Hierarchy.from_columns(columns, ["borough", "zone"], "city", "city")
    leaves = np.zeros((ZONES, sizes + 1), dtype=np.int64)
    np.add.at(leaves, (zone, pickups.astype(np.int64)), 1)
    return GroupSizes(places, np.asarray(places.tree.sum_up(leaves), dtype=np.int64))
