"""The names of noises in a budget."""

from __future__ import annotations

GEOMETRIC, GAUSSIAN, CHOICE = "double-geometric", "discrete Gaussian", "permute-and-flip"
