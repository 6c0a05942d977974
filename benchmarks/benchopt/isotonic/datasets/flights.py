"""Sorted counts of flights from New York in 2013, by aircraft and destination, with noise."""

import numpy as np
import pandas as pd
from benchopt import BaseDataset

from hierdp.data import FLIGHTS


class Dataset(BaseDataset):
    name = "flights"
    parameters = {"n": [3_000]}
    test_parameters = {"n": [50]}
    requirements = ["pip::hierdp"]

    def get_data(self):
        counts = np.sort(pd.read_parquet(FLIGHTS)["flights"].to_numpy())[-self.n :]
        rng = np.random.default_rng(2013)
        return {"y": counts + rng.geometric(0.1, self.n) - rng.geometric(0.1, self.n)}
