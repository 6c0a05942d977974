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
from test_check import change_manifest, failed, verdicts

from hierdp.check import FAILS, HOLDS, OPEN, check
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms.count_of_counts import batched, estimates
from hierdp.mechanisms.group_size import fits, post_processing
from hierdp.mechanisms.range_query.matrix import UNIT
from hierdp.privacy.threshold import EXACT
from hierdp.record import files
from hierdp.versions import versions

BEFORE = Path(__file__).parent / "data" / "releases-0.2.0.zip"
GROUP_SIZES = BEFORE.with_name("releases-0.2-group-size.zip")
COUNTS_OF_COUNTS = BEFORE.with_name("releases-0.2-count-of-counts.zip")
ALONG_HIERARCHIES = BEFORE.with_name("releases-0.2-top-down.zip")
PAPERS_THRESHOLD = BEFORE.with_name("releases-papers-threshold.zip")
RANGES = BEFORE.with_name("releases-0.2.0-ranges.zip")
TABLES = BEFORE.with_name("releases-0.2-tabulation.zip")
METHODS = [
    *("Flat", "H_2^c", "H_b", "H_b^c", "H_tree", "Quadtree", "Wavelet", "levels left out", "matrix"),
    "persons",
]
KINDS = ["group-size", "top-down", "top-down-rounded", "count-of-counts", "range-query", "clustering"]


@pytest.fixture
def folder(tmp_path):
    with ZipFile(BEFORE) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_made_before_passes(folder, kind):
    found = verdicts(folder / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_release_made_before_fails(folder, kind):
    path = folder / kind / "released.parquet"
    table = pd.read_parquet(path)
    value = "groups" if "groups" in table else "count"
    table.loc[table.index[-1], value] += 1
    table.to_parquet(path, index=False)
    seal.seal(folder / kind)
    assert "table from steps" in failed(folder / kind)


@pytest.fixture
def ranges(tmp_path):
    with ZipFile(RANGES) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", METHODS)
def test_ranges_released_before_pass(ranges, kind):
    found = verdicts(ranges / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert found["noise"] == HOLDS


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        *((kind, "count") for kind in METHODS),
        *((kind, "noisy") for kind in METHODS if kind not in ("Wavelet", "matrix")),
        *((kind, "standard_error") for kind in ("Flat", "H_b", "H_b^c", "Wavelet", "matrix")),
        *((kind, "noise_variance") for kind in ("Quadtree", "levels left out", "persons")),
    ],
)
def test_ranges_released_before_and_changed_fail(ranges, kind, column):
    table = pd.read_parquet(ranges / kind / "released.parquet")
    # Of a wavelet, no more than its counts was released: any that come from whole coefficients hold.
    table.loc[table.index[-1], column] += 0.3 if kind == "Wavelet" else 1
    files.write_parts([table], ranges / kind, files.TABLE)
    seal.seal(ranges / kind)
    assert "table from steps" in failed(ranges / kind)


def root(table):
    table["noisy"] = table["noisy"].fillna(5)


def half_persons(table):
    table["noisy"] = table["noisy"].astype("Float64")
    table.loc[table.index[-1], "noisy"] += 0.5


def no_count(table):
    table.loc[table.index[-1], "noisy"] = None


@pytest.mark.parametrize("edit", [root, half_persons, no_count])
def test_noisy_counts_of_before_are_whole_and_of_all_but_the_root(ranges, edit):
    folder = ranges / "H_b^c"
    table = pd.read_parquet(folder / "released.parquet")
    edit(table)
    files.write_parts([table], folder, files.TABLE)
    seal.seal(folder)
    assert "table from steps" in failed(folder)


def set_to(**settings):
    return lambda manifest: manifest["settings"].update(settings)


def less(manifest):
    del manifest["budget"]["spends"][0]
    manifest["budget"]["spent"] = sum(spend["epsilon"] for spend in manifest["budget"]["spends"])


def more_noise(manifest):
    manifest["settings"]["noisy"][0] += UNIT


