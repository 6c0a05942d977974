"""Errors of a release against the truth, one file for each kind of table."""
