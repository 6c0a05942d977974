"""Counts along hierarchies, released level by level from the top, and what they are compared with."""

from hierdp.mechanisms.top_down.levels import Level, refinements
from hierdp.mechanisms.top_down.mechanism import from_table, inf_tda, loss_of, top_down, true_table
from hierdp.mechanisms.top_down.repairs import METHODS, Method
from hierdp.mechanisms.top_down.unit import ONE_TRIP, Unit

__all__ = [
    "METHODS",
    "ONE_TRIP",
    "Level",
    "Method",
    "Unit",
    "from_table",
    "inf_tda",
    "loss_of",
    "refinements",
    "top_down",
    "true_table",
]
