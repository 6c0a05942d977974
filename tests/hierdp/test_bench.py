"""The solver benchmark: verdicts, means and profiles by hand; resumed runs; reports; exported files."""

import signal
import subprocess
import sys
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.bench import metrics, runs
from hierdp.bench.files import write
from hierdp.bench.known_optimum import KnownOptimum
from hierdp.bench.problems import Problem, _relaxed, problems
from hierdp.bench.report import distinguished, study
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import store
from hierdp.verification.judge import KnownBounds
from models import BudgetSplit, Chebyshev, CostTable, CumulativeQIP, FixedSum, HierarchyQIP, Isotonic, Tree
from models.instances import load
from solvers import Solution, solve

pytestmark = pytest.mark.slow

WHOLE = Chebyshev([5, 3, -2, 7], total=4)
REAL = Isotonic([3.0, 1.0, 4.0, 1.5], integer=False)


def test_problem_classes_have_standard_names():
    assert KnownOptimum.of(WHOLE).form == "MILP"
    assert KnownOptimum.of(REAL).form == "QP"
    assert KnownOptimum.of(Isotonic([3.0, 1.0], p=1)).form == "LP"
    assert KnownOptimum.of(Isotonic([3, 1], integer=True)).form == "MIQP"
    assert KnownOptimum.of(CostTable([[0, 1], [2, 1]], 1)).form == "tables"
    assert KnownOptimum.of(BudgetSplit([1.0, 2.0], 1.0)).form == "conic"
    dented = KnownOptimum.of(CostTable([[0, 5, 1], [0, 3, 4], [0, 0, 9]], 3))  # non-convex: no fast path
    assert (dented.bounds.proved, dented.variables, dented.form) == (False, 3, "tables")


STUCK = CumulativeQIP.random(np.random.default_rng([0, 30, 0]), 30)
"""Stopped early, its fast path gives 62, and its prices prove a bound of 61, which is the optimum."""


@pytest.fixture
def stops(monkeypatch):
    """Integer CumulativeQIP without branch and bound."""
    monkeypatch.setattr("solvers.fast.cumulative.branched", lambda *given: (given[2], None))


@pytest.mark.usefixtures("stops")
def test_the_optimum_is_the_best_answer_that_a_certificate_proves():
    assert KnownOptimum.of(STUCK).bounds == KnownBounds(61, 62)
    truth = KnownOptimum.of(STUCK, ["clarabel", "highs"], 20)  # the first gives only a bound
    assert truth.bounds == KnownBounds(61, 61, optimal=True)
    late = runs.numbers(solve(STUCK), truth.bounds)
    assert (late["optimum"], late["proved"]) == (61, True)
    assert late["relative_gap"] == pytest.approx(1 / 61)
    without = runs.numbers(solve(STUCK), KnownOptimum.of(STUCK).bounds)
    assert (without["optimum"], without["proved"], without["relative_gap"]) == (62, False, None)


@pytest.mark.usefixtures("stops")
def test_all_rows_of_a_problem_are_judged_by_its_proof(tmp_path):
    stuck, out = [Problem("stuck", STUCK, "random")], tmp_path / "r.parquet"
    first = runs.run(stuck, "small", runs.Settings(time_limit=300), out, ["fast"])
    assert not first["proved"].any()
    rows = runs.run(stuck, "small", runs.Settings(time_limit=300), out, ["fast", "highs"])
    assert rows["proved"].tolist() == [False, True]  # existing rows are not run again
    rows = metrics.settled(rows)
    assert rows["proved"].all()
    assert rows["optimum"].tolist() == [61, 61]
    assert rows["relative_gap"].tolist() == pytest.approx([1 / 61, 0])
    assert rows["verdict"].tolist() == ["inaccurate", "solved"]
    claimed = rows.assign(proved=[False, True], status="optimal", verdict="solved")
    assert metrics.settled(claimed)["verdict"].tolist() == ["wrong", "solved"]


def frame(*rows):
    """Rows of (problem, backend, verdict, seconds)."""
    made = [
        dict(zip(("problem", "backend", "verdict", "solve_seconds"), row, strict=True), build_seconds=0.0)
        for row in rows
    ]
    return pd.DataFrame(made).assign(
        time_limit=10.0,
        version="1",
        solver_version="1",
        model="M",
        certificate_seconds=np.nan,
        cpu_seconds=lambda rows: rows["solve_seconds"] * 2,
        objective=np.nan,
        bound=np.nan,
        proved=True,
        primal_residual=np.nan,
        dual_residual=np.nan,
        relative_gap=0.0,
    )


