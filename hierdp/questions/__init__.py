"""Questions to written releases: sums over regions, cells, ranges and groups of categories."""
