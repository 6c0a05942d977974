"""Trees of ten children a node, with heavy-tailed counts and two-sided geometric noise."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"depth": [2, 3]}
    test_parameters = {"depth": [1]}
    requirements = []

    def get_data(self):
        rng = np.random.default_rng(self.depth)
        parents = [np.repeat(np.arange(10**level), 10) for level in range(self.depth)]
        levels = [np.floor(rng.pareto(1.0, 10**self.depth)).astype(int)]
        for above in parents[::-1]:
            levels.insert(0, np.bincount(above, levels[0]).astype(int))
        true = np.concatenate(levels)
        return {
            "parents": parents,
            "noisy": true + rng.geometric(0.1, true.size) - rng.geometric(0.1, true.size),
        }
