"""hierdp check passes every release as written, and names what was changed in others."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from changing import budget, cell, change_manifest, claim, entry, file, manifest, setting, spend
from click.testing import CliRunner
from doubles import hierarchy
from steps import save, solved_in

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, OPEN, UNCLAIMED, check
from hierdp.checking.budget import check_budget
from hierdp.cli import main
from hierdp.counts.rows import Rows
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms.clustering import METHODS as CLUSTER_METHODS
from hierdp.mechanisms.count_of_counts.plan import MERGES
from hierdp.mechanisms.group_size.post_processing import METHODS as SIZE_METHODS
from hierdp.mechanisms.range_query.plan import METHODS as RANGE_METHODS
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.mechanisms.tabulation.options import METHODS as TABLE_METHODS
from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.top_down.post_processing import METHODS as LEVEL_METHODS
from hierdp.privacy import conversion, threshold
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import deviation_of
from hierdp.record import files, proofs
from hierdp.record.spool import Spool, Steps
from hierdp.record.step import Step
from hierdp.tables import flows
from hierdp.versions import version_of
from models import Chebyshev
from solvers import solve
from tests.marks import quick

PEOPLE = pd.DataFrame(
    {
        "s": ["01", "01", "01", "02", "02", 'é, "q"', "02"] * 6,
        "c": ["01a", "01b", "01b", "02a", "02a", "z\nz", "02b"] * 6,
        "g": [f"{i % 11:02}" for i in range(42)],
        "a": ["x", "y", "z"] * 14,
        "b": ["u", "v"] * 21,
    }
)
SIZES = {"levels": ["s", "c"], "group": ["c", "g"], "regions_from_data": True, "groups_from_data": True}
TABLES = {
    **{"levels": ["s", "c"], "attributes": ["a", "b"]},
    **{"regions_from_data": True, "attributes_from_data": True, "invariants": ["s:total"]},
}
FLOWS = {"axes": {"o": ["s", "c"], "d": ["c"]}, "regions_from_data": True}


def released(mechanism, folder, noise=None, **options):
    made = release(PEOPLE, mechanism, epsilon=1, noise=noise, **options)
    made.write(folder, overwrite=True, title="Of <people>", note="A note")
    return folder


def verdicts(folder, fingerprint=None):
    return {line.check: line.verdict for line in check(folder, fingerprint)}


def failed(folder):
    return {line.check for line in check(folder) if line.verdict == FAILS}


def line_of(folder, name, **given):
    (line,) = [line for line in check(folder, **given) if line.check == name]
    return line


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check") / "sizes"
    return released("group-size", folder, SimulatedNoise(5), **SIZES, max_size=4)


# --- releases as written ---------------------------------------------------------------------------------

HIDDEN = {"groups_from_data": False}
GROUP_OPTIONS = [
    *({"method": name} for name in ("Hc", "Hc2", "Hg", "Hg1", "naive", "Hc x Hg x Hc")),
    *({"method": f"bottom-up {name}"} for name in ("Hc", "Hg", "naive")),
    *({"merge": name} for name in MERGES),
    *({"merge": name, **HIDDEN, "group_budget": 0.3} for name in MERGES),
    {"method": "bottom-up", **HIDDEN, "group_budget": 0.5, "size_budget": 0.2},
    {"method": "Hg", "size_budget": 0.1, "shares": [1, 2, 3]},
    {"method": "Hc", **HIDDEN, "group_budget": 0.1, "smallest": 1},
]
ALL = [
    *(("group-size", {**SIZES, "max_size": 3, "method": name}) for name in SIZE_METHODS if name != "M_dp^OP"),
    *(("top-down", {**FLOWS, "delta": 1e-6, "method": name}) for name in LEVEL_METHODS),
    ("top-down", {**FLOWS, "delta": 1e-6, "bounded": False, "trips": 2}),
    *(
        ("count-of-counts", {**SIZES, **({} if "size_budget" in options else {"max_size": 9}), **options})
        for options in GROUP_OPTIONS
    ),
    *(
        ("range-query", {"axes": [("c", ["c"])], "regions_from_data": True, "method": name})
        for name in RANGE_METHODS
        if "tree" not in name
    ),
    *(
        (
            "range-query",
            {"axes": [("c", ["s", "c"])], "regions_from_data": True, "method": "H_tree^c", "repair": name},
        )
        for name in REPAIRS
    ),
    ("range-query", {"axes": [("c", ["s", "c"])], "regions_from_data": True, "method": "H_tree"}),
    ("range-query", {"axes": [("s", ["s"]), ("c", ["c"])], "regions_from_data": True, "method": "Quadtree"}),
    ("range-query", {"axes": [("s", ["s"]), ("c", ["c"])], "regions_from_data": True, "method": "Wavelet"}),
    *(
        ("clustering", {"axes": [("s", ["s"]), ("c", ["c"])], "regions_from_data": True, "method": name})
        for name in CLUSTER_METHODS
    ),
    *(("tabulation", {**TABLES, "delta": 1e-6, "method": name}) for name in TABLE_METHODS),
]


@pytest.mark.parametrize(
    ("noise", "mechanism", "options"),
    [*quick([(None, *one) for one in ALL], every=6), *quick([(1, *one) for one in ALL[::6]], first=0)],
    ids=lambda value: str(value)[:60],
)
def test_every_release_holds(tmp_path, noise, mechanism, options):
    folder = released(mechanism, tmp_path / "out", noise and SimulatedNoise(noise), **options)
    found = verdicts(folder)
    assert FAILS not in found.values(), [line for line in check(folder) if line.verdict == FAILS]
    for name in ("files", "tables", "budget: each loss", "budget: sum"):
        assert found[name] == HOLDS
    # The prices of an integer program need not prove its optimum: it depends on the noise.
    assert found["certificates"] == HOLDS or (options.get("method"), found["certificates"]) == ("Joint", OPEN)
    assert found["privacy"] == (OPEN if noise else HOLDS)
    assert found["budget: queries"] == found["table from steps"] == found["report"] == HOLDS
    consistent = found["consistent"]
    if mechanism in ("top-down", "count-of-counts") or options.get("method") in ("M_c^dp", "M_H^dp"):
        assert consistent == HOLDS
    if mechanism == "group-size":
        assert (found["whole numbers"], found["non-negative"]) == (HOLDS, HOLDS)
        assert found["total"] == HOLDS or options["method"].endswith("^r")


def test_unclaimed_properties_are_not_failures(tmp_path):
    options = {**FLOWS, "delta": 1e-6, "method": "VanillaGauss"}
    found = verdicts(released("top-down", tmp_path / "out", SimulatedNoise(3), **options))
    assert (found["non-negative"], found["total"], found["consistent"]) == (UNCLAIMED, UNCLAIMED, HOLDS)


def test_without_proofs(tmp_path):
    made = release(PEOPLE, "group-size", epsilon=1, **SIZES, max_size=3)
    folder = made.write(tmp_path / "out", proofs=False, report=False)
    assert not (folder / files.PROOFS).exists()
    found = verdicts(folder)
    assert found["certificates"] == found["noise"] == OPEN
    assert FAILS not in found.values()


@pytest.mark.parametrize(("name", "line"), [(files.PROOFS, "certificates"), (files.REPORT, "report")])
def test_a_file_that_is_missing_and_was_not_left_out_is_a_failure_by_name(sizes, tmp_path, name, line):
    folder = tmp_path / "less"
    shutil.copytree(sizes, folder)
    (folder / name).unlink()
    seal.seal(folder)
    failed = [(found.check, name in found.why) for found in check(folder) if found.verdict == FAILS]
    assert failed == [(line, True)]
    change_manifest(folder, lambda manifest: manifest.update(left_out=[name]))
    seal.seal(folder)
    found = verdicts(folder)
    assert "noise" in found
    assert [check for check, verdict in found.items() if verdict == FAILS] == []


@pytest.mark.parametrize("most", quick([0, 4, 8], every=3))
@pytest.mark.parametrize("merge", MERGES)
def test_large_steps_are_saved_and_checked(tmp_path, monkeypatch, merge, most):
    monkeypatch.setattr(Steps, "MOST", most)
    options = {**SIZES, "groups_from_data": False, "group_budget": 0.3}
    made = release(PEOPLE, "count-of-counts", epsilon=1, **options, max_size=9, merge=merge)
    found = verdicts(made.write(tmp_path / "out", report=False))
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == HOLDS


def test_a_step_that_is_not_saved_is_missing_however_large(tmp_path):
    folder = release(PEOPLE, "group-size", epsilon=1, **SIZES, max_size=3).write(
        tmp_path / "out", report=False
    )
    line = {"step": "a large one", "model": "Isotonic", "variables": 10**9, "objective": "1", "bound": "1"}
    line |= {"proved_optimal": True, "seconds": 0.0}
    change_manifest(folder, lambda manifest: manifest["solved"].append(line))
    seal.seal(folder)
    (found,) = [line for line in check(folder) if line.check == "certificates"]
    assert (found.verdict, found.why) == (FAILS, "proofs.zip lacks the steps 'a large one'")


# --- changed releases ------------------------------------------------------------------------------------


def change_parquet_alone(folder):
    table = pd.read_parquet(folder / "released.parquet")
    table.iloc[0, -1] += 1
    table.to_parquet(folder / "released.parquet", index=False)


def change_finest_alone(folder):
    table = pd.read_parquet(folder / "finest.parquet")
    table.iloc[0, -1] += 1
    files.write_parts([table], folder, "finest")


def swap_regions(folder):
    """Exchange two siblings' counts in all files; all sums are unchanged."""
    table = pd.read_parquet(folder / "released.parquet")
    last = table["level"] == table["level"].max()
    names = {"02a": "02b", "02b": "02a"}
    for column in ("region",) if "region" in table else ("o", "d"):
        table.loc[last, column] = table.loc[last, column].replace(names)
    files.write_parts([table], folder, files.TABLE)
    last = Rows(table).finest(files.read_regions_of(folder / files.REGIONS))
    files.write_parts(last, folder, files.FINEST)


