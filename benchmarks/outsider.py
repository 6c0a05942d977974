"""Solve every file of a written test set by other people's programs, and compare with its `optima.csv`.

Run as ``python benchmarks/outsider.py FOLDER [TABLE]``. No solver gets anything from hierdp, whose judge
compares the answers. HiGHS, SCIP and Gurobi read each .mps and .lp themselves. Clarabel gets, through cvxpy,
those over the reals as HiGHS reads them, and the .cbf. Ends with 1 if an answer or a status disagrees. TABLE
gets the counts, without Gurobi's: its licence forbids that they are published.
"""

import csv
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import gurobipy as gp
import highspy
import numpy as np
import pyscipopt
import scipy.sparse as sp

from hierdp.verification.judge import KnownBounds, judge
from solvers import Solution


def read(path):
    model = highspy.Highs()
    model.silent()
    for option, value in (("time_limit", 20.0), ("mip_rel_gap", 0.0), ("qp_regularization_value", 1e-12)):
        model.setOptionValue(option, value)
    model.readModel(str(path))
    return model


def highs(path):
    model = read(path)
    model.run()
    return model.modelStatusToString(model.getModelStatus()), model.getObjectiveValue()


def scip(path):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/time", 20)
    model.optimize()
    return model.getStatus(), model.getPrimalbound()


def gurobi(path):
    with gp.Env(params={"OutputFlag": 0, "TimeLimit": 20, "MIPGap": 0, "DualReductions": 0}) as env:
        model = gp.read(str(path), env)
        try:
            model.optimize()
        except gp.GurobiError as refused:  # too large for its licence
            return str(refused), np.nan
        cost = model.ObjVal if model.SolCount else np.nan
        return {2: "optimal", 3: "infeasible", 5: "unbounded"}.get(model.Status, "stopped"), cost


def clarabel(path):
    problem = cones(path.read_text()) if path.suffix == ".cbf" else continuous(path)
    if problem is None:
        return "takes no whole variables", np.nan
    try:  # of the cost without its constant, which may have ten more digits
        problem.solve(solver="CLARABEL", tol_gap_rel=1e-14, tol_infeas_abs=1e-11, tol_infeas_rel=1e-11)
    except cp.SolverError as failed:
        return str(failed), np.nan
    return problem.status, problem.value


def continuous(path):
    lp, squares = (model := read(path)).getLp(), model.getModel().hessian_
    if highspy.HighsVarType.kInteger in lp.integrality_:
        return None
    x, a = cp.Variable(n := lp.num_col_), lp.a_matrix_
    rows = sp.vstack([sp.csc_matrix((a.value_, a.index_, a.start_), (lp.num_row_, n)), sp.eye(n)]).tocsr()
    costs, given, last = np.array(lp.col_cost_), np.array(lp.col_lower_), np.array(lp.col_upper_)
    constant = np.where(given == last, costs * given, 0).sum() + lp.offset_  # a column of an .lp
    cost = np.where(given == last, 0, costs) @ x + constant
    if squares.dim_:
        half = sp.csc_matrix((squares.value_, squares.index_, squares.start_), (n, n))
        cost += cp.quad_form(x, (half + half.T - sp.diags(half.diagonal())) / 2, assume_PSD=True)
    low, high = np.array([*lp.row_lower_, *lp.col_lower_]), np.array([*lp.row_upper_, *lp.col_upper_])
    fixed, above, below = low == high, (low > -np.inf) & (low < high), (high < np.inf) & (low < high)
    kept = [rows[fixed] @ x == low[fixed]] * bool(fixed.any())
    kept += [rows[above] @ x >= low[above]] * bool(above.any())
    kept += [rows[below] @ x <= high[below]] * bool(below.any())
    return cp.Problem(cp.Minimize(cost), kept)


def cones(text):
    split = [[line.split() for line in part.splitlines()] for part in text.split("\n\n")]
    parts = {name: lines for (name,), *lines in split}
    x = cp.Variable(int(parts["VAR"][0][0]))
    rows, kept, at = [0.0] * int(parts["CON"][0][0]), [], 0
    for i, *j, value in parts["ACOORD"][1:] + parts["BCOORD"][1:]:
        rows[int(i)] += float(value) * (x[int(j[0])] if j else 1)
    for kind, size in parts["CON"][1:]:
        block, at = rows[at : at + int(size)], at + int(size)
        if kind == "QR":  # 2pq ≥ r²
            kept.append(cp.norm(cp.hstack([2**0.5 * block[2], block[0] - block[1]])) <= block[0] + block[1])
        else:
            kept += [row == 0 if kind == "L=" else row >= 0 for row in block]
    if "PSDCON" in parts:
        size = int(parts["PSDCON"][1][0])
        matrix = [[0.0] * size for _ in range(size)]
        for _, *j, i, k, value in parts["HCOORD"][1:] + parts["DCOORD"][1:]:
            for row, column in {(int(i), int(k)), (int(k), int(i))}:
                matrix[row][column] += float(value) * (x[int(j[0])] if j else 1)
        kept.append(cp.bmat(matrix) >> 0)
    return cp.Problem(cp.Minimize(sum(float(v) * x[int(j)] for j, v in parts["OBJACOORD"][1:])), kept)


def verdict(status, cost, row):
    best = float(Fraction(row["optimum"])) if row["optimum"] else None  # open: of the best answer known
    ends = {name: row["status"] == name for name in ("infeasible", "unbounded")}
    known = KnownBounds(best, best, optimal=best is not None, **ends)
    claim = status if status in ("optimal", "infeasible", "unbounded") else "error"
    found = judge(Solution("", "", claim, objective=None if np.isnan(cost) else cost), known)
    return {"solved": "agrees", "wrong": "disagrees"}.get(found, "makes no claim")


def main():
    folder, counts = Path(sys.argv[1]), Counter()
    for row in csv.DictReader((folder / "optima.csv").open()):
        for path in [folder / f"{row['problem']}{suffix}" for suffix in (".mps", ".lp", ".cbf")]:
            for solve in (clarabel,) if path.suffix == ".cbf" else (highs, scip, gurobi, clarabel):
                if path.is_file():
                    status, cost = solve(path)
                    said = verdict(status.lower(), cost, row)
                    counts[solve.__name__, path.suffix[1:], said] += 1
                    if said == "disagrees":
                        print(f"{solve.__name__}: {path.name}: {status} {cost}, not {row['optimum']}")
    table = [("solver", "file", "says", "files"), *((*key, n) for key, n in sorted(counts.items()))]
    print("\n".join(f"{solver:10} {file:5} {says:15} {n}" for solver, file, says, n in table))
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("w") as out:
            csv.writer(out, lineterminator="\n").writerows(row for row in table if row[0] != "gurobi")
    sys.exit(any(said == "disagrees" for _, _, said in counts))


if __name__ == "__main__":
    main()
