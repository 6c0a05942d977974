"""The benchmark's report: tables and profiles from a results file, as Markdown and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.bench import metrics
from hierdp.bench.runs import TOLERANCES, read
from hierdp.errors import InputError
from hierdp.execution.progress import plural
from hierdp.experiments.study import Part, Study
from hierdp.reports import plots

if TYPE_CHECKING:
    from pandas import DataFrame

SETS = ("small", "medium", "large")

LIMITATIONS = (
    "Times include stating the problem, which matters for small problems, and solving it, in a process of "
    "the backend's own. Starting the process and sending the problem to it are not included.",
    "For solvers without integer quadratic objectives, squares become piecewise linear functions between "
    "whole numbers, and cost tables become binaries. This is exact, but a user of the solver might state "
    "the problem differently.",
    "The times of solvers behind cvxpy and Pyomo include the time of cvxpy and Pyomo.",
    "“default” is the accuracy that hierdp requests from each solver, which is higher than most solvers' "
    "defaults.",
    "Fast paths are hierdp's own. All answers are judged by the fast path's optimum if its certificate "
    "proves it. Otherwise the fast path has not solved the problem, and the first answer of another backend "
    "that the model's certificate proves takes its place. The fast path's time includes its certificate, as "
    "the others' times include their proofs. All times are of a first solve, without cached results, with "
    "kernels compiled.",
    "Times are of one solve, or medians if problems were solved repeatedly (`--repeats`): a single time of a "
    "few milliseconds varies by a factor of two, more on a busy machine. CPU times vary less.",
    "Licences of some commercial solvers, Gurobi's and Xpress's among them, forbid publishing results of "
    "benchmarks without their owner's consent.",
    "Tolerances have different meanings in different solvers. Whole answers need none, and are judged with "
    "one only at “low” and “high”.",
)


def study(results: Path) -> Study:
    """Make the report of a results file.

    Raises
    ------
    InputError
        If it is not a results file, does not exist, or contains no runs.
    """
    rows = read(results)
    if rows.empty:
        wrong = f"{results} contains no runs" if results.exists() else f"there is no file {results}"
        raise InputError(f"{wrong}; `hierdp bench run --out {results}` creates it")
    rows = metrics.settled(distinguished(rows))
    parts = [_what(rows)]
    for which in [name for name in SETS if (rows["set"] == name).any()]:
        of_set = rows[rows["set"] == which]
        settings: Any = of_set.groupby(["time_limit", "threads", "memory", "repeats"])
        for (limit, threads, memory, repeats), same in settings:
            name, title = which, f"{which.capitalize()} problems, {limit:g} s, {plural(threads, 'thread')}"
            title += f", {memory:g} GB" * (memory > 0) + f", {repeats} times" * (repeats > 1)
            if settings.ngroups > 1:
                name = f"{which}-{limit:g}s-{threads}" + f"-{memory:g}GB" * (memory > 0)
                name += f"-{repeats}x" * (repeats > 1)
            for tolerance in TOLERANCES:
                here = at_tolerance(same, tolerance)
                if not here.empty:
                    parts.append(_compared(name, title, tolerance, here))
            default = same[same["tolerance"] == "default"]
            if not default.empty:
                parts.append(_models(name, title, default))
    parts += [
        _wrong(rows),
        _refused(rows),
        _failures(rows),
        _problems(rows),
        Part("limitations", "Known limitations", LIMITATIONS, {}),
    ]
    return Study("The solver benchmark of hierdp", parts, _settings(rows))


def distinguished(rows: DataFrame) -> DataFrame:
    """The rows; a backend's name says if it has several versions, or is without presolve."""
    if rows.empty:
        return rows
    several = rows.groupby("backend")["version"].transform("nunique") > 1
    named = rows["backend"].where(~several, rows["backend"] + " " + rows["version"])
    return rows.assign(backend=named.where(rows["presolve"].astype(bool), named + ", no presolve"))


def at_tolerance(rows: DataFrame, tolerance: str) -> DataFrame:
    """The rows for a tolerance, including those of backends without tolerances."""
    here = rows[rows["tolerance"] == tolerance]
    if here.empty or tolerance == "default":
        return here
    import pandas as pd

    without = rows[(rows["tolerance"] == "default") & ~rows["backend"].isin(here["backend"])]
    return pd.concat([without[without["problem"].isin(here["problem"])], here], ignore_index=True)


