"""Mechanisms × data × seeds, measured: comparisons, recommendations and papers are tables of these rows."""
