"""The size of the study, and the paper's values."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.data.census import GROUPS, LEAVES, MAX_SIZE

SCALABLE = ("M_H^r", "M_H^dp", "M_c^r", "M_c^dp")
"""The methods that the paper runs on complete data sets."""

TABLE_1 = {
    ("census", 0.1): ((254e3, 1587e3, 9044e3, 18206), (266e3, 1219e3, 9157e3, 0),
                      (479e3, 1532e3, 5516e3, 19460), (199e3, 656e3, 6443e3, 0)),
    ("census", 0.5): ((86e3, 812e3, 3642e3, 18591), (55e3, 310e3, 4089e3, 0),
                      (467e3, 1535e3, 4507e3, 19531), (40e3, 164e3, 3529e3, 0)),
    ("census", 1.0): ((77e3, 772e3, 2790e3, 18085), (31e3, 198e3, 3285e3, 0),
                      (471e3, 1542e3, 4471e3, 19706), (20e3, 87e3, 3078e3, 0)),
    ("taxi", 0.1): ((40.3e3, 54.3e3, 802.1e3, 1966), (10.3e3, 38.4e3, 825.4e3, 0),
                    (23.1e3, 64.5e3, 632.2e3, 1715), (0.9e3, 23.2e3, 550.6e3, 0)),
    ("taxi", 0.5): ((39.4e3, 37.9e3, 216.3e3, 1990), (2.4e3, 9.4e3, 230.8e3, 0),
                    (23.1e3, 61.0e3, 494.2e3, 1718), (0.2e3, 5.8e3, 159.1e3, 0)),
    ("taxi", 1.0): ((40.7e3, 39.2e3, 130.0e3, 1989), (1.2e3, 5.1e3, 128.8e3, 0),
                    (24.1e3, 63.0e3, 494.5e3, 1728), (0.1e3, 3.2e3, 91.0e3, 0)),
}  # fmt: skip
"""As published: L1 error at levels 1, 2, 3 and constraint violations, in the order of `SCALABLE`."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    Attributes
    ----------
    runs : int
        Runs of each method, data set and ε.
    slow_runs : int
        Runs of M_c^r on the census, the slowest method.
    epsilons : tuple of float
    leaves, sizes, groups : int
        The size of the synthetic census.
    taxi_sizes : int, optional
        Taxis with more pickups are left out; by default, all are kept.
    small_sizes : tuple of int
        Numbers N of sizes for Figure 8.
    time_limit : float
        Seconds for each solve of Figure 8 (the paper: 30 minutes).
    joint_sizes : tuple of int
        Numbers of sizes for M_c against M_c^dp.
    joint_runs, window_runs : int
    """

    runs: int = 30
    slow_runs: int = 3
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0)
    leaves: int = LEAVES
    sizes: int = MAX_SIZE
    groups: int = GROUPS
    taxi_sizes: int | None = None
    small_sizes: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    time_limit: float = 60.0
    joint_sizes: tuple[int, ...] = (10, 50, 200)
    joint_runs: int = 10
    window_runs: int = 20


QUICK = Settings(
    runs=3,
    slow_runs=1,
    leaves=152,
    sizes=100,
    groups=GROUPS // 50,
    taxi_sizes=300,
    small_sizes=(5, 10),
    time_limit=3.0,
    joint_sizes=(10,),
    joint_runs=3,
    window_runs=4,
)
