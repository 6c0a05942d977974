"""Hierarchical counts: the benchmark's QPs over the reals as a test set of qpbenchmark (2.4 or newer).

    pip install qpbenchmark
    qpbenchmark --results-path results.csv hierarchical_counts.py run --author NAME

in this folder runs them under the released package as it is. `exactly.py` adds a column: the exact gap.
"""

from pathlib import Path

import numpy as np
from qpbenchmark import Problem, ProblemList
from qpbenchmark.parquet_test_set import ParquetTestSet

PROBLEMS = Path(__file__).with_name("problems.parquet")
"""Made again by hierdp if it is deleted."""

LARGEST = 400
"""Variables of the largest problem: qpbenchmark's files have dense matrices."""


class HierarchicalCounts(ParquetTestSet):
    """Convex QPs with diagonal Hessians, each with a proved optimum."""

    def __init__(self):
        if not PROBLEMS.is_file():
            write_problems(PROBLEMS)
        super().__init__(PROBLEMS)

    @property
    def title(self):
        return "Hierarchical counts"

    @property
    def description(self):
        return (
            "Least squares over trees, chains and tables of counts, of steps of differentially private "
            "releases, and relaxations of such problems in whole numbers. Every optimum is proved."
        )

    @property
    def sparse_only(self):
        return False


def write_problems(path):
    """Write the small and the medium set's QPs in qpbenchmark's form, and their proved optima."""
    import pandas as pd

    from hierdp.bench.known_optimum import KnownOptimum
    from hierdp.bench.manifest import exactly
    from hierdp.bench.point import canonical
    from hierdp.bench.problems import problems, program_of
    from models.programs.texts import stated

    listed, optima = ProblemList(), []
    for which in ("small", "medium"):
        for one in problems(which):
            program = program_of(one.model)
            if program is None or program.integer.any() or program.size > LARGEST or program.has("table"):
                continue
            made, known = stated(program), KnownOptimum.of(one.model)
            if made.square.any() and known.bounds.optimal:
                listed.append(problem_of(made, f"{which}-{one.name}"))
                x, _ = canonical(one.model, known.answer, known.witness)
                cost = one.model.objective(x)  # exact if the answer can be; of floats the best is kept
                cost = known.bounds.high if isinstance(cost, float) else cost
                optima.append((exactly(cost), made.constant))
    listed.to_parquet(path)
    frame = pd.read_parquet(path)
    frame[["optimum", "constant"]] = optima
    frame.to_parquet(path, index=False)


def problem_of(made, name):
    """A written program as qpbenchmark has it; its objective lacks the constant."""
    rows, same = made.matrix.toarray(), made.least == made.most
    below, above = np.isfinite(made.least) & ~same, np.isfinite(made.most) & ~same
    left = np.vstack([-rows[below], rows[above]])
    right = np.concatenate([-made.least[below], made.most[above]])
    return Problem(
        np.diag(2 * made.square), made.cost, *((left, right) if right.size else (None, None)),
        *((rows[same], made.least[same]) if same.any() else (None, None)),
        made.lower if np.isfinite(made.lower).any() else None,
        made.upper if np.isfinite(made.upper).any() else None, name,
    )  # fmt: skip