def change_csv(folder):
    path = folder / "released.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n", 1))


def change_answer(folder, at=-1, both=False):
    """Replace an answer by the optimum for other noisy counts; with `both`, also its cost in the manifest."""
    steps = solved_in(folder)
    kept = steps[at]
    for turn in range(1, 9):
        name = next(name for name in ("noisy", "values") if hasattr(kept.model, name))
        other = solve(replace(kept.model, **{name: np.roll(getattr(kept.model, name), turn, axis=0)}))
        if not np.array_equal(other.x, kept.x):
            break
    else:
        raise AssertionError("another seed: no turn of the noisy counts changes the answer")
    steps[at] = replace(kept, x=other.x, witness=other.witness)
    save(steps, folder)
    if both:

        def change(manifest):
            line = manifest["solved"][at]
            line["objective"], line["bound"] = str(other.objective), str(other.bound)

        change_manifest(folder, change)


def swap_steps(folder):
    steps = solved_in(folder)
    steps[0], steps[1] = steps[1], steps[0]
    save(steps, folder)


def rename_region(folder):
    path = folder / files.REGIONS
    path.write_bytes(path.read_bytes().replace(b"02b", b"02x"))


def cut_proofs(folder):
    path = folder / files.PROOFS
    path.write_bytes(path.read_bytes()[:-50])


