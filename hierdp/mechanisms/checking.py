"""What `hierdp check` asks of a mechanism; each names an instance of `Checking` in its registry entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hierdp.privacy.expected import Expected
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay

if TYPE_CHECKING:
    from pandas import DataFrame

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Checking:
    """Functions of a released table, its manifest, and its regions by axis.

    A release may have been edited: they may raise any exception, which fails the check.

    Attributes
    ----------
    shape : callable
        In words, what is wrong with the table's columns, levels and regions; empty if nothing is.
    expected_spends : callable
        The neighbouring relation, and what is measured at which price.
    replay : callable
        From the saved steps, too: repeats the post-processing and compares the table and the settings.
        Returns in words how the table follows; raises `hierdp.record.replay.Differs` if it does not.
    rounded : collection of str
        The methods whose answers need not be optimal among whole counts; `replay` checks how they are
        rounded.
    rows_of_a_person : callable, optional
        From the settings to the rows of one person that the sensitivities count; None if they are not those
        of a person who joins or leaves. Without it, sensitivities are of one row.
    """

    shape: Callable[[DataFrame, Manifest, Regions], str]
    expected_spends: Callable[[DataFrame, Manifest, Regions], Expected]
    replay: Callable[[Replay, DataFrame, Manifest, Regions], str]
    rounded: Collection[str] = ()
    rows_of_a_person: Callable[[Mapping[str, Any]], int | None] | None = None
