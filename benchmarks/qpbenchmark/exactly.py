"""Run qpbenchmark's solvers on hierarchical counts, with the exact gap beside its metrics.

    python exactly.py --results-path results.csv [--settings …] [--solver …] [--problem …]

The exact gap is the cost of the answer, in fractions, less the proved optimum, relative to it: qpbenchmark's
primal and dual residuals and its duality gap are those of the solver's own prices. An answer that breaks its
rows can be too cheap, and its gap negative. The report is qpbenchmark's, with one section more.
"""

import argparse
from fractions import Fraction
from pathlib import Path

import pandas as pd
import qpbenchmark
from hierarchical_counts import PROBLEMS, HierarchicalCounts
from qpbenchmark.report import Report
from qpbenchmark.results import Results


class ExactResults(Results):
    """qpbenchmark's results, with the column ``exact_gap``."""

    def __init__(self, path, test_set):
        super().__init__(path, test_set)
        frame = pd.read_parquet(PROBLEMS).set_index("name")
        self.optima = {name: Fraction(row["optimum"]) for name, row in frame.iterrows()}
        self.constants = {name: Fraction(row["constant"]) for name, row in frame.iterrows()}
        if "exact_gap" not in self.df:
            self.df = self.df.assign(exact_gap=float("nan"))

    def update(self, problem, solver, settings, solution, runtime):
        """Add a run."""
        super().update(problem, solver, settings, solution, runtime)
        if solution.x is not None and solution.found:
            optimum = self.optima[problem.name]
            over = self.cost(problem, solution.x) - optimum
            self.df.loc[self.df.index[-1], "exact_gap"] = float(over / max(1, abs(optimum)))

    def cost(self, problem, x):
        """½xᵀPx + qᵀx and the constant, exactly; P is diagonal."""
        parts = zip(problem.P.diagonal().tolist(), problem.q.tolist(), x.tolist(), strict=True)
        found = sum(Fraction(p) / 2 * Fraction(v) ** 2 + Fraction(q) * Fraction(v) for p, q, v in parts)
        return found + self.constants[problem.name]


def section(results):
    """The exact gap in the report's layout: a row a solver, a column the settings."""
    rows = results.df.assign(gap=results.df["exact_gap"].abs())
    limits = {name: one.gap for name, one in results.test_set.tolerances.items()}
    rows["met"] = 100.0 * (rows["found"] & (rows["gap"] < rows["settings"].map(limits)))
    share, worst = (
        rows.pivot_table(index="solver", columns="settings", values=value, aggfunc=how)
        for value, how in (("met", "mean"), ("gap", "max"))
    )
    return (
        "\n### Exact gap\n\nPercentage of problems whose answer has the proved optimum within the gap's "
        f"[tolerance](#settings):\n\n{share.to_markdown(floatfmt='.0f')}\n\n"
        f"Largest exact gap of answers called solved:\n\n{worst.to_markdown(floatfmt='.1e')}\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results-path", type=Path, default=Path("results.csv"))
    parser.add_argument("--author", default="hierdp")
    for name in ("settings", "solver", "problem"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    test_set = HierarchicalCounts()
    results = ExactResults(given.results_path, test_set)
    only = {f"only_{name}": getattr(given, name) for name in ("settings", "solver", "problem")}
    qpbenchmark.run(test_set, results, **only)
    if given.settings:  # the report has no columns for settings that did not run
        test_set.solver_settings = {given.settings: test_set.solver_settings[given.settings]}
        test_set.tolerances = {given.settings: test_set.tolerances[given.settings]}
    report = given.results_path.with_suffix(".md")
    Report(given.author, results).write(str(report))
    with report.open("a", encoding="utf-8") as out:
        out.write(section(results))
    print(f"Written to {given.results_path} and {report}.")


if __name__ == "__main__":
    main()
