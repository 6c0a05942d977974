"""The size of the study, and the paper's values."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.data.housing import GROUPS
from hierdp.mechanisms.count_of_counts.plan import MAX_SIZE

BOTTOM_UP = {
    "part. synth.": ((78_459.0, 1_512.2, 24.9), (32_480.0, 1_000.3, 80.1)),
    "White": ((448_909.0, 8_722.0, 152.3), (17_000.0, 1_511.8, 363.8)),
    "Hawaiian": ((13_968.0, 270.1, 4.3), (1_381.0, 117.7, 21.6)),
    "Taxi": ((20_731.0, 10_405.5, 772.8), (10_547.0, 5_431.5, 1_601.8)),
}
"""As published (§6.2.2): earth mover's distance per region at levels 0, 1, 2, of bottom-up and of Hc."""

REGIONS = {
    "part. synth.": (1, 52, 3_221), "White": (1, 52, 3_221), "Hawaiian": (1, 52, 3_221), "Taxi": (1, 2, 28),
}  # fmt: skip
"""Regions of each level: the states, with the District of Columbia and Puerto Rico, and all their
counties."""

NAIVE = {
    "Synthetic": 4_462_728_374, "White": 4_809_679_734, "Hawaiian": 4_027_891_692, "Taxi": 208_977_518,
}  # fmt: skip
"""As published (§6.2.1), ε = 1."""

README = 2_801
"""The authors' README: root of the taxi data alone, Hc with p = 1, ε = 1, seed 20 of NumPy's RandomState."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - table_runs: runs for the bottom-up table on the taxi data, for each kind of noise.
    - epsilons: privacy budgets per level, as in the figures.
    - max_size: K.
    - coast_runs, nation_runs: runs on the West Coast's housing, and on the whole nation's, which takes
      minutes.
    - housing_groups: groups of the nation's synthetic housing, in the bottom-up table and the naive row.
    - sized_groups: groups of the nation's housing in the figures. Hg draws a number for every group, and the
      paper's number takes about 25 minutes of one processor.
    - vertices: whether the naive program with p = 1 is also solved by HiGHS, which takes a minute and a half.
    - joint_runs: runs of the matching of all levels at once.
    """

    runs: int = 10
    coast_runs: int = 3
    nation_runs: int = 1
    table_runs: int = 30
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0)
    max_size: int = MAX_SIZE
    housing_groups: int = GROUPS
    sized_groups: int = GROUPS
    vertices: bool = True
    joint_runs: int = 10


QUICK = Settings(
    runs=1, table_runs=3, coast_runs=1, nation_runs=0, epsilons=(0.1,), vertices=False, joint_runs=2
)

QUICK_NOTE = (
    "One run of the figures at 0.1 per level, on data of full size: fewer groups would turn the order of Hg "
    "and Hc round. Errors of one run at the root vary by a tenth, and nothing follows for other budgets: Hg "
    "gains on Hc as the budget grows."
)
"""What cannot be concluded from the quick settings."""
