"""What is counted, and along what: hierarchies, axes, histograms, sizes of groups."""
