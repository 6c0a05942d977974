"""The tie of Fioretto & Van Hentenryck 2019: the regions' fits, and then the program over all regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.check.again import compare, compare_settings
from hierdp.check.noise import Law, of_tree
from hierdp.check.replay import Differs, Replay
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.histogram import differences
from hierdp.mechanisms.group_size.mechanism import settings_of, table_of
from hierdp.mechanisms.group_size.repairs import (
    AT_ONCE,
    METHODS,
    monotone_at_once,
    region_names,
    together,
)
from models import CumulativeQIP, HierarchyQIP, Isotonic

if TYPE_CHECKING:
    from pandas import DataFrame


RELAXED = "relaxed consistency of all regions", "relaxed, monotone and consistent"
WHOLE = "consistency of all regions", "monotone and consistent"
"""The step over all regions, of counts by size and of cumulative ones."""


def check_sizes(replay: Replay, table: DataFrame, manifest: Mapping[str, Any], places: Hierarchy) -> str:
    """Do the method's post-processing again; what comes out is the table.

    Raises
    ------
    Differs
        If it is not.
    """
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    groups, sizes = settings["groups"], settings["max_size"] + 1
    window = settings.get("window") if "window" in method.takes else None
    if method.name == "M_dp^OP" and window is None:
        raise Differs(f"{method.name} has tables of a window, and the settings tell of none")
    fitted, cumulative = method.name == "M_c^dp", method.name in ("M_c", "M_c^r")
    name = (WHOLE if method.consistent else RELAXED)[cumulative]
    if fitted:
        fits = list(_fits(replay, places, groups, sizes))
        shape = places.size, sizes
        measured = np.concatenate([np.asarray(fit.model.noisy) for fit in fits]).reshape(shape)
        noisy = differences(np.concatenate([np.asarray(fit.solution.x) for fit in fits]).reshape(shape))
    else:
        first = replay.peek(name, places.size * sizes).model
        measured = noisy = np.asarray(getattr(first, "noisy", ()))
        if noisy.shape != (places.size, sizes):
            raise Differs(f"step {name!r} starts from other than {places.size} × {sizes} noisy counts")
    model: HierarchyQIP | CumulativeQIP
    if cumulative:
        model = CumulativeQIP(places.tree, noisy, groups, integer=method.consistent)
    else:
        model = HierarchyQIP(places.tree, noisy, groups, integer=method.consistent, window=window)
    answer = np.rint(np.asarray(replay.solve(name, model).solution.x)).astype(np.int64)
    replay.end()
    counts = differences(answer) if cumulative else answer
    compare(table, table_of(places, counts))
    compare_settings(settings, settings_of(places, counts, groups, method, window))
    laws = [Law.of(spend) for spend in manifest["budget"]["spends"]]
    replay.twice += of_tree(places.tree, measured, laws, "sizes")
    return "it is the last step's answer"


def _fits(replay: Replay, places: Hierarchy, groups: int, sizes: int) -> Any:
    """The monotone fit of each region, from noisy cumulative sizes, which are its model's."""
    names = region_names(places)
    if replay.side_by_side:
        for cut in together(len(names), sizes):
            cells = sizes * len(names[cut])
            noisy = getattr(replay.peek(AT_ONCE, cells).model, "noisy", ())
            if np.shape(noisy) != (cells,):
                raise Differs(f"the step at {names[cut.start]!r} starts from other than {cells} noisy sizes")
            yield from monotone_at_once(
                names[cut], np.asarray(noisy).reshape(-1, sizes), groups, replay.solve
            )
        return
    for name in names:  # of few regions, or of a release before 0.2.0
        noisy = getattr(replay.peek(name, sizes).model, "noisy", ())
        if np.shape(noisy) != (sizes,):
            raise Differs(f"step {name!r} starts from other than {sizes} noisy sizes")
        fit = Isotonic(np.asarray(noisy), p=2, lower=0, upper=groups, integer=True)
        yield replay.solve(name, fit)
