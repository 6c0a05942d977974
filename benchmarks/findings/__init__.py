"""Findings in solvers, one script each, without hierdp."""