def other_columns(folder):
    pd.DataFrame({"a": [1]}).to_parquet(folder / "released.parquet")


SIZE_CHANGES = {
    "one cell": (cell(), {"consistent", "table from steps"}),
    "two regions swapped": (swap_regions, {"table from steps"}),
    "one cell at the top": (cell(row=0), {"consistent", "total", "table from steps"}),
    "a cell below zero": (cell(by=-100), {"consistent", "non-negative", "table from steps"}),
    "the Parquet file": (change_parquet_alone, {"tables", "consistent", "total", "table from steps"}),
    "the finest table": (change_finest_alone, {"tables"}),
    "the CSV file": (change_csv, {"tables"}),
    "a region's name": (rename_region, {"tables"}),
    "a spend's price": (spend(epsilon=0.1), {"budget: each loss", "manifest"}),
    "a spend's scale": (spend(scale=1.0), {"budget: each loss", "manifest"}),
    "a spend's price and scale": (spend(epsilon=2.0, scale=0.5), {"manifest"}),
    "a spend's deviation": (spend(standard_deviation=0.1), {"manifest"}),
    "a spend left out": (manifest(lambda m: m["budget"]["spends"].pop()), {"manifest"}),
    "the claim": (budget(epsilon=0.5), {"budget: sum"}),
    "the sum": (budget(spent=0.1), {"manifest"}),
    "the composition": (budget(composition="parallel"), {"manifest"}),
    "the flag": (budget(private=True), {"manifest"}),
    "a claim that does not apply": (claim(total=None), {"manifest"}),
    "an answer": (change_answer, {"certificates"}),
    "the first answer": (lambda folder: change_answer(folder, at=0), {"certificates"}),
    "an answer and its line": (lambda f: change_answer(f, both=True), {"certificates"}),
    "the first answer and its line": (lambda f: change_answer(f, 0, both=True), {"certificates"}),
    "two steps swapped": (swap_steps, {"certificates"}),
    "no manifest entry": (manifest(lambda m: m.pop("holds")), {"manifest"}),
    "a manifest of another kind": (file(files.MANIFEST, b"[]"), {"readable"}),
    "a manifest cut off": (file(files.MANIFEST, b"{"), {"readable"}),
    "a table cut off": (file("released.parquet", b"PAR1"), {"readable"}),
    "proofs cut off": (cut_proofs, {"certificates"}),
    "a proof of nonsense": (file(files.PROOFS, b"PK"), {"certificates"}),
    "the tables' columns": (other_columns, {"tables", "manifest"}),
}  # fmt: skip


