"""One file for each backend, with its record; `table` lists the records, and loads no solver."""
