"""The table and the figure of the relaxations by solvers in floats."""

from __future__ import annotations

from collections.abc import Sequence

from hierdp.execution.resume import Row
from hierdp.reports import plots
from hierdp.reproduce.fioretto2019.float_solvers import RELAXED
from hierdp.reproduce.study import Part


def floats(found: Sequence[Row]) -> Part:
    """Errors at the root by ε, for every solver and form of the program."""
    import pandas as pd

    every = pd.DataFrame(found)
    rows = []
    by = ["data", "method", "solver", "unknowns"]
    for (data, method, solver, unknowns), here in every.groupby(by, sort=False):
        row = {"data": data, "method": method, "solver": solver, "unknowns": unknowns}
        row["status"] = ", ".join(dict.fromkeys(here.status))
        row |= {"distance": here.distance.mean(), "allowed": here.allowed_distance.mean()}
        for epsilon, of_epsilon in here.groupby("epsilon"):
            row[f"L1_level_1_at_{epsilon:g}"] = of_epsilon.level_1.mean()
        rows.append({**row, "violations": here.violations.mean()})
    texts = [
        "L1 error at the root (mean over runs) at each ε, of the relaxations by solvers with their default "
        "settings, rounded. Unknowns: the counts, or their differences from the noisy counts, which is the "
        "same program. Distance: from the optimum, before rounding, in L2; allowed: what a relative gap of "
        "10⁻⁸ allows a feasible answer, if the counts are the unknowns. A status such as PrimalInfeasible is "
        "the solver's claim that there is no answer, which is false.",
    ]
    frames = {"float_solvers": pd.DataFrame(rows), "float_solvers_runs": every}
    return Part("float-solvers", "The relaxations by solvers in floats", texts, frames, _figure(every))


def _figure(every: object) -> object:
    """The root's error against ε on the larger tree, a panel a method."""
    import pandas as pd

    assert isinstance(every, pd.DataFrame)
    here = every[every.data == every.data.iloc[-1]]
    drawn, panels = plots.figure(9.4, 3.6, panels=2)
    for axes, method in zip(panels, RELAXED, strict=True):
        lines = here[here.method == method].groupby(["solver", "unknowns"], sort=False)
        for k, ((solver, unknowns), line) in enumerate(lines):
            means = line.groupby("epsilon").level_1.mean()
            label = solver if solver == "exact" else f"{solver}, {unknowns}"
            axes.plot(means.index * 1.03 ** (k - 2), means, label=label, **plots.style(k))
        axes.set(xscale="log", yscale="log", xlabel="privacy budget ε")
        epsilons = sorted(set(here.epsilon))
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_title(method, loc="left", fontsize=10, fontweight="bold")
    panels[0].set_ylabel("L1 error at the root (groups)")
    panels[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return drawn
