"""A release for readers: opened, explained, copied with names, blanks for small counts, to Excel or SDMX."""
