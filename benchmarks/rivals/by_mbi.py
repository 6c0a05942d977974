"""MST and AIM with mbi 2.0, in an interpreter of their own: ``python by_mbi.py TASK``, a JSON file.

mbi's wheel has the estimators only. The mechanisms are files of its repository, written for names of an
earlier version: three are given here under their old names.
"""

import itertools
import json
import sys
import time
from pathlib import Path
from types import ModuleType

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)  # as mbi advises
jax.config.update("jax_enable_compilation_cache", False)
import mbi  # noqa: E402


def named_as_before():
    """The names that the mechanisms use."""
    mbi.Domain.attrs = property(lambda domain: domain.attributes)
    now = mbi.Estimator.estimate

    def estimate(self, *given, potentials=None, **options):
        return now(self, *given, warm_start=potentials, **options)

    mbi.Estimator.estimate = estimate
    for drawing in ("matplotlib", "matplotlib.pyplot"):  # imported for a plot that is not drawn
        sys.modules.setdefault(drawing, ModuleType(drawing))


def main(task):
    """A table's cells by a mechanism, for each job, at its ρ; adding or removing a row is protected."""
    named_as_before()
    sys.path.insert(0, task["mechanisms"])
    import aim
    import mst

    counts = np.load(task["table"])
    names = tuple(f"a{axis}" for axis in range(counts.ndim))
    domain = mbi.Domain.fromdict(dict(zip(names, counts.shape, strict=True)))
    rows = np.repeat(np.stack(np.unravel_index(np.arange(counts.size), counts.shape)), counts.ravel(), axis=1)
    data = mbi.Dataset(dict(zip(names, rows, strict=True)), domain)
    spent = []
    for job in task["jobs"]:
        np.random.seed(job["seed"])  # noqa: NPY002 - what the mechanisms draw from
        began = time.process_time()
        if task["method"] == "MST":
            mst.cdp_rho = lambda *_, rho=job["rho"]: rho
            made = mst.MST(data, 1.0, 1e-9)
        else:
            mechanism = aim.AIM(1.0, 1e-9)
            mechanism.rho = job["rho"]
            _, made = mechanism.run(data, [(pair, 1.0) for pair in itertools.combinations(names, 2)])
        spent.append(time.process_time() - began)
        np.savez(job["out"], cells=np.asarray(made.project(names).datavector()).reshape(counts.shape))
    print("\n" + json.dumps({"cpu of the job": spent}))


main(json.loads(Path(sys.argv[1]).read_text()))
