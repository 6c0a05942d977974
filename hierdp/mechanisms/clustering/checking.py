"""Checks of releases by the methods of Zhang et al. 2014, and those compared there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.axes import Axis, axis_of
from hierdp.counts.layout import Regions
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.clustering.mechanism import METHODS, checked, table_of
from hierdp.mechanisms.relations import PERSON
from hierdp.record.compare import shape_of_bins
from hierdp.record.step import Solving, Step

if TYPE_CHECKING:
    from pandas import DataFrame


def rerun(
    measure: Measure, solve: Solving, table: DataFrame, manifest: Mapping[str, Any], _: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public axes."""
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    options = {name: settings[name] for name in method.takes if name in settings}
    axes = axes_of(table, settings["axes"])
    shape = tuple(axis.bins for axis in axes)
    published = method.run(shape, manifest["budget"]["epsilon"], measure, solve, **options)
    return table_of(axes, published), {"axes": [axis.as_dict() for axis in axes], **published.settings}


def other(name: str, settings: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Solving]:
    """What another method needs that measures the same: NF and Laplace both measure all counts."""
    checked(name, {})
    return name, settings, Step.solve


def axes_of(table: DataFrame, saved: list[Mapping[str, Any]]) -> list[Axis]:
    """The axes of a released table of all bins; names are as they are in it.

    Raises `Differs` if it has another number of bins, or two bins of an axis have the same name.
    """
    shape = tuple(each["bins"] for each in saved)
    if len(table) != math.prod(shape):
        raise Differs(f"the table has {len(table)} bins, but the axes have {math.prod(shape)}")
    found = []
    for at, each in enumerate(saved):
        step = math.prod(shape[at + 1 :])
        axis = axis_of(each, table[each["name"]].to_numpy(object)[np.arange(shape[at]) * step])
        if len(set(axis.labels)) < len(axis.labels):
            raise Differs(f"two bins of {each['name']!r} have the same name")
        found.append(axis)
    return found


def _other(name: str, manifest: Mapping[str, Any], **options: Any) -> Any:
    return other(name, manifest["settings"], **options)


CHECKING = Checking(
    shape_of_bins,
    rerun=rerun,
    neighbours=PERSON,
    other=_other,
)
