"""Older releases pass `hierdp check`: six small ones as 0.2.0 first wrote them, with exact noise.

Others have their noisy counts in the table, in the settings or in the saved steps: ten answer ranges, six
are of group sizes, nine of counts of counts, seven of tables of attributes, and fourteen of counts along
hierarchies. Two more are stability histograms with the threshold of Boninsegna & Silvestri 2025, which older
releases used.
"""

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd
import pytest
from test_check import change_manifest, failed, line_of, verdicts

from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms.count_of_counts import estimates, plan
from hierdp.mechanisms.group_size import post_processing
from hierdp.mechanisms.range_query.matrix import UNIT
from hierdp.privacy.threshold import EXACT
from hierdp.record import files
from hierdp.versions import versions

FIRST, RANGES, SIZES, COUNTS, TABLES, TRIPS = (
    *("releases-0.2.0", "releases-0.2.0-ranges", "releases-0.2-group-size", "releases-0.2-count-of-counts"),
    *("releases-0.2-tabulation", "releases-0.2-top-down"),
)
KINDS = {
    FIRST: [*("group-size", "top-down", "top-down-rounded", "count-of-counts", "range-query", "clustering")],
    RANGES: [
        *("Flat", "H_2^c", "H_b", "H_b^c", "H_tree", "Quadtree", "Wavelet", "levels left out", "matrix"),
        "persons",
    ],
    SIZES: ["M_H", "M_c^r", "M_dp^OP", "M_c^dp-side-by-side", "M_c^dp-blocks", "M_H^dp-blocks"],
    COUNTS: [
        *("Hc", "mixed", "bottom-up", "at-once", "secret", "persons", "apart", "side-by-side", "pooled")
    ],
    TABLES: [
        *("TopDown", "TopDown-three-passes", "TopDown-empty-state", "BlueDown", "GLS", "GLS-persons"),
        "Joint",
    ],
    TRIPS: [
        *("InfTDA", "InfTDA_large", "TDA_inf", "TDA_L2", "TDA", "VanillaGauss", "SH"),
        *("InfTDA-zeros-shares", "InfTDA-unbounded", "InfTDA-no-total", "TDA_L2-clarabel", "TDA-persons"),
        *("VanillaGauss-unbounded", "SH-persons"),
    ],
}
"""Releases by archive. All but the first had no measurements, and ranges no steps either."""
ALL = [(archive, kind) for archive, kinds in KINDS.items() for kind in kinds]


def path_of(archive):
    return Path(__file__).parent / "data" / f"{archive}.zip"


@pytest.fixture
def folder_of(tmp_path, monkeypatch):
    """A release of an archive, to be checked in the steps and blocks that it was made in."""

    def folder(archive, kind):
        with ZipFile(path_of(archive)) as zipped:
            zipped.extractall(tmp_path)
        if archive == SIZES:
            monkeypatch.setattr(post_processing, "CELLS_A_TASK", 15)
            monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 20)
        if archive == COUNTS:
            monkeypatch.setattr(plan, "BATCHED_FROM", 2)  # of "apart", regions have a step each
            monkeypatch.setattr(plan, "CELLS_A_STEP", 12)
            monkeypatch.setattr(estimates, "BLOCK", 12 if kind == "pooled" else 1000)
        return tmp_path / kind

    return folder


def change_spend(folder, at, **changes):
    change_manifest(folder, lambda manifest: manifest["budget"]["spends"][at].update(changes))


def change_table(folder, edit):
    table = pd.read_parquet(folder / "released.parquet")
    edit(table)
    files.write_parts([table], folder, files.TABLE)
    seal.seal(folder)


@pytest.mark.parametrize(("archive", "kind"), ALL)
def test_a_release_made_before_passes(folder_of, archive, kind):
    folder = folder_of(archive, kind)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert archive == FIRST or kind.startswith("SH") or found["noise"] == HOLDS  # thresholds hide counts
    change_spend(folder, -1, query="counts by others")
    assert "budget: queries" in failed(folder)


