"""Measurements: what a release learns of the true counts, and all that it learns."""
