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


def certified(text, sense="MIN"):
    """Check a certificate of another make against the file."""
    run("large 2\n", sense=sense)
    with open("b.VIPR", "w", encoding="utf-8") as certificate:
        certificate.write(text)
    return CliRunner().invoke(main, ["prove", "a.mps", "b.VIPR"])


FOREIGN = """% of another make: other order, rows scaled, bounds left out
VER 1.1 VAR 2 small large INT 1 1 OBJ min 2 0 3 1 9 CON 2 1
s G 0 1 0 1
need L -4 2 0 -1/2 1 -2
RTP range 18 18 SOL 1 best 1 1 2
DER 1 b G 18 OBJ { lin 2 0 3/4 1 -9/2 } -1
"""


def test_a_foreign_certificate_proves_a_file_that_it_is_about():
    done = certified(FOREIGN)
    assert (done.exit_code, "Proved: no feasible" in done.output) == (0, True), done.output
    assert "Objective  18\nBound      18\n" in done.output
    run("large 2\n", save=("--save", "own.vipr"))
    assert CliRunner().invoke(main, ["prove", "a.mps", "own.vipr"]).exit_code == 0
    again = CliRunner().invoke(main, ["prove", "a.mps", "own.vipr", "--save", "c.vipr"])
    assert (again.exit_code, "leave out --save" in again.output) == (2, True)


BOUND = FOREIGN.replace("18 18 SOL 1 best 1 1 2", "18 inf SOL 0")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOUND.replace("3 1 9", "5/2 1 10").replace("3/4 1 -9/2", "0 1 -5"), "OBJ is another objective"),
        (BOUND.replace("s G 0", "s G 1"), "constraint 0 of CON does not follow"),
        (BOUND.replace("need L -4", "need L -5"), "constraint 1 of CON does not follow"),
        (BOUND.replace("need L", "need E"), "constraint 1 of CON does not follow"),
        (
            BOUND.replace("s G 0 1 0 1", "s G 0 0").replace("3/4", "0").replace("3 1 9", "9/4 1 9"),
            "OBJ is another",
        ),
        (BOUND.replace("small large", "small huge"), "it has the variable 'huge'"),
        (BOUND.replace("small large", "large large"), "names of two variables are the same"),
        (BOUND.replace("INT 1 1", "INT 2 0 1"), "the variable 'small' is whole in it"),
        (BOUND.replace("18 inf", "19 inf"), "the bound is not derived"),
        (FOREIGN.replace("best 1 1 2", "best 1 1 1"), "the answer best breaks constraint 1"),
    ],
)
def test_a_certificate_of_another_program_proves_nothing(text, why):
    assert "Bound      18" in certified(BOUND).output
    real = MPS.replace("    MARKER 'MARKER' 'INTEND'\n", "").replace(
        "    small obj", "    MARKER 'MARKER' 'INTEND'\n    small obj"
    )
    with open("a.mps", "w", encoding="ascii") as problem:
        problem.write(real.format(sense="MIN", large=9, small=3, loaves=8))
    with open("b.vipr", "w", encoding="utf-8") as certificate:
        certificate.write(text)
    done = CliRunner().invoke(main, ["prove", "a.mps", "b.vipr"])
    said = " ".join(done.output.split())
    assert (done.exit_code, "Not proved: b.vipr: " in said, why in said) == (1, True, True), said


def test_an_answer_of_a_certificate_has_to_keep_the_file():
    """In the certificate small may be -1; its bound holds for the file, its answer does not."""
    loose = FOREIGN.replace("s G 0 1 0 1", "s G -1 1 0 1").replace("range 18 18", "range 69/4 18")
    loose = loose.replace("best 1 1 2", "best 2 0 -1 1 9/4").replace("G 18 OBJ", "G 69/4 OBJ")
    loose = loose.replace("INT 1 1", "INT 0")
    done = certified(loose)
    assert (done.exit_code, "Not proved: the gap is inf" in done.output) == (1, True), done.output
    assert "Bound      17.25" in done.output


def test_certificates_of_maxima_and_of_what_has_no_answer():
    text = """VER 1.1 VAR 2 small large INT 2 0 1 OBJ max 2 0 3 1 9 CON 2 2
    l L 3 1 1 1
    t L 3 2 0 1 1 1
    RTP range 27 27 SOL 1 best 1 1 3
    DER 1 b L 27 OBJ { lin 2 0 6 1 3 } -1"""
    done = certified(text, "MAX")
    assert (done.exit_code, "Objective  27\nBound      27\n" in done.output) == (0, True), done.output
    none = """VER 1.1 VAR 1 large INT 0 OBJ min 1 0 9 CON 2 2 l L 3 1 0 1 a G 13 1 0 4 RTP infeas SOL 0
    DER 1 no G 1 0 { lin 2 0 -4 1 1 } -1"""
    with open("a.lp", "w", encoding="ascii") as problem:
        problem.write("min 9 large\nst\n a: 4 large >= 13\nbounds\n large <= 3\nend\n")
    with open("n.vipr", "w", encoding="ascii") as certificate:
        certificate.write(none)
    done = CliRunner().invoke(main, ["prove", "a.lp", "n.vipr"])
    assert (done.exit_code, "Proved: no answer is feasible." in done.output) == (0, True), done.output
