"""Census blocks by number of native Hawaiians, of Kuo et al. 2018: the nation's counts, placed at random.

The authors publish the nation's row in their repository `yzk5145/coco`, file
``data/Hawaiian_nation_H.npy``; entry 0 counts blocks without native Hawaiians. The rows of states and
counties are not available here. Each block lies in a county at random, in proportion to the counties'
weights. So the root is the paper's, and the levels below it are not: the real blocks concentrate in a few
counties.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hierdp.counts.size_runs import SizeRuns
from hierdp.data.housing import chosen_of, county_shares, placed

FILE = "Hawaiian_nation_H.npy"


def hawaiian(
    file: Path,
    seed: int = 0,
    homes: Path | None = None,
    counties: bool = True,
    states: Sequence[str] | None = None,
) -> SizeRuns:
    """Blocks by number of native Hawaiians over nation → state → county.

    - file: the nation's blocks by size, from size 0.
    - homes, counties, states: as in `hierdp.data.housing.housing`.

    Raises `InputError` if a state is unknown.
    """
    names, shares = county_shares(seed, homes)
    chosen = chosen_of(names, states)
    nation = np.load(file).astype(np.int64)
    there = np.flatnonzero(nation)
    weights = np.concatenate([shares[state] for state in names])
    by_county = np.random.default_rng([seed, there.size]).multinomial(nation[there], weights / weights.sum())
    kept = np.repeat([state in chosen for state in names], [shares[state].size for state in names])
    rows = [(there, by_county[:, county]) for county in np.flatnonzero(kept)]
    return placed(rows, [state for state in names if state in chosen], shares, counties, states is None)
