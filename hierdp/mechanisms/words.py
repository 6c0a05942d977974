"""What the mechanisms say of themselves, in words that manifests keep."""

from __future__ import annotations

BOTTOM_UP = "bottom-up"
"""Before the name of a method of count-of-counts: the last level alone is measured."""

ENTITY = "one entity joins or leaves a group; regions and groups are public"
PERSON = "one person joins or leaves, in one bin; the bins are public"
TRIP = "one trip is replaced by another; regions and the total are public"
