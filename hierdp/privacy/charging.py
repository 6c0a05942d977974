"""Noise that charges an account before the first number is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hierdp.errors import InputError
from hierdp.privacy.account import Entry
from hierdp.privacy.budget import Ledger
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import Drawn, Law, Noise


class ChargingNoise:
    """A source of noise that writes a charge to the disk before it draws any noise.

    Errors in a table or an option are found earlier, and cost nothing.

    - charge: charges the whole release and returns the entry; called at most once.
    """

    def __init__(self, noise: Noise, charge: Callable[[], Entry]) -> None:
        self._noise, self._charge = noise, charge
        self.entry: Entry | None = None

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `Noise.draw`."""
        self.entry = self.entry or self._charge()
        return self._noise.draw(law, true)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Record in the account a failure after the charge."""
        try:
            yield
        except BaseException as failure:
            if self.entry is not None:
                self.entry.failed(failure)
            raise


def check_charged(ledger: Ledger, loss: Loss) -> None:
    """Check that a release cost no more than it was charged for, and protects whom the charge names.

    Raises `InputError` if it cost more, which would be a bug in its mechanism.
    """
    if ledger.zcdp:
        within = loss.rho is not None and ledger.rho <= loss.rho
    else:
        within = loss.epsilon is not None and ledger.epsilon <= loss.epsilon
        within = within and ledger.delta <= loss.delta
    if not within or ledger.whom != loss.whom:
        raise InputError("the release cost more than it was charged for; please report this")
