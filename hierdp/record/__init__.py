"""A release on record: its steps, its proofs, its files, and how they are read again."""
