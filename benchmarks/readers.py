"""Does every reader find the stored objective at the stored point? Asked of each file of a written test set.

Run as ``python benchmarks/readers.py FOLDER [TABLE]``. A reader's numbers are taken from its model, and the
objective at the point of the ``.sol`` is computed from them in fractions, so that only what was read counts:
to 1e-12 of the ``=obj=``. ``.mps.gz`` are the ``.mps``, packed here; Pyomo writes ``.nl`` from the ``.npz``.
Readers that are not installed are left out, and Gurobi's counts are not in TABLE: its licence forbids that
results are published. Pyomo and SciPy read none of these files.
"""

import csv
import gzip
import re
import sys
import tempfile
from collections import Counter
from fractions import Fraction
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

from models.instances import load
from models.programs.reformulate import without_tables
from models.programs.write import to_pyomo

NEAR = Fraction(1, 10**12)


def highs(path):
    model = import_module("highspy").Highs()
    model.silent()
    if str(model.readModel(str(path))) != "HighsStatus.kOk":
        raise ValueError
    lp, held = model.getLp(), model.getModel().hessian_  # its lower triangle, by columns
    squares = {}
    for j in range(held.dim_):
        for k in range(held.start_[j], held.start_[j + 1]):
            i = held.index_[k]
            squares[lp.col_names_[i], lp.col_names_[j]] = Fraction(held.value_[k]) / (1 + (i == j))
    return dict(zip(lp.col_names_, lp.col_cost_, strict=True)), squares, lp.offset_