ROWS = frame(
    ("p", "a", "solved", 1.0), ("q", "a", "solved", 4.0),
    ("p", "b", "solved", 2.0), ("q", "b", "stopped", 3.0),
    ("p", "c", "unsupported", 0.0), ("q", "c", "wrong", 0.1),
)  # fmt: skip


def test_means_by_hand():
    table = metrics.by_backend(ROWS).set_index("backend")
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["takes"].tolist() == ["2 of 2", "2 of 2", "1 of 2"]
    assert table["solved"].tolist() == [1.0, 0.5, 0.0]
    assert table["wrong"].tolist() == [0, 0, 1]
    s = metrics.SHIFT
    assert table.loc["a", "mean_seconds_all"] == pytest.approx(np.sqrt((1 + s) * (4 + s)) - s)
    assert table.loc["a", "mean_cpu_seconds_all"] == pytest.approx(np.sqrt((2 + s) * (8 + s)) - s)
    killed = metrics.seconds(ROWS.assign(cpu_seconds=np.nan), cpu=True)
    assert np.isnan(killed[ROWS["verdict"] == "solved"]).all()
    assert (killed[ROWS["verdict"] != "solved"] == 10.0).all()
    assert table.loc["b", "mean_seconds_all"] == pytest.approx(np.sqrt((2 + s) * (10 + s)) - s)
    assert table.loc["c", "mean_seconds_all"] == pytest.approx(10.0)  # wrong, unsupported: the limit
    assert table.loc["a", "times_best_exact"] == pytest.approx(1.0)
    best = np.sqrt((1 + s) * (4 + s)) - s
    assert table.loc["c", "times_best_exact"] == pytest.approx(10 / best)  # over all problems, for each
    limited = metrics.by_backend(ROWS.replace({"verdict": {"unsupported": "licence"}})).set_index("backend")
    assert limited.loc["c", ["takes", "licence", "stopped"]].tolist() == ["1 of 2", 1, 0]


def test_fast_path_is_compared_with_the_best_exact_backend_including_its_certificate():
    ours = frame(("p", "fast", "solved", 0.5), ("q", "fast", "solved", 0.5))
    ours["certificate_seconds"] = 0.5
    rows = pd.concat([ours, ROWS], ignore_index=True).assign(variables=3)
    table = metrics.by_backend(rows).set_index("backend")
    s = metrics.SHIFT
    best = np.sqrt((1 + s) * (4 + s)) - s  # of a; the fast path is not one of those compared
    assert table.loc["fast", "times_best_exact"] == pytest.approx(1.0 / best)
    assert table.loc["a", "times_best_exact"] == pytest.approx(1.0)
    row = metrics.against_exact(rows).iloc[0]
    assert (row["best_exact"], row["it_solves"], row["its_ms"]) == ("a", 2, 2500.0)
    assert row["times_fast"] == pytest.approx(2.5)


def test_a_run_that_meets_the_proved_bound_proves_the_optimum(tmp_path, monkeypatch):
    known = KnownOptimum(KnownBounds(61, 62), 30, 3, "MIQP")
    monkeypatch.setattr(KnownOptimum, "of", lambda *_, **__: known)
    rows = runs.run(
        [Problem("stuck", STUCK, "random")], "small", runs.Settings(time_limit=300), tmp_path / "r", ["highs"]
    )
    assert rows[["verdict", "optimum", "proved"]].values.tolist() == [["solved", 61, True]]


def test_a_run_is_judged_by_the_tolerance_that_it_was_given(tmp_path, monkeypatch):
    best = solve(REAL)
    far = Solution("highs", "1", "optimal", best.x, best.objective * (1 + 5e-4))
    monkeypatch.setattr(runs, "solve", lambda *_, **__: far)
    settings = runs.Settings(("default", "low", "high"))
    rows = runs.run([Problem("real", REAL, "random")], "small", settings, tmp_path / "r", ["highs"])
    assert rows["verdict"].tolist() == ["wrong", "solved", "wrong"]


