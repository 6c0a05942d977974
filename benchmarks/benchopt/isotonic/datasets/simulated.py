"""Sums of random counts, with two-sided geometric noise."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n": [300, 3_000]}
    test_parameters = {"n": [30]}
    requirements = []

    def get_data(self):
        rng = np.random.default_rng(self.n)
        noise = rng.geometric(0.1, self.n) - rng.geometric(0.1, self.n)
        return {"y": np.cumsum(rng.geometric(0.5, self.n) - 1) + noise}
