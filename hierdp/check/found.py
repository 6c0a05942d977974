"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

HOLDS, FAILS = "holds", "FAILS"
OPEN = "not checked"
"""For want of something, which the line says."""
UNCLAIMED = "not claimed"
"""And so not a fault where it does not hold."""

TIE = "table from steps"
"""That the table is what the proved steps gave."""


@dataclass(frozen=True)
class Found:
    """A line of `hierdp check`: what was looked at, the verdict, and why."""

    check: str
    verdict: str
    why: str
