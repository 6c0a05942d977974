"""Releases against the truth: inside the house (`evaluate`), and on public data (`compare`)."""
