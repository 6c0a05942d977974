"""Checks of releases by the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.group_size.mechanism import settings_of, table_of
from hierdp.mechanisms.group_size.repairs import (
    AT_ONCE,
    METHODS,
    post_process,
    region_names,
    together,
)
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.words import ENTITY
from hierdp.privacy.budget import split
from hierdp.privacy.expected import Expected, ExpectedSpend
from hierdp.privacy.twice import CountNoise, of_tree
from hierdp.record.compare import compare, compare_settings
from hierdp.record.properties import Regions
from hierdp.record.replay import Differs, Replay
from hierdp.record.shape import shape_of_sizes
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


def expected_spends(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Expected:
    """An equal share of ε for each level."""
    (places,) = regions.values()
    method = METHODS[manifest["mechanism"]]
    shares = split(manifest["budget"]["epsilon"], len(places.levels))
    named = zip(places.levels, shares, strict=True)
    return ENTITY, [ExpectedSpend(method.query(name), method.sensitivity, share) for name, share in named]


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """Repeat the post-processing from the noisy counts that the steps start from."""
    (places,) = regions.values()
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    groups, shape = settings["groups"], (places.size, settings["max_size"] + 1)
    window = settings.get("window") if "window" in method.takes else None
    if method.name == "M_dp^OP" and window is None:
        raise Differs(f"{method.name} needs a window, but the settings have none")
    side_by_side = saved.side_by_side
    if method.fitted:
        noisy = _fitted(saved, places, shape)
    else:
        noisy = saved.peek_noisy(method.step, shape)
    solver = SolverOptions(window=window)
    counts = post_process(noisy, places, groups, method, solver, saved.solve, side_by_side).counts
    saved.end()
    compare(table, table_of(places, counts))
    compare_settings(settings, settings_of(places, counts, groups, method, window))
    laws = [CountNoise.of(spend) for spend in manifest["budget"]["spends"]]
    saved.twice += of_tree(places.tree, noisy, laws, "sizes")
    return "it is the last step's answer"


def _fitted(saved: Replay, places: Hierarchy, shape: tuple[int, int]) -> Ints:
    """The noisy cumulative sizes of the regions' fits, with many regions per step or one.

    They are side by side from `SIDE_BY_SIDE` regions on, except in releases before 0.2.0.
    """
    regions, sizes = shape
    if saved.side_by_side:
        cuts = [(AT_ONCE, (cut.stop - cut.start) * sizes) for cut in together(regions, sizes)]
    else:
        cuts = [(name, sizes) for name in region_names(places)]
    parts = [saved.peek_noisy(name, (cells,), ahead) for ahead, (name, cells) in enumerate(cuts)]
    return np.concatenate(parts).reshape(shape)


CHECKING = Checking(shape_of_sizes, expected_spends, replay)
