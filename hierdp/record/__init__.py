"""The record of a release: its steps, proofs and files, and how they are read."""
