"""Programs: variables, objective, rows and bounds; how they are written, read and reformulated."""
