"""Which regions and groups there are: a public list, or, if the caller says so, what is seen in the data.

Regions and groups are published exactly, whatever ε is. If they are those seen in the data, one person more
or less adds or removes a region or a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

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


class _List(NamedTuple):
    """One of a release's lists: given in public, or, if the caller says so, as seen in the data.

    - entry: that of the manifest's `taken_as_public`, with `words` if the list is seen, and if it is given.
    - name: the option that says so, and whether it is `said`.
    - why: why it does not apply, such as that there is a list; empty if it does.
    - what, listed: what has no list, and what to give.
    """

    entry: str
    words: tuple[str, str]
    name: str
    said: bool
    why: str
    what: str
    listed: str


def _public(*lists: _List) -> Public:
    """What the lists are.

    Raises `InputError` if there is neither a public list nor the statement that the data replace it, or if
    there are both.
    """
    faults = [NO_LIST.format_map(one._asdict()) for one in lists if not one.said and not one.why]
    if faults:
        raise InputError("; and ".join(faults))
    for one in lists:
        if one.said and one.why:
            raise InputError(f"`{one.name}` does not apply: {one.why}. Leave it out")
    words = {one.entry: one.words[0 if one.said else 1] for one in lists}
    return Public(words, {one.name: True for one in lists if one.said})


def public_groups(
    regions: Hierarchy | None,
    groups: object,
    regions_from_data: bool,
    groups_from_data: bool,
    can_hide: bool = False,
    hidden: bool = False,
) -> Public:
    """Where the regions and groups of a table of groups come from; raises as `_public`.

    - groups: the table of all groups, which has their regions; or None.
    - regions_from_data, groups_from_data: as the caller says.
    - can_hide, hidden: whether the mechanism can protect the number of groups, and whether it does.
    """
    of_regions = "the regions are listed" if regions is not None else ""
    of_groups = "`group_budget` protects the number of groups" if hidden else ""
    words = SEEN_REGIONS, TABLE_OF_REGIONS
    if groups is not None:
        of_regions, of_groups = (
            of_regions or "the groups, with their regions, are listed",
            "the groups are listed",
        )
        words = words if regions is not None else (SEEN_REGIONS, TABLE_OF_GROUPS)
    of_them = "groups (`groups`)" + (", or protect their number (`group_budget`)" if can_hide else "")
    which = SEEN_GROUPS, PROTECTED_GROUPS if hidden else TABLE_OF_GROUPS
    return _public(
        _List("regions", words, "regions_from_data", regions_from_data, of_regions, "regions", OF_REGIONS),
        _List("which_groups", which, "groups_from_data", groups_from_data, of_groups, "groups", of_them),
    )


def level_names(levels: Sequence[str] | None, regions: Hierarchy | None) -> Sequence[str]:
    """The levels of a table of groups that is not read yet, by their columns or its regions."""
    if regions is not None:
        return regions.levels
    return ["root", *([levels] if isinstance(levels, str) else levels or ())]


def public_axes(axes: Mapping[str, Hierarchy | None], regions_from_data: bool) -> Public:
    """Where the regions of a table's axes come from; raises as `_public`.

    - axes: the axes of regions by name; None where there is no list. Axes of numbers and dates are not among
      them: the caller gives their bins.
    """
    seen = [name for name, hierarchy in axes.items() if hierarchy is None]
    why = "" if seen else "the regions are listed" if axes else "no axis has regions"
    words, what = (SEEN_REGIONS, TABLE_OF_REGIONS), f"regions of {listed(seen)}"
    found = _public(_List("regions", words, "regions_from_data", regions_from_data, why, what, OF_AXES))
    return found if axes else Public({}, found.settings)


def public_tables(
    regions: Hierarchy | None, regions_from_data: bool, unlisted: Sequence[str], attributes_from_data: bool
) -> Public:
    """Where the regions and the categories of a table of attributes come from; raises as `_public`.

    - unlisted: the attributes without a list of categories.
    """
    of_regions = "" if regions is None else "the regions are listed"
    of_them = "" if unlisted else "every attribute has a list of categories"
    places, named = (SEEN_REGIONS, TABLE_OF_REGIONS), (SEEN_CATEGORIES, LISTED_CATEGORIES)
    what, said = f"categories of {listed(unlisted)}", attributes_from_data
    return _public(
        _List("regions", places, "regions_from_data", regions_from_data, of_regions, "regions", OF_TABLES),
        _List("categories", named, "attributes_from_data", said, of_them, what, OF_CATEGORIES),
    )
