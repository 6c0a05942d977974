"""The authors' results: means over their runs, at the finest level, for ε = 0.1, 1, 10 at δ = 1e-8.

They are from the result files in their repository (aidaLabDEI/TDA_hierarchical, ``results``, February 2025;
10 runs, 5 on Italy), which the paper's figures show.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from hierdp.privacy.conversion import papers_epsilon_of, papers_rho_of

if TYPE_CHECKING:
    from pandas import DataFrame


def half(epsilon: float, delta: float) -> float:
    """The ε for half of ρ, because the authors' top-down programs divide ρ by twice the number of levels.

    ``mechanism/TDA.py`` splits it into ``T=final_level * 2`` parts, but `final_level` already counts the
    levels of both axes, so half of the parts are never spent.
    """
    return papers_epsilon_of(papers_rho_of(epsilon, delta) / 2, delta)


def root_2(epsilon: float, delta: float) -> float:  # noqa: ARG001
    """√2·ε: the stability histogram used √2, the L2 sensitivity, instead of 2, the L1 sensitivity.

    Commit c700671 of June 2025 corrected this in ``mechanism/VanillaSH.py``; the results are older.
    """
    return math.sqrt(2) * epsilon


SPENT = {"InfTDA": half, "TDA_L2": half, "TDA_inf": half, "SH": root_2}
"""The ε at which our noise equals theirs, for methods whose noise differed from the requested ε."""

USERS = {
    "binary complete": (1_051_271, 65_536), "binary dense": (734_688, 32_768),
    "binary sparse": (23_302, 655), "random complete": (2_019_580, 189_225),
    "random dense": (1_003_943, 95_612), "random sparse": (67_840, 1_892),
}  # fmt: skip
"""Table 1: number of trips, and of pairs of areas with trips."""


def published() -> DataFrame:
    """Their means at the finest level: largest error, share of false discoveries, false negatives, seconds.

    False negatives are the share of the pairs with trips for which the release has none; seconds are on 8
    cores at 3.9 GHz, including exact noise.
    """
    import pandas as pd

    return pd.read_csv(Path(__file__).with_name("authors.csv"))
