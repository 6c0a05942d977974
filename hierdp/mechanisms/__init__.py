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


MECHANISMS = (
    Mechanism(
        "M_c^dp",
        "group-size",
        "how many groups have each size, in every region",
        "ε-DP",
        "one entity joins or leaves a group; regions and groups are public",
        "Isotonic, HierarchyQIP",
        "Fioretto & Van Hentenryck 2019, Alg. 1",
    ),
    Mechanism(
        "InfTDA",
        "top-down",
        "origin/destination counts, or any counts along hierarchies",
        "(ε, δ)-DP by zCDP",
        "one trip is replaced by another; regions and the total are public",
        "Chebyshev",
        "Boninsegna & Silvestri 2025, Alg. 1",
    ),
)
