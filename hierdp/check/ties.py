"""That the table is what the proved steps gave: else one could prove one thing and publish another.

How answers become a table is the mechanism's own, so each has a tie of its own, in `ties_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hierdp.check.replay import Replay
from hierdp.check.shape import command_of
from hierdp.record.properties import Regions

if TYPE_CHECKING:
    from pandas import DataFrame

Tie = Callable[[Replay], str]
"""From a release's steps to words on how they give the table; raises `Differs` if they do not."""


def tie_of(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Tie | None:
    """The tie of the mechanism that made a table; None if it is not one of ours."""

    def alone(check: Callable[..., str]) -> Tie:
        (places,) = regions.values()
        return lambda replay: check(replay, table, manifest, places)

    command = command_of(manifest["mechanism"])
    # Each mechanism is loaded for its own releases only.
    if command == "group-size":
        from hierdp.check.ties_sizes import check_sizes

        return alone(check_sizes)
    if command == "count-of-counts":
        from hierdp.check.ties_groups import check_groups

        return alone(check_groups)
    if command == "top-down":
        from hierdp.check.ties_levels import check_levels

        return lambda replay: check_levels(replay, table, manifest, regions)
    if command == "range-query":
        from hierdp.check.ties_ranges import check_ranges

        return lambda replay: check_ranges(replay, table, manifest)
    if command == "clustering":
        from hierdp.check.ties_clusters import check_clusters

        return lambda replay: check_clusters(replay, table, manifest)
    return None
