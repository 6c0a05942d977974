"""Words of the mechanisms that are saved in manifests."""

from __future__ import annotations

BOTTOM_UP = "bottom-up"
"""Prefix of the name of a count-of-counts method that measures only the last level."""

ENTITY = "one entity joins or leaves a group; regions and groups are public"
PERSON = "one person joins or leaves, in one bin; the bins are public"
TRIP = "one trip is replaced by another; regions and the total are public"
