"""What `hierdp check` needs from a mechanism: `Checking`, made from its class (`mechanism.checking_of`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import Regions
from hierdp.counts.size_table import Table
from hierdp.measurements.measuring import Measure
from hierdp.record.step import Solving

if TYPE_CHECKING:
    from pandas import DataFrame

Manifest = Mapping[str, Any]
Settings = Mapping[str, Any]
Rerun = Callable[[Measure, Solving, Any, Manifest, Regions], tuple[Table, Settings]]
Other = Callable[..., tuple[str, Settings, Solving]]


@dataclass(frozen=True)
class Checking:
    """Functions of a released table, its manifest, and its regions by axis.

    The release may have been edited, so a function may raise any exception, which fails the check.

    - shape: says what is wrong with the table's columns, levels and regions, in words; empty if nothing is.
    - rerun: runs the mechanism's function with what answers its queries and solves its models, and returns
      the table and the settings. The manifest lacks `solved` if its method is not that of the release (see
      `other`). May raise `hierdp.measurements.measuring.Differs`.
    - neighbours: the neighbouring relation; if it depends on the release, it is a function of the manifest.
      None if nothing is measured: then the manifest has no budget, and claims no privacy.
    - rounded: the methods whose answers need not be optimal among whole counts; `rerun` checks their
      rounding.
    - rows_of_a_person: gives the number of rows of a person that the sensitivities cover, from the manifest;
      None if neighbouring tables do not differ by adding or removing a person. Without it, sensitivities are
      for one row.
    - replaces: whether neighbouring tables differ by replacing a unit, rather than by adding or removing one.
    - other: from the name of another method, the release's manifest, and options of the post-processing by
      name: the method as a manifest names it, the settings for `rerun` and what solves the models. Raises
      `InputError` if there is no such method, or it takes no such option. None if no two methods start from
      the same measurements.
    - takes: these options of the post-processing.
    """

    shape: Callable[[DataFrame, Manifest, Regions], str]
    rerun: Rerun
    neighbours: str | Callable[[Manifest], str] | None = None
    rounded: Collection[str] = ()
    rows_of_a_person: Callable[[Mapping[str, Any]], int | None] | None = None
    replaces: Callable[[Manifest], bool] = lambda _: False
    other: Other | None = None
    takes: Collection[str] = ()

    @property
    def measures(self) -> bool:
        """Whether anything is measured."""
        return self.neighbours is not None
