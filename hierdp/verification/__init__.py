"""Answers of every backend side by side, and the judge of them."""
