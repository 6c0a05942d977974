"""Properties of all models: the program states the model, and the files state the program."""

import subprocess
import sys

import numpy as np
import pytest

from hierdp.verification.matrix import kinds
from models import Certificate, Isotonic
from models.certificate import judge
from solvers import fast, prove, solve
from tests.marks import quick

KINDS = sorted(kinds())
CONIC = {"BudgetSplit", "StrategySDP"}

READ = """
import sys
kind, *paths = sys.argv[1:]
for path in paths:
    if kind == "scip":
        import pyscipopt
        model = pyscipopt.Model()
        model.hideOutput()
        model.readProblem(path)
        model.optimize()
        print(model.getStatus() == "optimal", model.getObjVal())
    else:
        import highspy
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("qp_regularization_value", 1e-12)
        highs.readModel(path)
        highs.run()
        optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        print(optimal, highs.getInfo().objective_function_value)
"""


def instance(name, seed, size=14):
    return kinds()[name].random(np.random.default_rng(seed), size)


def whole_squares(program):
    return program.has("quadratic", integer=True)


@pytest.mark.parametrize("seeds", quick([range(6), range(6, 60)]), ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_fast_answers_are_feasible_proved_and_the_same_again(name, seeds):
    proofs = 0
    for seed in seeds:
        model = instance(name, seed, (14, 1, 40, 90)[seed % 4])
        try:
            x, witness = fast.answer(model)
        except fast.NoFastPath:
            continue
        if x is None:
            continue
        assert model.violations(x) == []
        again = np.asarray(fast.answer(instance(name, seed, (14, 1, 40, 90)[seed % 4]))[0])
        if again.dtype == object:  # its bytes are addresses
            assert again.tolist() == x.tolist()
        else:
            assert np.asarray(x).tobytes() == again.tobytes()
        proof = model.certificate(x, witness)
        assert proof.bound <= proof.objective
        assert proof.optimal or not fast.exact(model)
        assert proof.gap == 0 or isinstance(proof.gap, float) or not proof.optimal
        assert prove(model, x).bound >= proof.bound
        proofs += proof.optimal
    assert proofs or name == "JointTables"


@pytest.mark.parametrize("seeds", quick([range(2), range(2, 6)]), ids=str)
@pytest.mark.parametrize("name", [name for name in KINDS if name not in CONIC])
def test_the_program_costs_what_the_model_does(name, seeds):
    for seed in seeds:
        model = instance(name, seed)
        program = model.program()
        found = solve(program, "highs", time_limit=300)
        assert found.status == "optimal"
        try:
            best = model.objective(fast.answer(model)[0])
        except fast.NoFastPath:
            continue
        if fast.exact(model):
            assert float(found.objective) == pytest.approx(float(best), rel=1e-6, abs=1e-6)
        assert model.objective(found.x) == pytest.approx(found.objective, rel=1e-9, abs=1e-9)
        assert str(program).startswith(program.name)


@pytest.mark.parametrize("backend", ["highs", "cp-sat", "clarabel", "scip"])
@pytest.mark.parametrize("name", quick([name for name in KINDS if name not in CONIC], every=5))
def test_backends_agree(name, backend):
    """With the fast path, or HiGHS: an optimum costs the same, and a bound is none too high."""
    if backend == "scip":
        pytest.importorskip("pyscipopt")
    agreed = 0
    for seed, size in enumerate((1, 20, 60, 40)):
        model = instance(name, [seed, 7], size)
        best = solve(model) if name in fast.PATHS else solve(model, "highs", time_limit=300)
        found = solve(model, backend, time_limit=300)
        if "unsupported" in (best.status, found.status):
            continue
        if best.status == "feasible" and not fast.exact(model):
            assert found.status == "relaxed" or best.certificate.bound <= found.objective <= best.objective
            continue
        cost = float(best.objective)
        near = {"rel": 1e-5, "abs": 1e-5 * max(1.0, cost)}
        assert found.bound is None or found.bound <= cost + near["abs"]
        if found.status != "relaxed":
            assert found.status == best.status == "optimal", (model, found)
            same = isinstance(found.objective, int) and isinstance(best.objective, int)
            assert (
                found.objective == best.objective
                if same
                else float(found.objective) == pytest.approx(cost, **near)
            )
            assert not same or prove(model, found.x).optimal or not fast.exact(model)
            agreed += 1
    assert agreed or backend != "highs"


@pytest.mark.parametrize(("suffix", "every"), quick([(".mps", 4), (".mps", 1), (".lp", 1)]))
@pytest.mark.parametrize("reader", ["highs", "scip"])
def test_files_read_back_give_the_same_optimum(suffix, every, reader, tmp_path):
    """HiGHS reads integer quadratics, but cannot solve them."""
    if reader == "scip":
        pytest.importorskip("pyscipopt")
    programs = [instance(name, 3).program() for name in KINDS if name not in CONIC][::every]
    programs = [one for one in programs if whole_squares(one) == (reader == "scip")]
    paths = [one.write(tmp_path / f"{at}{suffix}") for at, one in enumerate(programs)]
    done = subprocess.run(
        [sys.executable, "-c", READ, reader, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = [line.split() for line in done.stdout.splitlines() if line.startswith(("True ", "False "))]
    for program, (optimal, objective) in zip(programs, found, strict=True):
        best = solve(program, "highs", time_limit=300)
        assert (program.name, optimal, best.status) == (program.name, "True", "optimal")
        assert float(objective) == pytest.approx(float(best.objective), rel=1e-5, abs=1e-5), program.name
        assert program.write(tmp_path / "model.nl").stat().st_size > 0


@pytest.mark.parametrize("backend", quick(["highs", "cp-sat", "pyomo:highs"], first=2))
def test_unused_variable_has_a_value(backend):
    from models import Tree, TreeChebyshev

    found = solve(TreeChebyshev(Tree([]), [3], 2), backend)
    assert (found.status, found.x.tolist(), found.objective) == ("optimal", [2], 0)


def test_whole_fractions_go_to_cp_sat():
    from fractions import Fraction

    from models import ControlledRounding

    model = ControlledRounding(np.array([Fraction(3), Fraction(4)], dtype=object), 7)
    assert solve(model, "cp-sat").x.tolist() == [3, 4]
    assert solve(ControlledRounding([0.5, 0.5], 1), "cp-sat").status == "unsupported"


def test_gaps_come_from_the_better_proof(monkeypatch):
    model = Isotonic([9, 0, 0, 0], integer=True)
    assert prove(model, [3, 2, 1, 0]) == model.certificate([3, 2, 1, 0])  # infeasible: nothing to prove

    given = [4, 4, 4, 4]
    monkeypatch.setattr("solvers.fast.search", lambda *_: None)

    def gap(own, best):
        monkeypatch.setattr(Isotonic, "certificate", lambda _, x, *__: own if x is given else best)
        return prove(model, given).gap

    own = Certificate(False, 3.0, 2.0, 1.0)
    assert gap(own, Certificate(True, 2.5, 2.5, 0.0)) == 0.5
    assert gap(own, Certificate(True, 3.0, 3.0 + 1e-12, 0.0)) == 0
    assert gap(own, Certificate(True, 1.5, 1.5, 0.0)) == 1.0  # a bound below the own one, by rounding
    assert gap(own, Certificate(False, 2.6, 2.5, 0.1)) == 0.5  # not optimal, but still a bound
    assert gap(own, Certificate(False, 2.6, None, None)) == 1.0


def test_an_objective_that_overflows_proves_nothing():
    assert not judge(float("inf"), 1e300, exactly=False, witness={}, reason="").optimal
    assert judge(10**400, 0, exactly=True, witness={}, reason="").optimal


def test_only_search_that_may_stop_is_not_exact():
    exact = {name: {fast.exact(instance(name, seed)) for seed in range(8)} for name in KINDS}
    assert {name for name, found in exact.items() if False in found} == {"CumulativeQIP"}
