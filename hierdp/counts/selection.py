"""What a question to a release adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from models.arithmetic.arrays import Flags


class Selection(NamedTuple):
    """What a question adds up: the cells of some regions of one level.

    Attributes
    ----------
    level : int
        The level of the release's table.
    regions : mapping of str to bool array
        For each axis, which regions are in the sum, of the level that the axis has reached there.
    categories : mapping of str to sequence of str
        For each column of categories that the question selects from, the selected ones.
    """

    level: int
    regions: Mapping[str, Flags]
    categories: Mapping[str, Sequence[str]]
