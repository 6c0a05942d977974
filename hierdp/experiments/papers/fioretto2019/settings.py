"""The size of the study."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.data.census import GROUPS, LEAVES, MAX_SIZE
from hierdp.data.taxi import SIZES

SCALABLE = ("M_H^r", "M_H^dp", "M_c^r", "M_c^dp")
"""The methods that the paper runs on complete data sets."""

COUNTIES = 3_143
"""Counties, as the paper counts them. It also counts 7,592 leaves."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - leaves, sizes, groups: the size of the synthetic census.
    - city_sizes: sizes, and taxis, of the made-up city (`hierdp.data.taxi.made_up_taxis`); 0 leaves it out.
    - taxi_sizes: taxis with more pickups are left out; by default, all are kept.
    - small_sizes: numbers N of sizes for Figure 8.
    - small_runs: runs of each method and N of Figure 8; of a method that reaches the time limit, one.
    - time_limit: seconds for each integer program, and for cost tables; by default 30 minutes, as in the
      paper.
    - joint_sizes: numbers of sizes for M_c against M_c^dp.
    - total_leaves: leaves of the censuses that are repaired with and without the public total.
    - float_groups, float_leaves, float_sizes, float_runs: the census on which solvers in floats are compared
      with the exact relaxations, and runs.
    """

    runs: int = 30
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0)
    leaves: int = LEAVES
    sizes: int = MAX_SIZE
    groups: int = GROUPS
    city_sizes: int = SIZES
    taxi_sizes: int | None = None
    small_sizes: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    small_runs: int = 30
    time_limit: float = 1800.0
    joint_sizes: tuple[int, ...] = (10, 50, 200)
    joint_runs: int = 10
    window_runs: int = 30
    total_leaves: tuple[int, ...] = (COUNTIES, LEAVES)
    float_groups: int = GROUPS
    float_leaves: int = 104
    float_sizes: int = 100
    float_runs: int = 5


QUICK = Settings(
    runs=1,
    small_sizes=(5, 10),
    small_runs=3,
    time_limit=3.0,
    joint_sizes=(10,),
    joint_runs=3,
    window_runs=4,
    total_leaves=(152,),
    float_leaves=52,
    float_sizes=20,
    float_runs=1,
)

QUICK_NOTE = (
    "One run of Table 1 on data of full size; at levels 1 and 2 errors of one run vary by a few per cent. "
    "Figure 8 ends at N = 10 and three seconds: nothing follows for larger programs. The parts on solvers in "
    "floats and on the public total have few leaves and sizes: there only the order of errors counts."
)
"""What cannot be concluded from the quick settings."""
