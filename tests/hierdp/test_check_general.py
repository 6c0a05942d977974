"""hierdp check compares every certificate with the general theorem, and names the step where they differ."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.checking import general as comparing
from hierdp.checking.general import GeneralCheck
from hierdp.cli import main
from hierdp.record.proofs import SavedStep
from models import (
    Chebyshev,
    Clustering,
    ConstrainedInference,
    FixedSum,
    GroupMatching,
    NonNegativeInference,
    Tree,
)
from models.certificate import CONTRADICTION, Certificate, judge
from models.programs.program import Program
from models.programs.terms import Block, Term
from models.witnesses.row_proofs import has_whole_costs
from solvers import solve

PEOPLE = pd.DataFrame({"s": ["A", "B"] * 4, "c": ["a", "b"] * 4, "g": list("kkllmmnn")})
RANGES = {"axes": [("c", ["s", "c"])], "regions_from_data": True, "method": "H_tree^c"}


def written(folder):
    options = {"noise": SimulatedNoise(3), "repair": "whole, free total"}
    release(PEOPLE, "range-query", epsilon=1, **options, **RANGES).write(folder)


def looked(model, x, proof, every=False):
    general = GeneralCheck([{"variables": np.size(x)}], every)
    general.look(SavedStep("one", np.asarray(x)), model, proof)
    (found,) = general.result()
    return found


def solved(model):
    found = solve(model)
    return found.x, found.certificate


COUNTS = FixedSum([5, 3, -1], total=4, p=2)
EXACT = [
    COUNTS,
    Chebyshev([5, 3, -2, 7, 1, 1], [4, 11], [0, 3, 6]),
    Clustering([1, 1, 3, 3, 4, 6, 7], noise_scale=2),
    NonNegativeInference(Tree([[0, 0]]), [3, -5, 4], integer=True),
]


@pytest.mark.parametrize("model", EXACT, ids=lambda model: type(model).__name__)
def test_both_proofs_agree_and_changed_ones_do_not(model):
    x, proof = solved(model)
    assert (looked(model, x, proof).verdict, proof.optimal) == (HOLDS, True)
    for change in (
        {"bound": proof.bound + 1},
        {"bound": proof.bound - 1},
        {"objective": proof.objective + 1},
    ):
        found = looked(model, x, replace(proof, **change))
        assert found.verdict == FAILS
        assert found.why.startswith(
            f"step 'one' ({type(model).__name__}): the general theorem proves the cost "
        )


def test_an_answer_that_is_not_optimal_or_not_feasible_is_refused_whatever_its_certificate_says():
    _, proof = solved(COUNTS)
    dear = looked(COUNTS, [4, 0, 0], replace(proof, objective=11, bound=11))
    assert dear.verdict == FAILS
    assert "proves the bound 9, for a cost of 11; by its certificate, the bound is 11" in dear.why
    wrong = looked(COUNTS, [3, 1, 1], proof)
    assert wrong.verdict == FAILS
    assert "by its program: not feasible: " in wrong.why


def test_a_part_is_named():
    model = Chebyshev([5, 3, -2, 7, 1, 1], [4, 11], [0, 3, 6])
    x, proof = solved(model)
    x = x.copy()
    x[3:] = [9, 1, 1]
    found = looked(model, x, replace(proof, objective=4, bound=4))
    assert (found.verdict, "for a cost of part 2 of " in found.why) == (FAILS, True)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            ConstrainedInference(Tree([[0, 0]]), [9, 2, 1.5], variance=1),
            "not exact: its answer or data are floats",
        ),
        (Clustering([1, 2, 5], 1, clusters=3), "its witness does not read as row prices"),
        (Clustering([1, 2, 5, 9], 1, clusters=2), "its witness does not read as row prices"),
    ],
)
def test_what_is_not_compared_is_counted_with_its_reason(model, reason):
    x, proof = solved(model)
    assert proof.optimal
    found = looked(model, x, proof)
    assert (found.verdict, found.why) == (OPEN, f"1 not compared: {reason}")


def test_an_unproved_answer_is_not_compared():
    x = np.array([4, 0, 0])
    found = looked(COUNTS, x, COUNTS.certificate(x))
    assert (found.verdict, found.why) == (OPEN, "1 not compared: its own certificate does not prove it")


def test_a_witness_that_the_theorem_cannot_use_fails():
    x, proof = solved(COUNTS)
    found = looked(COUNTS, x, replace(proof, witness={"price": "none"}))
    assert (found.verdict, "the general theorem cannot be applied: " in found.why) == (FAILS, True)


def test_large_releases_are_sampled_evenly_unless_all_is_given(monkeypatch):
    monkeypatch.setattr(comparing, "MOST_PROBLEMS", 4)
    x, proof = solved(COUNTS)
    lines = [{"variables": 3}] * 9
    for every, compared, said in (
        (False, 3, "a sample, step 1 of every 4; --all compares all 9"),
        (True, 9, ""),
    ):
        general = GeneralCheck(lines, every)
        for k in range(9):
            general.look(SavedStep(f"step {k}", x), COUNTS, proof)
        (found,) = general.result()
        assert (found.verdict, general.compared) == (HOLDS, compared)
        assert said in found.why
    general = GeneralCheck(lines, every=False)
    for k in range(9):
        general.look(SavedStep(f"step {k}", x), COUNTS, replace(proof, bound=0) if k in (4, 5) else proof)
    assert [why.partition(" (")[0] for why in general.wrong] == ["step 'step 4'"]


def test_variables_are_limited_too_and_problems_side_by_side(monkeypatch):
    monkeypatch.setattr(comparing, "MOST_VARIABLES", 10)
    assert GeneralCheck([{"variables": 3}] * 9, every=False).stride == 4  # three steps, nine variables
    assert GeneralCheck([{"variables": 99}] * 9, every=False).stride == 1  # each is left out by its size
    model = FixedSum(list(range(30)), 460, p=2)
    found = looked(model, *solved(model))
    assert (found.verdict, found.why) == (OPEN, "1 not compared: its program has too many variables")
    assert looked(model, *solved(model), every=True).verdict == HOLDS
    monkeypatch.setattr(comparing, "BYTES_OF_A_VARIABLE", comparing.LIMIT // 29)
    assert looked(model, *solved(model), every=True).why == found.why
    monkeypatch.setattr(comparing, "BYTES_OF_A_VARIABLE", 1)
    monkeypatch.setattr(comparing, "MOST_PROBLEMS", 1)
    model, built = Chebyshev([5, 3, 7, 1], [4, 11], [0, 2, 4]), []
    program = Chebyshev.program
    monkeypatch.setattr(Chebyshev, "program", lambda part: built.append(1) or program(part))
    monkeypatch.setattr(comparing, "MOST_VARIABLES", 10)
    found = looked(model, *solved(model))
    assert len(built) == 1
    assert found.why.endswith("in 1 of them, a sample of the problems side by side; or --all")
    assert "sample" not in looked(model, *solved(model), every=True).why


def test_a_dense_program_is_not_built_in_vain(monkeypatch):
    """A sparse matching of 10^5 by 10^5 runs would have a program of 10^10 variables."""
    sizes, ones = np.arange(10**5), np.ones(10**5, np.int64)
    model = GroupMatching((sizes, ones), (sizes + 1, ones))
    monkeypatch.setattr(GroupMatching, "program", None)
    x, proof = solved(model)
    assert looked(model, x, proof, every=True).why == "1 not compared: its program has too many variables"


def test_large_programs_are_taken_evenly(monkeypatch):
    """Ten matchings of 4 by 4 runs, with room for 20 variables at first and 20 more up to the end."""
    monkeypatch.setattr(comparing, "MOST_VARIABLES", 20)
    model = GroupMatching(([1, 2, 3, 4], [1, 1, 1, 1]), ([1, 2, 3, 5], [1, 1, 1, 1]))
    x, proof = solved(model)
    general, taken = GeneralCheck([{"variables": 1}] * 10, every=False), []
    for _ in range(10):
        before = general.compared
        general.look(SavedStep("one", x), model, proof)
        taken.append(general.compared - before)
    assert taken == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "weight", "center", "whole"),
    [
        ("quadratic", [1, 2], [5, 3], True),
        ("quadratic", [1.0, 2.0], [5.0, 3.0], True),
        ("quadratic", [Fraction(1), Fraction(2)], [Fraction(5), Fraction(3)], True),
        ("quadratic", [1, 2], [5.5, 3], False),
        ("absolute", [1, Fraction(1, 2)], [5, 3], False),
        ("linear", [1, 2], [0, 0], True),
        ("linear", [1, 0.5], [0, 0], False),
    ],
)
def test_costs_are_whole_if_all_numbers_and_variables_are(kind, weight, center, whole):
    term = Term(kind, np.arange(2), np.array(weight), np.array(center))
    for integer in (True, False):
        program = Program("p", [Block("v", (2,), 0, 9, integer)], [], [term])
        assert has_whole_costs(program) is (whole and integer)


def forged(model):
    """Another answer, with a certificate that calls it optimal: so says the manifest, too."""
    found = solve(model)
    if not isinstance(model, NonNegativeInference):
        return found
    x = model.tree.sum_up(np.asarray(found.x)[model.tree.leaves] + 10**6)
    cost = model.objective(x)
    proof = Certificate(True, cost, cost, 0, model.certificate(x).witness)
    return replace(found, x=x, certificate=proof, objective=cost, bound=cost, witness=None)


def test_a_release_with_a_certificate_that_proves_too_much_fails(tmp_path, monkeypatch):
    """As if the model's certificate were wrong: at the release, and in the check."""
    monkeypatch.setattr("solvers.solve", forged)
    written(tmp_path / "out")
    own = NonNegativeInference.certificate

    def wrong(self, x, witness=None):
        proof = own(self, x, witness)
        return replace(proof, optimal=True, bound=proof.objective, gap=0)

    failed = [line.check for line in check(tmp_path / "out") if line.verdict == FAILS]
    assert failed == ["certificates", "table from steps"]
    monkeypatch.setattr(NonNegativeInference, "certificate", wrong)
    failed = [line for line in check(tmp_path / "out") if line.verdict == FAILS]
    assert [line.check for line in failed] == ["general bound"]
    assert failed[0].why.startswith(
        "step 'nearest non-negative counts' (NonNegativeInference): the general theorem"
    )


def test_a_bound_above_the_cost_of_an_answer_fails_and_names_the_step(tmp_path, monkeypatch):
    """No certificate can prove that; so the certificate is wrong, or its data."""
    written(tmp_path / "out")
    own = NonNegativeInference.certificate

    def wrong(self, x, witness=None):
        return judge(own(self, x, witness).objective, -1, True, {}, "")

    monkeypatch.setattr(NonNegativeInference, "certificate", wrong)
    failed, _ = [line for line in check(tmp_path / "out") if line.verdict == FAILS]
    assert failed.why == f"step 'nearest non-negative counts': {CONTRADICTION}"


def test_the_command_has_all(tmp_path, monkeypatch):
    written(tmp_path / "out")
    monkeypatch.setattr(comparing, "MOST_VARIABLES", 1)
    found = CliRunner().invoke(main, ["check", str(tmp_path / "out")])
    assert "1 not compared: its program has too many variables" in " ".join(found.output.split())
    found = CliRunner().invoke(main, ["check", str(tmp_path / "out"), "--all"])
    assert "1 step has the same cost and bound by the general theorem" in " ".join(found.output.split())
