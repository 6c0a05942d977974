"""The authors' results: means over their runs, at the finest level, for ε = 0.1, 1, 10 at δ = 1e-8.

They are from the result files in their repository (aidaLabDEI/TDA_hierarchical, ``results``, February 2025;
10 runs, 5 on Italy), which the paper's figures show.
"""

from __future__ import annotations

import math

from hierdp.privacy.conversion import papers_epsilon_of, papers_rho_of

EPSILONS = (0.1, 1.0, 10.0)


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
    "binary complete": (1_051_271, 65_536),
    "binary dense": (734_688, 32_768),
    "binary sparse": (23_302, 655),
    "random complete": (2_019_580, 189_225),
    "random dense": (1_003_943, 95_612),
    "random sparse": (67_840, 1_892),
}
"""Table 1: number of trips, and of pairs of areas with trips."""

FINEST: dict[str, dict[str, tuple[tuple[float, ...], ...]]] = {
    "Italy": {
        "SH": ((335.4, 0, .975, 22), (36.6, 0, .868, 23.2), (4.8, 0, .559, 25)),
        "TDA_L2": ((1309, .488, .912, 1031), (146.6, .495, .734, 2008), (16.6, .442, .42, 3004)),
        "TDA_inf": ((1965, .457, .959, 732), (214.6, .429, .847, 1467), (25.6, .431, .577, 2569)),
        "InfTDA": ((1407, .361, .965, 576), (143.6, .301, .858, 1140), (17.8, .232, .578, 1908)),
    },
    "binary complete": {
        "SH": ((287, 0, .999, 2.5), (35.8, 0, .841, 3.1), (4.6, 0, .266, 3.5)),
        "VanillaGauss": ((375.2, 0, .433, 2), (38.1, 0, .2, 1.9), (4, 0, .031, 2)),
        "TDA_L2": ((850.5, 0, .889, 125), (144.2, 0, .533, 293), (18.8, 0, .137, 364)),
        "TDA_inf": ((851.5, 0, .889, 118), (137.6, 0, .533, 293), (19, 0, .135, 364)),
        "InfTDA": ((873.9, 0, .889, 55.6), (138.8, 0, .536, 135), (19.3, 0, .146, 165)),
    },
    "binary dense": {
        "SH": ((287.2, 0, .997, 1.5), (33.6, 0, .757, 1.9), (4.6, 0, .199, 2.1)),
        "VanillaGauss": ((387.9, .459, .412, 1.9), (38.6, .362, .16, 1.8), (4, .231, .022, 1.8)),
        "TDA_L2": ((826.9, .458, .91, 94.8), (131.6, .357, .557, 241), (19.2, .271, .136, 316)),
        "TDA_inf": ((833.1, .462, .91, 92), (144.6, .356, .557, 233), (18.6, .271, .134, 303)),
        "InfTDA": ((825.6, .461, .91, 39.7), (142.4, .357, .56, 102), (19, .26, .144, 137)),
    },
    "binary sparse": {
        "SH": ((254, 0, .994, .1), (29, 0, .612, .7), (4, 0, .156, .8)),
        "VanillaGauss": ((379, .987, .375, 1.9), (38.3, .982, .12, 1.8), (4, .967, .017, 1.8)),
        "TDA_L2": ((600.7, .978, .99, 9.2), (127.9, .9, .779, 31.4), (16.3, .776, .227, 45.6)),
        "TDA_inf": ((806.9, .98, .991, 9), (132, .898, .774, 30.7), (17.3, .777, .229, 44.8)),
        "InfTDA": ((847.2, .979, .99, 4.1), (132.2, .897, .776, 13.5), (16.8, .758, .238, 18.6)),
    },
    "random complete": {
        "SH": ((275.9, 0, 1, 6.1), (36.1, 0, .918, 6.4), (5.1, 0, .369, 7.2)),
        "VanillaGauss": ((402.6, 0, .456, 2.9), (40.8, 0, .251, 2.7), (4.4, 0, .045, 3)),
        "TDA_L2": ((786.3, 0, .907, 129), (117.5, 0, .586, 275), (16.1, 0, .178, 308)),
        "TDA_inf": ((1102, 0, .933, 107), (175.3, 0, .65, 267), (22.7, 0, .168, 306)),
        "InfTDA": ((990.9, 0, .944, 62.8), (130, 0, .687, 164), (17.1, 0, .227, 189)),
    },
    "random dense": {
        "SH": ((277.7, 0, 1, 3), (35.4, 0, .918, 3.2), (4.8, 0, .37, 3.6)),
        "VanillaGauss": ((396.7, .478, .455, 2.9), (41, .389, .252, 2.7), (4.1, .235, .045, 2.9)),
        "TDA_L2": ((666.1, .473, .944, 75.1), (111.7, .384, .683, 196), (14.9, .26, .226, 254)),
        "TDA_inf": ((1037, .482, .961, 60), (153.7, .4, .749, 183), (23.2, .292, .26, 251)),
        "InfTDA": ((898.3, .469, .968, 30.1), (121.8, .362, .771, 99.1), (16.3, .21, .297, 138)),
    },
    "random sparse": {
        "SH": ((263.6, 0, .99, .1), (31.3, 0, .609, .2), (4.1, 0, .143, .2)),
        "VanillaGauss": ((395.6, .987, .366, 2.9), (40.5, .982, .12, 2.7), (4, .967, .015, 2.8)),
        "TDA_L2": ((755.9, .979, .989, 9.8), (110.6, .89, .735, 30.7), (14.8, .742, .201, 38.9)),
        "TDA_inf": ((806.5, .982, .993, 7.3), (151.1, .899, .809, 25.8), (20.9, .77, .25, 39.4)),
        "InfTDA": ((690.4, .977, .994, 2.6), (117.1, .838, .777, 9.3), (15.2, .638, .228, 13.3)),
    },
}  # fmt: skip
"""By data set and method, for each ε: (largest error, false discovery rate, false negatives, seconds).

False negatives are the share of the pairs with trips for which the release has none; seconds are on 8 cores
at 3.9 GHz, including exact noise.
"""
