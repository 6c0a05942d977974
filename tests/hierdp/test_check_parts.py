"""The parts of a check on releases in memory: each comparison must detect its change.

`test_check.py` and `test_check_tampered.py` change the files of whole releases, most of them in slow tests.
"""

import copy
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from steps import Solved, save

from hierdp import SimulatedNoise, release
from hierdp.checking import (
    FAILS,
    HOLDS,
    OPEN,
    CheckResult,
    _check_seal,
    _check_tables,
)
from hierdp.checking.budget import check_budget
from hierdp.checking.manifest import check_manifest, check_warnings, differences
from hierdp.checking.noise import check_noise
from hierdp.checking.proofs import (
    _differs,
    _gap_too_large,
    _other_problem,
    _Proofs,
    _same,
    _wrong,
    check_proofs,
)
from hierdp.checking.rerun import Rerun
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import SizeTable, plain
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.measurements.measuring import Differs
from hierdp.measurements.redundant_sums import CountNoise, RedundantSums
from hierdp.mechanisms.registry import released_by
from hierdp.privacy.noise import Changes, miss_of, threshold
from hierdp.record import files, proofs, written
from hierdp.record.compare import compare
from hierdp.record.proofs import SavedStep
from hierdp.record.properties import broken
from hierdp.record.release import write_tables
from hierdp.record.replay import NotKept, Replay, SavedAnswer
from hierdp.record.step import Step
from models import HierarchyQIP, Isotonic, Tree

