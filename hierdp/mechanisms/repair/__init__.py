"""Counts that somebody else has noised or estimated, made consistent. Nothing is measured.

A repair is stated as the mechanisms are, so that `hierdp check` finds how its table follows from its steps.
But it draws no noise, has no budget, and claims no privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member

if TYPE_CHECKING:
    from hierdp.mechanisms.repair.mechanism import Repair, repair

__all__ = ["MECHANISM", "Repair", "repair"]

MECHANISM = MechanismInfo(
    name="repair",
    module=__name__,
    releases="counts that somebody else has noised or estimated, made consistent",
    guarantee="no claim",
    neighbours="none: nothing is measured",
    methods=(
        MethodInfo("least-squares", "ConstrainedInference", "Qardaji, Yang & Li 2013"),
        MethodInfo("non-negative", "NonNegativeInference", "Qardaji, Yang & Li 2013, with x ≥ 0"),
        MethodInfo("whole", "NonNegativeInference, whole", "Qardaji, Yang & Li 2013, with x ≥ 0 whole"),
        MethodInfo("hierarchy-qip", "HierarchyQIP", "Fioretto & Van Hentenryck 2019"),
        MethodInfo("chebyshev", "TreeChebyshev", "Boninsegna & Silvestri 2025, for a whole tree"),
        MethodInfo("least-absolute", "TreeAbsolute", "least absolute deviations"),
    ),
    value="Repair",
    released_as="repair: [a-z-]+",
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
