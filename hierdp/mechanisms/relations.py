"""Neighbouring relations, in words."""

ENTITY = "one entity joins or leaves a group; regions and groups are public"
PERSON = "one person joins or leaves, in one bin; the bins are public"
TRIP = "one trip is replaced by another; regions and the total are public"