def half_a_person(manifest):
    manifest["settings"]["noisy"][0] += 0.5


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("H_b^c", set_to(levels_asked=2)),
        ("H_b^c", set_to(branching=2)),
        ("H_b^c", set_to(branching=1)),
        ("H_b^c", set_to(repair="non-negative")),
        ("levels left out", set_to(branching=3)),
        ("H_tree", set_to(branching=2)),
        ("H_b", less),
        ("matrix", more_noise),
        ("matrix", half_a_person),
        ("matrix", lambda manifest: manifest["settings"]["noisy"].append(0)),
        ("matrix", set_to(strategy="identity")),
        ("Wavelet", set_to(shares=[1])),
    ],
)
def test_settings_of_before_are_checked(ranges, kind, edit):
    change_manifest(ranges / kind, edit)
    seal.seal(ranges / kind)
    assert {"table from steps", "budget: queries"} & failed(ranges / kind)


@pytest.mark.parametrize("kind", ["SH", "SH-person"])
def test_the_papers_threshold_passes(tmp_path, kind):
    with ZipFile(PAPERS_THRESHOLD) as zipped:
        zipped.extractall(tmp_path)
    # Made between two versions: the words of the report were those of neither.
    change_manifest(tmp_path / kind, lambda manifest: manifest["versions"].update(hierdp="0.1.9"))
    seal.seal(tmp_path / kind)
    found = verdicts(tmp_path / kind)
    assert FAILS not in found.values()
    assert found["budget: sum"] == found["table from steps"] == found["budget: queries"] == HOLDS
    change_manifest(tmp_path / kind, lambda manifest: manifest["budget"].update(threshold=EXACT))
    assert "budget: queries" in failed(tmp_path / kind)


@pytest.mark.parametrize(("variables", "verdict"), [(10**7 + 1, OPEN), (9, FAILS)])
def test_large_steps_that_were_not_saved(folder, variables, verdict):
    """That version saved no steps of more than 10 million variables."""
    proofs = folder / "group-size" / files.PROOFS
    with ZipFile(proofs) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    *names, _ = json.loads(members["steps.json"])
    members["steps.json"] = json.dumps(names).encode()
    del members[f"{len(names):06d}.npz"]
    with ZipFile(proofs, "w", ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)

    def edit(manifest):
        manifest["solved"][-1]["variables"] = variables

    change_manifest(folder / "group-size", edit)
    seal.seal(folder / "group-size")
    found = verdicts(folder / "group-size")
    assert found["certificates"] == verdict
    assert found.get("table from steps", OPEN) == OPEN


SIZES = ["M_H", "M_c^r", "M_dp^OP", "M_c^dp-side-by-side", "M_c^dp-blocks", "M_H^dp-blocks"]


@pytest.fixture
def sizes(tmp_path, monkeypatch):
    """Group sizes before they had measurements; those in blocks were made with blocks of this size."""
    monkeypatch.setattr(fits, "CELLS_A_TASK", 15)
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 20)
    with ZipFile(GROUP_SIZES) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", SIZES)
