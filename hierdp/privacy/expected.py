"""What a mechanism's budget must show: each measurement, its sensitivity, and its share of the budget."""

from __future__ import annotations

from typing import NamedTuple

GEOMETRIC, GAUSSIAN, CHOICE = "double-geometric", "discrete Gaussian", "permute-and-flip"
"""Noises, as a budget names them."""


class ExpectedSpend(NamedTuple):
    """A measurement that a mechanism makes by public facts alone: a line that its budget must have.

    Attributes
    ----------
    query : str
    sensitivity : float
    loss : float or None
        Its share of ε, or of ρ with Gaussian noise. None where the release does not say how the budget was
        shared out.
    noise : str
    times : int
        How many choices one after the other the line stands for.
    delta : float or None
        The least δ that the line must claim. None where it must claim none.
    """

    query: str
    sensitivity: float
    loss: float | None
    noise: str = GEOMETRIC
    times: int = 1
    delta: float | None = None


Expected = tuple[str, list[ExpectedSpend]]
"""The neighbouring relation, in words, and all measurements."""
