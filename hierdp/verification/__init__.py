"""Compare the answers of all backends, and judge them."""
