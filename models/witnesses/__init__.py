"""Witnesses: the numbers that prove a bound, and the theorems that read them."""
