"""Wrong answers of a results file as small programs: a script that needs only the solver, and a report."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hierdp.bench.known_optimum import KnownOptimum
from hierdp.bench.point import canonical, point
from hierdp.bench.problems import Problem, program_of, with_no_optimum
from hierdp.bench.reduce import Case, reduced
from hierdp.bench.runs import TOLERANCES, read
from hierdp.execution import progress
from hierdp.verification.judge import refuted
from models.programs.program import Program
from models.programs.texts import stated
from solvers import Solution, solve
from solvers.backends.table import Backend, find
from solvers.probe import probe
from solvers.solution import Effort

_ROWS_FOR_BOUNDS = ("clarabel", "cvxopt", "ecos", "kvxopt", "quadprog")
"""Solvers of qpsolvers that take bounds as rows (`solvers.backends.qpsolvers_any`)."""


class Finding(NamedTuple):
    """What became of a wrong row.

    Attributes
    ----------
    backend, problem : str
    message : str
        What the solver says of how small a program, or why the row could not be reduced.
    files : list of paths
    """

    backend: str
    problem: str
    message: str
    files: Sequence[Path] = ()


def reduce_results(
    results: Path, out: Path, data: Path | None, chosen: Sequence[str | Backend] | None, seconds: float
) -> Iterator[Finding]:
    """Reduce each wrong row of a results file, with the installed version of its solver.

    Parameters
    ----------
    results, out : path
        For each row, ``out`` gets an ``.mps``, an ``.lp``, a report to the solver's authors (``.md``) and, if
        the solver is called through qpsolvers or cvxpy, a script.
    data : path, optional
        Folder of data that are not included.
    chosen : sequence of str or Backend, optional
        Only these backends.
    seconds : float
        For each row.
    """
    rows = read(results)
    rows = rows[rows["verdict"] == "wrong"]
    given = {one if isinstance(one, str) else one.name: one for one in chosen or ()}
    if chosen is not None:
        rows = rows[rows["backend"].isin(given)]
        builds = {one.name: one.version for one in given.values() if isinstance(one, Backend)}
        pairs = zip(rows["backend"], rows["version"], strict=True)  # older builds are not there any more
        rows = rows.loc[[builds.get(name, version) == version for name, version in pairs]]
    known: dict[tuple[str, str], Problem] = {}  # both sets have problems of the same names
    for which in dict.fromkeys(rows["set"]):
        known |= {(which, one.name): one for one in with_no_optimum(which, data)}
    for row in progress.steps(rows.to_dict("records"), "wrong rows", len(rows)):
        place, name = (row["set"], row["problem"]), row["backend"]
        try:
            if place not in known:
                raise ValueError("the problem is not in the test sets here; see --data")
            limits = row["time_limit"], TOLERANCES[row["tolerance"]]
            small = reduce_case(case_of(known[place]), find(given.get(name, name)), *limits, seconds)
            yield _written(small, "-".join(place), out)
        except ValueError as why:
            yield Finding(row["backend"], "-".join(place), str(why))


def case_of(problem: Problem) -> Case:
    """The problem as it is written to files, with its best known point.

    Raises
    ------
    ValueError
        If no feasible answer is known, or the problem is not a program.
    """
    none = problem.none
    if none is not None:
        if none.status == "infeasible":
            raise ValueError("no point refutes an answer to an infeasible problem")
        at, ray = ([Fraction(one) for one in none.numbers[part]] for part in ("point", "ray"))
        return Case(stated(problem.model), at, ray)
    known, program = KnownOptimum.of(problem.model, ["highs"], 60.0), program_of(problem.model)
    if program is None or known.answer is None:
        raise ValueError("it is not a program, or no answer is known")
    x, _ = canonical(problem.model, known.answer, known.witness)
    return Case(stated(program), [Fraction(one) for one in point(problem.model, program, x)])


class Reduced(NamedTuple):
    """A small case, the solver's answer to it, why this is wrong, and the options that the solver had."""

    case: Case
    found: Solution
    why: str
    options: dict[str, Any]


def reduce_case(
    case: Case, backend: Backend, time_limit: float, tolerance: float | None, seconds: float
) -> Reduced:
    """Reduce a case on which a backend is wrong.

    Raises
    ------
    ValueError
        If it is not wrong here, or the point is not exactly feasible.
    """

    probe(backend)  # its process starts before its time does

    def answer(one: Case) -> Solution:
        return solve(one.program(), backend, time_limit, threads=1, tolerance=tolerance)

    def why(one: Case) -> str:
        return refuted(answer(one), one.known, tolerance)

    small = reduced(case, why, seconds)
    program = small.program()
    options = backend.solver.options(Effort(tolerance=tolerance), program)
    return Reduced(small, answer(small), why(small), options)


def _written(small: Reduced, name: str, out: Path) -> Finding:
    """Write the files of a reduced case."""
    case, found, why, _ = small
    made, program = case.made, case.program()
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"{found.backend.replace(':', '-')}-{name}"
    files = [program.write(stem.with_name(f"{stem.name}.{suffix}")) for suffix in ("mps", "lp")]
    size = f"{len(made.columns)} variables, {len(made.rows)} rows"
    text = script(small)
    if text:
        files.insert(0, stem.with_name(f"{stem.name}.py"))
        files[0].write_text(text, encoding="utf-8")
        code = text.partition("\n\n")[2]  # without its docstring
    else:
        code = files[1].read_text(encoding="ascii")
    at = [float(value) for value in case.point]
    expected = f"{at} is feasible, exactly, and costs {float(case.cost)!r}."
    if case.ray is not None:
        ray = [float(one) for one in case.ray]
        expected = f"There is no optimum: {at} is feasible, and along {ray} the cost falls without end."
    files.append(stem.with_name(f"{stem.name}.md"))
    files[-1].write_text(
        report(
            f"{found.backend}: {found.status}, but {why}", f"A program with {size}.",
            f"{found.backend} {found.version}", code, expected, claim(found), "python" if text else "",
        ),
        encoding="utf-8",
    )  # fmt: skip
    return Finding(found.backend, name, f"{found.status}, with {size}: {why}", files)


