"""The most that a release may cost, known before it draws noise, and how the losses of releases add up."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal, localcontext
from typing import Any, Self

from hierdp.privacy.conversion import DIGITS
from hierdp.privacy.whom import ROW, Whom

UPWARDS = Decimal(10) ** (20 - DIGITS)
"""Added to a divergence to cover the rounding of its terms, the largest of which is about 1."""


@dataclass(frozen=True)
class Loss:
    """The most that a release costs.

    Attributes
    ----------
    epsilon : float or None
        Pure loss; if `delta` is above 0, the ε of an (ε, δ)-DP release.
    rho : float or None
        The zCDP loss; one of `epsilon` and `rho` is None.
    delta : float
        The δ that the release spends by itself, such as a stability histogram's.
    unit, column, rows, counts
        Whom it protects; see `Whom`.
    replaces : bool
        Whether neighbouring tables differ by replacing a unit, rather than by adding or removing one.
    """

    epsilon: float | None = None
    rho: float | None = None
    delta: float = 0.0
    unit: str = ROW
    replaces: bool = False
    column: str | None = None
    rows: int | None = 1
    counts: str | None = None

    @classmethod
    def of(
        cls,
        whom: Whom,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float = 0.0,
        replaces: bool = False,
    ) -> Self:
        """The loss of a unit."""
        return cls(epsilon, rho, delta, whom.unit, replaces, whom.column, whom.rows, whom.counts)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Read the result of `as_dict`.

        Raises
        ------
        ValueError, TypeError
            If it is not one.
        """
        loss = cls(**saved)
        if len(saved) < len(fields(cls)):
            raise ValueError
        (spent,) = (part for part in (loss.epsilon, loss.rho) if part is not None)
        if not (0 <= spent < math.inf and 0 <= loss.delta <= 1):
            raise ValueError
        return loss

    @property
    def whom(self) -> Whom:
        """Whom it protects."""
        return Whom(self.unit, self.column, self.rows, self.counts)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @property
    def in_words(self) -> str:
        """The loss in words, such as "ε = 0.5"."""
        if self.rho is not None:
            return f"ρ = {self.rho:.6g}"
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")

    def of_a_replacement(self) -> Self:
        """The loss for replacing a unit: removing one and adding another, if this is the loss for one change.

        Two changes cost 2ε, or 4ρ (Bun & Steinke 2016), or 2ε and δ(1 + e^ε).
        """
        if self.replaces:
            return self
        if self.rho is not None:
            return replace(self, rho=4 * self.rho, replaces=True)
        assert self.epsilon is not None
        more = math.nextafter(self.delta * (1 + math.exp(min(self.epsilon, 700))) * (1 + 1e-12), math.inf)
        delta = min(1.0, more) if self.delta else 0.0
        return replace(self, epsilon=2 * self.epsilon, delta=delta, replaces=True)

    def divergence(self, u: Decimal) -> Decimal:
        """An upper bound on the Rényi divergence of order 1 + u.

        Of ρ-zCDP it is (1 + u)ρ. Of ε-DP it is largest for randomized response, which tells the truth with
        odds e^ε (Bun & Steinke 2016), and at most ε and (1 + u)ε²/2. An (ε, δ)-DP release is as an ε-DP one,
        except on an event of probability δ, which is left out here (Kairouz, Oh & Viswanath 2015).
        """
        with localcontext() as context:
            context.prec = DIGITS
            if self.rho is not None:
                return (1 + u) * Decimal(self.rho) * (1 + UPWARDS)
            assert self.epsilon is not None
            epsilon = Decimal(self.epsilon)
            most = min(epsilon, (1 + u) * epsilon**2 / 2 * (1 + UPWARDS))
            if epsilon * (1 + u) > 1000:  # beyond this, the formula gives ε to float precision
                return most
            truth = (-epsilon).exp()
            odds = ((u * epsilon).exp() + (-(1 + u) * epsilon).exp()) / (1 + truth)
            return min(most, (odds.ln() + UPWARDS) / u)
