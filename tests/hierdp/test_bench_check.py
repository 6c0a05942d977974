"""Test sets as files with a manifest, and solution files judged against them."""

import hashlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import tarfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hierdp.bench import cbf, checked, datasheet, ladder, manifest
from hierdp.bench import known_optimum as optima
from hierdp.bench import problems as test_sets
from hierdp.bench.answers import read_answer
from hierdp.bench.archive import opened, pack, verify
from hierdp.bench.checked import check_answers
from hierdp.bench.files import write
from hierdp.bench.known_optimum import KnownOptimum
from hierdp.bench.manifest import rounded
from hierdp.bench.point import cost
from hierdp.bench.problems import Problem
from hierdp.bench.runs import COMMITTED, read
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.verification.judge import KnownBounds
from hierdp.verification.matrix import kinds
from models import BudgetSplit, Chebyshev, ControlledRounding, HierarchyQIP, Isotonic, StrategySDP, Tree
from models.instances import Instance, load_instance
from models.programs.read import read_program
from solvers import solve

ROOT = Path(__file__).parents[2]

MODELS = {
    "whole": Chebyshev([5, 3, -2, 7], total=4),
    "tree": HierarchyQIP(Tree([[0, 0]]), [[9, 3], [1, 5], [1, 1]], 9),
    "real": Isotonic([3.0, 1.0, 4.0, 1.5]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("set") / "problems"
    write([Problem(name, model, "random") for name, model in MODELS.items()], made, "small")
    return made


def stated(tmp_path, name, text):
    (tmp_path / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return tmp_path / name


def judged(tmp_path, folder, name, answer):
    stated(tmp_path, f"{name}.json", answer)
    return next(row for row in check_answers(tmp_path, folder) if row.problem == name)


def test_the_manifest_says_what_the_files_are(folder):
    found = manifest.read(folder)
    assert (found["format"], found["edition"], found["set"]) == (manifest.FORMAT, manifest.EDITION, "small")
    by_name = {one["name"]: one for one in found["problems"]}
    suffixes = {name: sorted(Path(file).suffix for file in one["files"]) for name, one in by_name.items()}
    assert suffixes["whole"] == suffixes["tree"] == [".lp", ".mps", ".npz", ".sol", ".txt"]
    assert suffixes["real"][:4] == [".lp", ".mps", ".npz", ".sol"]
    assert by_name["tree"]["proof by row prices"] == "exact"
    assert (by_name["tree"]["proof"], by_name["real"]["proof"]) == ("exact", "within 1e-7, in floats")
    assert {one["status"] for one in by_name.values()} == {"optimal"}
    assert all(one["hard"] and one["ranges"]["costs"] for one in by_name.values())
    for one in by_name.values():
        assert one["source"]["paper"]
        assert one["proved"] is True
        for file, digest in one["files"].items():
            assert manifest.digest(folder / file) == digest
    assert (by_name["tree"]["form"], by_name["real"]["form"]) == ("MIQP", "QP")
    assert by_name["whole"]["optimum"] == str(solve(MODELS["whole"]).objective)
    assert (by_name["whole"]["variables"], by_name["whole"]["rows"]) == (5, 9)
    assert "QUADOBJ" in (folder / "real.mps").read_text()


def test_the_npz_has_the_answer_and_its_proof(folder):
    for name in MODELS:
        model, answer, witness = load_instance(folder / f"{name}.npz")
        assert model.certificate(answer, witness).optimal


def test_a_proof_as_text_proves_the_optimum(folder):
    """Weak duality from the text alone: the least of each variable's cost at the prices, and sides paid."""
    lines = [line.split() for line in (folder / "tree.proof.txt").read_text().splitlines()]
    rows = [line[1:] for line in lines if line[0] == "row"]
    prices = [Fraction(line[1]) for line in lines if line[0] == "price"]
    values = [int(line[1]) for line in lines if line[0] == "value"]
    boxes = [line[1:] for line in lines if line[0] == "variable"]
    bound = sum(price * Fraction(row[0 if price > 0 else 1]) for row, price in zip(rows, prices, strict=True))
    cost = 0
    for j, (kind, low, high, word, weight, center) in enumerate(boxes):
        assert (kind, word) == ("whole", "square")
        charge = sum(
            price * Fraction(row[k + 1])
            for row, price in zip(rows, prices, strict=True)
            for k in range(2, len(row), 2)
            if int(row[k]) == j + 1
        )
        costs = {v: int(weight) * (v - int(center)) ** 2 for v in range(int(low), int(high) + 1)}
        bound += min(costs[v] - charge * v for v in costs)
        cost += costs[values[j]]
    assert bound == cost == solve(MODELS["tree"]).objective


def test_a_source_names_an_existing_model_and_any_model_has_one():
    assert set(manifest.STEPS) <= set(kinds())
    for name, (paper, step, _) in manifest.STEPS.items():
        said = inspect.getdoc(kinds()[name])
        for place in re.findall(r"§[\d.]*\d|(?:Eq|Fig)\. \d+|Theorem [\d.]+|(?:stage|step) \d", step):
            assert place in said, (name, place)
        assert paper == manifest.BEYOND or paper in said, (name, paper)

    class Own(Chebyshev):
        """Counts of my own."""

    own = manifest.about(Problem("own", Own([1, 2], total=3), "random"), "small", "MILP", 3)
    assert own["source"]["step"] == "Counts of my own."


def test_numbers_that_are_not_doubles_are_counted():
    assert rounded(Isotonic([1.0, 0.0], weights=[1 / 3, 1.0]).program()) == 0
    third = np.array([Fraction(1, 3), Fraction(1, 2)], dtype=object)
    assert rounded(ControlledRounding(third, 1).program()) >= 1
    assert rounded(MODELS["tree"].program()) == 0


ANSWERS = {
    "highs": "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 2\n# Columns 2\n"
    "x_0 3\nx_1 1e-9\n# Rows 1\ntotal_0 3\n\n# Dual solution values\nFeasible\n# Columns 2\nx_0 0\nx_1 7\n",
    "scip": "solution status: optimal solution found\nobjective value:                  2\n"
    "x_0                                 3 \t(obj:1)\n",
    "gurobi": "# Solution for model x\n# Objective value = 2\nx_0 3\nx_1 0\n",
    "cplex": '<?xml version = "1.0"?>\n<CPLEXSolution>'
    '<header solutionStatusString="integer optimal solution"/><variables>\n'
    '<variable name="x_0" index="0" value="3"/>\n<variable name="x_1" index="1" value="0"/></variables>\n'
    "</CPLEXSolution>",
}  # fmt: skip


@pytest.mark.parametrize("solver", ANSWERS)
def test_solution_files_of_solvers_are_read(tmp_path, solver):
    found = read_answer(stated(tmp_path, "a.sol", ANSWERS[solver]))
    assert found.status == (None if solver == "gurobi" else "optimal")
    assert found.values["x_0"] == 3
    assert set(found.values) <= {"x_0", "x_1"}
    assert found.columns(["x_0", "x_1"])[1] in (0, Fraction(1, 10**9))


BAD = {
    "a.json": ("[1, 2]", "no JSON object"),
    "b.json": ("{", "is no solution file"),
    "c.json": ('{"x": [1, NaN]}', "in place of a finite number"),
    "d.json": ('{"x": ["a"]}', "is no solution file"),
    "e.sol": ("x_0 three\n", "is no solution file"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_files_are_refused_by_name(tmp_path, name):
    text, words = BAD[name]
    with pytest.raises(InputError, match=words) as refused:
        read_answer(stated(tmp_path, name, text))
    assert name in str(refused.value)


def test_answers_are_judged_by_the_proved_optimum(tmp_path, folder):
    best = solve(MODELS["tree"])
    x, worse = best.x.tolist(), (best.x + np.array([[-1, 1], [-1, 1], [0, 0]])).tolist()
    program = MODELS["tree"].program()
    right = judged(tmp_path, folder, "tree", {"status": "optimal", "x": x})
    assert (right.verdict, right.claim, right.objective, right.gap) == (
        "solved",
        "optimal",
        best.objective,
        0,
    )
    named = dict(zip(program.variable_names(), np.ravel(x).tolist(), strict=True))
    assert judged(tmp_path, folder, "tree", {"x": named}).verdict == "solved"
    claimed = judged(tmp_path, folder, "tree", {"status": "optimal", "x": worse})
    gap = MODELS["tree"].objective(worse) - best.objective
    assert gap > 0
    assert (claimed.verdict, claimed.gap) == ("wrong", gap)
    silent = judged(tmp_path, folder, "tree", {"x": worse})
    assert (silent.verdict, silent.gap, type(silent.gap)) == ("inaccurate", gap, int)
    lied = judged(tmp_path, folder, "tree", {"x": worse, "bound": best.objective + 1})
    assert lied.verdict == "wrong"
    assert judged(tmp_path, folder, "tree", {"status": "infeasible"}).verdict == "wrong"
    assert judged(tmp_path, folder, "tree", {"status": "optimal"}).verdict == "missing"


def test_a_stored_answer_that_is_not_feasible_refutes_nothing():
    stored = Instance(MODELS["whole"], np.array([0, 0, 0, 0]), None)
    assert checked._known(stored) == KnownBounds()


def test_infeasible_answers_say_by_how_much(tmp_path, folder):
    x = solve(MODELS["tree"]).x.astype(float)
    for change, violation, words in ((0.25, 0.25, "it is off by"), (1.0, 1.0, "The row H3_consistency_0")):
        found = judged(tmp_path, folder, "tree", {"status": "optimal", "x": (x + [[change, 0]] * 3).tolist()})
        assert found.verdict == "infeasible", found
        assert found.violation >= violation
        assert words in found.message
    tiny = judged(tmp_path, folder, "tree", {"status": "optimal", "x": (x + [[1e-7, 0]] * 3).tolist()})
    assert tiny.verdict == "solved"
    assert 1e-7 <= tiny.violation < 1e-6


def test_answers_in_floats_have_a_gap_in_floats(tmp_path, folder):
    best = solve(MODELS["real"]).x
    assert judged(tmp_path, folder, "real", {"status": "optimal", "x": best.tolist()}).verdict == "solved"
    found = judged(tmp_path, folder, "real", {"status": "optimal", "x": (best + 0.1).tolist()})
    assert found.verdict == "wrong"
    assert found.gap == pytest.approx(0.04)


def test_files_that_fit_no_problem_are_named(tmp_path, folder):
    assert "it has 2 values" in judged(tmp_path, folder, "whole", {"x": [1, 2]}).message
    found = judged(tmp_path, folder, "whole", {"x": {"y": 1}})
    assert found.verdict == "unreadable"
    assert "no variable of the file has the name 'y'; its first is 'x_0'" in found.message
    assert judged(tmp_path, folder, "whole", "{").verdict == "unreadable"


def test_neither_the_manifest_nor_a_changed_file_is_trusted(tmp_path, folder):
    other = tmp_path / "set"
    other.mkdir()
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    text = json.loads((other / "manifest.json").read_text())
    for one in text["problems"]:
        one["optimum"] = "0"
    (other / "manifest.json").write_text(json.dumps(text))
    right = {"status": "optimal", "x": solve(MODELS["whole"]).x.tolist()}
    assert judged(tmp_path, other, "whole", right).verdict == "solved"
    (other / "whole.npz").write_bytes((other / "tree.npz").read_bytes())
    with pytest.raises(InputError, match=r"whole\.npz is not the file that the manifest names"):
        judged(tmp_path, other, "whole", right)
    (other / "none").mkdir()
    with pytest.raises(InputError, match="has no answer to any of the 3 problems"):
        check_answers(other / "none", folder)
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        check_answers(folder, tmp_path)


def test_an_archive_is_the_same_bytes_each_time_and_is_verified(tmp_path, folder):
    for turn in ("1", "2"):
        paths = write(
            [Problem(name, model, "random") for name, model in MODELS.items()], tmp_path / turn, "small"
        )
        (tmp_path / f"at{turn}").mkdir()
        pack(reversed(paths), tmp_path / f"at{turn}" / "set.tar.gz")
        time.sleep(0.01)  # other times of files
    archive = tmp_path / "at1" / "set.tar.gz"
    assert archive.read_bytes() == (tmp_path / "at2" / "set.tar.gz").read_bytes()
    assert archive.read_bytes()[4:8] == bytes(4)  # gzip's time
    with tarfile.open(archive) as tar:
        entries = tar.getmembers()
    assert [one.name for one in entries] == sorted(f"set/{path.name}" for path in folder.iterdir())
    assert {(one.mtime, one.uid, one.gid, one.uname) for one in entries} == {(0, 0, 0, "")}
    assert [found[:2] for found in verify(archive)] == [(name, "proved") for name in MODELS]
    with opened(archive) as inside:
        assert judged(tmp_path, inside, "whole", {"x": solve(MODELS["whole"]).x.tolist()}).gap == 0


def test_a_test_set_has_a_data_sheet_a_citation_and_checksums(folder):
    import yaml

    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert {path.name for path in folder.iterdir()} == {*sums, "SHA256SUMS"}
    assert all(manifest.digest(folder / name) == digest for name, digest in sums.items())
    sheet = (folder / "README.md").read_text()
    for one in manifest.read(folder)["problems"]:
        assert f"| {one['name']} | {one['form']} | {one['variables']} ({one['whole variables']}) |" in sheet
        assert f"- *{one['structure']}*: {one['hard']}" in sheet
    cited, deposited = (folder / "CITATION.cff").read_text(), (folder / ".zenodo.json").read_text()
    for about in (yaml.safe_load(cited), json.loads(deposited)):
        assert (about["title"], about["version"]) == (datasheet.TITLE, manifest.EDITION)


def test_the_edition_has_at_most_ten_integer_programs_of_a_model_and_form():
    rows = read(COMMITTED)
    whole = rows[rows["form"].str.startswith("MI")].drop_duplicates(["set", "problem"])
    assert whole.groupby(["set", "model", "form"]).size().max() <= datasheet.MOST


def test_the_point_of_a_solution_file_costs_what_it_says(tmp_path):
    """Exactly, if the optimum is exact; in floats, the double next to the cost of the point's doubles."""
    write([Problem("real", Isotonic([0.1, 0.7, 0.3, 1e9, 1e9 + 0.1, 7.3]), "random")], tmp_path, "small")
    first, *lines = (tmp_path / "real.sol").read_text().splitlines()
    values = [Fraction(float(line.split()[1])) for line in lines]
    made = read_program(tmp_path / "real.mps").stated()
    assert float(first.removeprefix("=obj= ")) == float(cost(made, values))


FROZEN = {
    "small": "578e3ccfc4ff4facb9b25e32675d959f8bfcb87044c8ada3398edaa1f05b367d",
    "medium": "864c505a365dc774698cc6e6b2c90c76cb836394446c981991451d9b2aee8407",
}


def test_a_frozen_edition_stays_as_it_is(tmp_path, monkeypatch):
    """Neither generators nor solvers write it. `make instances` compares all files; here the .npz of all
    problems, and each file of three and of the conic ones. Arrays are not compressed, so that no byte depends
    on a version of zlib.
    """

    def run(*_, **__):
        raise AssertionError("a frozen edition depends on it")

    assert {which: manifest.digest(path) for which, path in test_sets.FROZEN.items()} == FROZEN
    assert all(manifest.EDITION in path.name for path in test_sets.FROZEN.values())
    for module, name in ((test_sets, "generated"), (test_sets, "without_optimum"), (optima, "solve")):
        monkeypatch.setattr(module, name, run)
    text = (ROOT / "benchmarks" / "results" / "instances.sha256").read_text(encoding="utf-8")
    committed = {name: digest for digest, name in (line.split() for line in text.splitlines())}
    found = test_sets.with_no_optimum("small")
    assert {f"{one.name}.{'mps' if one.none else 'npz'}" for one in found} <= {*committed}
    for one in found:
        if one.stored is not None:
            assert hashlib.sha256(one.stored.file).hexdigest() == committed[f"{one.name}.npz"]
    assert 2 * sum(one.origin == "real" for one in found) >= len(found)
    kinds = ("Chebyshev", "HierarchyQIP", "FixedSum (relaxed)", "BudgetSplit", "StrategySDP", "unbounded")
    some = [one for one in found if one.kind in kinds]
    written = write(some, tmp_path / "set", "small")
    names = tuple(one.name for one in some)
    files = [path for path in written if path.name.startswith(names)]
    assert len(files) >= 50
    for path in files:
        assert manifest.digest(path) == committed[path.name], path.name
    assert {found.verdict for found in verify(tmp_path / "set")} == {"proved"}


def test_a_point_of_a_conic_problem_keeps_its_cones(tmp_path):
    """Up to the last digits of doubles, and of answers that are stored with ten."""
    weights = [1.0, 2.0, 1e9]
    split = BudgetSplit(weights, 2.0)
    x = solve(split).x
    path = cbf.write_cbf(split, tmp_path / "split.cbf")
    y, u, t = np.reshape(cbf.point(split, x), (3, 3))
    np.testing.assert_allclose(y * u, 1, rtol=1e-15)
    np.testing.assert_allclose(t, u**2, rtol=1e-15)
    assert float(cbf.cost(path, [*y, *u, *t])) == pytest.approx(split.objective(x), rel=1e-12)
    strategy = StrategySDP([[1, 0], [0, 1], [1, 1]])
    at = cbf.point(strategy, [[1.0, 0.25], [0.25, 1.0]])
    assert at == [1.0, 0.25, 1.0, 16 / 15, -4 / 15, 16 / 15]


def test_data_from_elsewhere_add_problems_to_a_frozen_set(tmp_path, monkeypatch):
    """Those of the same names are the frozen ones."""
    more = [Problem("flights-New_York-Chebyshev", None, "real"), Problem("new", MODELS["whole"], "real")]
    monkeypatch.setattr(test_sets, "generated", lambda *_: more)
    alone, both = test_sets.problems("small"), test_sets.problems("small", tmp_path)
    assert {one.name for one in both} == {*(one.name for one in alone), "new"}
    assert all(one.model is not None for one in both)


def test_large_problems_are_arrays_only_and_judged_without_a_program(tmp_path, monkeypatch):
    """The ladder with rungs of twenty variables that count as too large for texts and for programs."""
    monkeypatch.setattr(ladder, "SIZES", (20, 30))
    rungs = ladder.Ladder(20)
    assert [problem.name for problem in rungs] == [f"ladder-{name}-20" for name in ladder.RUNGS]
    assert len(rungs) == 4
    for problem in rungs:
        assert problem.form == KnownOptimum.of(problem.model).form
    made = tmp_path / "set"
    write(rungs, made, "ladder", texts_up_to=0)
    text = manifest.read(made)
    assert {Path(file).suffix for one in text["problems"] for file in one["files"]} == {".npz"}
    assert [one["form"] for one in text["problems"]] == [problem.form for problem in rungs]
    assert {found.verdict for found in verify(made)} == {"proved"}
    monkeypatch.setattr("hierdp.bench.checked.STATED_UP_TO", 0)
    name = "ladder-HierarchyQIP-20"
    x = load_instance(made / f"{name}.npz").answer
    stated(tmp_path, f"{name}.json", {"status": "optimal", "x": (x + 1e-7).tolist()})
    np.save(
        tmp_path / "ladder-TreeMatching-20.npy", load_instance(made / "ladder-TreeMatching-20.npz").answer
    )
    np.save(tmp_path / "ladder-Isotonic-L1-20.npy", np.arange(20) + 1000)
    found = {row.problem: row for row in check_answers(tmp_path, made)}
    assert (found[name].verdict, found[name].gap) == ("solved", 0)
    assert (found["ladder-TreeMatching-20"].verdict, found["ladder-TreeMatching-20"].claim) == ("solved", "")
    row = found["ladder-Isotonic-L1-20"]
    assert (row.verdict, row.gap > 0) == ("inaccurate", True)
    for change, words in ((0.25, "not whole"), (1, "breaks a constraint")):
        row = judged(tmp_path, made, name, {"status": "optimal", "x": (x + change).tolist()})
        assert (row.verdict, words in row.message) == ("infeasible", True)


def test_a_changed_file_and_a_wrong_optimum_are_found(tmp_path, folder):
    shutil.copytree(folder, tmp_path / "set")
    (tmp_path / "set" / "real.mps").write_text("")
    text = json.loads((tmp_path / "set" / "manifest.json").read_text())
    text["problems"][0]["optimum"] = "0"
    text["problems"][1]["proved"] = False
    (tmp_path / "set" / "manifest.json").write_text(json.dumps(text))
    found = {one.problem: one for one in verify(tmp_path / "set")}
    assert [found[name].verdict for name in MODELS] == ["wrong", "wrong", "changed"]
    assert (
        found["whole"].message == f"the manifest says 0, the answer costs {solve(MODELS['whole']).objective}"
    )
    assert "real.mps" in found["real"].message
    done = CliRunner().invoke(main, ["bench", "verify", str(tmp_path / "set")])
    assert (done.exit_code, "2 wrong, 1 changed" in done.output) == (1, True)
    with pytest.raises(InputError, match="neither a folder nor an archive"):
        verify(folder / "manifest.json")
    with pytest.raises(InputError, match=r"is to be a \.tar\.gz file"):
        pack([], tmp_path / "set.zip")


WITHOUT_SQUARES = """
import json
import sys
from pathlib import Path
import highspy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_matrix

problems, answers = map(Path, sys.argv[1:])
for path in problems.glob("*.mps"):
    highs = highspy.Highs()
    highs.readModel(str(path))
    lp, a = highs.getLp(), highs.getLp().a_matrix_
    matrix = csc_matrix((a.value_, a.index_, a.start_), shape=(lp.num_row_, lp.num_col_))
    rows = LinearConstraint(matrix, lp.row_lower_, lp.row_upper_) if lp.num_row_ else ()
    whole = [int(kind == highspy.HighsVarType.kInteger) for kind in lp.integrality_] or None
    found = milp(
        lp.col_cost_, integrality=whole, bounds=Bounds(lp.col_lower_, lp.col_upper_), constraints=rows
    )
    x = None if found.x is None else dict(zip(lp.col_names_, found.x))
    said = {"status": ["optimal", "feasible", "infeasible", "unbounded"][min(found.status, 3)], "x": x}
    (answers / f"{path.stem}.json").write_text(json.dumps(said))
"""
"""It overlooks the squares of a program."""


@pytest.mark.slow
def test_a_solver_of_fifteen_lines_is_judged_from_its_files(tmp_path, folder):
    stated(tmp_path, "solver.py", WITHOUT_SQUARES)
    answers = tmp_path / "answers"
    answers.mkdir()
    subprocess.run([sys.executable, tmp_path / "solver.py", folder, answers], check=True)
    done = CliRunner().invoke(
        main, ["bench", "check", str(answers), "--problems", str(folder), "--out", str(tmp_path / "t.csv")]
    )
    assert done.exit_code == 1, done.output
    rows = {row.problem: row for row in check_answers(answers, folder)}
    assert (rows["whole"].verdict, rows["whole"].gap) == ("solved", 0)
    assert rows["tree"].verdict == "wrong"  # without its squares
    assert "whole,optimal,solved" in (tmp_path / "t.csv").read_text()
    (answers / "tree.json").unlink()
    (answers / "real.json").unlink()
    done = CliRunner().invoke(main, ["bench", "check", str(answers), "--problems", str(folder)])
    assert done.exit_code == 1, done.output  # two are missing
    assert "3 problems: 2 missing, 1 solved" in done.output


@pytest.mark.slow
def test_cones_are_written_and_their_answers_judged(tmp_path):
    rng = np.random.default_rng(0)
    models = {"split": BudgetSplit.random(rng, 6), "strategy": StrategySDP.random(rng, 4)}
    write([Problem(name, model, "random") for name, model in models.items()], tmp_path / "set", "small")
    for name, model in models.items():
        found = cone_program((tmp_path / "set" / f"{name}.cbf").read_text())
        best = solve(model)
        assert found == pytest.approx(float(best.objective), rel=1e-6)
        row = judged(tmp_path, tmp_path / "set", name, {"status": "optimal", "x": best.x.tolist()})
        assert row.verdict == "solved"
        assert judged(tmp_path, tmp_path / "set", name, {"x": (best.x * 2).tolist()}).verdict == "infeasible"
        assert "as a list x" in judged(tmp_path, tmp_path / "set", name, {"x": [1.0]}).message


def cone_program(text):
    """The optimum of a file in the Conic Benchmark Format, by a reader of its own."""
    import cvxpy as cp

    parts = {
        part.split("\n")[0]: [line.split() for line in part.split("\n")[1:] if line]
        for part in text.split("\n\n")[1:]
    }
    x = cp.Variable(int(parts["VAR"][0][0]))
    rows, constraints = int(parts.get("CON", [["0"]])[0][0]), []
    affine = [0.0] * rows
    for i, j, value in parts.get("ACOORD", [["0"]])[1:]:
        affine[int(i)] += float(value) * x[int(j)]
    for i, value in parts.get("BCOORD", [["0"]])[1:]:
        affine[int(i)] += float(value)
    at = 0
    for kind, size in parts.get("CON", [[]])[1:]:
        block, at = affine[at : at + int(size)], at + int(size)
        if kind == "QR":  # 2·p·q ≥ r²
            p, q, r = block
            constraints.append(cp.norm(cp.hstack([2**0.5 * r, p - q])) <= p + q)
        else:
            constraints += [part == 0 if kind == "L=" else part >= 0 for part in block]
    for k, (size,) in enumerate(parts.get("PSDCON", [[]])[1:]):
        entries = [[0.0] * int(size) for _ in range(int(size))]
        for where, j, row, column, value in parts.get("HCOORD", [["0"]])[1:]:
            if int(where) == k:
                for a, b in {(int(row), int(column)), (int(column), int(row))}:
                    entries[a][b] += float(value) * x[int(j)]
        for where, row, column, value in parts.get("DCOORD", [["0"]])[1:]:
            if int(where) == k:
                for a, b in {(int(row), int(column)), (int(column), int(row))}:
                    entries[a][b] += float(value)
        constraints.append(cp.bmat(entries) >> 0)
    cost = sum(float(value) * x[int(j)] for j, value in parts["OBJACOORD"][1:])
    return cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")