def _what(rows: DataFrame) -> Part:
    of = rows.drop_duplicates("problem")
    random = int((of["origin"] == "random").sum())
    kinds = of["model"].str.removesuffix(" (relaxed)").nunique()
    text = (
        f"{plural(len(of), 'problem')} of {plural(kinds, 'model')}: {random:,} random, and "
        f"{plural(len(of) - random, 'step')} of releases of real data. The optimum of "
        f"{int(of['proved'].sum())} is proved by a certificate; {plural(len(rows), 'run')} are judged by "
        "these optima, or, for the other problems, by the best answer of any backend. The problems are "
        "listed at the end."
    )
    return Part("problems", "Problems", [text], {})


def _place(sets: Any) -> Any:
    """Position in the order from small to large."""
    return sets.map({name: place for place, name in enumerate(SETS)})


def _problems(rows: DataFrame) -> Part:
    """One row for each set and model, in the order of the sets' sizes and of the models' names."""
    of = rows.drop_duplicates("problem").assign(real=lambda frame: frame["origin"] == "real")
    made = of.groupby(["set", "model"]).agg(
        problems=("problem", "size"), real=("real", "sum"), proved=("proved", "sum"),
        least=("variables", "min"), most=("variables", "max"),
    )  # fmt: skip
    made = made.reset_index().rename(columns={"least": "least variables", "most": "most variables"})
    made = made.sort_values("set", key=_place, kind="stable")
    text = "“real” counts steps of releases of real data, and “proved” problems whose optimum is proved."
    return Part("sets", "The problems, by set and model", [text], {"problems": made})


def _compared(name: str, title: str, tolerance: str, rows: DataFrame) -> Part:
    name = f"{name}-{tolerance}"
    value = TOLERANCES[tolerance]
    tolerances = "the highest accuracy of each backend" if value is None else f"{value:g}"
    text = (
        f"Tolerance: {tolerances}. “solved” is the share of the problems that a backend accepts and that are "
        "not “unproved”: a claim that is neither proved nor refuted is not counted. “times best "
        "exact” compares the backend on those with the fastest exact backend for each (shifted geometric "
        f"means, shift {metrics.SHIFT:g} s; an unsolved problem costs its time limit). “mean seconds all” is "
        "over all problems, and counts those that the backend does not accept as unsolved. Residuals and "
        "gaps are the largest among the solved problems. The dual residual is known for continuous programs "
        "only; fast answers for whole data have neither."
    )
    frame = rounded(metrics.by_backend(rows)).rename(columns={"bound": "bound_only"})
    drawn = _profiles(rows) if rows["backend"].nunique() > 1 else None
    return Part(
        f"profile-{name}", f"{title}, tolerance {tolerance}", [text], {f"backends-{name}": frame}, drawn
    )


def _profiles(rows: DataFrame) -> Any:
    """Performance profiles of the exact backends, without and with the fast path."""
    drawn, axes = plots.figure(10, 4.2, panels=2)
    order = list(dict.fromkeys(rows["backend"]))
    _draw(axes[0], metrics.profile(rows[rows["backend"] != "fast"]), order, "Exact backends")
    _draw(axes[1], metrics.profile(rows), order, "With the fast path and its certificate")
    axes[0].set_ylabel("% of all problems solved")
    lines, names = axes[1].get_legend_handles_labels()
    drawn.legend(lines, names, fontsize=7, frameon=False, loc="outside right center")
    return drawn


