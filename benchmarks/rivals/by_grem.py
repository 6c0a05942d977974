"""ResidualPlanner's measurements and GReM's estimates, in an interpreter of their own."""

import contextlib
import io
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch


def main(task):
    """All pairs of attributes: GReM-MLE (least squares), or GReM-LNN (each pair without negative counts)."""
    sys.path.insert(0, str(Path(task["grem"]) / "src"))
    from rem.algebra import MarginalWorkload, VStack
    from rem.dataset import Dataset
    from rem.domain import Domain
    from rem.mechanism import residualPlanner
    from rem.reconstruction import gremLNN

    counts = np.load(task["table"])
    names = tuple(str(axis) for axis in range(counts.ndim))
    rows = np.repeat(np.stack(np.unravel_index(np.arange(counts.size), counts.shape)), counts.ravel(), axis=1)
    data = Dataset(pd.DataFrame(rows.T, columns=names), Domain(names, counts.shape))
    pairs = list(itertools.combinations(names, 2))
    spent = []
    for job in task["jobs"]:
        torch.manual_seed(job["seed"])
        began = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            made = residualPlanner(data=data, target_marginals=pairs, rho=job["rho"])
            answers = made.getMarginals()
            if task["method"] == "GReM-LNN":
                marginals = VStack([MarginalWorkload(pair, data.domain) for pair in pairs])
                fitted = gremLNN(marginals, made.residuals, made.z, made.z_sigmas)
                fitted.solve(t=0.01)  # as in their notebook
                answers = fitted.getMarginals()
        spent.append(time.process_time() - began)
        shapes = [(counts.shape[int(a)], counts.shape[int(b)]) for a, b in pairs]
        arrays = [answer.numpy().reshape(shape) for answer, shape in zip(answers, shapes, strict=True)]
        np.savez(job["out"], **dict(zip(map(",".join, pairs), arrays, strict=True)))
    print("\n" + json.dumps({"cpu of the job": spent}))


main(json.loads(Path(sys.argv[1]).read_text()))
