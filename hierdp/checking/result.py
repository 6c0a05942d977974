"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

HOLDS, FAILS = "holds", "FAILS"
OPEN = "not checked"
"""Something that the check needs is missing; the line says what."""
UNCLAIMED = "not claimed"
"""The release does not claim it, so it is no fault where it does not hold."""

SIMULATED = "SIMULATED NOISE"
"""How the line of a release that is not private begins."""

REPLAY = "table from steps"
"""That the table is what the proved steps gave."""


@dataclass(frozen=True)
class CheckResult:
    """A line of `hierdp check`: what was looked at, the verdict, and why."""

    check: str
    verdict: str
    why: str