@pytest.mark.parametrize("name", quick(SIZE_CHANGES, every=6))
def test_a_changed_release_is_caught_and_named(sizes, tmp_path, name):
    folder = shutil.copytree(sizes, tmp_path / "out")
    before = verdicts(folder)
    assert FAILS not in before.values()
    fingerprint = seal.digest(folder / seal.SUMS)
    change, caught_by = SIZE_CHANGES[name]
    change(folder)
    assert "files" in failed(folder)  # the digests fail in any case
    seal.seal(folder)
    found = failed(folder)
    assert "files" not in found
    assert found & caught_by == caught_by, (found, caught_by)
    assert verdicts(folder, fingerprint)["fingerprint"] == FAILS


LEVEL_CHANGES = {
    "one cell": (cell(), {"consistent", "table from steps"}),
    "two regions swapped": (swap_regions, {"table from steps"}),
    "the total": (setting(total=1), {"total"}),
    "a spend": (spend(rho=1e-5), {"budget: each loss", "manifest"}),
    "the delta": (budget(delta=1e-9), {"budget: sum"}),
    "the conversion": (budget(conversion=conversion.PAPERS), {"budget: sum"}),
    "no conversion": (manifest(lambda m: m["budget"].pop("conversion")), {"manifest"}),
    "a conversion of one's own": (budget(conversion="mine"), {"budget: sum"}),
    "the answer of the finest level": (lambda f: change_answer(f, both=True), {"certificates"}),
    "the answer of a level": (lambda f: change_answer(f, at=0, both=True), {"certificates"}),
    "an axis": (setting(axes={"o": ["root", "s", "c"]}), {"manifest"}),
}


@pytest.mark.parametrize("method", quick(["SH", "InfTDA", "VanillaGauss"], first=1))
def test_a_release_by_the_papers_conversion_and_threshold_passes(tmp_path, method):
    data = flows(PEOPLE, axes=FLOWS["axes"])
    rules = {"conversion": conversion.PAPERS, "rule": threshold.PAPERS}
    made = top_down(data, 1.0, 1e-6, SimulatedNoise(5), method, **rules)
    folder = made.taking_as_public(regions="a list").write(tmp_path / "out")
    found = {line.check: line for line in check(folder)}
    assert FAILS not in {line.verdict for line in found.values()}
    name = {"SH": "threshold"}.get(method, "conversion")
    assert {"SH": threshold.PAPERS}.get(method, conversion.PAPERS) in found["budget: sum"].why
    change_manifest(folder, lambda manifest: manifest["budget"].pop(name))
    assert "manifest" in failed(folder)


def change_merging(folder, name):
    """Replace an answer by the best one for other estimates, and its cost in the manifest."""
    steps = solved_in(folder)
    at = [kept.name for kept in steps].index(name)
    model = steps[at].model
    other = solve(replace(model, estimates=np.asarray(model.estimates) + 1))
    steps[at] = replace(steps[at], x=other.x, witness=other.witness)
    save(steps, folder)
    line = {"objective": str(other.objective), "bound": str(other.bound)}
    change_manifest(folder, lambda manifest: manifest["solved"][at].update(line))


def leave_out_a_matching(folder, name="matching: groups of 02 with those below"):
    steps = solved_in(folder)
    at = [kept.name for kept in steps].index(name)
    del steps[at]
    save(steps, folder)
    change_manifest(folder, lambda manifest: manifest["solved"].pop(at))


