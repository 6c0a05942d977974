"""Groups by size over a hierarchy, up to very large sizes: Kuo et al. 2018."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member
from hierdp.mechanisms.relations import ENTITY

if TYPE_CHECKING:
    from hierdp.mechanisms.count_of_counts.mechanism import (
        CountOfCounts,
        Measured,
        count_of_counts,
        measure,
        post_process,
    )

__all__ = ["MECHANISM", "CountOfCounts", "Measured", "count_of_counts", "measure", "post_process"]

KUO = "Kuo et al. 2018"

HELP = """\
Release how many groups have each size, up to very large sizes, in every region (ε-DP, or zCDP with --delta).

TABLE is a Parquet or CSV file with one row per entity (a person, a trip), or with numbers of
entities. Neighbouring tables differ by one entity in a group (with --person, by a person with
several). Groups and regions are public, unless --group-budget protects the numbers of groups: give
lists of them, or state that those in TABLE may be published. Only sizes that occur in the release
get a row. The error to minimize is the number of entities moved between groups (earth mover's
distance). For sizes up to a few hundred, see also group-size, which minimizes the errors of the
counts themselves.

Households and group quarters by size, with a table of all of them and their regions:
  hierdp release count-of-counts people.csv --groups facilities.csv --levels state,county \\
      --group facility --epsilon 1 --out released

Taxis by number of trips, without a known bound; all taxis have a trip, and their number is protected:
  hierdp release count-of-counts trips.parquet --regions zones.csv --region-levels borough,zone \\
      --levels zone --group taxi --group zone --group-budget 0.1 --size-budget 0.001 \\
      --no-empty-groups --epsilon 1 --out released
"""

MECHANISM = MechanismInfo(
    name="count-of-counts",
    module=__name__,
    releases="how many groups have each size, sizes to 100,000 and beyond, in every region",
    guarantee="ε-DP, or (ε, δ)-DP by zCDP (--delta)",
    neighbours=f"{ENTITY}; or --group-budget",
    methods=(
        MethodInfo("Hc", "Isotonic (L1), GroupMatching, Merging", f"{KUO}, §4.3, Alg. 1"),
        MethodInfo("Hc2", "Isotonic (L2), GroupMatching, Merging", f"{KUO}, §4.3, Alg. 1"),
        MethodInfo("Hg", "Isotonic (L2), GroupMatching, Merging", f"{KUO}, §4.2, Alg. 1"),
        MethodInfo("Hg1", "Isotonic (L1), GroupMatching, Merging", f"{KUO}, §4.2, Alg. 1"),
        MethodInfo("Hc x Hg x Hc", "one method per level", f"{KUO}, §6.2"),
        MethodInfo("bottom-up", "Isotonic (L1)", f"{KUO}, §6.2.2"),
        MethodInfo("naive", "FixedSum in squares, GroupMatching, Merging", f"{KUO}, §4.1"),
    ),
    value="CountOfCounts",
    truth="hierdp.mechanisms.size_truth",
    released_as="(bottom-up )?(naive|Hc2?|Hg1?)( × (naive|Hc2?|Hg1?))*",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