def scip(path):
    model = import_module("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(path))
    if path.suffix == ".nl":
        return _expression(model, path.with_suffix(".cip"))
    costs, squares = {one.name: one.getObj() for one in model.getVars()}, {}
    objective = [one for one in costs if one in ("quadobjvar", "qmatrixvar")]
    for row in model.getConss() if objective else ():
        if not row.isNonlinear():
            continue
        products, twice, linear = model.getTermsQuadratic(row)
        (weight,) = [-value for one, value in linear if one.name in objective]
        for one, value, slope in twice:
            squares[one.name, one.name] = Fraction(value) / Fraction(weight)
            if one.name not in objective:
                costs[one.name] += slope
        for one, other, value in products:
            squares[one.name, other.name] = Fraction(value) / Fraction(weight)
    return (
        {name: value for name, value in costs.items() if name not in objective},
        squares,
        model.getObjoffset(),
    )


def _expression(model, aside):
    """What SCIP read of an .nl, as a function of the point: the text that it writes of it, with 15 digits."""
    model.writeProblem(str(aside), verbose=False)
    text = aside.read_text(encoding="ascii")
    costs = re.findall(r"<(\S+)>: obj=(\S+),", text)
    terms = [f"({cost})*<{name}>" for name, cost in costs if name != "nlobjvar"]
    found = re.search(r"<objcons>: (.*)-<nlobjvar>(?:\[C\])? <= 0;", text)
    said = "+".join([*terms, *([found[1]] if found else [])])
    named = re.sub(r"<v\[(\d+)\]>(?:\[[IC]\])?", r"at[\1]", said)
    exact = re.sub(r"(?<![\w\[.])(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w\].])", r"Fraction('\1')", named)
    offset = Fraction(model.getObjoffset())
    return lambda at: eval(exact.replace("^Fraction('2')", "**2"), {"at": at, "Fraction": Fraction}) + offset


def gurobi(path):
    gp = import_module("gurobipy")
    with gp.Env(params={"OutputFlag": 0}) as env, gp.read(str(path), env) as model:
        return _of(model.getObjective(), lambda one: one.VarName)


def _of(found, name):
    """A linear or quadratic expression of Gurobi or COPT."""
    linear, squares = found, {}
    if hasattr(found, "getLinExpr"):
        linear = found.getLinExpr()
        for k in range(_size(found)):
            pair = name(found.getVar1(k)), name(found.getVar2(k))
            squares[pair] = squares.get(pair, 0) + Fraction(found.getCoeff(k))
    costs = {}
    for k in range(_size(linear)):
        costs[name(linear.getVar(k))] = costs.get(name(linear.getVar(k)), 0) + Fraction(linear.getCoeff(k))
    return costs, squares, linear.getConstant()


def _size(found):
    return found.size() if callable(found.size) else found.size


def cplex(path):
    with import_module("cplex").Cplex() as model:
        for stream in ("log", "results", "warning", "error"):
            getattr(model, f"set_{stream}_stream")(None)
        model.read(str(path))
        names, held, squares = model.variables.get_names(), model.objective, {}
        for j, row in enumerate(held.get_quadratic() if held.get_num_quadratic_nonzeros() else ()):
            for i, value in zip(row.ind, row.val, strict=True):
                squares[names[i], names[j]] = Fraction(value) / 2
        return dict(zip(names, held.get_linear(), strict=True)), squares, held.get_offset()


def mosek(path):
    with import_module("mosek").Task() as task:
        task.readdata(str(path))
        names = [task.getvarname(j) or f"x_{j}" for j in range(task.getnumvar())]  # a .cbf has none
        squares = {}
        for i, j, value in zip(*task.getqobj()[1:], strict=True):  # the lower triangle of ½xᵀQx
            squares[names[i], names[j]] = Fraction(value) / (1 + (i == j))
        return dict(zip(names, task.getc(), strict=True)), squares, task.getcfix()


def xpress(path):
    model = import_module("xpress").problem()
    model.setOutputEnabled(False)
    model.readProb(str(path))
    names, squares = [one.name for one in model.getVariable()], {}
    starts, places, values = model.getMQObj() if model.attributes.qelems else ([0] * (len(names) + 1), [], [])
    for i in range(len(names)):
        for k in range(starts[i], starts[i + 1]):
            squares[names[i], names[places[k]]] = Fraction(values[k]) / (1 + (i == places[k]))
    constant = model.calcObjective([0.0] * len(names))
    return dict(zip(names, model.getObj(), strict=True)), squares, constant


def cuopt(path):
    """Needs NVIDIA's packages, which install where there is a GPU only: never run by hierdp's authors."""
    model = import_module("cuopt_mps_parser").ParseMps(str(path))
    names = [str(name) for name in model.get_variable_names()]
    values, places, starts = (
        getattr(model, f"get_quadratic_objective_{part}")() for part in ("values", "indices", "offsets")
    )
    squares = {}
    for i in range(max(0, len(starts) - 1)):
        for k in range(starts[i], starts[i + 1]):
            squares[names[i], names[places[k]]] = Fraction(float(values[k]))
    costs = map(float, model.get_objective_coefficients())
    return dict(zip(names, costs, strict=True)), squares, float(model.get_objective_offset())


@cache
def _copt():
    return import_module("coptpy").Envr()  # says each time that it has no licence


def copt(path):
    model = _copt().createModel()
    model.setParam("Logging", 0)
    model.read(str(path))
    cones = path.suffix == ".cbf"  # whose variables have no names
    name = (lambda one: f"x_{one.getIdx()}") if cones else (lambda one: one.getName())
    costs, squares, constant = _of(model.getObjective(), name)
    return costs, squares, constant or model.getAttr("ObjConst")


def ortools(path):
    model = import_module("ortools.linear_solver.python.model_builder").Model()
    read = model.import_from_lp_file if path.suffix == ".lp" else model.import_from_mps_file
    if not read(str(path)):
        raise ValueError
    costs = {one.name: model.helper.var_objective_coefficient(one.index) for one in model.get_variables()}
    return costs, {}, model.objective_offset


READERS = {
    highs: "highspy", scip: "pyscipopt", gurobi: "gurobipy", cplex: "cplex", copt: "coptpy", mosek: "mosek",
    xpress: "xpress", ortools: "ortools", cuopt: "cuopt-mps-parser",
}  # fmt: skip

TAKES = {".mps": READERS, ".mps.gz": READERS, ".lp": READERS, ".nl": (scip,), ".cbf": (copt, mosek)}
"""The readers of each kind of file; the others say that they do not know it."""


def says(read, path, point, stored, squares):
    """What a reader finds at the point: the stored objective, another one, or nothing."""
    at = {**point, "constant": Fraction(1)}
    try:
        found = read(path)
        if callable(found):
            found = found(list(point.values()))
        else:
            costs, read_squares, constant = found
            found = sum((Fraction(value) * at[name] for name, value in costs.items()), Fraction(constant))
            found += of(read_squares, at)
    except KeyError as unknown:
        return f"has another variable, {unknown}"
    except Exception as refused:  # each library has its own
        return f"refuses it {str(refused).partition(' in ')[0][:60]}".strip()
    near = NEAR * max(1, abs(stored))
    if abs(found - stored) <= near:
        return "the stored objective"
    dropped = abs(found + of(squares, at) - stored) <= near
    return (
        "the objective without squares" if dropped else f"another objective, {float(found - stored):.2g} off"
    )


def of(squares, at):
    return sum((value * at[a] * at[b] for (a, b), value in squares.items()), Fraction(0))


def plain(path):
    """The squares of an .mps, as its text says."""
    text = path.read_text(encoding="ascii").partition("QUADOBJ\n")[2]
    lines = [line.split() for line in text.splitlines()[:-1]]
    return {(a, b): Fraction(float(value)) / 2 for a, b, value in lines}


def files(solution, aside):
    """The files of a problem: as they are, or made in a folder."""
    if solution.with_suffix(".cbf").is_file():
        return {".cbf": solution.with_suffix(".cbf")}
    found = {suffix: solution.with_suffix(suffix) for suffix in (".mps", ".lp")}
    found[".mps.gz"], found[".nl"] = (aside / f"{solution.stem}{suffix}" for suffix in (".mps.gz", ".nl"))
    found[".mps.gz"].write_bytes(gzip.compress(found[".mps"].read_bytes()))
    program = without_tables(load(solution.with_suffix(".npz")).program())
    to_pyomo(program).write(str(found[".nl"]), io_options={"symbolic_solver_labels": True})
    return found


def main():
    folder, counts, off = Path(sys.argv[1]), Counter(), []
    readers = {read: metadata.version(package) for read, package in READERS.items() if _there(package)}
    for solution in sorted(folder.glob("*.sol")):
        first, *lines = solution.read_text(encoding="ascii").splitlines()
        stored = Fraction(first.removeprefix("=obj= "))
        point = {name: Fraction(float(value)) for name, value in (line.split() for line in lines)}
        with tempfile.TemporaryDirectory() as aside:
            for suffix, path in files(solution, Path(aside)).items():
                squares = {} if suffix == ".cbf" else plain(solution.with_suffix(".mps"))
                objective = "with squares" if squares else "linear"
                for read, version in readers.items():
                    if read in TAKES[suffix]:
                        said = says(read, path, point, stored, squares)
                        counts[read.__name__, version, suffix[1:], objective, said] += 1
                        off += [f"{read.__name__}: {path.name}: {said}"] * said.startswith("another")
    table = [("reader", "version", "file", "objective", "reads", "files")]
    table += [(*key, n) for key, n in sorted(counts.items())]
    print("\n".join([*off, *(" | ".join(map(str, row)) for row in table)]))
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("w", encoding="utf-8") as out:
            csv.writer(out, lineterminator="\n").writerows(row for row in table if row[0] != "gurobi")


def _there(package):
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
