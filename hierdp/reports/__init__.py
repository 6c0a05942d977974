"""Pages and plots from plain data."""