def test_group_sizes_without_measurements_pass(sizes, kind):
    found = verdicts(sizes / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert found["noise"] == HOLDS
    change_manifest(sizes / kind, lambda manifest: manifest["budget"]["spends"][1].update(query="sizes"))
    assert "budget: queries" in failed(sizes / kind)


@pytest.mark.parametrize("kind", SIZES)
def test_changed_group_sizes_without_measurements_fail(sizes, kind):
    path = sizes / kind / "released.parquet"
    table = pd.read_parquet(path)
    table.loc[table.index[-1], "groups"] += 1
    table.to_parquet(path, index=False)
    assert "table from steps" in failed(sizes / kind)


def test_the_queries_of_group_sizes_without_proofs_are_checked(sizes):
    (sizes / "M_H" / "proofs.zip").unlink()
    assert verdicts(sizes / "M_H")["budget: queries"] == HOLDS
    change_manifest(sizes / "M_H", lambda manifest: manifest["budget"]["spends"][1].update(sensitivity=1))
    assert "budget: queries" in failed(sizes / "M_H")


COUNTS = ["Hc", "mixed", "bottom-up", "at-once", "secret", "persons", "apart", "side-by-side", "pooled"]


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """Releases of count-of-counts before they had measurements, in steps and blocks of these sizes."""
    with ZipFile(COUNTS_OF_COUNTS) as zipped:
        zipped.extractall(tmp_path)

    def folder(kind):
        monkeypatch.setattr(batched, "BATCHED_FROM", 2)  # of "apart", regions have a step each
        monkeypatch.setattr(batched, "CELLS_A_STEP", 12)
        monkeypatch.setattr(estimates, "BLOCK", 12 if kind == "pooled" else 1000)
        return tmp_path / kind

    return folder


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_of_counts_without_measurements_pass(counts, kind):
    folder = counts(kind)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert found["noise"] == HOLDS
    change_manifest(folder, lambda manifest: manifest["budget"]["spends"][-1].update(query="sizes"))
    assert "budget: queries" in failed(folder)


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("column", ["groups", "size"])
def test_changed_counts_of_counts_without_measurements_fail(counts, kind, column):
    path = counts(kind) / "released.parquet"
    table = pd.read_parquet(path)
    table.loc[table.index[-1], column] += 1
    table.to_parquet(path, index=False)
    assert "table from steps" in failed(path.parent)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Hc", "max_size", 6),
        ("mixed", "smallest_size", 0),
        ("mixed", "shares", [1, 1, 1]),
        ("secret", "max_size", 90),
        ("secret", "groups", 41),
        ("secret", "size_budget", 0.2),
        ("pooled", "groups", 41),
        ("bottom-up", "methods", ["Hc"]),
        ("at-once", "merge", "weighted"),
    ],
)
def test_settings_of_counts_of_counts_without_measurements_are_checked(counts, kind, name, value):
    folder = counts(kind)
    change_manifest(folder, lambda manifest: manifest["settings"].update({name: value}))
    assert {"table from steps", "budget: queries"} & failed(folder)


def test_the_queries_of_counts_of_counts_without_proofs_are_checked(counts):
    folder = counts("Hc")
    (folder / "proofs.zip").unlink()
    assert verdicts(folder)["budget: queries"] == HOLDS
    change_manifest(folder, lambda manifest: manifest["budget"]["spends"][2].update(sensitivity=2))
    assert "budget: queries" in failed(folder)


@pytest.mark.parametrize("groups", [10**9, 10**12])
def test_so_many_groups_without_measurements_are_not_made_up(counts, groups):
    """Of the proofs, none are there; zeros would stand for the answers of every group."""
    folder = counts("pooled")
    (folder / "proofs.zip").unlink()
    table = pd.read_parquet(folder / "released.parquet")
    table.loc[0, "groups"] = groups
    files.write_parts([table], folder, files.TABLE)
    with pytest.raises(InputError, match="noisy counts"):
        check(folder, limit=10**9)


OF_TABLES = [
    *("TopDown", "TopDown-three-passes", "TopDown-empty-state", "BlueDown", "GLS", "GLS-persons", "Joint"),
]


@pytest.fixture
def tables(tmp_path):
    """Tables before they had measurements: with recodes, invariants, bounds, zeros and persons."""
    with ZipFile(TABLES) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", OF_TABLES)