COUNT_CHANGES = {
    "one cell": (cell(), {"consistent", "table from steps"}),
    "two regions swapped": (swap_regions, {"table from steps"}),
    "the last merging": (lambda f: change_merging(f, "merging: sizes at level 2"), {"certificates"}),
    "the merging before it": (lambda f: change_merging(f, "merging: sizes at level 1"), {"certificates"}),
    "a matching less": (leave_out_a_matching, {"table from steps"}),
}  # fmt: skip


AT_ONCE = {f"at once, {row}": (cell(row=row), {"consistent", "table from steps"}) for row in (0, -1)}
KINDS = {
    "top-down": ("top-down", {**FLOWS, "delta": 1e-6}, LEVEL_CHANGES),
    "count-of-counts": ("count-of-counts", {**SIZES, "max_size": 9}, COUNT_CHANGES),
    "at once": ("count-of-counts", {**SIZES, "max_size": 9, "merge": "at once"}, AT_ONCE),
}
OTHER_CHANGES = [case for kind in KINDS for case in quick([(kind, name) for name in KINDS[kind][2]], every=3)]


@pytest.mark.parametrize(("kind", "name"), OTHER_CHANGES)
def test_changes_of_other_mechanisms_are_caught_and_named(tmp_path, kind, name):
    mechanism, options, changes = KINDS[kind]
    folder = released(mechanism, tmp_path / "out", SimulatedNoise(5), **options)
    assert FAILS not in verdicts(folder).values()
    change, caught_by = changes[name]
    change(folder)
    seal.seal(folder)
    assert failed(folder) >= caught_by


def test_files_missing_and_added(sizes, tmp_path):
    folder = shutil.copytree(sizes, tmp_path / "out")
    (folder / "finest.csv").unlink()
    (folder / "more.txt").write_text("")
    why = next(line.why for line in check(folder) if line.check == "files")
    assert why == "finest.csv is missing; more.txt was added"
    (folder / seal.SUMS).unlink()
    assert "files" in failed(folder)
    (folder / files.MANIFEST).unlink()
    with pytest.raises(InputError, match=r"is not a release: it has no manifest\.json"):
        check(folder)
    with pytest.raises(InputError, match="there is no folder"):
        check(tmp_path / "nowhere")


def report(change):
    """Change the report's text."""

    def changed(folder):
        path = folder / files.REPORT
        text = change(path.read_text(encoding="utf-8"))
        assert text != path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")

    return changed


REPORT_CHANGES = {
    "another report": report(lambda _: "<h1>All is well</h1>"),
    "nothing": report(lambda _: ""),
    "no warning": report(lambda text: re.sub('<p class="warning">.*?</p>', "", text)),
    "another title": report(lambda text: text.replace("Of &lt;people&gt;", "Of all people")),
    "a point moved": report(lambda text: re.sub(r'd="M\d', 'd="M9', text)),
    "a byte more": report(lambda text: text + "\n"),
    "other line ends": report(lambda text: text.replace("\n", "\r\n")),
    "the manifest's title": entry(title="Of others"),
    "the manifest's note": entry(note=None),
    "a note that is no text": entry(note=["A note"]),
    "no title": manifest(lambda m: m.pop("title")),
    "when it was made": entry(created="2020-01-01T00:00:00+00:00"),
    "where regions are from": entry(taken_as_public={"regions": "the census"}),
    "words that are none": entry(taken_as_public={"regions": 7}),
    "a version": manifest(lambda m: m["versions"].update(numpy="0.1")),
}  # fmt: skip


@pytest.mark.parametrize("name", quick(REPORT_CHANGES, every=3))
def test_a_report_that_differs_from_the_release_is_detected(sizes, tmp_path, name):
    folder = shutil.copytree(sizes, tmp_path / "out")
    REPORT_CHANGES[name](folder)
    seal.seal(folder)
    assert "report" in failed(folder)


def test_a_report_of_another_version_is_not_compared(sizes, tmp_path):
    folder = shutil.copytree(sizes, tmp_path / "out")
    change_manifest(folder, lambda m: m["versions"].update(hierdp="0.0.1"))
    REPORT_CHANGES["another report"](folder)
    seal.seal(folder)
    (line,) = (line for line in check(folder) if line.check == "report")
    assert (line.verdict, line.why) == (
        OPEN,
        f"not checked: written by hierdp 0.0.1, this is {version_of('hierdp')}",
    )
    assert FAILS not in verdicts(folder).values()
    (folder / files.REPORT).unlink()
    change_manifest(folder, lambda m: m.update(left_out=[files.REPORT]))
    seal.seal(folder)
    assert "report" not in verdicts(folder)


