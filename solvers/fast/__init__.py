"""The specialised algorithms, one file a family."""