def open_rows(**columns):
    """Three claims and an answer of the fast path about one problem, whose optimum is not proved."""
    rows = frame(("p", "a", "solved", 1.0), ("p", "b", "unproved", 1.0), ("p", "c", "bound", 1.0),
                 ("p", "fast", "inaccurate", 1.0), ("p", "d", "inaccurate", 1.0))  # fmt: skip
    return rows.assign(
        proved=False, form="MIQP", tolerance="default", optimum=7.0,
        status=["optimal", "optimal", "relaxed", "feasible", "numerical"],
        objective=[8.0, 7.0, np.nan, 7.0, 6.0], bound=[8.0, 7.0, 7.5, 6.0, np.nan],
    ).assign(**columns)  # fmt: skip


def test_where_nothing_is_proved_a_better_feasible_answer_refutes():
    rows = metrics.settled(open_rows())
    assert rows["verdict"].tolist() == ["wrong", "unproved", "wrong", "inaccurate", "inaccurate"]
    assert rows["optimum"].tolist() == [7.0] * 5  # that of d is not feasible
    known = open_rows(proved=True)
    assert metrics.settled(known)["verdict"].tolist() == known["verdict"].tolist()


def test_whole_costs_that_are_stored_as_floats_are_compared_exactly():
    large = open_rows(objective=[10**9 + 1, 10**9, np.nan, 10**9, 1.0], bound=np.nan)
    assert metrics.settled(large)["verdict"].tolist()[0] == "wrong"
    assert metrics.settled(large.assign(form="QP"))["verdict"].tolist()[0] == "unproved"


def test_unproved_claims_count_neither_for_nor_against_a_backend():
    table = metrics.by_backend(ROWS.replace({"verdict": {"wrong": "unproved"}})).set_index("backend")
    assert table["unproved"].to_dict() == {"a": 0, "b": 0, "c": 1}
    assert np.isnan(table.loc["c", "solved"])
    s = metrics.SHIFT
    assert table.loc["c", "mean_seconds_all"] == pytest.approx(np.sqrt((10 + s) * (0.1 + s)) - s)
    claims = pd.concat([ROWS, frame(("r", "a", "unproved", 1.0))], ignore_index=True)
    row = metrics.by_backend(claims).set_index("backend").loc["a"]
    assert (row["takes"], row["solved"], row["unproved"]) == ("2 of 3", 1.0, 1)


def test_profiles_by_hand():
    curves = metrics.profile(ROWS)
    factors, share = curves["a"]
    assert share[0] == 1.0
    assert share[-1] == 1.0
    factors, share = curves["b"]
    assert share[0] == 0.0
    assert factors[1] == pytest.approx((2 + metrics.SHIFT) / (1 + metrics.SHIFT))
    assert share[1:].tolist() == [0.5, 0.5]
    assert curves["c"][1].tolist() == [0.0, 0.0]


def test_shares_by_model():
    table = metrics.shares(ROWS, "model")
    assert table.loc[0, ["problems", "a", "b", "c"]].tolist() == [2, 1.0, 0.5, 0.0]


def some():
    rng = np.random.default_rng(3)
    kinds = (Chebyshev, HierarchyQIP, CostTable, BudgetSplit)
    return [Problem(f"{kind.__name__}-1", kind.random(rng, 6), "random") for kind in kinds]


def test_runs_resume_and_grow(tmp_path, monkeypatch):
    out, chosen = tmp_path / "r.parquet", runs.Settings(time_limit=300)
    first = runs.run(some(), "small", chosen, out, ["fast", "highs"])
    assert len(first) == 8
    done = []
    monkeypatch.setattr(runs, "solve", lambda *a, **k: done.append(a[1].name) or solve(*a, **k))
    again = runs.run(some(), "small", chosen, out, ["fast", "highs"])
    assert done == []
    pd.testing.assert_frame_equal(again, first)
    more = runs.run(
        some(), "small", runs.Settings(("default", "low"), 300), out, ["fast", "highs", "clarabel"]
    )
    assert done == [n for _ in range(4) for n in ("highs", "clarabel", "clarabel")]
    assert len(more) == 8 + 12
    assert (more["verdict"] == "wrong").sum() == 0
    solved = more[more["backend"] == "fast"]
    assert (solved["verdict"] == "solved").all()
    assert solved["proved"].all()


