"""Solve every file of a written test set by other people's programs, and compare with `optima.csv`.

Needs nothing of hierdp: highspy, pyscipopt, gurobipy, clarabel and cvxpy. HiGHS, SCIP and Gurobi read the
.mps and .lp themselves; Clarabel gets the continuous ones as HiGHS reads them, and cones as this file reads
them. Run as ``python benchmarks/outsider.py FOLDER``. Ends with 1 if anything disagrees.
"""

import csv
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import clarabel
import cvxpy as cp
import gurobipy as gp
import highspy
import numpy as np
import pyscipopt
import scipy.sparse as sp

SECONDS = 20.0


def highs(path):
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(path))
    for option, value in (("time_limit", SECONDS), ("mip_rel_gap", 0.0), ("qp_regularization_value", 1e-12)):
        solver.setOptionValue(option, value)
    refused = solver.run() == highspy.HighsStatus.kError
    return "does not take it" if refused else solver.getModelStatus().name[
        1:
    ].lower(), solver.getObjectiveValue()


def scip(path):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/time", SECONDS)
    model.optimize()
    return model.getStatus(), model.getObjVal() if model.getNSols() else np.nan


def gurobi(path):
    try:
        with gp.Env(params={"OutputFlag": 0}) as env, gp.read(str(path), env) as model:
            model.Params.TimeLimit, model.Params.MIPGap, model.Params.DualReductions = SECONDS, 0, 0
            model.optimize()
            word = {2: "optimal", 3: "infeasible", 5: "unbounded"}.get(model.Status, str(model.Status))
            return word, model.ObjVal if model.SolCount else np.nan
    except gp.GurobiError as refused:
        return f"does not take it ({refused})", np.nan


def by_clarabel(path):
    if path.suffix == ".cbf":
        problem = cones(path.read_text())
        return "optimal", problem.solve(solver="CLARABEL", tol_gap_rel=1e-9)
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(path))
    lp, hessian = solver.getLp(), solver.getModel().hessian_
    if any(kind == highspy.HighsVarType.kInteger for kind in lp.integrality_):
        return "does not take it", np.nan
    shape, held = (lp.num_row_, lp.num_col_), lp.a_matrix_
    matrix = sp.csc_matrix((held.value_, held.index_, held.start_), shape=shape)
    rows = sp.vstack([matrix, sp.eye(lp.num_col_)]).tocsr()
    low, high = np.array([*lp.row_lower_, *lp.col_lower_]), np.array([*lp.row_upper_, *lp.col_upper_])
    equal, above, below = low == high, np.isfinite(high) & (low != high), np.isfinite(low) & (low != high)
    square = sp.csc_matrix((lp.num_col_,) * 2)
    if hessian.dim_:
        square = sp.csc_matrix((hessian.value_, hessian.index_, hessian.start_), shape=square.shape)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = 1e-14  # relative to an objective of up to 10¹⁰ without its constant
    matrix = sp.vstack([rows[equal], rows[above], -rows[below]]).tocsc()
    side = np.concatenate([high[equal], high[above], -low[below]])
    cone = [clarabel.ZeroConeT(equal.sum()), clarabel.NonnegativeConeT(above.sum() + below.sum())]
    costs = np.array(lp.col_cost_)
    found = clarabel.DefaultSolver(square.T.tocsc(), costs, matrix, side, cone, settings).solve()
    status = {"Solved": "optimal", "PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
    return status.get(str(found.status), str(found.status)), found.obj_val + lp.offset_


def cones(text):
    """A file in the Conic Benchmark Format as a problem of cvxpy."""
    lines = [part.split("\n") for part in text.split("\n\n")]
    parts = {part[0]: [line.split() for line in part[1:] if line] for part in lines}
    x = cp.Variable(int(parts["VAR"][0][0]))
    rows, constraints, at = [0.0] * int(parts["CON"][0][0]), [], 0
    for i, j, value in parts["ACOORD"][1:]:
        rows[int(i)] += float(value) * x[int(j)]
    for i, value in parts["BCOORD"][1:]:
        rows[int(i)] += float(value)
    for kind, size in parts["CON"][1:]:
        block, at = rows[at : at + int(size)], at + int(size)
        if kind == "QR":  # 2·p·q ≥ r²
            p, q, r = block
            constraints.append(cp.norm(cp.hstack([2**0.5 * r, p - q])) <= p + q)
        else:
            constraints += [one == 0 if kind == "L=" else one >= 0 for one in block]
    for k, (size,) in enumerate(parts.get("PSDCON", [[]])[1:]):
        entries = [[0.0] * int(size) for _ in range(int(size))]
        for where, *place, value in [*parts["HCOORD"][1:], *parts["DCOORD"][1:]]:
            a, b = map(int, place[-2:])
            part = float(value) * (x[int(place[0])] if len(place) == 3 else 1.0)
            for i, j in {(a, b), (b, a)} if int(where) == k else ():
                entries[i][j] += part
        constraints.append(cp.bmat(entries) >> 0)
    return cp.Problem(cp.Minimize(sum(float(v) * x[int(j)] for j, v in parts["OBJACOORD"][1:])), constraints)


def main():
    folder, counts, wrong = Path(sys.argv[1]), Counter(), 0
    for row in csv.DictReader((folder / "optima.csv").open()):
        for path in (folder / f"{row['problem']}{suffix}" for suffix in (".mps", ".lp", ".cbf")):
            solvers = [by_clarabel] if path.suffix == ".cbf" else [highs, scip, gurobi, by_clarabel]
            for solve in solvers if path.is_file() else ():
                status, cost = solve(path)
                verdict = "agrees" if status == row["status"] or row["status"] == "open" else f"says {status}"
                if status == "optimal" and row["optimum"]:
                    best = float(Fraction(row["optimum"]))
                    near = abs(cost - best) <= 1e-6 * max(1, abs(best))
                    verdict = "agrees" if near else f"finds {cost}, not {best}"
                if status not in ("optimal", "infeasible", "unbounded") and verdict != "agrees":
                    verdict = (
                        "makes no claim"  # a limit of time or size, or less accuracy than it asks of itself
                    )
                said = verdict if verdict in ("agrees", "makes no claim") else "DISAGREES"
                counts[solve.__name__.removeprefix("by_"), path.suffix, said] += 1
                if verdict not in ("agrees", "makes no claim"):
                    wrong += 1
                    print(
                        f"{solve.__name__} {verdict}: {path.name} is {row['status']} {row['optimum']}",
                        flush=True,
                    )
    for (solver, suffix, verdict), number in sorted(counts.items()):
        print(f"{solver:12} {suffix:5} {verdict}: {number}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
