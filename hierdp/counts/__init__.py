"""Counts and their structure: hierarchies, axes, histograms, group sizes."""
