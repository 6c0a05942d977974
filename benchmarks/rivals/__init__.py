"""Newer rivals of the papers' methods for histograms, with simulated noise: DAWA and PrivTree."""
