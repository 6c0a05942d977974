"""Cross-verification: backends that agree, backends that stop, and detection of false claims."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from doubles import hierarchy

import hierdp.verification.verify as verification
from hierdp import SimulatedNoise, verify
from hierdp.cli import main
from hierdp.mechanisms.group_size import m_c_dp
from hierdp.mechanisms.top_down import inf_tda
from hierdp.tables import Flows, GroupSizes
from hierdp.verification import matrix
from hierdp.verification.judge import KnownBounds
from models import Chebyshev, HierarchyQIP, Isotonic, StrategySDP, Tree
from solvers import Solution, solve
from solvers.backends.table import Backend, find
from tests.marks import quick

MODEL = Chebyshev([5, 3, -2, 8], total=9)


def lying(monkeypatch, backend, **claims):
    """Change one backend's solutions."""

    def stated(model, name="fast", **options):
        found = solve(model, name, **options)
        changed = claims.get("solution", lambda s: dataclasses.replace(s, **claims))
        return changed(found) if name == backend else found

    monkeypatch.setattr(verification, "solve", stated)


def verdicts(found):
    return {row.backend: row.verdict for row in found.rows}


def test_a_model():
    found = verify(MODEL, backends=["highs", "cp-sat"])
    assert [row.backend for row in found.rows] == ["fast", "highs", "cp-sat"]
    assert set(verdicts(found).values()) == {"solved"}
    assert found.agree
    assert not found.disagreements
    assert found.note == ""
    optimum = solve(MODEL).objective
    for row in found.rows:
        assert (row.model, row.variables, row.status) == ("Chebyshev", 4, "optimal")
        assert row.objective == optimum
        assert row.proved
        assert row.build_seconds >= 0
        assert row.ratio > 0
    assert list(found.frame().columns) == [field.name for field in dataclasses.fields(found.rows[0])]
    assert repr(found) == "Verification(1 model, 1 proved optimal; 3 solved)"


def test_pairs_and_their_relaxations():
    models = {
        "monotone": Isotonic([3, 1, 4], integer=True),
        "tree": HierarchyQIP(Tree([[0, 0]]), [[3, 1], [2, 0], [2, -1]], total=5),
    }
    found = verify(models.items(), backends=["highs", "clarabel"])
    assert found.agree
    kinds = [(row.step, row.model, row.backend, row.verdict) for row in found.rows]
    assert ("monotone", "Isotonic", "clarabel", "bound") in kinds
    assert ("monotone", "Isotonic (relaxed)", "clarabel", "solved") in kinds
    assert ("tree", "HierarchyQIP", "highs", "solved") in kinds
    assert ("tree", "HierarchyQIP (relaxed)", "clarabel", "solved") in kinds
    assert verify([], backends=["highs"]).rows == ()


def test_every_installed_backend_by_default(monkeypatch):
    monkeypatch.setattr(Backend, "installed", property(lambda row: row.name in ("fast", "highs", "cp-sat")))
    assert [row.backend for row in verify(MODEL).rows] == ["fast", "highs", "cp-sat"]


@pytest.mark.slow
def test_all_backends_by_default_agree():
    from solvers import backends

    found = verify(MODEL)
    assert [row.backend for row in found.rows] == [b.name for b in backends() if b.installed]
    assert found.agree


def test_a_release_and_its_stated_sample():
    places = hierarchy([[0] * 4, [0, 0, 1, 1, 2, 2, 3, 3]])
    leaves = np.random.default_rng(1).integers(0, 9, (8, 3))
    made = m_c_dp(GroupSizes(places, places.tree.sum_up(leaves)), 1.0, SimulatedNoise(1))
    found = verify(made, backends=["highs"], sample=3)
    note = "M_c^dp: 3 of 13 Isotonic models (evenly spread over the regions), the HierarchyQIP model"
    assert found.note == note
    steps = list(dict.fromkeys(row.step for row in found.rows))
    assert len(steps) == 4
    fits, last = made.steps
    assert steps == [fits.problems[i] for i in (0, 6, 12)] + [last.name]  # evenly spread, with both ends
    assert (steps[0], steps[-1]) == ("root all", "consistency of all regions")
    assert found.agree
    whole = verify(made, backends=["highs"], sample=99)
    assert whole.note == "M_c^dp: all 13 Isotonic models, the HierarchyQIP model"
    assert len({row.step for row in whole.rows}) == 14


def test_a_top_down_release():
    axes = (hierarchy([[0, 0]], "o"), hierarchy([[0, 0, 0]], "d"))
    data = Flows(axes, ("o", "d"), np.array([[0, 1], [1, 2]]), np.array([30, 12]))
    found = verify(inf_tda(data, 1.0, 1e-6, SimulatedNoise(2)), backends=["cp-sat"])
    assert found.note == "InfTDA: all 2 Chebyshev models"
    assert found.agree