def report(
    title: str, about: str, versions: str, code: str, expected: str, seen: str, language: str = "python"
) -> str:
    """The text of a report to a solver's authors, in Markdown."""
    return "\n\n".join([
        f"# {title}", about,
        f"**Versions.** {versions}; Python {platform.python_version()}, {platform.system()}"
        f" {platform.machine()}.",
        f"**To reproduce**\n\n```{language}\n{code.strip()}\n```",
        f"**Expected.** {expected}", f"**Seen.** {seen}\n",
    ])  # fmt: skip


def claim(found: Solution) -> str:
    """What a solver says."""
    said = found.status if found.objective is None else f"{found.status}, {float(found.objective):.9g}"
    return said if found.bound is None else f"{said}, with the bound {float(found.bound):.9g}"


def script(small: Reduced) -> str:
    """A script that shows the wrong answer and needs only the solver; empty for other libraries."""
    library, _, solver = small.found.backend.partition(":")
    lines = {"qpsolvers": _qpsolvers, "cvxpy": _cvxpy}.get(library)
    if lines is None:
        return ""
    case, found, why, options = small
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    head = [f'"""{solver} {found.version}: {claim(found)}; but {why}."""', "", "import numpy as np"]
    program, x = case.program(), [float(value) for value in case.point]
    if case.ray is not None:
        fact = f'"feasible:", {x}, "and along", {[float(one) for one in case.ray]}, "cheaper without end"'
    else:
        fact = f'"feasible:", {x}, "which costs", {float(case.cost)!r}'
    return "\n".join([*head, *lines(program, solver, given), f"print({fact})", ""])


def _qpsolvers(program: Program, solver: str, options: str) -> Iterator[str]:
    square, slope, _ = program.expanded()
    (least, most), (lower, upper) = program.row_bounds, program.bounds
    matrix, unit, box = program.matrix.toarray(), np.eye(program.size), solver.lower() not in _ROWS_FOR_BOUNDS
    same = least == most
    below, above = np.isfinite(least) & ~same, np.isfinite(most) & ~same
    parts, ends = [-matrix[below], matrix[above]], [-least[below], most[above]]
    if not box:
        low, high = np.isfinite(lower), np.isfinite(upper)
        parts, ends = [*parts, -unit[low], unit[high]], [*ends, -lower[low], upper[high]]
    yield from ("from qpsolvers import Problem, solve_problem", "", "inf = np.inf")
    yield f"P, q = np.diag({(2 * square).tolist()}), np.array({slope.tolist()})"
    for names, rows, sides in (
        ("G, h", np.vstack(parts), np.concatenate(ends)), ("A, b", matrix[same], least[same]),
    ):  # fmt: skip
        yield (
            f"{names} = np.array({rows.tolist()}), np.array({sides.tolist()})"
            if sides.size
            else (f"{names} = None, None")
        )
    bounds = f"np.array({lower.tolist()}), np.array({upper.tolist()})" if box else "None, None"
    yield f"lower, upper = {bounds}"
    yield f'found = solve_problem(Problem(P, q, G, h, A, b, lower, upper), "{solver}"{options})'
    yield f'print("{solver}:", "found" if found.found else "found nothing", found.x, found.extras)'


def _cvxpy(program: Program, solver: str, options: str) -> Iterator[str]:
    yield from ("import cvxpy as cp", "")
    whole = bool(program.integer.any()) and find(f"cvxpy:{solver}").integer
    yield f"x = cp.Variable({program.size}{', integer=' + str(program.integer.tolist()) if whole else ''})"
    costs = []
    for term in program.objective:
        weight, center = (part.tolist() for part in term.data)
        at = f"x[{term.index.tolist()}]"
        costs.append(f"np.array({weight}) @ {at}" if term.kind == "linear" else (
            f"cp.sum_squares(cp.multiply(np.sqrt({weight}), {at} - np.array({center})))"))  # fmt: skip
    yield f"cost = {' + '.join(costs)}"
    yield "constraints = ["
    matrix = program.matrix.toarray()
    for (lower, upper), row in ((program.bounds, None), (program.row_bounds, matrix)):
        same = lower == upper
        for word, where, side in (
            ("==", same, lower), (">=", np.isfinite(lower) & ~same, lower),
            ("<=", np.isfinite(upper) & ~same, upper),
        ):  # fmt: skip
            places = np.flatnonzero(where)
            body = f"x[{places.tolist()}]" if row is None else f"np.array({row[places].tolist()}) @ x"
            if places.size:
                yield f"    {body} {word} np.array({side[places].tolist()}),"
    yield "]"
    yield "problem = cp.Problem(cp.Minimize(cost), constraints)"
    yield f'problem.solve(solver="{solver.upper()}"{options})'
    yield f'print("{solver}:", problem.status, x.value, problem.value)'
