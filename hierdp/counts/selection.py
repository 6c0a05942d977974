"""What a question to a release adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from models.arithmetic.arrays import Flags


class Selection(NamedTuple):
    """What a question adds up: the cells of some regions of one level.

    - level: the level of the release's table.
    - regions: for each axis, which regions are in the sum, of the level that the axis has reached there.
    - categories: for each column of categories that the question selects from, the selected ones.
    """

    level: int
    regions: Mapping[str, Flags]
    categories: Mapping[str, Sequence[str]]