def test_a_name_in_the_sums_reaches_no_other_folder(sizes, tmp_path):
    folder = shutil.copytree(sizes, tmp_path / "out")
    with (folder / seal.SUMS).open("a") as sums:
        sums.write(f"{seal.digest(folder / files.MANIFEST)}  ../out/manifest.json\n")
        sums.write("0000  ../secret\n")
    (tmp_path / "secret").write_text("of somebody")
    why = next(line.why for line in check(folder) if line.check == "files")
    assert why == "../secret is missing"


@pytest.mark.parametrize("wrong", ["", " ", "3f2a", "0" * 63, "0" * 65, "x" * 64])
def test_an_invalid_fingerprint_is_refused(sizes, wrong):
    with pytest.raises(InputError, match="not 64 hexadecimal digits"):
        check(sizes, wrong)
    done = run("check", sizes, "--fingerprint", wrong)
    assert done.exit_code == 2
    assert "not 64 hexadecimal digits" in " ".join(done.output.split())


def test_a_truncated_fingerprint_is_refused(sizes):
    fingerprint = seal.digest(sizes / seal.SUMS)
    other = fingerprint[:-1] + ("0" if fingerprint[-1] != "0" else "1")
    assert verdicts(sizes, f" {fingerprint.upper()} ")["fingerprint"] == HOLDS
    assert verdicts(sizes, other)["fingerprint"] == FAILS


