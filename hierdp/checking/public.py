"""Check that what a manifest says of public lists agrees: its settings, and what it takes as public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hierdp.checking.result import FAILS, CheckResult
from hierdp.mechanisms.public import (
    PROTECTED_GROUPS,
    SEEN_CATEGORIES,
    SEEN_GROUPS,
    SEEN_REGIONS,
    TABLE_OF_GROUPS,
)

FROM_DATA = {
    "regions_from_data": ("regions", SEEN_REGIONS),
    "groups_from_data": ("which_groups", SEEN_GROUPS),
    "attributes_from_data": ("categories", SEEN_CATEGORIES),
}
"""The settings that replace a public list by the data, with the entry of `taken_as_public` and its words."""


def check_public(manifest: Mapping[str, Any], older: bool = False) -> Iterator[CheckResult]:
    """Report a list that is called public in one place and from the data in another.

    - older: another version made the release. Version 0.1 has no settings about lists, only the words; and it
      named the table of groups also if their number was protected.
    """
    settings, public = manifest["settings"], manifest["taken_as_public"]
    for name, (what, seen) in FROM_DATA.items():
        said = settings.get(name) is True
        if said != (public.get(what) == seen) and (said or not older):
            why = f"the setting {name} and the words on {what} under 'taken_as_public' contradict each other"
            yield CheckResult("public", FAILS, why)
    protected = {PROTECTED_GROUPS, TABLE_OF_GROUPS} if older else {PROTECTED_GROUPS}
    if "group_budget" in settings and public.get("which_groups", PROTECTED_GROUPS) not in protected:
        why = "the number of groups was measured, but 'taken_as_public' says that the groups are known"
        yield CheckResult("public", FAILS, why)
