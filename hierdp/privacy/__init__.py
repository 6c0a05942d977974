"""Noise, and the privacy budget that it spends."""