def test_tables_without_measurements_pass(tables, kind):
    found = verdicts(tables / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert found["noise"] == HOLDS
    change_manifest(tables / kind, lambda manifest: manifest["budget"]["spends"][1].update(query="sexes"))
    assert "budget: queries" in failed(tables / kind)


@pytest.mark.parametrize("kind", OF_TABLES)
def test_changed_tables_without_measurements_fail(tables, kind):
    path = tables / kind / "released.parquet"
    table = pd.read_parquet(path)
    table.loc[table.index[-1], "count"] += 1
    table.to_parquet(path, index=False)
    assert {"table from steps", "shape"} & failed(tables / kind)


@pytest.mark.parametrize("kind", OF_TABLES)
def test_scales_of_tables_without_measurements_are_tested(tables, kind):
    """Their noise is a thousandth of what the budget claims, which agrees with itself."""

    def claim(manifest):
        budget = manifest["budget"]
        for spend in budget["spends"]:
            spend.update(rho=spend["rho"] / 1e6, scale=spend["scale"] * 1e3)
            spend["standard_deviation"] = spend["scale"]
        budget["spent"] = sum(spend["rho"] for spend in budget["spends"])

    change_manifest(tables / kind, claim)
    assert "budget: queries" in failed(tables / kind)


def test_the_noise_of_known_answers_is_tested(tables):
    """Answers below an empty state are not known, in no query of counties; those of states are."""
    (line,) = [line for line in check(tables / "TopDown-empty-state") if line.check == "noise"]
    assert "26 sums measured twice" in line.why
    assert "40 noisy counts" in line.why


def test_the_queries_of_tables_without_proofs_are_checked(tables):
    for kind in ("TopDown", "BlueDown", "GLS", "Joint"):
        (tables / kind / "proofs.zip").unlink()
        assert verdicts(tables / kind)["budget: queries"] == HOLDS
        change_manifest(tables / kind, lambda manifest: manifest["budget"]["spends"][1].update(sensitivity=1))
        assert "budget: queries" in failed(tables / kind)


TRIPS = ["InfTDA", "InfTDA_large", "TDA_inf", "TDA_L2", "TDA", "VanillaGauss", "SH"]
FURTHER_TRIPS = [
    *("InfTDA-zeros-shares", "InfTDA-unbounded", "InfTDA-no-total", "TDA_L2-clarabel", "TDA-persons"),
    *("VanillaGauss-unbounded", "SH-persons"),
]


@pytest.fixture
def trips(tmp_path):
    with ZipFile(ALONG_HIERARCHIES) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", [*TRIPS, *FURTHER_TRIPS])
def test_trips_without_measurements_pass(trips, kind):
    found = verdicts(trips / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS
    assert kind.startswith("SH") or found["noise"] == HOLDS  # nothing that a threshold hides is known
    change_manifest(trips / kind, lambda manifest: manifest["budget"]["spends"][-1].update(query="counts"))
    assert "budget: queries" in failed(trips / kind)


@pytest.mark.parametrize("kind", [*TRIPS, *FURTHER_TRIPS])
def test_changed_trips_without_measurements_fail(trips, kind):
    path = trips / kind / "released.parquet"
    before = pd.read_parquet(path)
    for row in {0, len(before) // 2, len(before) - 1}:
        table = before.copy()
        table.loc[row, "count"] += 1
        table.to_parquet(path, index=False)
        assert "table from steps" in failed(trips / kind)


def test_counts_under_the_threshold_were_not_released_before(trips):
    path = trips / "SH" / "released.parquet"
    table = pd.read_parquet(path)
    last = table["level"] == table["level"].max()
    table.loc[table.index[last][-1], "count"] = 27
    table.to_parquet(path, index=False)
    (line,) = [line for line in check(trips / "SH") if line.check == "table from steps"]
    assert (line.verdict, "below the threshold of 28" in line.why) == (FAILS, True)


@pytest.mark.parametrize("kind", ["InfTDA", "InfTDA-unbounded", "InfTDA-zeros-shares"])
def test_the_first_queries_of_trips_without_proofs_are_checked(trips, kind):
    (trips / kind / "proofs.zip").unlink()
    (line,) = [line for line in check(trips / kind) if line.check == "budget: queries"]
    assert line.verdict == OPEN
    assert f"the first {2 if kind == 'InfTDA-unbounded' else 1} of" in str(line)
    change_manifest(trips / kind, lambda manifest: manifest["budget"]["spends"][0].update(sensitivity=9))
    assert "budget: queries" in failed(trips / kind)


def test_a_manifest_has_all_later_entries_or_none(folder):
    place = folder / "group-size"
    ours = dict(versions())["hierdp"]
    change_manifest(place, lambda manifest: manifest["versions"].update(hierdp=ours))
    assert "manifest" not in failed(place)
    change_manifest(place, lambda manifest: manifest["versions"].update(cryptography="1"))
    seal.seal(place)
    assert "manifest" in failed(place)
