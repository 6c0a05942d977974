"""Groups by size over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member
from hierdp.mechanisms.relations import ENTITY

if TYPE_CHECKING:
    from hierdp.mechanisms.group_size.mechanism import GroupSize, group_size, m_c_dp, measure
    from hierdp.mechanisms.group_size.post_processing import post_process

__all__ = ["MECHANISM", "GroupSize", "group_size", "m_c_dp", "measure", "post_process"]

FIORETTO = "Fioretto & Van Hentenryck 2019"

HELP = """\
Release how many groups have each size, in every region (ε-DP, or zCDP with --delta; M_c^dp by default).

TABLE is a Parquet or CSV file, or a table of --database, with one row per entity (a person, a
trip), or with numbers of entities. Neighbouring tables differ by one entity in a group (with
--person, by a person with several). Groups and regions are public: give lists of them, or state
that those in TABLE may be published. In the result, the last size means "this size or more".

Households by size, with a table of all households and their regions:
  hierdp release group-size people.csv --groups households.csv --levels state,county \\
      --group household --max-size 20 --epsilon 1 --out released

Taxis by number of trips, with a table of all zones; the taxis in the data are published:
  hierdp release group-size trips.parquet --regions zones.csv --region-levels borough,zone \\
      --levels pickup_zone --group taxi --group pickup_zone --groups-from-data \\
      --max-size 1000 --epsilon 0.5 --out released

People in a database, with tables of all households (including empty ones) and of all counties by code:
  hierdp release group-size people --database postgresql://ann@db.example/census \\
      --groups households --group household_id --levels fips --regions counties --region-codes fips \\
      --prefixes state=2,county=5 --max-size 20 --epsilon 1 --out released
"""

MECHANISM = MechanismInfo(
    name="group-size",
    module=__name__,
    releases="how many groups have each size, in every region",
    guarantee="ε-DP, or (ε, δ)-DP by zCDP (--delta)",
    neighbours=ENTITY,
    methods=(
        MethodInfo("M_c^dp", "Isotonic, HierarchyQIP", f"{FIORETTO}, Alg. 1"),
        MethodInfo("M_c", "CumulativeQIP", f"{FIORETTO}, Fig. 7"),
        MethodInfo("M_c^r", "CumulativeQIP, relaxed and rounded", f"{FIORETTO}, §9"),
        MethodInfo("M_H^dp", "HierarchyQIP", f"{FIORETTO}, §7"),
        MethodInfo("M_H", "HierarchyQIP", f"{FIORETTO}, Fig. 3"),
        MethodInfo("M_H^r", "HierarchyQIP, relaxed and rounded", f"{FIORETTO}, §5"),
        MethodInfo("M_dp^OP", "CostTable, HierarchyQIP", f"{FIORETTO}, §6"),
    ),
    value="GroupSize",
    truth="hierdp.mechanisms.size_truth",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
