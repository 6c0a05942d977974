"""Counts along hierarchies, released level by level from the top, and methods for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member
from hierdp.mechanisms.relations import TRIP

if TYPE_CHECKING:
    from hierdp.mechanisms.top_down.levels import Level, refinements
    from hierdp.mechanisms.top_down.mechanism import TopDown, inf_tda, top_down, true_table
    from hierdp.mechanisms.top_down.post_processing import METHODS

__all__ = [
    "MECHANISM",
    "METHODS",
    "Level",
    "TopDown",
    "inf_tda",
    "refinements",
    "top_down",
    "true_table",
]

BONINSEGNA = "Boninsegna & Silvestri 2025"

HELP = """\
Release counts along hierarchies, such as trips from origin to destination (InfTDA, (ε, δ)-DP).

TABLE is a Parquet or CSV file with one row per trip, or with counts. Neighbouring tables differ by
replacing one trip; for persons with several trips, use --person or --trips. The regions are public:
give a list of them, or state that those in TABLE may be published. The total is public as well,
unless --unbounded is given.

Commuters, with both ends by state and county:
  hierdp release top-down commuting.parquet --axis origin=o_county --axis destination=d_county \\
      --regions counties.csv --region-levels state,county --count workers \\
      --epsilon 1 --delta 1e-8 --out released

Taxi rides by zone and hour, with up to 20 rides per passenger, whose presence in the table is
protected; the zones and hours with rides are published:
  hierdp release top-down rides.csv --axis pickup=borough,zone --axis time=daypart,hour \\
      --regions-from-data --trips 20 --unbounded --epsilon 1 --delta 1e-8 --out released
"""

MECHANISM = MechanismInfo(
    name="top-down",
    module=__name__,
    releases="origin/destination counts, or any counts along hierarchies",
    guarantee="(ε, δ)-DP by zCDP",
    neighbours=f"{TRIP}; or --trips, --unbounded",
    methods=(
        MethodInfo("InfTDA", "Chebyshev", f"{BONINSEGNA}, Alg. 1"),
        MethodInfo("InfTDA_large", "Chebyshev, large counts lowered first", f"{BONINSEGNA}, §4.2"),
        MethodInfo("TDA_inf", "Chebyshev, by a solver", f"{BONINSEGNA}, §5"),
        MethodInfo("TDA_L2", "FixedSum in squares: relaxed, rounded", f"{BONINSEGNA}, §5"),
        MethodInfo("TDA", "FixedSum in squares: relaxed, controlled rounding", f"{BONINSEGNA}, footnote 7"),
        MethodInfo("VanillaGauss", "none: noise on all possible cells", f"{BONINSEGNA}, Theorem 6"),
        MethodInfo(
            "SH", "none: noisy positive counts over a threshold", f"{BONINSEGNA}, Theorem 8", "(ε, δ)-DP"
        ),
    ),
    value="TopDown",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
