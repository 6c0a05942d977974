"""`hierdp bench check`: right answers are solved, every other kind is not, in one line and by exit status."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

from hierdp.bench.archive import verify
from hierdp.bench.checked import check_answers
from hierdp.bench.files import write
from hierdp.bench.no_optimum import infeasible, refutation, unbounded
from hierdp.bench.problems import Problem
from hierdp.bench.reading import difference, read_by_highs, read_strictly
from hierdp.cli import main
from models import (
    Chebyshev,
    ConstrainedInference,
    CostTable,
    FixedSum,
    HierarchyQIP,
    Isotonic,
    JointTables,
    Merging,
    Tree,
)
from models.programs.texts import stated
from solvers import solve

TREE = HierarchyQIP(Tree([[0, 0]]), [[9, 3], [1, 5], [1, 1]], 9)

MODELS = {
    "distance": Chebyshev([5, 3, -2, 7], total=4),  # one auxiliary variable
    "absolute": FixedSum([5, 3, -2, 7], total=4, p=1),  # four
    "tables": CostTable(
        [[5, 1, 0, 4], [9, 2, 1, 1, 6]], total=4
    ),  # nine binaries, more than twice the answer
    "tree": TREE,
    "relaxed": replace(TREE, noisy=[[59, 3], [1, 5], [1, 1]], integer=False),
    "large": FixedSum([10**8, 0, 5], total=10, p=1),
}


def problems():
    made = [Problem(name, model, "random") for name, model in MODELS.items()]
    for model in (Isotonic([3, 1, 4], p=1), TREE):
        x = solve(model).x
        made += [Problem(none.status, none.program, "real", none=none)
                 for make in (infeasible, unbounded) if (none := make(model, x)) is not None]  # fmt: skip
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("set") / "problems"
    write(problems(), made, "small")
    return made


@pytest.fixture
def judge(tmp_path, folder):
    def judged(name, answer):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (tmp_path / f"{name}.{'json' if text.startswith('{') else 'sol'}").write_text(text)
        return next(row for row in check_answers(tmp_path, folder) if row.problem == name)

    return judged


def stored(folder, name):
    """The stored optimum: values by the names of the file, in its order."""
    lines = (folder / f"{name}.sol").read_text().splitlines()[1:]
    return {word: float(value) for word, value in map(str.split, lines)}


@pytest.mark.parametrize("name", MODELS)
def test_the_stored_point_is_right_by_names_and_in_the_order_of_the_file(judge, folder, name):
    values = stored(folder, name)
    for x in (values, list(values.values()), [*values.values(), 1.0]):  # an .lp has the constant, too
        found = judge(name, {"status": "optimal", "x": x})
        assert found.verdict == "solved", found
        assert found.line.startswith(f"SOLVED: {name}. ")
    assert judge(name, {"x": values}).verdict == "solved"  # without a claim
    assert judge(name, (folder / f"{name}.sol").read_text()).verdict == "solved"


def test_the_answer_of_the_model_alone_is_judged_as_such(judge):
    assert judge("tables", {"x": solve(MODELS["tables"]).x.tolist()}).verdict == "solved"


@pytest.mark.parametrize("name", ["distance", "absolute", "tables"])
def test_auxiliary_variables_left_at_zero_break_the_files_rows(judge, folder, name):
    left = {word: value for word, value in stored(folder, name).items() if word.startswith("x_")}
    found = judge(name, {"status": "optimal", "x": left})
    assert (found.verdict, "The row" in found.message) == ("infeasible", True), found
    assert found.line.startswith("NOT SOLVED (infeasible)")


def test_an_objective_of_the_file_one_above_the_optimum_is_not_solved(judge, folder):
    for name, column in (("distance", "distance_0"), ("absolute", "t0_0"), ("large", "t0_0")):
        values = stored(folder, name)
        more = {**values, column: values[column] + 1}
        found = judge(name, {"status": "optimal", "x": more})
        assert (found.verdict, "above the proved optimum" in found.message) == ("wrong", True), found
        assert judge(name, {"x": more}).verdict == "inaccurate"


def test_a_cost_below_the_optimum_is_not_solved(judge, folder):
    """A row that is broken within its tolerance makes an answer too cheap where slopes are steep."""
    values = stored(folder, "relaxed")
    cheap = {**values, "x_0_0": values["x_0_0"] + 9.9e-7}
    found = judge("relaxed", {"status": "optimal", "x": cheap})
    assert found.verdict != "solved", found
    assert "below the proved optimum" in found.message


def test_violations_are_named_with_their_tolerance(judge, folder):
    values = stored(folder, "tree")
    found = judge("tree", {"status": "optimal", "x": {**values, "x_0_0": values["x_0_0"] + 10}})
    assert (found.verdict, found.violation) == ("infeasible", 10)
    assert "it is off by 10, and the tolerance is" in found.line
    near = judge("tree", {"status": "optimal", "x": {**values, "x_0_0": values["x_0_0"] + 5e-7}})
    assert near.verdict == "solved"
    half = judge("tree", {"x": {**values, "x_0_0": values["x_0_0"] + 2e-6}})
    assert half.verdict == "infeasible"


def test_infeasible_and_unbounded_problems_have_a_right_answer(judge):
    for name, other, verdict in (
        ("infeasible", "unbounded", "inaccurate"),  # many solvers do not tell the two apart
        ("unbounded", "infeasible", "wrong"),
    ):
        assert judge(name, {"status": name}).verdict == "solved"
        assert judge(name, {"status": other}).verdict == verdict
        assert judge(name, {"status": "optimal", "x": [0.0]}).verdict == "wrong"
        assert judge(name, {"x": [0.0]}).verdict == "missing"
        assert judge("tree", {"status": name}).verdict == "wrong"


WRONG = {
    "infeasible": {"status": "optimal", "x": [[0, 9], [0, 5], [0, 0]]},
    "no answer": {"status": "optimal"},
    "not a number": '{"x": [NaN, 1, 1, 1, 1, 1]}',
    "unknown name": {"x": {"x_0_0": 4, "y": 1}},
    "too few": {"x": [1, 2]},
    "no file": None,
    "too dear": {"x": [[4, 5], [4, 5], [0, 0]]},
}


@pytest.mark.parametrize("answer", WRONG)
def test_the_exit_status_is_1_for_anything_that_is_not_solved(tmp_path, answer):
    made = tmp_path / "set"
    write([Problem("tree", TREE, "random"), Problem("other", TREE, "random")], made, "small")
    answers = tmp_path / "answers"
    answers.mkdir()
    right = json.dumps({"status": "optimal", "x": solve(TREE).x.tolist()})
    line = ["bench", "check", str(answers), "--problems", str(made)]
    for name in ("tree", "other"):
        (answers / f"{name}.json").write_text(right)
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "2 problems: 2 solved"
    wrong = WRONG[answer]
    if wrong is None:
        (answers / "tree.json").unlink()
    else:
        (answers / "tree.json").write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 1, done.output
    first = done.output.splitlines()[0]
    assert first.startswith("NOT SOLVED ("), done.output
    assert "solved:" not in first.lower().replace("not solved (", "")


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_two_readers_find_the_program_that_was_written(tmp_path, suffix):
    rng = np.random.default_rng(0)
    squares = Merging([[1, 2], [3, 5]], [[1, 1], [2, 2]], integer=True)  # columns with only a square
    odd = Isotonic([0.1, -1 / 3, 1e9 + 0.1], weights=[1 / 3, 1e-7, 2.0])
    for model in (*MODELS.values(), squares, odd, JointTables.random(rng, 10)):
        program = model.program()
        path = program.write(tmp_path / f"a{suffix}")
        made = stated(program)
        assert difference(made, read_strictly(path)) == ""
        assert difference(made, read_by_highs(path)) == ""
        twice = path.read_bytes()
        assert program.write(tmp_path / f"a{suffix}").read_bytes() == twice


def test_a_changed_text_is_misread(tmp_path, folder):
    """Each part of a program is compared: change a line, with its hash, and `verify` names it."""
    from hierdp.bench import manifest

    for text, other, words in (
        (" x_0_0 obj -18\n", " x_0_0 obj -17\n", "linear costs"),
        (" x_0_0 x_0_0 2\n", "", "squares"),
        (" UP BOUND x_0_0 9\n", " UP BOUND x_0_0 8\n", "upper bounds"),
        (" RHS H2_total_0 9\n", " RHS H2_total_0 8\n", "sides"),
        (" x_0_0 H3_consistency_0 1\n", " x_0_0 H3_consistency_0 2\n", "coefficients"),
    ):
        made = tmp_path / words
        write([Problem("tree", TREE, "random")], made, "small")
        path = made / "tree.mps"
        before = path.read_text()
        assert text in before, before
        path.write_text(before.replace(text, other))
        listing = json.loads((made / "manifest.json").read_text())
        listing["problems"][0]["files"]["tree.mps"] = manifest.digest(path)
        (made / "manifest.json").write_text(json.dumps(listing))
        (found,) = verify(made)
        assert (found.verdict, words in found.message) == ("misread", True), found
    assert {one.verdict for one in verify(folder)} == {"proved"}


def test_a_proof_that_there_is_no_optimum_is_checked():
    tree = ConstrainedInference(Tree([[0, 0]]), [3, 1, 4], [1, 1, 1])
    for make, key in ((infeasible, "prices"), (unbounded, "ray")):
        none = make(tree, solve(tree).x)
        made = stated(none.program)
        assert refutation(made, none.status, none.numbers) == ""
        for k, one in enumerate(none.numbers[key]):
            if one:
                other = [*none.numbers[key]]
                other[k] = -Fraction(one)
                assert refutation(made, none.status, {**none.numbers, key: other}) != ""
