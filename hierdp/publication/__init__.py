"""Copies of a written release for readers: with names, blanks for small counts, for Excel and SDMX."""
