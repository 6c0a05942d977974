"""The size of the study, and the paper's values."""

from __future__ import annotations

from dataclasses import dataclass

NO_THRESHOLD = "AHP-greedy η=0"
NARROW = "GS ⌈√n⌉"

METHODS = (
    "AHP", "AHP-greedy", NO_THRESHOLD, "AHP-by-place", "NF", "SF", "PHP", "GS", NARROW, "Laplace",
)  # fmt: skip
"""In the order of the tables: methods of `hierdp.mechanisms.clustering.METHODS`, two of them with another
parameter. AHP-empirical, the slowest, is compared in `optimum` alone."""

PUBLISHED_METHODS = ("AHP-greedy", "NF", "SF", "PHP", "GS")
"""The columns of the paper's tables: its AHP is the greedy one (§6)."""

TABLES = {
    1.0: {
        "Location": (0.018, 0.843, 1.242, 0.621, 1.451),
        "Social Network": (0.071, 1.001, 2.051, 0.801, 2.611),
        "Search Log": (0.054, 1.582, 2.085, 0.132, 2.115),
        "NetTrace": (0.153, 2.839, 3.835, 0.904, 4.816),
    },
    0.1: {
        "Location": (0.203, 1.381, 2.983, 0.805, 1.539),
        "Social Network": (0.309, 2.753, 2.054, 0.602, 3.251),
        "Search Log": (0.103, 2.467, 3.457, 0.159, 4.157),
        "NetTrace": (0.572, 4.726, 4.359, 2.026, 6.917),
    },
    0.01: {
        "Location": (0.467, 2.588, 4.948, 1.076, 3.803),
        "Social Network": (0.825, 3.099, 6.058, 1.019, 5.112),
        "Search Log": (0.189, 5.584, 5.340, 0.860, 7.046),
        "NetTrace": (1.229, 6.926, 6.841, 2.280, 8.187),
    },
}
"""As published: Tables 2–4, KLD by ε and data set, in the order of `PUBLISHED_METHODS`."""

PAPER_SIZED = {
    "Search Log, rebuilt": "Search Log",
    "NetTrace, rebuilt": "NetTrace",
    **{name: name for name in TABLES[1.0]},
}
"""The paper's names of data sets with as many bins as it has: rebuilt ones, and its own files."""

COUNTERPARTS = {**PAPER_SIZED, "SEARCHLOGS": "Search Log", "NETTRACE": "NetTrace"}
"""The paper's names of the data sets; the last two have fewer bins."""

CHARACTERISTICS = {
    "Location": (7_725, 4_720, 24.13, 4_764.57, 467),
    "Social Network": (11_342, 0, 59.49, 2_995, 1_678),
    "Search Log": (32_768, 17_082, 10.25, 577.31, 496),
    "NetTrace": (65_536, 63_318, 0.39, 91.01, 1_423),
}
"""As published: Table 1, bins, empty bins, mean, variance, largest count."""

FIGURE_NUMBERS = {"Search Log, rebuilt": 4, "NetTrace, rebuilt": 5}


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - sets: data sets of DPBench, with two-dimensional ones flattened row by row, and those of `data.REBUILT`.
    - methods: see `METHODS`.
    - share: ε₁/ε of AHP. The paper: ε₂ "is normally set to ε/2" (§5). It does not state η, so η has hierdp's
      default, 0.35; one variant has 0.
    - width: bins of a cluster of GS. The paper: 100 "is one of the best group sizes used by GS" (footnote 4).
    - many_bins, few_runs, sf_runs: SF draws its boundaries one by one. With more than `many_bins` bins it
      uses `few_runs` runs of bins instead of n/10, and parameters are not tuned. It is run `sf_runs` times at
      most.
    - range_sizes: number of sizes of ranges, from one bin to half of the bins.
    - floors: floors for `hierdp.metrics.histogram.kld`, in people, to compare with its default.
    - tuned_runs: runs of each value of each parameter in the comparison with tuned parameters.
    - bound_runs: histograms drawn from the counts, to see that AHP's error does not depend on places.
    - hierarchy_epsilons: values of ε for AHP at the nodes of a hierarchy.
    """

    runs: int = 10
    epsilons: tuple[float, ...] = (1.0, 0.1, 0.01)
    sets: tuple[str, ...] = (
        "Search Log, rebuilt",
        "NetTrace, rebuilt",
        "SEARCHLOGS",
        "NETTRACE",
        "HEPTH",
        "INCOME",
        "ADULTFRANK",
        "GOWALLA-2D",
    )
    methods: tuple[str, ...] = METHODS
    share: float = 0.5
    width: int = 100
    many_bins: int = 10_000
    few_runs: int = 64
    sf_runs: int = 3
    range_sizes: int = 12
    floors: tuple[float, ...] = (1.0, 1e-6)
    tuned_runs: int = 5
    bound_runs: int = 3
    hierarchy_runs: int = 10
    hierarchy_epsilons: tuple[float, ...] = (1.0, 0.1, 0.01)


QUICK = Settings(
    runs=1,
    epsilons=(0.1,),
    sets=("Search Log, rebuilt", "NetTrace, rebuilt"),
    range_sizes=8,
    tuned_runs=1,
    bound_runs=1,
    hierarchy_runs=1,
    hierarchy_epsilons=(0.1,),
)

QUICK_NOTE = (
    "One run at ε = 0.1 on the two sets of the paper's size: methods whose KLD differs by less than a tenth "
    "are not ordered, and nothing follows for other ε."
)
"""What cannot be concluded from the quick settings."""
