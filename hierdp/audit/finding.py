"""What the runs of a mechanism prove of it."""

from __future__ import annotations

from dataclasses import dataclass

from hierdp.audit.case import Case
from hierdp.audit.events import Claim, Event


@dataclass(frozen=True)
class Finding:
    """What the runs of a mechanism prove of it.

    Attributes
    ----------
    case : Case
    claim : Claim
        That of its ledger.
    neighbours : str
        The relation, as its ledger has it.
    epsilon : float
        A lower bound on ε, at the claimed δ.
    rho : float or None
        Under zCDP a lower bound on ρ.
    event : Event
        Which proves it.
    runs : int
        On each table.
    """

    case: Case
    claim: Claim
    neighbours: str
    epsilon: float
    rho: float | None
    event: Event
    runs: int

    @property
    def over(self) -> bool:
        """Whether a bound exceeds the claim: the mechanism is not as private as it says."""
        if self.claim.rho is not None and self.rho is not None and self.rho > self.claim.rho:
            return True
        return self.epsilon > self.claim.epsilon
