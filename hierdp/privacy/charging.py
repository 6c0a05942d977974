"""Noise that charges an account before the first number is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hierdp.errors import InputError
from hierdp.privacy.account import Entry
from hierdp.privacy.budget import Ledger, Spend
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import Noise, NoisyCounts
from hierdp.privacy.threshold import Changes
from models.arithmetic.arrays import Ints


class ChargingNoise:
    """A source of noise that writes a charge to the disk before it draws any noise.

    Errors in a table or an option are found earlier, and cost nothing.

    - charge: charges the whole release and returns the entry; called at most once.
    """

    def __init__(self, noise: Noise, charge: Callable[[], Entry]) -> None:
        self._noise, self._charge = noise, charge
        self.entry: Entry | None = None

    def _source(self) -> Noise:
        self.entry = self.entry or self._charge()
        return self._noise

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `Noise.geometric`."""
        return self._source().geometric(counts, query, sensitivity, epsilon)

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """See `Noise.gaussian`."""
        return self._source().gaussian(counts, query, sensitivity, rho)

    def stable(
        self, counts: Ints, query: str, changes: Changes, epsilon: float, least: int
    ) -> tuple[Ints, NoisyCounts]:
        """See `Noise.stable`."""
        return self._source().stable(counts, query, changes, epsilon, least)

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """See `Noise.choose`."""
        return self._source().choose(scores, query, sensitivity, epsilon)

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
