"""Tables of several attributes for every region, with invariants, bounds and structural zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member

if TYPE_CHECKING:
    from hierdp.mechanisms.tabulation.mechanism import Tabulation, tabulate

__all__ = ["MECHANISM", "Tabulation", "tabulate"]

ABOWD = "Abowd et al. 2022"
GHAZI = "Ghazi et al. 2026"
CUMINGS_MENON = "Cumings-Menon & Zhuravlev 2024"

HELP = """\
Release tables of several attributes, such as age by group, for every region ((ε, δ)-DP).

TABLE is a Parquet or CSV file with a row for each person, or with numbers of persons. On each level
of regions, the queries are measured: sums of cells, such as the total or the counts by age. The
noisy answers are then made into tables that are whole, not negative, and add up over the regions.
Neighbouring tables differ by replacing one person by another, so the total is public, unless
--unbounded is given. Regions and categories are public: give lists of them, or state that those in
TABLE may be published. Invariants are published as they are; the guarantee does not cover them.

A nation's persons by group and age, with the true total of each state:
  hierdp release tabulation precincts.parquet --levels state,county,precinct --count persons \\
      --attribute group --attribute age --regions-from-data --attribute-from-data --query total \\
      --query group --query age --query "group*age" --invariant state:total \\
      --epsilon 10 --delta 1e-10 --out released

The same by a plan, with the whole budget by level and query, and combinations that cannot occur:
  hierdp release tabulation precincts.parquet --levels state,county,precinct --count persons \\
      --regions-from-data --plan plan.toml --epsilon 10 --delta 1e-10 --out released

The rows of a query of files or of a database are given by --sql, since --query is what to measure.
"""

MECHANISM = MechanismInfo(
    name="tabulation",
    module=__name__,
    releases="tables of several attributes for every region, with invariants and bounds",
    guarantee="(ε, δ)-DP by zCDP",
    neighbours="one person is replaced by another; the total is public; or --unbounded",
    methods=(
        MethodInfo("TopDown", "WorkloadLeastSquares, WorkloadRounding", f"{ABOWD}, §6"),
        MethodInfo("BlueDown", "BlockInference, WorkloadLeastSquares, WorkloadRounding", GHAZI),
        MethodInfo("GLS", "BlockInference", CUMINGS_MENON),
        MethodInfo("Joint", "JointTables", f"{ABOWD}, all levels at once"),
    ),
    value="Tabulation",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
