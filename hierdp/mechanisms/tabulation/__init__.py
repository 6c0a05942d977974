"""Tables of several attributes along a hierarchy, with invariants, bounds and structural zeros."""
