"""A release for its readers: opened, explained, copied with names, blanks for small counts, as Excel and SDMX."""
