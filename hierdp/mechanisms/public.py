"""Which regions and groups there are: a public list, or, if the caller says so, what is seen in the data.

Regions and groups are published exactly, whatever ε is. If they are those seen in the data, one person more
or less adds or removes a region or a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.record.release import Release

TABLE_OF_REGIONS = "from a table of regions"
TABLE_OF_GROUPS = "from a table of groups"
PROTECTED_GROUPS = "protected: the number of groups is noisy"
SEEN_REGIONS = "as seen in the data, which makes them public"
LISTED_CATEGORIES = "from lists"
SEEN_CATEGORIES = "as seen in the data, which makes them public"
SEEN_GROUPS = "those with a row in the data, which makes them public"

NO_LIST = (
    "there is no public list of {what}: give a table of all {listed}; or, if that may be published, take "
    "those that occur in the data (`{name}=True`), which reveals a person who is alone in one"
)
OF_REGIONS = "regions (`regions`) or of all groups, with their regions (`groups`)"
OF_TABLES = "regions (`regions`)"
OF_CATEGORIES = "categories (`--attribute NAME=CATEGORIES or --plan|attributes={name: [...]}`)"
OF_AXES = "regions (`--regions|(hierarchy, column)`)"
OF_GROUPS = "groups (`groups`){hide}"
HIDE = ", or protect their number (`group_budget`)"
NOT_NEEDED = "`{name}` does not apply: {why}. Leave it out"

R = TypeVar("R", bound=Release)


@dataclass(frozen=True)
class Public:
    """Where the regions and groups of a release come from.

    - words: for the manifest's `taken_as_public`.
    - settings: for the manifest's `settings`: what was taken from the data. The warnings follow from it.
    """

    words: Mapping[str, str]
    settings: Mapping[str, bool]

    def of(self, made: R) -> R:
        """The release, with a manifest that says so."""
        settings = {**made.settings, **self.settings}
        return replace(made, settings=settings).taking_as_public(**self.words)


def public_groups(
    regions: Hierarchy | None,
    groups: object,
    regions_from_data: bool,
    groups_from_data: bool,
    can_hide: bool = False,
    hidden: bool = False,
) -> Public:
    """Where the regions and groups of a table of groups come from.

    - groups: the table of all groups, which has their regions; or None.
    - regions_from_data, groups_from_data: as the caller says.
    - can_hide, hidden: whether the mechanism can protect the number of groups, and whether it does.

    Raises `InputError` if there is neither a public list nor the statement that the data replace it, or if
    there are both.
    """
    faults = []
    if regions is None and groups is None and not regions_from_data:
        faults.append(_no_list("regions", OF_REGIONS, "regions_from_data"))
    if groups is None and not hidden and not groups_from_data:
        hide = HIDE if can_hide else ""
        faults.append(_no_list("groups", OF_GROUPS.format(hide=hide), "groups_from_data"))
    if faults:
        raise InputError("; and ".join(faults))
    if regions_from_data and (regions is not None or groups is not None):
        which = "regions" if regions is not None else "groups, with their regions,"
        _refuse("regions_from_data", f"the {which} are listed")
    if groups_from_data and groups is not None:
        _refuse("groups_from_data", "the groups are listed")
    if groups_from_data and hidden:
        _refuse("groups_from_data", "`group_budget` protects the number of groups")
    seen_or = {True: SEEN_REGIONS, False: TABLE_OF_GROUPS if regions is None else TABLE_OF_REGIONS}
    which = PROTECTED_GROUPS if hidden else SEEN_GROUPS if groups is None else TABLE_OF_GROUPS
    words = {"regions": seen_or[bool(regions_from_data)], "which_groups": which}
    return Public(words, _settings(regions_from_data=regions_from_data, groups_from_data=groups_from_data))


def public_axes(axes: Mapping[str, Hierarchy | None], regions_from_data: bool) -> Public:
    """Where the regions of a table's axes come from.

    - axes: the axes of regions by name; None where there is no list. Axes of numbers and dates are not among
      them: the caller gives their bins.

    Raises `InputError` (see `public_groups`).
    """
    seen = [name for name, hierarchy in axes.items() if hierarchy is None]
    if seen and not regions_from_data:
        raise InputError(_no_list(f"regions of {listed(seen)}", OF_AXES, "regions_from_data"))
    if regions_from_data and not seen:
        _refuse("regions_from_data", "the regions are listed" if axes else "no axis has regions")
    words = {"regions": SEEN_REGIONS if seen else TABLE_OF_REGIONS} if axes else {}
    return Public(words, _settings(regions_from_data=regions_from_data))


def public_tables(
    regions: Hierarchy | None, regions_from_data: bool, unlisted: Sequence[str], attributes_from_data: bool
) -> Public:
    """Where the regions and the categories of a table of attributes come from.

    - unlisted: the attributes without a list of categories.

    Raises `InputError` (see `public_groups`).
    """
    faults = []
    if regions is None and not regions_from_data:
        faults.append(_no_list("regions", OF_TABLES, "regions_from_data"))
    if unlisted and not attributes_from_data:
        what = f"categories of {listed(unlisted)}"
        faults.append(_no_list(what, OF_CATEGORIES, "attributes_from_data"))
    if faults:
        raise InputError("; and ".join(faults))
    if regions_from_data and regions is not None:
        _refuse("regions_from_data", "the regions are listed")
    if attributes_from_data and not unlisted:
        _refuse("attributes_from_data", "every attribute has a list of categories")
    words = {
        "regions": SEEN_REGIONS if regions is None else TABLE_OF_REGIONS,
        "categories": SEEN_CATEGORIES if unlisted else LISTED_CATEGORIES,
    }
    return Public(
        words, _settings(regions_from_data=regions_from_data, attributes_from_data=attributes_from_data)
    )


def _settings(**from_data: bool) -> dict[str, bool]:
    return {name: True for name, said in from_data.items() if said}


def _no_list(what: str, listed: str, name: str) -> str:
    return NO_LIST.format(what=what, listed=listed, name=name)


def _refuse(name: str, why: str) -> None:
    raise InputError(NOT_NEEDED.format(name=name, why=why))
