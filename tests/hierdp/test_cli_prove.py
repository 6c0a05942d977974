"""`hierdp prove`: somebody's answer to a file."""

import pytest
from click.testing import CliRunner

from hierdp.cli import main
from models.claim import Claim
from models.witnesses.read_vipr import check_vipr

MPS = """NAME bakery
OBJSENSE
    {sense}
ROWS
 N obj
 G loaves
 L time
COLUMNS
    MARKER 'MARKER' 'INTORG'
    large obj {large}
    large loaves 4
    large time 1
    small obj {small}
    small loaves 1
    small time 1
    MARKER 'MARKER' 'INTEND'
RHS
    RHS loaves {loaves}
    RHS time 3
BOUNDS
 UP BOUND large 3
 UP BOUND small 3
ENDATA
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(answer, sense="MIN", large=9, small=3, loaves=8, name="a.sol", save=()):
    with open("a.mps", "w", encoding="ascii") as problem:
        problem.write(MPS.format(sense=sense, large=large, small=small, loaves=loaves))
    with open(name, "w", encoding="utf-8") as solution:
        solution.write(answer)
    return CliRunner().invoke(main, ["prove", "a.mps", name, *save])


@pytest.mark.parametrize("answer", ["=obj= 18\nlarge 2\n", "large 1.9999999 (obj:9)\nsmall 0\n"])
def test_an_optimal_answer_is_proved(answer):
    done = run(answer)
    assert done.exit_code == 0, done.output
    assert "Objective  18" in done.output
    assert "Proved: no feasible answer is better." in done.output


@pytest.mark.parametrize("name", ["a.vipr", "a.npz", "a.csv"])
def test_the_proof_is_saved(name):
    done = run("large 2\n", save=("--save", name))
    if name == "a.csv":
        assert done.exit_code == 2
        assert "a claim is a .json, .npz, .txt or .vipr file" in done.output
    elif name == "a.npz":
        assert Claim.load(name).certificate().optimal
    else:
        assert check_vipr(name) == (18, 18)


def test_a_worse_answer_has_a_gap():
    done = run("large 3\n")
    assert done.exit_code == 1
    assert "Bound      18" in done.output
    assert "Not proved: the gap is 9." in done.output


def test_prices_may_leave_a_gap():
    done = run("large 2\n", loaves=7)
    assert done.exit_code == 1
    assert "Not proved: the gap is 2.25." in done.output


def test_what_is_to_be_maximized():
    done = run("large 3\n", sense="MAX")
    assert (done.exit_code, "Objective  27" in done.output) == (0, True), done.output
    assert "Bound      27" in done.output
    assert run("large 2\n", sense="MAX").exit_code == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("large 1\n", "not feasible: row loaves: 4, not at least 8"),
        ("large 1.75\nsmall 1\n", "not feasible: integer: large = 7/4"),
        ("large 4\n", "not feasible: bounds: large = 4, not at most 3"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_not_proved(answer, says):
    done = run(answer)
    assert done.exit_code == 1
    assert says.lower() in " ".join(done.output.lower().split())


@pytest.mark.parametrize("answer", ["huge 1\n", "large one\n", "large nan\n"])
def test_a_file_that_cannot_be_read(answer):
    assert run(answer).exit_code == 2
    done = run("large 2\n", large="x")
    assert done.exit_code == 2
    assert "line 10: 'x' in place of a number" in " ".join(done.output.split())


def test_a_missing_file():
    assert CliRunner().invoke(main, ["prove", "none.mps", "none.sol"]).exit_code == 2
