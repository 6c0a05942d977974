"""Clustered histograms: AHP (Zhang et al. 2014), and the methods it is compared with."""

from hierdp.mechanisms.clustering.mechanism import METHODS, clustering, from_table

__all__ = ["METHODS", "clustering", "from_table"]
