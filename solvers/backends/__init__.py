"""One file for each backend, and the table of what each can solve."""
