"""Flights from New York in 2013, by origin, destination and aircraft, with noise."""

import numpy as np
import pandas as pd
from benchopt import BaseDataset

from hierdp.data import FLIGHTS


class Dataset(BaseDataset):
    name = "flights"
    parameters = {"columns": [("origin", "destination"), ("origin", "destination", "aircraft")]}
    test_parameters = {"columns": [("origin", "destination")]}
    requirements = ["pip::hierdp"]

    def get_data(self):
        flights, rng = pd.read_parquet(FLIGHTS).dropna(), np.random.default_rng(2013)
        parents, levels = [], [np.array([flights["flights"].sum()])]
        for k in range(1, len(self.columns) + 1):
            counts = flights.groupby(list(self.columns[:k]))["flights"].sum()
            above = counts.index.to_frame().groupby(list(self.columns[: k - 1])).ngroup() if k > 1 else 0
            parents.append(np.broadcast_to(np.asarray(above), counts.shape))
            levels.append(counts.to_numpy())
        true = np.concatenate(levels)
        return {
            "parents": parents,
            "noisy": true + rng.geometric(0.1, true.size) - rng.geometric(0.1, true.size),
        }
