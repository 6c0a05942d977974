"""The size of the study."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop. Variances are computed, not measured.

    - runs: runs of each method on each histogram, for Figure 3.
    - matrix_bins: largest number of bins for the matrix mechanism (the paper: 512).
    - search_bins: largest number of bins for p-identity and for the lower bound, which take longer.
    - steps: iterations of its descent.
    - sampled_bins: largest number of bins for which the paper's sampled cells are computed from all ranges.
    - break_even_bins: largest number of bins per dimension in the search for where the flat method is best.
    - curve_queries: Figure 3: queries of each size (the paper: 100).
    - curve_sizes: Figure 3: sizes of queries (the paper: 10 to 20).
    """

    runs: int = 5
    matrix_bins: int = 512
    search_bins: int = 128
    steps: int = 1000
    sampled_bins: int = 2**11
    break_even_bins: int = 400
    curve_queries: int = 100
    curve_sizes: int = 15


QUICK = Settings(runs=2, matrix_bins=32, steps=200, sampled_bins=2**10, break_even_bins=60, curve_sizes=8)

QUICK_NOTE = (
    "Formulas that take long are computed for fewer bins: nothing follows for more. Figure 3 has two runs, "
    "too few to tell the hierarchies apart."
)
"""What cannot be concluded from the quick settings."""
