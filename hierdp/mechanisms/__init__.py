"""The mechanisms, a file a paper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mechanism:
    """A line of `hierdp mechanisms`."""

    name: str
    command: str
    releases: str
    guarantee: str
    neighbours: str
    models: str
    paper: str


ENTITY = "one entity joins or leaves a group; regions and groups are public"
TRIP = "one trip is replaced by another; regions and the total are public"


def _group_size(name: str, models: str, where: str) -> Mechanism:
    what = "how many groups have each size, in every region"
    command = f'group-size --method "{name}"'
    return Mechanism(name, command, what, "ε-DP", ENTITY, models, f"Fioretto & Van Hentenryck 2019, {where}")


MECHANISMS = (
    _group_size("M_c^dp", "Isotonic, HierarchyQIP", "Alg. 1"),
    _group_size("M_c", "CumulativeQIP", "Fig. 7"),
    _group_size("M_c^r", "CumulativeQIP, relaxed and rounded", "§9"),
    _group_size("M_H^dp", "HierarchyQIP", "§7"),
    _group_size("M_H", "HierarchyQIP", "Fig. 3"),
    _group_size("M_H^r", "HierarchyQIP, relaxed and rounded", "§5"),
    _group_size("M_dp^OP", "CostTable, HierarchyQIP", "§6"),
    Mechanism(
        "InfTDA",
        "top-down",
        "origin/destination counts, or any counts along hierarchies",
        "(ε, δ)-DP by zCDP",
        TRIP,
        "Chebyshev",
        "Boninsegna & Silvestri 2025, Alg. 1",
    ),
)
