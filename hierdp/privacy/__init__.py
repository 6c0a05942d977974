"""Noise and the budget that it spends."""