def test_repeats_have_medians_and_quartiles_and_the_worst_verdict(tmp_path, monkeypatch):
    """A backend that is wrong once of three times is wrong; its first solve is not a counted one."""
    model = Chebyshev([5, 3, -2, 7], total=4)
    best = solve(model)
    answers = iter([(1.0, best.objective), (4.0, best.objective + 1), (2.0, best.objective)])
    warmed = []

    def solved(*_, **options):
        seconds, objective = next(answers)
        assert (options["presolve"], options["memory"]) == (False, 2_500_000_000)
        return Solution("highs", "1", "optimal", best.x, objective, None, 0.5, seconds, cpu_seconds=seconds)

    monkeypatch.setattr(runs, "solve", solved)
    monkeypatch.setattr(runs, "probe", warmed.append)
    chosen = runs.Settings(presolves=(False,), memory=2.5, repeats=3)
    (row,) = runs.run(
        [Problem("one", model, "random")], "small", chosen, tmp_path / "r.parquet", ["highs"]
    ).to_dict("records")
    assert [backend.name for backend in warmed] == ["highs"]
    assert (row["verdict"], row["solve_seconds"], row["build_seconds"]) == ("wrong", 2.0, 0.5)
    assert (row["cpu_seconds"], row["lower_quartile"], row["upper_quartile"]) == (2.0, 2.0, 3.5)
    assert (row["presolve"], row["memory"], row["repeats"]) == (False, 2.5, 3)
    named = distinguished(pd.DataFrame([row, {**row, "presolve": True}]))
    assert named["backend"].tolist() == ["highs, no presolve", "highs"]


def test_the_fast_path_is_timed_on_a_model_that_remembers_nothing(tmp_path):
    problem = Problem("one", CumulativeQIP(Tree([[0, 0]]), [[3, 5], [2, 1], [0, 3]], 5), "random")
    object.__setattr__(problem.model, "remembered", 1)  # like a cached property
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            runs, "solve", lambda model, *a, **k: seen.append({*model.__dict__}) or solve(model, *a, **k)
        )
        runs.run([problem], "small", runs.Settings(), tmp_path / "r.parquet", ["fast"])
    assert seen[0] == {"tree", "noisy", "total", "integer"}


def test_finished_results_are_saved_on_stop(tmp_path, monkeypatch):
    out, calls = tmp_path / "r.parquet", []

    def once(*given, **more):
        calls.append(given)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return solve(*given, **more)

    monkeypatch.setattr(runs, "solve", once)
    with pytest.raises(KeyboardInterrupt):
        runs.run(some(), "small", runs.Settings(), out, ["fast"])
    assert len(pd.read_parquet(out)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


KILLED = """
import os, sys
from pathlib import Path
from hierdp.bench import runs
from tests.hierdp.test_bench import some
solve, left = runs.solve, [3]
def dying(*given, **options):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), 9)
    return solve(*given)
runs.solve = dying
runs.run(some(), "small", runs.Settings(), Path(sys.argv[1]), ["fast"])
"""


def test_a_kill_loses_the_solve_it_was_at(tmp_path):
    out = tmp_path / "r.parquet"
    died = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(runs.read(out)) == 3
    with (tmp_path / ".r.parquet.journal").open("a") as journal:
        journal.write('{"problem": "cut o')  # cut in the middle of a line
    assert len(runs.read(out)) == 3
    rows = runs.run(some(), "small", runs.Settings(), out, ["fast"])
    assert rows["problem"].tolist() == [one.name for one in some()]
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet(out), rows)


def test_rows_that_are_in_the_file_and_in_the_journal_count_once(tmp_path):
    out = tmp_path / "r.parquet"
    rows = runs.run(some(), "small", runs.Settings(), out, ["fast"])
    row = {name: None if value != value else value for name, value in rows.iloc[0].items()}
    with store.growing(out, runs.COLUMNS, runs.KEY) as kept:
        kept.add(row)
    assert len(runs.read(out)) == len(rows)


def test_two_runs_do_not_write_one_file(tmp_path):
    out = tmp_path / "r.parquet"
    with (
        store.growing(out, runs.COLUMNS, runs.KEY),
        pytest.raises(InputError, match="another process is writing"),
    ):
        runs.run(some(), "small", runs.Settings(), out, ["fast"])


def test_no_solve_begins_after_its_minutes(tmp_path):
    out = tmp_path / "r.parquet"
    assert runs.run(some(), "small", runs.Settings(), out, ["fast"], minutes=0).empty
    assert runs.missing(some(), runs.Settings(), out, ["fast"]) == 4
    runs.run(some(), "small", runs.Settings(), out, ["fast"], minutes=5)
    assert runs.missing(some(), runs.Settings(), out, ["fast"]) == 0