def test_the_digests_are_those_of_sha256sum(sizes):
    import subprocess

    done = subprocess.run(["sha256sum", "--check", seal.SUMS], cwd=sizes, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == len(list(sizes.iterdir())) - 1


def test_an_unknown_noise_is_not_checked(sizes):
    manifest = json.loads((sizes / files.MANIFEST).read_text())
    for line in manifest["budget"]["spends"]:
        line |= {"noise": "that of tomorrow", "standard_deviation": None}
    found = {line.check: line.verdict for line in check_budget(manifest)}
    assert found == {"budget: each loss": OPEN, "budget: sum": HOLDS, "privacy": OPEN}


def a_tenth_of_the_sensitivity(manifest):
    """The same losses, as of a tenth of the noise."""
    for line in manifest["budget"]["spends"]:
        line["sensitivity"], line["scale"] = line["sensitivity"] / 10, line["scale"] / 10
        spend = Spend(**{key: value for key, value in line.items() if key != "standard_deviation"})
        line["standard_deviation"] = deviation_of(spend)


def bins(tmp_path):
    """A release of bins: any mechanism may have such a table."""
    options = {"axes": [("c", ["c"])], "regions_from_data": True, "method": "SF"}
    return release(PEOPLE, "clustering", epsilon=1, **options).write(tmp_path / "out", report=False)


def test_the_word_of_an_unknown_mechanism_is_not_enough(tmp_path):
    """Its losses and sum are added up, but who knows what one person changes?"""
    folder = bins(tmp_path)
    change_manifest(folder, lambda manifest: manifest.update(mechanism="of somebody else"))
    change_manifest(folder, a_tenth_of_the_sensitivity)
    found = check(folder)
    trusted = {
        line.check: line for line in found if line.check in ("budget: each loss", "budget: sum", "privacy")
    }
    assert [line.verdict for line in trusted.values()] == [OPEN] * 3
    assert all("what one person changes in them, was not checked" in line.why for line in trusted.values())


def test_a_known_mechanism_is_asked_what_one_person_changes(tmp_path):
    folder = bins(tmp_path)
    change_manifest(folder, a_tenth_of_the_sensitivity)
    assert verdicts(folder)["budget: queries"] == FAILS


@pytest.mark.parametrize(
    ("mechanism", "options", "asked"),
    [
        ("group-size", {**SIZES, "max_size": 3}, HOLDS),
        ("clustering", {"axes": [("c", ["c"])], "regions_from_data": True, "method": "DAWA"}, OPEN),
    ],
)
def test_what_proofs_would_show_is_not_said_to_hold_without_them(tmp_path, mechanism, options, asked):
    """The second stage of DAWA depends on the answer of the first: without it, nobody can ask again."""
    made = release(PEOPLE, mechanism, epsilon=1, **options)
    folder = made.write(tmp_path / "out", proofs=False, report=False)
    found = verdicts(folder)
    assert (found["budget: queries"], found["budget: sum"], found["privacy"]) == (asked, HOLDS, asked)
    printed = run("check", folder)
    assert printed.exit_code == 0
    last = printed.output.splitlines()[-1]
    assert last.startswith("No check fails, but ")
    assert "certificates" in last
    assert ("privacy" in last) == (asked == OPEN)
    assert "simulated" not in printed.output


# --- on the command line ---------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command(sizes, tmp_path):
    table = tmp_path / "in.csv"
    PEOPLE.to_csv(table, index=False)
    options = ["--levels", "s,c", "--group", "c", "--group", "g", "--max-size", "3", "--epsilon",
        "1", "--regions-from-data", "--groups-from-data"]  # fmt: skip
    made = run("release", "group-size", table, *options, "--out", tmp_path / "out")
    assert made.exit_code == 0, made.output
    fingerprint = made.output.split("Fingerprint: ")[1].split()[0]
    good = run("check", tmp_path / "out", "--fingerprint", fingerprint)
    assert good.exit_code == 0, good.output
    assert "All checks hold." in good.output
    bad = run("check", sizes, "--fingerprint", fingerprint)
    assert bad.exit_code == 1
    assert re.search(
        r"\n1 of \d+ checks fail. Do not rely on this release.", bad.output
    )  # a different fingerprint
    cell()(tmp_path / "out")
    bad = run("check", tmp_path / "out")
    assert bad.exit_code == 1
    assert "the counts below do not add up to it" in bad.output
    assert run("check", tmp_path / "nowhere").exit_code == 2


def test_the_command_without_proofs(tmp_path):
    table = tmp_path / "in.csv"
    PEOPLE.to_csv(table, index=False)
    options = ["--levels", "s,c", "--group", "c", "--max-size", "3", "--epsilon", "1",
        "--no-proofs", "--regions-from-data", "--groups-from-data"]  # fmt: skip
    assert run("release", "group-size", table, *options, "--out", tmp_path / "out").exit_code == 0
    found = run("check", tmp_path / "out")
    assert found.exit_code == 0
    assert "proofs.zip was left out (--no-proofs)" in " ".join(found.output.split())


class Elsewhere(Chebyshev):
    """A model that is not one of hierdp's."""


def test_the_steps_of_a_mechanism_from_elsewhere_are_not_checked(tmp_path):
    made = release(PEOPLE, "clustering", epsilon=1, axes=[("s", ["s"])], regions_from_data=True)
    model = Elsewhere([5, 3, -2], total=4)
    step = Step("theirs", model, solve(model, "highs"))
    folder = replace(made, mechanism="theirs", steps=Spool([step])).write(tmp_path / "out")
    assert [line.why for line in check(folder) if line.check == "certificates"] == [
        "this version does not know the mechanism 'theirs', which makes the problems from the measurements"
    ]
    found = verdicts(folder)
    assert found["certificates"] == found["table from steps"] == OPEN
    for change in ({"step": "ours"}, {"variables": 4}):
        change_manifest(folder, lambda manifest, change=change: manifest["solved"][0].update(change))
        assert verdicts(folder)["certificates"] == FAILS
        change_manifest(folder, lambda m: m["solved"][0].update(step="theirs", variables=3))
    cut_proofs(folder)
    assert verdicts(folder)["certificates"] == FAILS


# --- the files -------------------------------------------------------------------------------------------


def test_proofs_are_the_same_bytes_for_the_same_steps(tmp_path):
    steps = [Step.solve("a", Chebyshev([5, 3, -2], total=4)), Step.solve("b", Chebyshev([5, 3], total=4))]
    for name in ("one", "two"):
        proofs.write(steps, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    kept = list(proofs.read(tmp_path / "one"))
    assert [k.name for k in kept] == ["a", "b"]
    assert steps[0].model.certificate(kept[0].x, kept[0].witness)


def test_regions_as_written(tmp_path):
    places = hierarchy([[0, 0], [0, 1, 1]])
    files.write_regions({"o": places, 'd, "q"': hierarchy([[0]])}, tmp_path)
    again = files.read_regions_of(tmp_path / files.REGIONS)
    assert list(again) == ["o", 'd, "q"']
    pd.testing.assert_frame_equal(again["o"].frame(), places.frame())
    assert files.read_regions_of(tmp_path / "none.csv") == {}
    (tmp_path / "bad.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="is not a list of regions"):
        files.read_regions_of(tmp_path / "bad.csv")
