"""Faulty sources of noise that an audit must detect: half the noise, or none for one query."""

from dataclasses import replace

from hierdp.audit.analytic_events import ZeroNoise, largest
from hierdp.privacy.noise import SimulatedNoise


class Half(SimulatedNoise):
    """Half the noise with the full claim. (`stable` uses `geometric`'s noise; its threshold is unchanged.)"""

    def geometric(self, counts, query, sensitivity, epsilon):
        """Draw with twice the ε."""
        made = super().geometric(counts, query, sensitivity, 2 * epsilon)
        return replace(made, spend=replace(made.spend, epsilon=epsilon))

    def gaussian(self, counts, query, sensitivity, rho):
        """Draw with four times the ρ."""
        made = super().gaussian(counts, query, sensitivity, 4 * rho)
        return replace(made, spend=replace(made.spend, rho=rho))

    def choose(self, scores, query, sensitivity, epsilon):
        """Choose with twice the ε."""
        picked, spend = super().choose(scores, query, sensitivity, 2 * epsilon)
        return picked, replace(spend, epsilon=epsilon)


class Spared(SimulatedNoise):
    """True answers to one query, although its noise is drawn and charged."""

    def __init__(self, seed, query):
        super().__init__(seed)
        self.query = query

    def geometric(self, counts, query, *scale):
        return self._spared(super().geometric(counts, query, *scale), counts, query)

    def gaussian(self, counts, query, *scale):
        return self._spared(super().gaussian(counts, query, *scale), counts, query)

    def _spared(self, made, counts, query):
        return replace(made, counts=counts.copy()) if query == self.query else made

    def choose(self, scores, query, *scale):
        chosen, spend = super().choose(scores, query, *scale)
        return largest(scores) if query == self.query else chosen, spend


class _Measured(ZeroNoise):
    """Keep the true counts of each query, and the scores of private choices."""

    def __init__(self):
        super().__init__()
        self.true = {}

    def _keep(self, query, parts):
        self.true.setdefault(query, []).extend(part.tobytes() for part in parts)

    def geometric(self, counts, query, *scale):
        self._keep(query, [counts])
        return super().geometric(counts, query, *scale)

    def gaussian(self, counts, query, *scale):
        self._keep(query, [counts])
        return super().gaussian(counts, query, *scale)

    def choose(self, scores, query, *scale):
        self._keep(query, scores)
        return super().choose(scores, query, *scale)


def measured_differently(case):
    """The queries whose true counts differ between the two tables, in the order measured."""
    first, second = _Measured(), _Measured()
    case.release(0, first)
    case.release(1, second)
    return [query for query, true in first.true.items() if true != second.true.get(query)]