def test_a_file_without_results_is_not_changed(tmp_path):
    other = tmp_path / "r.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(other)
    before = other.read_bytes()
    with pytest.raises(InputError, match="is not a file of such results: it has no column 'problem'"):
        runs.run(some(), "small", runs.Settings(), other, ["fast"])
    assert other.read_bytes() == before
    other.write_text("no table")
    with pytest.raises(InputError, match="cannot be read as a Parquet file"):
        runs.read(other)
    with pytest.raises(InputError, match="no tolerance 'medium'; there are low, default, high"):
        runs.run(some(), "small", runs.Settings(("medium",)), tmp_path / "new", ["fast"])


def test_the_report_says_what_the_rows_do(tmp_path):
    out = tmp_path / "r.parquet"
    rows = runs.run(some(), "small", runs.Settings(time_limit=300), out, ["fast", "highs", "scs"])
    lie = rows[rows["backend"] == "highs"].iloc[:1].assign(backend="liar", verdict="wrong", message="a lie")
    older = {
        name: rows[name].where(rows["backend"] != "scs", "0.1") for name in ("version", "solver_version")
    }
    old = rows.assign(**older)
    pd.concat([rows, old[old["backend"] == "scs"], lie], ignore_index=True).to_parquet(out)
    made = study(out)
    made.write(tmp_path / "report")
    text = (tmp_path / "report" / "report.md").read_text()
    assert "1 of 16 claimed answers and bounds are refuted" in text
    assert "| scs 0.1 | 0.1 | 4 of 4 |" in text  # versions are kept separate
    assert "| liar |" in text
    assert "Known limitations" in text
    assert {"report.html", "profile-small-default.png"} <= {p.name for p in (tmp_path / "report").iterdir()}
    rows[rows["backend"] == "fast"].to_parquet(out)
    assert study(out).parts[1].figure is None  # a single backend has nothing to be compared with


def test_results_come_before_the_problems_they_are_of(tmp_path):
    out = tmp_path / "r.parquet"
    for which in ("small", "large", "medium"):
        named = [Problem(f"{one.name}-{which}", one.model, one.origin) for one in reversed(some())]
        runs.run(named, which, runs.Settings(), out, ["fast"])
    parts = {part.name: part for part in study(out).parts}
    assert list(parts)[-2:] == ["sets", "limitations"]
    table = parts["sets"].frames["problems"]
    assert list(dict.fromkeys(table["set"])) == ["small", "medium", "large"]
    models = ["BudgetSplit", "Chebyshev", "CostTable", "HierarchyQIP"]
    assert table["model"].tolist() == models * 3
    assert "12 problems of 4 models: 12 random, and 0 steps of releases" in parts["problems"].texts[0]