PEOPLE = pd.DataFrame({"s": list("aabb") * 3, "c": ["a1", "a2", "b1", "b2"] * 3, "g": list("kkllmm") * 2})
PEOPLE["who"] = np.arange(12) // 2
SEEN = {"regions_from_data": True}
SIZES = {"levels": ["s", "c"], "group": ["c", "g"], "max_size": 3, **SEEN, "groups_from_data": True}
TRIPS = {"axes": {"o": ["s", "c"], "d": ["c"]}, **SEEN}
KINDS = {
    "sizes": ("group-size", SIZES),
    "persons": ("group-size", {**SIZES, "person": "who", "rows_per_person": 2}),
    "trips": ("top-down", {**TRIPS, "delta": 1e-6}),
    "trips of persons": (
        "top-down",
        {**TRIPS, "delta": 1e-6, "bounded": False, "person": "who", "rows_per_person": 2},
    ),
    "kept": ("top-down", {**TRIPS, "delta": 1e-3, "method": "SH"}),
    "bins": ("clustering", {"axes": [("c", ["c"])], **SEEN, "method": "PHP"}),
    "tables": ("tabulation", {"levels": ["s", "c"], "attributes": {"g": list("klm")}, "delta": 1e-6, **SEEN}),
    "ranges": ("range-query", {"axes": [("c", ["s", "c"])], **SEEN, "method": "H_tree^c"}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function that gives, for each kind, the contents of a release and its folder."""

    @cache
    def of_kind(kind):
        mechanism, options = KINDS[kind]
        one = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(3), **options)
        folder = tmp_path_factory.mktemp("parts")
        manifest = json.loads(json.dumps(one.manifest()))
        if one.steps:
            proofs.write(one.steps, folder / files.PROOFS)
        write_tables(one, manifest, folder)
        seal.seal(folder)
        return written.ReleaseFolder(manifest, one.counts, dict(one.regions), one.measurements), folder

    return of_kind


def lines_of(read, folder):
    """The lines of a check except those for files and report; an error is a failure, as in `check`."""
    manifest, table, regions = read.manifest, read.table, read.regions
    checking = released_by(manifest["mechanism"]).checking
    parts = [
        lambda: check_manifest(table, manifest, regions, checking),
        lambda: check_budget(manifest),
        lambda: check_warnings(folder, manifest),
        lambda: check_proofs(folder, read, checking),
    ]
    found = []
    for part in parts:
        try:
            found += part()
        except InputError as error:
            found.append(CheckResult("error", FAILS, str(error)))
    return found


def failed(read, folder):
    return {line.check: line.why for line in lines_of(read, folder) if line.verdict == FAILS}


@pytest.mark.parametrize("kind", KINDS)
def test_unchanged_release_passes(made, kind):
    assert failed(*made(kind)) == {}


# --- the manifest ----------------------------------------------------------------------------------------


def within(*path, **changes):
    """Change entries of a part of the manifest."""

    def change(manifest):
        part = manifest
        for name in path:
            part = part[name]
        part.update(changes)

    return change


def less_delta(manifest):
    """Claim a little less δ than the threshold and the scale give."""
    (line,) = manifest["budget"]["spends"]
    changes = Changes(2, 2, 1, added=1)
    line["delta"] = miss_of(changes, line["scale"], threshold(changes, 1, 1e-3)) * (1 - 1e-6)
    manifest["budget"]["spent_delta"] = line["delta"]


def moved_loss(manifest):
    """Move loss from a level to the next, and change the scales to match."""
    first, second = manifest["budget"]["spends"][:2]
    for line, by in ((first, -0.01), (second, 0.01)):
        line["epsilon"] += by
        line["scale"] = line["sensitivity"] / line["epsilon"]


def no_times(manifest):
    """Claim that a choice was made zero times, and so cost nothing."""
    line = manifest["budget"]["spends"][0]
    line |= {"times": 0, "epsilon": 0.0}


def cheaper_choice(manifest):
    """Claim half the cost of a choice."""
    manifest["budget"]["spends"][0]["epsilon"] /= 2


def a_large_step(manifest):
    manifest["solved"].append({**manifest["solved"][-1], "step": "a large one", "variables": 10**9})


SPEND, LOSS, SUM, QUERIES = ("budget", "spends", 0), "budget: each loss", "budget: sum", "budget: queries"
MANIFESTS = {
    "a claim in words": ("sizes", within("holds", whole="yes"), "manifest"),
    "a claim withdrawn": ("sizes", within("holds", whole=False), "manifest"),
    "a claim that nobody makes": ("sizes", within("holds", private=True), "manifest"),
    "another total": ("sizes", within("settings", groups=7), "total"),
    "a loss a little less": ("sizes", within(*SPEND, epsilon=(1 - 1e-7) / 3), LOSS),
    "a loss a little more": ("sizes", within(*SPEND, epsilon=(1 + 1e-7) / 3), LOSS),
    "a choice made no times": ("bins", no_times, LOSS),
    "a choice for half": ("bins", cheaper_choice, LOSS),
    "loss moved to another level": ("sizes", moved_loss, QUERIES),
    "more spent than the budget": ("sizes", within("budget", epsilon=0.999), SUM),
    "a little less δ": ("kept", less_delta, QUERIES),
    "no warning": ("sizes", within(warning=None), "manifest"),
    "an empty warning": ("sizes", within(warning=""), "manifest"),
    "another warning": ("sizes", within(warning="all is well"), "manifest"),
    "one exact measurement": ("sizes", within(*SPEND, private=True), "privacy"),
    "other neighbours": ("sizes", within("budget", neighbouring_relation="nobody"), "manifest"),
    "fewer rows of a person": ("trips of persons", within("budget", "person", rows=1), "manifest"),
    "more rows of a person": ("trips of persons", within("budget", "person", rows=3), "manifest"),
    "rows of a person in place of one": (
        "persons", within("budget", "person", spends_are_for="one person"), "manifest"
    ),
    "errors not known": ("sizes", within(standard_errors="in the column standard_error"), "manifest"),
    "a caution for nothing": ("sizes", within(cautions=["beware"]), "manifest"),
    "a summary that is better": ("sizes", within("solved", 0, proved_optimal=False), "manifest"),
    "a summary that is worse": ("sizes", within(all_proved_optimal=False), "manifest"),
    "a step's objective": ("sizes", within("solved", -1, objective="0"), "certificates"),
    "a step's bound": ("sizes", within("solved", -1, bound="0"), "certificates"),
    "a larger step": ("sizes", within("solved", -1, variables=29), "certificates"),
    "a smaller step": ("sizes", within("solved", -1, variables=27), "certificates"),
    "a step of several problems": ("sizes", within("solved", -1, problems=2), "certificates"),
    "a step by another name": ("sizes", within("solved", -1, step="last"), "certificates"),
    "a step of another model": ("sizes", within("solved", -1, model="Isotonic"), "certificates"),
    "a step too few": ("sizes", lambda manifest: manifest["solved"].pop(), "certificates"),
    "a large step that nothing needs": ("sizes", a_large_step, "certificates"),
    "a window": ("sizes", within("settings", window=0), "certificates"),
    "a setting more": ("sizes", within("settings", backend="highs"), "table from steps"),
    "another setting": ("sizes", within("settings", last_size_means="any"), "table from steps"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_changed_manifest_is_caught(made, name):
    kind, change, caught_by = MANIFESTS[name]
    read, folder = made(kind)
    manifest = copy.deepcopy(read.manifest)
    change(manifest)
    assert manifest != read.manifest
    assert caught_by in failed(replace(read, manifest=manifest), folder)


def test_relations_with_a_common_prefix_differ(made):
    read, folder = made("sizes")
    manifest = copy.deepcopy(read.manifest)
    manifest["budget"]["neighbouring_relation"] += " of one region"
    assert "manifest" in failed(replace(read, manifest=manifest), folder)


# --- the table -------------------------------------------------------------------------------------------


def changed(table, row, column, by):
    if isinstance(table, SizeTable):
        counts = table.counts.copy()
        counts.flat[row] += by
        return replace(table, counts=counts)
    table = table.copy()
    table.loc[table.index[row], column] += by
    return table


def test_a_changed_table_is_caught(made):
    read, folder = made("sizes")
    lines = {
        (row, by): failed(replace(read, table=changed(read.table, row, "groups", by)), folder)
        for row in (0, -1)
        for by in (1, -1)
    }
    assert all({"consistent", "table from steps"} <= line.keys() for line in lines.values())
    assert all(("total" in line) == (row == 0) for (row, _), line in lines.items())
    least = changed(read.table, 0, "groups", -1 - read.table.counts[0, 0])
    assert "non-negative" in failed(replace(read, table=least), folder)
    ranges, folder = made("ranges")
    for by in (2e-4, -2e-4):  # more than the tolerance for sums of floats
        assert "consistent" in failed(replace(ranges, table=changed(ranges.table, -1, "count", by)), folder)


def test_a_region_that_is_not_listed(made):
    read, _ = made("sizes")
    table = read.table.frame()
    table = table.assign(region=table.region.replace("b", "x"))
    wrong = broken(table, read.manifest["settings"], read.regions)["consistent"]
    assert wrong == "level 1: there is no region 'x'"


def test_tables_made_again_must_be_the_same():
    table = pd.DataFrame({"name": ["a", "b"], "count": [1, 2]})
    compare(table, table.copy())
    for other in (table[:1], pd.concat([table, table]), table.astype({"count": float}), table[["name"]]):
        for pair in ((table, other), (other, table)):
            with pytest.raises(Differs):
                compare(*pair)


def test_differences_name_the_entry():
    due = {"a": 1, "b": {"c": [2.0, 3]}, "spends": [{"query": "sizes", "times": 1}]}
    same = {"a": 1, "b": {"c": [2.0, 3]}, "spends": [{"query": "sizes", "times": 1}]}
    assert not list(differences(same, due))
    for changed_entry, words in (
        ({"a": 2}, "'a' is 2, but 1 follows from the rest of the release"),
        ({"a": True}, "'a' is True, but 1 follows from the rest of the release"),
        ({"b": 3}, "'b' is not a list of entries by name"),
        ({"b": {}}, "'b' lacks 'c'"),
        ({"b": {"c": [2.0, 3], "d": 1}}, "'b' has 'd', which no such release has"),
        ({"b": {"c": [2.0]}}, "'b', 'c' is [2.0], but [2.0, 3] follows from the rest of the release"),
        (
            {"b": {"c": [2.0 + 1e-15, 3]}},
            "'b', 'c' of 1 is 2.000000000000001, but 2.0 follows from the rest of the release",
        ),
        ({"spends": [{"query": "sizes"}]}, "'spends' of 'sizes' lacks 'times'"),
    ):
        assert list(differences({**same, **changed_entry}, due)) == [words]
    assert not list(differences({"a": 1.0 + 1e-12}, {"a": 1.0}, close=1e-9))


def test_the_finest_table_is_the_last_level(made, tmp_path):
    read, folder = made("sizes")
    (line,) = _check_tables(folder, read, 10**9)
    assert line.verdict == HOLDS
    write_tables_again = changed(plain(next(laid_out(read.table).finest(read.regions))), 0, "groups", 1)
    for name in (f"{files.TABLE}.csv", f"{files.FINEST}.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    write_tables_again.to_parquet(tmp_path / f"{files.FINEST}.parquet", index=False)
    (line,) = _check_tables(tmp_path, read, 10**9)
    assert line.verdict == FAILS


def test_every_file_is_sealed_and_no_other_is_there(made, tmp_path):
    _, folder = made("sizes")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sums = tmp_path / seal.SUMS
    fingerprint = seal.digest(sums)
    assert [line.verdict for line in _check_seal(tmp_path, fingerprint)] == [HOLDS, HOLDS]
    other = fingerprint[:-1] + ("0" if fingerprint[-1] != "0" else "1")
    assert [line.verdict for line in _check_seal(tmp_path, other)] == [HOLDS, FAILS]
    lines = sums.read_text().splitlines(True)
    sums.write_text("".join(line for line in lines if not line.endswith(f"{files.REGIONS}\n")))
    assert [line.verdict for line in _check_seal(tmp_path, None)] == [FAILS, OPEN]
    sums.write_text("".join(lines))
    (tmp_path / "more.txt").write_text("")
    assert [line.verdict for line in _check_seal(tmp_path, fingerprint)] == [FAILS, HOLDS]


def test_a_simulated_release_has_its_file_and_no_other_has(made, tmp_path):
    read, folder = made("sizes")
    assert [line.verdict for line in check_warnings(folder, read.manifest)] == [HOLDS]
    (line,) = check_warnings(tmp_path, read.manifest)
    assert line.verdict == FAILS
    (line,) = check_warnings(folder, {**read.manifest, "warning": None})
    assert line.verdict == FAILS


# --- the steps -------------------------------------------------------------------------------------------


def with_steps(read, folder, steps, lines):
    """A release with these steps in proofs.zip, and these lines about them in the manifest."""
    save(steps, folder)
    (folder / files.NOT_PRIVATE).write_text("")
    proved = all(line["proved_optimal"] for line in lines)
    return replace(read, manifest={**read.manifest, "solved": lines, "all_proved_optimal": proved})


def solved(read, folder):
    """The steps of a release whose measurements are in memory."""
    steps = []

    def prove(saved, model, _):
        steps.append(Solved(saved.name, model, saved.x, saved.witness))
        return model.certificate(saved.x, saved.witness)

    if read.manifest["solved"]:
        checking = released_by(read.manifest["mechanism"]).checking
        rerun = Rerun(checking, read)
        rerun(Replay(proofs.read(folder / files.PROOFS), prove))
    return steps


def test_changed_steps_are_caught(made, tmp_path):
    read, folder = made("sizes")
    steps, lines = solved(read, folder), read.manifest["solved"]
    assert failed(with_steps(read, tmp_path, steps, lines), tmp_path) == {}
    for at in range(len(steps)):
        less = steps[:at] + steps[at + 1 :]
        assert "certificates" in failed(with_steps(read, tmp_path, less, lines), tmp_path)
        less = less, lines[:at] + lines[at + 1 :]
        assert "table from steps" in failed(with_steps(read, tmp_path, *less), tmp_path)
    more = [*steps, steps[0]]
    assert "certificates" in failed(with_steps(read, tmp_path, more, lines), tmp_path)
    assert "table from steps" in failed(with_steps(read, tmp_path, more, [*lines, lines[0]]), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_the_table_is_made_without_is_caught(made, tmp_path, kind):
    """It is proved and listed in the manifest: only the repeated post-processing shows that it is foreign."""
    read, folder = made(kind)
    lines = read.manifest["solved"]
    steps = solved(read, folder)
    more = Solved("one more", Isotonic([1, 2], integer=True), np.array([1, 2]))
    line = {"step": "one more", "model": "Isotonic", "variables": 2, "problems": 1}
    line |= {"objective": "0", "bound": "0", "proved_optimal": True, "seconds": 0.0}
    other = with_steps(read, tmp_path, [*steps, more], [*lines, line])
    assert failed(other, tmp_path) == {
        "table from steps": "step 'one more' is not part of the post-processing"
    }
    (stated,) = [each for each in lines_of(other, tmp_path) if each.check == "certificates"]
    assert (stated.verdict, "; the mechanism did not ask for 1 more" in stated.why) == (OPEN, True)


def test_suboptimal_answer_is_detected_whatever_is_claimed(made, tmp_path):
    """Groups are exchanged between regions and sizes, so that all sums are unchanged."""
    read, folder = made("sizes")
    steps, lines = solved(read, folder), read.manifest["solved"]
    kept = steps[-1]
    found = 0
    for size in range(3):
        x = np.array(kept.x)
        x[1:3, size : size + 2] += [[1, -1], [-1, 1]]
        x[3:7:2, size : size + 2] += [[1, -1], [-1, 1]]
        proof = kept.model.certificate(x)
        if proof.bound is None or proof.optimal:
            continue
        found += 1
        for proved in (False, True):
            stated = {"objective": str(proof.objective), "bound": str(proof.bound), "proved_optimal": proved}
            other = [*steps[:-1], Solved(kept.name, kept.model, x)]
            again = with_steps(read, tmp_path, other, [*lines[:-1], {**lines[-1], **stated}])
            assert "certificates" in failed(again, tmp_path)
    assert found


def test_summary_must_match_the_steps(made):
    """Both directions are detected, whatever else is wrong."""
    read, folder = made("sizes")
    for said, of_step in ((True, False), (False, True)):
        manifest = copy.deepcopy(read.manifest)
        manifest["all_proved_optimal"], manifest["solved"][0]["proved_optimal"] = said, of_step
        why = [line.why for line in lines_of(replace(read, manifest=manifest), folder)]
        assert f"'all_proved_optimal' is {said}, but {of_step} follows from the rest of the release" in why


def one(model, x, **line):
    """A saved step and its line, which agree except for the changes."""
    proof, x = model.certificate(x), np.asarray(x)
    stated = {
        "step": "it", "model": type(model).__name__, "variables": x.size, "objective": str(proof.objective),
        "bound": str(proof.bound), "proved_optimal": bool(proof), **line,
    }  # fmt: skip
    return SavedStep("it", x), model, (), proof, stated


def test_a_gap_of_one_is_a_fault_of_whole_answers():
    *saved, proof, line = one(Isotonic([0, 0], p=1, integer=True), [0, 1])
    assert (proof.gap, _gap_too_large(saved[1], proof)) == (1, True)
    assert "may cost up to 1 more than the optimum" in _wrong(*saved, proof, line, optimal=True)
    assert _wrong(*saved, proof, line, optimal=False) == ""
    assert "proved_optimal is True" in _wrong(*saved, proof, {**line, "proved_optimal": True}, optimal=False)
    *saved, proof, line = one(Isotonic([0, 0], p=1, integer=True), [0, 0], proved_optimal=False)
    assert "proved_optimal is False" in _wrong(*saved, proof, line, optimal=False)


def test_bounds_and_objectives_in_floats_are_compared():
    for changes in ({"bound": "0.26"}, {"objective": "0.5000001"}, {"objective": "nothing"}):
        *saved, proof, line = one(Isotonic([0.5, -0.5]), [0.0, 0.0], **changes)
        assert (proof.optimal, proof.objective) == (True, 0.5)
        assert _wrong(*saved, proof, line, optimal=True)
    assert not _wrong(*one(Isotonic([0.5, -0.5]), [0.0, 0.0]), optimal=True)


def test_whole_numbers_are_compared_exactly():
    assert _same("100000000000000000000", "100000000000000000000")
    assert not _same("100000000000000000000", "100000000000000000001")
    assert _same("1.0000000000000001e+20", "1e+20")
    assert not _same("0.1", "0.2")


def test_a_step_has_the_name_size_model_and_number_of_problems_of_its_line():
    model = Isotonic([1, 2, 3, 4], p=2, lower=0, upper=9, integer=True, offsets=[0, 2, 4])
    saved, _, _, _, line = one(model, [1, 2, 3, 4], problems=2)
    assert _differs(saved, line) == _other_problem(saved, model, ("a", "b"), line) == []
    for change in ({"step": "that"}, {"variables": 3}, {"variables": 5}):
        assert _differs(saved, {**line, **change})
    for change in ({"problems": 1}, {"problems": 3}, {"model": "Chebyshev"}):
        assert _other_problem(saved, model, ("a", "b"), {**line, **change})


def test_a_saved_answer_is_taken_under_its_own_name_only():
    model, x = HierarchyQIP(Tree([[0, 0]]), [[4], [2], [2]], total=4), np.array([[4], [2], [2]])

    def replay():
        return Replay(iter([SavedStep("it", x)]))

    step = replay().solve("it", model, ("a", "b"))
    assert (step.model, step.problems, step.solution.objective) == (model, ("a", "b"), 0)
    assert step.solution.x.tolist() == x.tolist()
    going_on = replay()
    with pytest.raises(NotKept):
        going_on.solve("that", model)
    assert going_on.solve("it", model).solution.x.tolist() == x.tolist()  # it was not taken
    going_on.end()
    with pytest.raises(NotKept):
        going_on.solve("it", model)
    with pytest.raises(Differs):
        replay().end()


def test_an_answer_is_proved_on_the_given_problem():
    """The mechanism has it only if it is proved, and nothing was wrong before."""
    model, x = HierarchyQIP(Tree([[0, 0]]), [[4], [2], [2]], total=4), np.array([[4], [2], [2]])
    saved, *_, line = one(model, x)

    def proving(steps, lines):
        each = _Proofs(iter(steps), lines, True)
        return each, Replay(iter(each), each.prove)

    each, replay = proving([saved], [line])
    assert replay.solve("it", model).solution.objective == 0
    assert (each.wrong, each.result().verdict) == ([], HOLDS)
    for other in (replace(model, total=5), replace(model, noisy=[[4], [1], [3]]), replace(model, window=0)):
        if other.certificate(x) and other.objective(x) == 0:
            continue
        each, replay = proving([saved], [line])
        with pytest.raises(Differs):
            replay.solve("it", other)
        assert each.wrong
    each, replay = proving([saved, saved], [{**line, "objective": "1"}, line])
    for _ in range(2):
        with pytest.raises(Differs, match="step 'it' or one before it is wrong"):
            replay.solve("it", model)
    assert each.wrong == ["step 'it': its objective is 0, the manifest says 1"]


@pytest.mark.parametrize(
    "x",
    [
        np.array([[4, 2, 2]]),
        np.array([4, 2, 2]),
        np.array([["4"], ["2"], ["2"]]),
        np.array([[4.0], [np.nan], [2.0]]),
        np.array([[4], [None], [2]], dtype=object),
        np.array([[4], [3], [1 + 2**62]], dtype=np.uint64),
        np.array([[True], [True], [True]]),
    ],
    ids=str,
)
def test_an_answer_of_another_shape_or_type_is_wrong_and_no_error(x):
    model = HierarchyQIP(Tree([[0, 0]]), [[4], [2], [2]], total=4)
    *_, line = one(model, np.array([[4], [2], [2]]))
    for witness in (None, {"prices": x}, {"": "text", "prices": np.array([])}):
        each = _Proofs(iter([SavedStep("it", x, witness)]), [line], True)
        with pytest.raises(Differs):
            Replay(iter(each), each.prove).solve("it", model)
        assert each.wrong


def test_proofs_hold_the_steps_of_the_manifest_and_nothing_else(made, tmp_path):
    _, folder = made("sizes")
    steps, path = list(proofs.read(folder / files.PROOFS)), tmp_path / files.PROOFS
    stated = [{"step": step.name, "variables": step.x.size} for step in steps]
    assert len(list(proofs.read(folder / files.PROOFS, stated))) == len(steps)
    with pytest.raises(ValueError, match=r"than the manifest|longer than the names"):
        list(proofs.read(folder / files.PROOFS, stated[:-1]))
    path.write_bytes((folder / files.PROOFS).read_bytes())
    with proofs.ZipFile(path, "a") as file:
        file.writestr("more.txt", "")
    with pytest.raises(ValueError, match="contains files that are not steps"):
        list(proofs.read(path, stated))


def test_large_and_small_arrays_are_saved_and_read_alike(tmp_path, monkeypatch):
    """Small ones without NumPy's own writer and reader of files."""
    rng, path = np.random.default_rng(0), tmp_path / files.PROOFS
    arrays = [np.zeros((3, 0)), rng.random((2, 3)), np.asfortranarray(rng.random((4, 3))), np.arange(5)]
    steps = [Step(f"{k}", None, SavedAnswer(x, 0, witness={"p": x}), ()) for k, x in enumerate(arrays)]
    read = {}
    for most in (0, 10**9):
        monkeypatch.setattr(proofs, "LARGE", most)
        proofs.write(steps, path)
        for large in (0, 10**9):
            monkeypatch.setattr(proofs, "LARGE", large)
            read[most, large] = [(step.name, step.x, step.witness["p"]) for step in proofs.read(path)]
    for found in read.values():
        assert [name for name, *_ in found] == ["0", "1", "2", "3"]
        for (_, *both), given in zip(found, arrays, strict=True):
            assert all(x.dtype == given.dtype and x.flags.writeable for x in both)
            assert all(np.array_equal(x, given) and x.shape == given.shape for x in both)


def test_proofs_of_another_format_are_not_read(made, tmp_path):
    read, folder = made("sizes")
    with proofs.ZipFile(folder / files.PROOFS) as file:
        members = {name: file.read(name) for name in file.namelist()}
    about = json.loads(members[proofs.NAMES])
    for names in (about["steps"], {**about, "format": proofs.FORMAT + 1}):
        with proofs.ZipFile(tmp_path / files.PROOFS, "w", proofs.ZIP_DEFLATED) as file:
            for name, content in {**members, proofs.NAMES: json.dumps(names)}.items():
                file.writestr(name, content)
        (tmp_path / files.NOT_PRIVATE).write_text("")
        assert "the format 1" in failed(read, tmp_path)["certificates"]


# --- sums that were measured twice -----------------------------------------------------------------------


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("chosen_of", [None, 400])
def test_noise_of_another_scale_than_claimed_is_noticed(gaussian, chosen_of):
    """Sums of three noisy counts minus a noisy one, with half, all or twice the claimed noise."""
    rng = np.random.default_rng(0)
    found = {}
    for factor in (0.5, 1.0, 2.0):
        noise = rng.normal if gaussian else rng.laplace
        off = np.rint(noise(0, 8 * factor, (400, 4))).sum(axis=1)
        law = CountNoise(gaussian, 8.0)
        twice = RedundantSums("counts", off, law, np.full(400, 3), law, chosen_of)
        (line,) = check_noise([twice])
        found[factor] = line.verdict, "smaller" in line.why, "larger" in line.why
    assert found == {0.5: (FAILS, True, False), 1.0: (HOLDS, False, False), 2.0: (FAILS, False, True)}


def test_missing_noise_in_one_level_is_detected():
    law = CountNoise(False, 8.0)
    honest = np.rint(np.random.default_rng(1).laplace(0, 8, (300, 4))).sum(axis=1)
    fine, none = (RedundantSums("it", off, law, np.full(300, 3), law) for off in (honest, np.zeros(300)))
    assert [line.verdict for line in check_noise([fine, fine])] == [HOLDS]
    assert [line.verdict for line in check_noise([fine, none, fine])] == [FAILS]
    assert list(check_noise([])) == []


def test_larger_noise_than_a_tiny_claimed_scale_is_detected():
    """If whole noise is nearly always 0, moments must not be used where they are infinite."""
    law = CountNoise(False, 0.1)
    for off, verdict in ((0.0, HOLDS), (5.0, FAILS)):
        twice = RedundantSums("it", np.full(50, off), law, np.full(50, 3), law)
        assert [line.verdict for line in check_noise([twice])] == [verdict]


def test_selected_parents_do_not_count_as_evidence():
    """As if only parents whose noise is 0 had been chosen, so that only the children's noise remains."""
    below = np.rint(np.random.default_rng(2).laplace(0, 8, (400, 3))).sum(axis=1)
    twice = RedundantSums(
        "it", below, CountNoise(False, 8.0), np.full(400, 3), CountNoise(False, 50.0), chosen_of=4000
    )
    assert [line.verdict for line in check_noise([twice])] == [HOLDS]
    (line,) = check_noise([twice._replace(chosen_of=None)])
    assert (line.verdict, "smaller" in line.why) == (FAILS, True)
