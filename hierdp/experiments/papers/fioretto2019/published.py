"""What Fioretto & Van Hentenryck 2019 printed: Table 1, and the sizes of their data (§9)."""

from __future__ import annotations

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
"""L1 error at levels 1, 2, 3 and constraint violations, in the order of `SCALABLE`."""

LEVELS = 3
"""Levels of both hierarchies."""

SIZES = {"census": 1_000, "taxi": 13_282}
"""N, the number of group sizes."""

TAXI_GROUPS = 13_282
TAXI_REGIONS = (1, 6, 3_973)
"""New York, boroughs, leaves. (The text also says 263 zones at level 3; with 3,973, bounds are weaker.)"""