def test_empty_report_states_that_it_is_empty(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*nosuch\.parquet; `hierdp bench run --out"):
        study(tmp_path / "nosuch.parquet")
    pd.DataFrame(columns=runs.COLUMNS).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match=r"empty\.parquet contains no runs"):
        study(tmp_path / "empty.parquet")
    done = CliRunner().invoke(
        main, ["bench", "report", str(tmp_path / "nosuch.parquet"), "--out", str(tmp_path / "report")]
    )
    assert done.exit_code == 2
    assert "there is no file" in done.output


def test_problems_are_the_same_everywhere_and_others_can_read_them(tmp_path):
    import highspy

    found = {one.name: one for one in problems("small")}
    again = {one.name: one for one in problems("small")}
    assert list(found) == list(again)
    kinds = [one.kind for one in found.values() if one.origin == "random"]
    assert len(set(kinds[: len(set(kinds))])) == len(set(kinds))  # a run that is cut short includes all kinds
    assert {one.origin for one in found.values()} == {"random", "real"}
    relaxed = [one.model for one in found.values() if one.name.endswith("-relaxed")]
    assert {KnownOptimum.of(model).form for model in relaxed} == {"LP", "QP"}
    assert all(KnownOptimum.of(model).bounds.proved for model in relaxed)
    chosen = [one for one in found.values() if one.kind in ("Chebyshev", "CostTable")][:6]
    paths = write(chosen, tmp_path / "set")
    assert (
        len([path for path in paths if path.suffix != ".txt"]) == 6 * 4 + 6  # and the set's own six
    )  # exact optima have a proof.txt
    for one in chosen:
        best = solve(one.model).objective
        assert solve(load(tmp_path / "set" / f"{one.name}.npz")).objective == best
        for suffix in ("mps", "lp"):
            highs = highspy.Highs()
            highs.setOptionValue("output_flag", False)
            highs.readModel(str(tmp_path / "set" / f"{one.name}.{suffix}"))
            highs.run()
            assert round(highs.getInfo().objective_function_value) == best
    with pytest.raises(ValueError, match="no test set 'tiny'"):
        problems("tiny")


@pytest.mark.usefixtures("stops")
def test_what_is_written_says_what_is_proved_and_highs_solves_all_but_the_integer_qps(tmp_path):
    import highspy

    stuck = Problem("stuck", STUCK, "random")
    whole = Problem("whole", Isotonic([9, 2, 5, 1], integer=True), "random")
    dented = Problem("dented", CostTable([[0, 50, 80], [0, 50, 80], [0, 50, 40]], 3), "random")
    real = Problem("real", REAL, "random")
    paths = write([*some(), stuck, whole, dented, real], tmp_path)
    assert paths[-1].name == "optima.csv"
    table = pd.read_csv(paths[-1], dtype={"optimum": str}).set_index("problem")
    assert list(table.columns) == ["form", "status", "optimum", "proved"]
    assert table.loc[["stuck", "dented"], "status"].tolist() == ["optimal", "open"]
    assert table.loc["stuck", ["optimum", "proved"]].tolist() == ["61", True]
    assert not table.loc["dented", "proved"]
    assert float(Fraction(table.loc["real", "optimum"])) == pytest.approx(float(solve(REAL).objective))
    for name, row in table.iterrows():
        assert (tmp_path / f"{name}.npz").is_file()
        assert (tmp_path / f"{name}.lp").is_file() == (row["form"] != "conic")
        if row["form"] == "conic":
            continue
        for suffix in ("mps", "lp"):
            highs = highspy.Highs()
            highs.setOptionValue("output_flag", False)
            assert highs.readModel(str(tmp_path / f"{name}.{suffix}")) == highspy.HighsStatus.kOk
            assert (highs.run() == highspy.HighsStatus.kError) == (row["form"] == "MIQP")
            if row["form"] != "MIQP":
                found = highs.getInfo().objective_function_value
                assert found == pytest.approx(float(Fraction(row["optimum"])), rel=1e-6)


def test_by_the_command_line(tmp_path):
    run = CliRunner().invoke
    line = f"bench run --models Chebyshev --backends fast,highs --out {tmp_path}/r.parquet --data none"
    done = run(main, line.split())
    assert done.exit_code == 0, done.output
    assert "Small problems" in done.output
    done = run(main, f"bench report {tmp_path}/r.parquet --out {tmp_path}/report".split())
    assert done.exit_code == 0, done.output
    done = run(
        main, f"bench run --minutes 1e-9 --backends fast --out {tmp_path}/n.parquet --data none".split()
    )
    assert "runs left; the same command continues" in " ".join(done.output.split())
    with mock.patch.object(runs, "solve", side_effect=KeyboardInterrupt):
        done = run(main, f"bench run --backends fast --out {tmp_path}/n.parquet --data none".split())
    assert done.exit_code == 130
    assert "finished solves are saved" in " ".join(done.output.split())
    wrong = run(main, f"bench run --models Chebishev --out {tmp_path}/r.parquet --data none".split())
    assert wrong.exit_code == 2
    assert "unknown model Chebishev" in wrong.output
    wrong = run(main, f"bench run --backends hihgs --out {tmp_path}/r.parquet --data none".split())
    assert wrong.exit_code == 2
    assert "Did you mean highs?" in wrong.output
    done = run(main, f"bench write {tmp_path}/set --models Chebyshev --data none".split())
    assert done.exit_code == 0, done.output
    assert {path.name.split("-")[0] for path in (tmp_path / "set").glob("*.lp")} <= {"Chebyshev", "flights"}
    assert len(list((tmp_path / "set").glob("*.npz"))) == len(pd.read_csv(tmp_path / "set" / "optima.csv"))
    wrong = run(main, f"bench write {tmp_path}/set --models Chebishev --data none".split())
    assert wrong.exit_code == 2


def test_the_first_problem_of_a_kind_that_can_be_relaxed_is():
    """Absolute changes are for whole counts only: in the medium set, such a problem comes first."""
    kept = [Problem(f"p{p}", FixedSum([3, 1], total=2, p=p), "random") for p in (1, 2, 2)]
    assert [(one.name, one.model.integer) for one in _relaxed(kept)] == [("p2-relaxed", False)]
