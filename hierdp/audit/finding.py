"""The result of an audit for one case."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hierdp.audit.events import Claim, Event
from hierdp.record.case import Case


@dataclass(frozen=True)
class Finding:
    """The result of an audit for one case: a lower bound on the privacy loss.

    Attributes
    ----------
    case : Case
    claim : Claim
        The privacy loss that the ledger states.
    neighbours : str
        The neighbouring relation, as the ledger states it.
    epsilon : float
        A lower bound on ε, at the claimed δ.
    rho : float or None
        A lower bound on ρ, under zCDP.
    event : Event
        The event that proves the bounds.
    runs : int
        Number of runs on each table.
    detectable : float
        The smallest loss, in the unit of the claim, that so many runs would have shown to exceed the claim,
        if one event had revealed it; infinite if there is none. See `hierdp.audit.detectable`.
    """

    case: Case
    claim: Claim
    neighbours: str
    epsilon: float
    rho: float | None
    event: Event
    runs: int
    detectable: float

    @property
    def shows_nothing(self) -> bool:
        """Whether no loss at all could have exceeded the claim in so few runs."""
        return not self.over and self.detectable == math.inf

    @property
    def over(self) -> bool:
        """Whether a bound exceeds the claim, so that the mechanism is less private than it claims."""
        if self.claim.rho is not None and self.rho is not None and self.rho > self.claim.rho:
            return True
        return self.epsilon > self.claim.epsilon
