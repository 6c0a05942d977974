"""The size of the study."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.data.trips import SETS

CHEBYSHEV = ("InfTDA", "InfTDA_large", "TDA_inf")
"""The methods that minimize the Chebyshev distance, to which the utility theorem applies."""

BASELINES = ("VanillaGauss", "SH")
"""The methods that measure the finest counts alone, to which Proposition 1 applies."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - delta, beta: β is the probability with which the utility theorem's bound may fail.
    - sets: the published data sets, from `hierdp.data.trips.SETS`.
    - drawn: data sets drawn from this study's seed: Pareto(1) flows between newly drawn areas.
    - methods: from `hierdp.mechanisms.top_down.METHODS`.
    - most_pairs: VanillaGauss draws noise for every possible pair; it runs if there are at most this many.
    - most_positive: TDA_inf solves an integer program per region; it runs if at most this many pairs have
      trips.
    - solver_runs: runs of TDA_inf, the slowest method.
    - time_limit: seconds for each integer program.
    - exact_runs: runs of InfTDA with exact noise, to measure its time.
    - sparse_epsilons: budgets of the comparison with the fewest positive counts.
    - largest: number of flows in the tables for planners.
    """

    runs: int = 10
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    delta: float = 1e-8
    beta: float = 0.05
    sets: tuple[str, ...] = SETS
    drawn: tuple[str, ...] = ("random sparse",)
    methods: tuple[str, ...] = ("InfTDA", "InfTDA_large", "TDA_L2", "TDA", "TDA_inf", "VanillaGauss", "SH")
    most_pairs: int = 2_000_000
    most_positive: int = 70_000
    solver_runs: int = 3
    time_limit: float = 60.0
    exact_runs: int = 1
    sparse_runs: int = 3
    sparse_epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    largest: int = 25


QUICK = Settings(
    runs=2,
    sets=("binary sparse", "random dense", "random sparse"),
    drawn=(),
    solver_runs=1,
    most_positive=1_000,
    exact_runs=0,
    sparse_runs=1,
    sparse_epsilons=(1.0,),
    time_limit=5.0,
    largest=15,
)

QUICK_NOTE = (
    "Two runs on the commuters and on three of the synthetic sets, all of full size, do not order methods "
    "whose errors are within a fifth of each other. TDA_inf is run on binary sparse alone."
)
"""What cannot be concluded from the quick settings."""
