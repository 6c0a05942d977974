"""Faulty sources of noise that an audit must detect: half the noise, or none for one query."""

from dataclasses import replace

from hierdp.audit.analytic_events import ZeroNoise, largest
from hierdp.privacy.budget import CHOICE, GAUSSIAN
from hierdp.privacy.noise import SimulatedNoise


class Half(SimulatedNoise):
    """Half the noise with the full claim. (Noise over a threshold, too; the threshold is unchanged.)"""

    def _noisy(self, query, counts):
        """Draw with twice the ε, or four times the ρ."""
        more = 4 if query.noise == GAUSSIAN else 2
        drawn = super()._noisy(replace(query, loss=more * query.loss), counts)
        return replace(drawn, spend=claiming(drawn.spend, query))

    def _chosen(self, query, scores):
        """Choose with twice the ε."""
        drawn = super()._chosen(replace(query, loss=2 * query.loss), scores)
        return replace(drawn, spend=claiming(drawn.spend, query))


def claiming(spend, query):
    """The record of a measurement, with the loss that its query asks for."""
    return replace(spend, **{"rho" if query.noise == GAUSSIAN else "epsilon": query.loss})


class Spared(SimulatedNoise):
    """True answers to one query, although its noise is drawn and charged."""

    def __init__(self, seed, query):
        super().__init__(seed)
        self.query = query

    def draw(self, query, true):
        drawn = super().draw(query, true)
        if query.name != self.query:
            return drawn
        return replace(drawn, answers=largest(true) if query.noise == CHOICE else true.copy())


class _Measured(ZeroNoise):
    """Keep the true counts of each query, and the scores of private choices."""

    def __init__(self):
        super().__init__()
        self.true = {}

    def draw(self, query, true):
        parts = true if query.noise == CHOICE else [true]
        self.true.setdefault(query.name, []).extend(part.tobytes() for part in parts)
        return super().draw(query, true)


def measured_differently(case):
    """The queries whose true counts differ between the two tables, in the order measured."""
    first, second = _Measured(), _Measured()
    case.release(0, first)
    case.release(1, second)
    return [query for query, true in first.true.items() if true != second.true.get(query)]
