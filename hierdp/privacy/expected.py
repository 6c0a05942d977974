"""What a mechanism's budget must show: each measurement, its sensitivity, and its share of the budget."""

from __future__ import annotations

from typing import NamedTuple

GEOMETRIC, GAUSSIAN, CHOICE = "double-geometric", "discrete Gaussian", "permute-and-flip"
"""The names of noises in a budget."""


class ExpectedSpend(NamedTuple):
    """A measurement that follows from public facts: a line that a mechanism's budget must have.

    Attributes
    ----------
    query : str
    sensitivity : float
    loss : float or None
        Its share of ε, or of ρ with Gaussian noise. None if the release does not say how the budget was
        divided.
    noise : str
    times : int
        The number of choices in sequence that the line stands for.
    """

    query: str
    sensitivity: float
    loss: float | None
    noise: str = GEOMETRIC
    times: int = 1


Expected = tuple[str, list[ExpectedSpend]]
"""The neighbouring relation, in words, and all measurements."""
