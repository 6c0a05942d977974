"""Which method wins where? The methods of five papers and newer rivals, on the same data."""
