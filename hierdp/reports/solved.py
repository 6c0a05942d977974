"""How many problems a manifest's lines of solved steps stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def count_proved(lines: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """How many problems the lines of a manifest name as proved optimal, and how many in all."""
    both = [(problems_of(line), bool(line["proved_optimal"])) for line in lines]
    return sum(number for number, proved in both if proved), sum(number for number, _ in both)


def problems_of(line: Mapping[str, Any]) -> int:
    """How many problems a line of a manifest stands for."""
    return int(line.get("problems", 1))
