"""Pages and plots, made from plain data."""
