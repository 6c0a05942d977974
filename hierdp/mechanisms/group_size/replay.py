"""Checks of releases by the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_table import narrow
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.group_size.fits import AT_ONCE, fit_regions, region_names, together
from hierdp.mechanisms.group_size.mechanism import settings_of, table_of
from hierdp.mechanisms.group_size.repairs import METHODS, Method, consistent_blocks, post_process
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.words import ENTITY
from hierdp.privacy.budget import split
from hierdp.privacy.expected import Expected, ExpectedSpend
from hierdp.privacy.twice import CountNoise, Families, of_families, of_tree
from hierdp.record.compare import compare, compare_settings
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay
from hierdp.record.shape import shape_of_sizes
from hierdp.record.step import NotProved, Step
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
    window = _window(manifest)
    if method.name == "M_dp^OP" and window is None:
        raise Differs(f"{method.name} needs a window, but the settings have none")
    laws = [CountNoise.of(spend) for spend in manifest["budget"]["spends"]]
    blocks = _blocks(manifest, shape)
    if len(blocks) > 1:
        if len(table) != shape[0] * shape[1]:  # before arrays of that shape are made
            raise Differs(f"the table has {len(table)} rows, its steps give {shape[0] * shape[1]}")
        counts, families = _replay_blocks(saved, method, places, groups, shape, blocks)
        twice = of_families(places.tree, families.own, families.sums, laws, "sizes")
    else:
        side_by_side = saved.side_by_side
        noisy = _Fits(saved, places, shape)[:] if method.fitted else saved.peek_noisy(method.step, shape)
        solver = SolverOptions(window=window)
        counts = post_process(
            noisy, places, groups, method, solver, saved.solve, side_by_side, whole=True
        ).counts
        twice = of_tree(places.tree, noisy, laws, "sizes")
        for level, name in enumerate(places.levels):
            saved.recover(method.query(name), noisy[places.tree.nodes_of(level)])
    saved.end()
    compare(table, table_of(places, counts))
    compare_settings(settings, settings_of(places, counts, groups, method, window))
    saved.twice += twice
    return "it is the last step's answer"


def one_by_one(manifest: Mapping[str, Any], regions: Regions) -> bool:
    """Whether `replay` holds one saved step at a time."""
    (places,) = regions.values()
    return len(_blocks(manifest, (places.size, manifest["settings"]["max_size"] + 1))) > 1


def _replay_blocks(
    saved: Replay,
    method: Method,
    places: Hierarchy,
    groups: int,
    shape: tuple[int, int],
    blocks: Sequence[slice],
) -> tuple[Ints, Families]:
    """The counts of a release in blocks of sizes, and sums of the noisy counts; holds one step at a time."""
    # An answer with more than all groups, which 32 bits may not hold, fails its certificate.
    counts: Ints = np.empty(shape, narrow(groups))
    families = Families(places.tree, shape[1])
    if method.fitted:
        fits = _Fits(saved, places, shape, families)
        fit_regions(fits, places, groups, saved.solve, counts, _drop, fits.side_by_side)

    def parts() -> Iterator[Ints]:
        for cut in blocks:
            if method.fitted:
                yield counts[:, cut]
            else:
                noisy = saved.peek_noisy(method.block(cut), (shape[0], cut.stop - cut.start))
                families.add_numbers(cut, noisy)
                yield noisy

    def shares() -> Iterator[int]:
        for cut in blocks:
            model = saved.peek(method.block(cut), shape[0] * (cut.stop - cut.start)).model
            yield int(getattr(model, "total", -1))

    try:
        consistent_blocks(method, places, parts(), groups, saved.solve, blocks, shares(), counts, _drop)
    except NotProved as apart:
        raise Differs(str(apart)) from None
    return counts, families


def _drop(_: Step) -> None:
    """Keep nothing of a step."""


class _Fits:
    """The noisy counts of the saved fits: of a slice of regions that begins with the next step's.

    The fits of many regions are one step from `fits.SIDE_BY_SIDE` regions on, except in releases before
    0.2.0.
    """

    def __init__(
        self, saved: Replay, places: Hierarchy, shape: tuple[int, int], families: Families | None = None
    ) -> None:
        """`families` collects their sums."""
        self._saved, self._places, self._shape, self._families = saved, places, shape, families
        self.side_by_side = saved.side_by_side

    def __getitem__(self, nodes: slice, /) -> Ints:
        regions, sizes = self._shape
        start, stop, _ = nodes.indices(regions)
        if self.side_by_side:
            cuts = [cut for cut in together(*self._shape) if start <= cut.start < stop]
            steps = [(AT_ONCE, (cut.stop - cut.start) * sizes) for cut in cuts]
        else:
            steps = [(name, sizes) for name in region_names(self._places, slice(start, stop))]
        parts = [self._saved.peek_noisy(name, (cells,), at) for at, (name, cells) in enumerate(steps)]
        noisy = np.concatenate(parts).reshape(-1, sizes)
        if self._families is not None:
            self._families.add_nodes(slice(start, stop), noisy)
        return noisy


def _window(manifest: Mapping[str, Any]) -> int | None:
    takes = METHODS[manifest["mechanism"]].takes
    return manifest["settings"].get("window") if "window" in takes else None


def _blocks(manifest: Mapping[str, Any], shape: tuple[int, int]) -> list[slice]:
    """Which sizes are made consistent together; all, whatever their number, in releases before 0.2.0."""
    method = METHODS[manifest["mechanism"]]
    if any(line["step"] == method.step for line in manifest["solved"]):
        return [slice(0, shape[1])]
    return method.blocks(*shape, _window(manifest))


CHECKING = Checking(shape_of_sizes, expected_spends, replay, one_by_one=one_by_one)
