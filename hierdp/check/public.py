"""Check that what a manifest says of public lists agrees: its settings, and what it takes as public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hierdp.check.result import FAILS, CheckResult
from hierdp.mechanisms.public import PROTECTED_GROUPS, SEEN_CATEGORIES, SEEN_GROUPS, SEEN_REGIONS

FROM_DATA = {
    "regions_from_data": ("regions", SEEN_REGIONS),
    "groups_from_data": ("which_groups", SEEN_GROUPS),
    "attributes_from_data": ("categories", SEEN_CATEGORIES),
}
"""The settings that replace a public list by the data, with the entry of `taken_as_public` and its words."""


def check_public(manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Report a list that is called public in one place and from the data in another."""
    settings, public = manifest["settings"], manifest["taken_as_public"]
    for name, (what, seen) in FROM_DATA.items():
        if (settings.get(name) is True) != (public.get(what) == seen):
            why = f"the setting {name} and the words on {what} under 'taken_as_public' contradict each other"
            yield CheckResult("public", FAILS, why)
    if ("group_budget" in settings) and public.get("which_groups", PROTECTED_GROUPS) != PROTECTED_GROUPS:
        why = "the number of groups was measured, but 'taken_as_public' says that the groups are known"
        yield CheckResult("public", FAILS, why)
