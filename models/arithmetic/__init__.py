"""Exact arithmetic and plain loops over arrays: no decisions, no search."""