CHANGED = [
    *((archive, kind, None) for archive, kind in ALL),
    *((RANGES, kind, "noisy") for kind in KINDS[RANGES] if kind not in ("Wavelet", "matrix")),
    *((RANGES, kind, "standard_error") for kind in ("Flat", "H_b", "H_b^c", "Wavelet", "matrix")),
    *((RANGES, kind, "noise_variance") for kind in ("Quadtree", "levels left out", "persons")),
    *((COUNTS, kind, "size") for kind in KINDS[COUNTS]),
]


@pytest.mark.parametrize(("archive", "kind", "column"), CHANGED)
def test_a_changed_release_made_before_fails(folder_of, archive, kind, column):
    folder = folder_of(archive, kind)
    before = pd.read_parquet(folder / "released.parquet")
    for row in {0, len(before) // 2, len(before) - 1} if archive == TRIPS else {len(before) - 1}:

        def edit(table, row=row):
            name = column or ("groups" if "groups" in table else "count")
            # Of a wavelet, no more than its counts was released: any that come from whole coefficients hold.
            table.loc[row, name] = before.loc[row, name] + (0.3 if kind == "Wavelet" else 1)
            table.loc[table.index != row, name] = before[name]

        change_table(folder, edit)
        assert {"table from steps", "shape"} & failed(folder)
        assert archive == TABLES or "table from steps" in failed(folder)


def root(table):
    table["noisy"] = table["noisy"].fillna(5)


def half_persons(table):
    table["noisy"] = table["noisy"].astype("Float64")
    table.loc[table.index[-1], "noisy"] += 0.5


def no_count(table):
    table.loc[table.index[-1], "noisy"] = None


@pytest.mark.parametrize("edit", [root, half_persons, no_count])
def test_noisy_counts_of_before_are_whole_and_of_all_but_the_root(folder_of, edit):
    folder = folder_of(RANGES, "H_b^c")
    change_table(folder, edit)
    assert "table from steps" in failed(folder)


def set_to(**settings):
    return lambda manifest: manifest["settings"].update(settings)


def less(manifest):
    del manifest["budget"]["spends"][0]
    manifest["budget"]["spent"] = sum(spend["epsilon"] for spend in manifest["budget"]["spends"])


def noisy(by):
    def edit(manifest):
        manifest["settings"]["noisy"][0] += by

    return edit


def claim_less_noise(manifest):
    """The noise is a thousandth of what the budget claims, which agrees with itself."""
    budget = manifest["budget"]
    for spend in budget["spends"]:
        spend.update(rho=spend["rho"] / 1e6, scale=spend["scale"] * 1e3)
        spend["standard_deviation"] = spend["scale"]
    budget["spent"] = sum(spend["rho"] for spend in budget["spends"])


@pytest.mark.parametrize(
    ("archive", "kind", "edit"),
    [
        (RANGES, "H_b^c", set_to(levels_asked=2)),
        (RANGES, "H_b^c", set_to(branching=2)),
        (RANGES, "H_b^c", set_to(branching=1)),
        (RANGES, "H_b^c", set_to(repair="non-negative")),
        (RANGES, "levels left out", set_to(branching=3)),
        (RANGES, "H_tree", set_to(branching=2)),
        (RANGES, "H_b", less),
        (RANGES, "matrix", noisy(UNIT)),
        (RANGES, "matrix", noisy(0.5)),
        (RANGES, "matrix", lambda manifest: manifest["settings"]["noisy"].append(0)),
        (RANGES, "matrix", set_to(strategy="identity")),
        (RANGES, "Wavelet", set_to(shares=[1])),
        (COUNTS, "Hc", set_to(max_size=6)),
        (COUNTS, "mixed", set_to(smallest_size=0)),
        (COUNTS, "mixed", set_to(shares=[1, 1, 1])),
        (COUNTS, "secret", set_to(max_size=90)),
        (COUNTS, "secret", set_to(groups=41)),
        (COUNTS, "secret", set_to(size_budget=0.2)),
        (COUNTS, "pooled", set_to(groups=41)),
        (COUNTS, "bottom-up", set_to(methods=["Hc"])),
        (COUNTS, "at-once", set_to(merge="weighted")),
        *((TABLES, kind, claim_less_noise) for kind in KINDS[TABLES]),
    ],
)
def test_settings_and_budgets_of_before_are_checked(folder_of, archive, kind, edit):
    folder = folder_of(archive, kind)
    change_manifest(folder, edit)
    seal.seal(folder)
    assert {"table from steps", "budget: queries"} & failed(folder)
    assert archive != TABLES or "budget: queries" in failed(folder)


@pytest.mark.parametrize(
    ("archive", "kind", "at", "first"),
    [
        *((SIZES, "M_H", 1, None), (COUNTS, "Hc", 2, None)),
        *((TABLES, kind, 1, None) for kind in ("TopDown", "BlueDown", "GLS", "Joint")),
        *((TRIPS, "InfTDA", 0, 1), (TRIPS, "InfTDA-unbounded", 0, 2), (TRIPS, "InfTDA-zeros-shares", 0, 1)),
    ],
)
def test_queries_without_proofs_are_checked(folder_of, archive, kind, at, first):
    """All, or only the `first`, where others depend on answers."""
    folder = folder_of(archive, kind)
    (folder / "proofs.zip").unlink()
    line = line_of(folder, "budget: queries")
    assert line.verdict == (OPEN if first else HOLDS)
    assert f"the first {first} of" in str(line) or not first
    change_spend(folder, at, sensitivity=9)
    assert "budget: queries" in failed(folder)


@pytest.mark.parametrize("kind", ["SH", "SH-person"])
def test_the_papers_threshold_passes(folder_of, kind):
    folder = folder_of("releases-papers-threshold", kind)
    # Made between two versions: the words of the report were those of neither.
    change_manifest(folder, lambda manifest: manifest["versions"].update(hierdp="0.1.9"))
    seal.seal(folder)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["budget: sum"] == found["table from steps"] == found["budget: queries"] == HOLDS
    change_manifest(folder, lambda manifest: manifest["budget"].update(threshold=EXACT))
    assert "budget: queries" in failed(folder)


@pytest.mark.parametrize(("variables", "verdict"), [(10**7 + 1, OPEN), (9, FAILS)])
def test_large_steps_that_were_not_saved(folder_of, variables, verdict):
    """That version saved no steps of more than 10 million variables."""
    folder = folder_of(FIRST, "group-size")
    with ZipFile(folder / files.PROOFS) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    *names, _ = json.loads(members["steps.json"])
    members["steps.json"] = json.dumps(names).encode()
    del members[f"{len(names):06d}.npz"]
    with ZipFile(folder / files.PROOFS, "w", ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    change_manifest(folder, lambda manifest: manifest["solved"][-1].update(variables=variables))
    seal.seal(folder)
    found = verdicts(folder)
    assert found["certificates"] == verdict
    assert found.get("table from steps", OPEN) == OPEN


@pytest.mark.parametrize("groups", [10**9, 10**12])
def test_so_many_groups_without_measurements_are_not_made_up(folder_of, groups):
    """Of the proofs, none are there; zeros would stand for the answers of every group."""
    folder = folder_of(COUNTS, "pooled")
    (folder / "proofs.zip").unlink()

    def edit(table):
        table.loc[0, "groups"] = groups

    change_table(folder, edit)
    with pytest.raises(InputError, match="noisy counts"):
        check(folder, limit=10**9)


def test_the_noise_of_known_answers_is_tested(folder_of):
    """Answers below an empty state are not known, in no query of counties; those of states are."""
    line = line_of(folder_of(TABLES, "TopDown-empty-state"), "noise")
    assert "26 sums measured twice" in line.why
    assert "40 noisy counts" in line.why


def test_counts_under_the_threshold_were_not_released_before(folder_of):
    folder = folder_of(TRIPS, "SH")

    def edit(table):
        table.loc[table.index[table["level"] == table["level"].max()][-1], "count"] = 27

    change_table(folder, edit)
    line = line_of(folder, "table from steps")
    assert (line.verdict, "below the threshold of 28" in line.why) == (FAILS, True)


def test_a_manifest_has_all_later_entries_or_none(folder_of):
    folder = folder_of(FIRST, "group-size")
    ours = dict(versions())["hierdp"]
    change_manifest(folder, lambda manifest: manifest["versions"].update(hierdp=ours))
    assert "manifest" not in failed(folder)
    change_manifest(folder, lambda manifest: manifest["versions"].update(cryptography="1"))
    seal.seal(folder)
    assert "manifest" in failed(folder)