@pytest.mark.parametrize(
    ("claims", "what"),
    [
        ({"objective": 999}, "a wrong optimum"),
        ({"objective": 0}, "an answer better than the optimum"),
        ({"status": "infeasible", "x": None, "objective": None, "bound": None}, "there is no answer"),
        ({"status": "feasible", "bound": 1e6}, "too large a bound"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_backend_with_a_false_optimum_disagrees(monkeypatch, tmp_path, claims, what):
    lying(monkeypatch, "highs", **claims)
    found = verify(MODEL, backends=["highs", "cp-sat"])
    assert verdicts(found) == {"fast": "solved", "highs": "wrong", "cp-sat": "solved"}, what
    assert not found.agree
    assert [row.backend for row in found.disagreements] == ["highs"]
    assert "1 wrong" in repr(found)
    done = CliRunner().invoke(
        main, ["verify", "Chebyshev", "--backends", "highs", "--instances", "1", "--save", str(tmp_path)]
    )
    assert done.exit_code == 1
    assert "wrong" in done.output
    (kept,) = tmp_path.iterdir()
    assert f"hierdp verify --instance {kept}" in done.output.replace("\n", "")
    again = CliRunner().invoke(main, ["verify", "--backends", "cp-sat", "--instance", str(kept)])
    assert again.exit_code == 0


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        ({"status": "error", "x": None, "objective": None, "bound": None, "message": "crashed"}, "failed"),
        ({"status": "unsupported", "x": None, "objective": None, "bound": None}, "unsupported"),
        ({"status": "time_limit", "x": None, "objective": None, "bound": None}, "stopped"),
        ({"status": "relaxed", "x": None, "objective": None, "bound": 0.5}, "bound"),
        ({"status": "feasible", "objective": 10**9, "bound": 0}, "inaccurate"),
        ({"status": "feasible", "objective": 10**9, "solve_seconds": 9.9}, "stopped"),
    ],
)
def test_failing_or_stopping_is_not_disagreeing(monkeypatch, claims, verdict):
    lying(monkeypatch, "highs", **claims)
    found = verify(MODEL, backends=["highs"])
    assert verdicts(found)["highs"] == verdict
    assert found.agree
    done = CliRunner().invoke(main, ["verify", "Chebyshev", "--backends", "highs", "--instances", "1"])
    assert done.exit_code == (verdict == "failed"), done.output  # every solve fails


def test_an_unproved_fast_answer_does_not_pass(monkeypatch):
    def unproved(found):
        worse = MODEL.certificate(np.array([9, 0, 0, 0]))
        assert not worse.optimal
        return dataclasses.replace(found, certificate=worse, status="feasible", objective=worse.objective)

    lying(monkeypatch, "fast", solution=unproved)
    found = verify(MODEL, backends=["cp-sat"])
    assert not found.agree
    assert verdicts(found) == {"fast": "failed", "cp-sat": "solved"}
    assert [row.backend for row in found.disagreements] == ["fast"]


def test_any_backends_feasible_answer_refutes_a_claim(monkeypatch):
    """The fast path proves nothing here, and CP-SAT's answer is better than HiGHS's."""

    def changed(model, name="fast", **options):
        found = solve(model, name, **options)
        if name == "fast":
            return dataclasses.replace(found, status="unsupported", x=None, objective=None, certificate=None)
        worse = {"objective": found.objective + 1, "bound": None, "x": None} if name == "highs" else {}
        return dataclasses.replace(found, **worse)

    monkeypatch.setattr(verification, "solve", changed)
    found = verify(MODEL, backends=["highs", "cp-sat"])
    assert verdicts(found) == {"fast": "unsupported", "highs": "wrong", "cp-sat": "solved"}
    assert all(row.proved for row in found.rows)  # CP-SAT's answer is proved
    assert "a feasible answer costs less" in found.disagreements[0].message
    monkeypatch.setattr(verification, "known_bounds", lambda *_: (KnownBounds(), None))
    found = verify(MODEL, backends=["highs", "cp-sat"])
    assert verdicts(found) == {"fast": "unsupported", "highs": "wrong", "cp-sat": "unproved"}


def test_a_model_without_an_answer():
    """No consistent counts meet the windows; all backends report that."""
    model = HierarchyQIP(Tree([[0, 0]]), [[9], [1], [1]], total=9, window=1)
    found = verify(model, backends=["highs", "cp-sat"])
    assert {row.status for row in found.rows} == {"infeasible"}
    assert found.agree


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        ({"status": "optimal", "x": np.zeros((3, 1)), "objective": 1, "bound": 1}, "wrong"),
        ({"status": "unbounded"}, "inaccurate"),
    ],
)
def test_claims_about_a_model_without_an_answer(monkeypatch, claims, verdict):
    lying(monkeypatch, "highs", **claims)
    model = HierarchyQIP(Tree([[0, 0]]), [[9], [1], [1]], total=9, window=1)
    assert verdicts(verify(model, backends=["highs"])) == {"fast": "solved", "highs": verdict}