def _draw(axes: Any, curves: dict[str, Any], order: list[str], title: str) -> None:
    lines = ("-", "--", ":")
    for name in sorted(curves, key=lambda name: -curves[name][1][-1]):
        factors, share = curves[name]
        k = order.index(name)
        kind = lines[k // len(plots.COLOURS) % len(lines)]
        look = {
            "color": plots.style(k)["color"],
            "linestyle": kind,
            "linewidth": 2.2 if name == "fast" else 1.3,
        }
        axes.step(factors, 100 * share, where="post", label=name, **look)
    axes.set_xscale("log")
    plots.plain_log(axes.xaxis)
    axes.set_ylim(0, 101)
    axes.set_xlabel(f"times the fastest backend's time (both + {metrics.SHIFT:g} s)")
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")


def _models(name: str, title: str, rows: DataFrame) -> Part:
    texts = [
        "Medians of each model's problems in milliseconds: the fast path, its certificate, and the exact "
        "backend that solves most of them (the fastest of these, if several do). “times fast” is its time "
        "divided by that of the fast path with its certificate; an unsolved problem costs its time limit.",
        "Below: the share of each model's problems, and of each form's, that a backend solves; empty if it "
        "accepts none. Absolute values count as the rows that state them.",
    ]
    frames = {
        f"models-{name}": rounded(metrics.against_exact(rows)),
        f"solved-{name}": rounded(metrics.shares(rows, "model")),
        f"forms-{name}": rounded(metrics.shares(rows, "form")),
    }
    return Part(f"models-{name}", f"{title}, by model", texts, frames)


def rounded(frame: DataFrame) -> DataFrame:
    """Round to three digits, for readers."""
    made = frame.copy()
    for column in frame.select_dtypes("float").columns:
        made[column] = [value if value != value else float(f"{value:.3g}") for value in frame[column]]
    return made


def _wrong(rows: DataFrame) -> Part:
    bad = rows[rows["verdict"] == "wrong"]
    checked = int(rows["verdict"].isin(["solved", "unproved", "wrong", "bound"]).sum())
    if bad.empty:
        text = f"No certificate refutes any of the {checked:,} claimed answers and bounds."
        return Part("wrong", "Wrong answers caught", [text], {})
    text = (
        f"{len(bad)} of {checked:,} claimed answers and bounds are refuted by a certificate (or, without "
        "one, by a better answer)."
    )
    columns = ["set", "problem", "backend", "tolerance", "status", "relative_gap", "bound_error", "message"]
    return Part("wrong", "Wrong answers caught", [text], {"wrong": bad[columns].reset_index(drop=True)})


def _refused(rows: DataFrame) -> Part:
    """Answers that hierdp's own checks did not accept, and failures."""
    bad = rows[rows["verdict"].isin(["inaccurate", "failed"])]
    if bad.empty:
        return Part("refused", "Answers not accepted", ["Every backend met its own accuracy."], {})
    text = (
        f"{len(bad)} runs ended without an acceptable optimal answer: the answer violates a constraint, the "
        "backend's own bound does not meet it, or the backend failed."
    )
    why = bad.assign(
        message=bad["message"].str.replace(r"[\d.eE+\-\[\], ]*\d[\d.eE+\-\[\], ]*", " … ", regex=True)
    )
    made = (
        why.groupby(["set", "tolerance", "backend", "model", "verdict", "message"], sort=False)
        .size()
        .rename("runs")
        .reset_index()
    )
    return Part("refused", "Answers not accepted", [text], {"refused": made})


def _failures(rows: DataFrame) -> Part:
    """How runs end that solve nothing, by the backend's status."""
    bad = rows[~rows["verdict"].isin(["solved", *metrics.UNCOUNTED])]
    if bad.empty:
        return Part("failures", "Failures by kind", ["Every backend solved all problems it accepts."], {})
    kinds = bad["verdict"].where(bad["verdict"] == bad["status"], bad["verdict"] + ": " + bad["status"])
    made = bad.assign(kind=kinds).pivot_table(
        index="backend", columns="kind", values="problem", aggfunc="size", fill_value=0
    )
    text = "Runs that did not solve their problem: the verdict, and the status that the backend ended with."
    return Part(
        "failures", "Failures by kind", [text], {"failures": made.reset_index().rename_axis(columns=None)}
    )


def _settings(rows: DataFrame) -> dict[str, Any]:
    versions = rows.drop_duplicates(["backend", "version"])[["backend", "version"]]
    machines = list(rows["machine"].unique())
    return {
        "time limit": ", ".join(f"{limit:g} s" for limit in sorted(rows["time_limit"].unique())),
        "threads": ", ".join(str(n) for n in sorted(rows["threads"].unique())),
        "machine": ", ".join(machines)
        + (" (times of different machines are not comparable)" * (len(machines) > 1)),
        "load": f"{rows['load'].median():.1f} (median)",
        "python": ", ".join(rows["python"].unique()),
        "versions": ", ".join(
            name if name.endswith(version) else f"{name} {version}"
            for name, version in versions.itertuples(index=False, name=None)
        ),
    }
