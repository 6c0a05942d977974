"""Checks of releases by the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.group_size.mechanism import settings_of, table_of
from hierdp.mechanisms.group_size.repairs import (
    AT_ONCE,
    METHODS,
    Method,
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
from hierdp.record.step import NotProved
from models import Tree
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
    fits = _fits(side_by_side, places, shape) if method.fitted else []
    blocks = _blocks(saved, method, shape, window, len(fits))
    if method.fitted:
        parts = [saved.peek_noisy(name, (cells,), ahead) for ahead, (name, cells) in enumerate(fits)]
        noisy = np.concatenate(parts).reshape(shape)
    elif len(blocks) > 1:
        names = [(method.block(cut), (shape[0], cut.stop - cut.start)) for cut in blocks]
        noisy = np.hstack([saved.peek_noisy(*named, ahead) for ahead, named in enumerate(names)])
    else:
        noisy = saved.peek_noisy(method.step, shape)

    def shares(_: Tree, parts: Sequence[Ints], __: int) -> Iterator[int]:
        for ahead, (cut, part) in enumerate(zip(blocks, parts, strict=True)):
            yield int(getattr(saved.peek(method.block(cut), part.size, ahead).model, "total", -1))

    solver = SolverOptions(window=window)
    try:
        counts = post_process(
            noisy, places, groups, method, solver, saved.solve, side_by_side, blocks, shares
        ).counts
    except NotProved as apart:
        raise Differs(str(apart)) from None
    saved.end()
    compare(table, table_of(places, counts))
    compare_settings(settings, settings_of(places, counts, groups, method, window))
    laws = [CountNoise.of(spend) for spend in manifest["budget"]["spends"]]
    saved.twice += of_tree(places.tree, noisy, laws, "sizes")
    return "it is the last step's answer"


def _fits(side_by_side: bool, places: Hierarchy, shape: tuple[int, int]) -> list[tuple[str, int]]:
    """The regions' fits by the beginning of their names, with their cells: many a step, or each its own.

    They are side by side from `SIDE_BY_SIDE` regions on, except in releases before 0.2.0.
    """
    regions, sizes = shape
    if side_by_side:
        return [(AT_ONCE, (cut.stop - cut.start) * sizes) for cut in together(regions, sizes)]
    return [(name, sizes) for name in region_names(places)]


def _blocks(
    saved: Replay, method: Method, shape: tuple[int, int], window: int | None, ahead: int
) -> list[slice]:
    """Which sizes are made consistent together; all, whatever their number, in releases before 0.2.0."""
    blocks = method.blocks(*shape, window)
    if len(blocks) > 1 and saved.peek(method.step, shape[0] * shape[1], ahead).step == method.step:
        return [slice(0, shape[1])]
    return blocks


CHECKING = Checking(shape_of_sizes, expected_spends, replay)