def test_a_custom_row_is_a_backend_with_relaxations():
    mine = dataclasses.replace(find("clarabel"), name="mine")
    found = verify(Isotonic([3, 1, 4], integer=True), backends=[mine])
    assert {row.model for row in found.rows if row.backend == "mine"} == {"Isotonic", "Isotonic (relaxed)"}
    assert found.agree


def test_windows_have_no_relaxation_with_a_fast_path():
    model = HierarchyQIP(Tree([[0, 0]]), [[9], [5], [4]], total=9, window=2)
    assert [row.model for row in verify(model, backends=["clarabel"]).rows] == ["HierarchyQIP"] * 2


def test_large_models_are_left_to_their_certificates():
    for most, backends, number, note in (
        (4, ["highs"], 2, ""),
        (3, ["highs"], 1, "1 model beyond 3 cells by certificate only"),
        (3, [], 1, ""),
    ):
        found = verify(MODEL, backends=backends, exact_up_to=most)
        assert (len(found.rows), found.note) == (number, note)


def test_instances_are_drawn_as_their_names_tell():
    drawn = matrix.instances(["Isotonic", "StrategySDP"], [300, 1, 6], 2, seed=3)
    sizes = {Isotonic: (1, 6, 300), StrategySDP: (1, 6, 8)}
    kinds = [(kind, size, i) for kind in sizes for size in sizes[kind] for i in range(2)]
    expected = [(f"seed 3, size {size}, {i}", kind, size, i) for kind, size, i in kinds]
    assert [(name, type(model)) for name, model in drawn] == [(name, kind) for name, kind, *_ in expected]
    for (_, model), (_, kind, size, i) in zip(drawn, expected, strict=True):
        if kind is Isotonic:
            assert np.array_equal(model.noisy, kind.random(np.random.default_rng([3, size, i]), size).noisy)


def test_instances_with_a_disagreement_are_saved_and_no_others(tmp_path):
    row = verify(MODEL, backends=[]).rows[0]
    wrong = dataclasses.replace(row, step="s", model="Isotonic (relaxed)", verdict="wrong")
    found = verification.Verification((wrong, dataclasses.replace(row, step="t"), row))
    isotonic = Isotonic([2, 1], integer=True)
    named = [("s", isotonic), ("s", MODEL), ("t", isotonic), ("t", MODEL)]
    (kept,) = matrix.keep_disagreements(found, named, tmp_path / "new")
    assert [kept] == list((tmp_path / "new").iterdir())
    assert matrix.saved([kept])[0][1].noisy.tolist() == [2, 1]
    with pytest.raises(ValueError, match="there is no file"):
        matrix.saved([tmp_path])


def test_fractions_become_floats():
    row = verification._row(
        "s",
        MODEL,
        Solution("b", "1", "optimal", None, Fraction(1, 3)),
        solve(MODEL),
        KnownBounds(0, 1, False),
        "solved",
    )
    assert row.objective == pytest.approx(1 / 3)


@pytest.mark.parametrize("backend", quick(["nobody", "pyomo:no_such_solver"]))
def test_a_backend_that_is_not_there(backend):
    with pytest.raises(ValueError, match=r"there is no backend 'nobody'|is not installed\. To get it: pip"):
        verify(MODEL, backends=[backend])


def test_fast_path_is_listed_once():
    found = verify(Isotonic([3, 1, 2]), backends=["fast", "highs"])
    assert [row.backend for row in found.rows] == ["fast", "highs"]
    assert repr(verify(Isotonic([3, 1, 2]), backends=["fast"])).startswith("Verification(1 model, 1 proved")


def test_progress_is_shown_before_the_first_model_is_solved_by_all(monkeypatch):
    said = []
    monkeypatch.setattr(verification.progress, "tell", said.append)
    monkeypatch.setattr(verification.progress, "doing", said.append)
    verify([("one", Chebyshev([5, 3], total=4))], backends=["highs", "cp-sat"], time_limit=30)
    assert said == [
        "1 model, each by the fast path and 2 backends: 60 s if every backend reaches its time limit",
        "Chebyshev by the fast path",
        "Chebyshev by highs",
        "Chebyshev by cp-sat",
    ]
