"""The file of a release's measurements: what is in it, and that a release follows from it."""

import itertools
import json
from dataclasses import asdict, replace

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from changing import change_manifest
from test_check import failed, line_of, verdicts

from hierdp import Measurements, Numbers, SimulatedNoise
from hierdp.checking import FAILS, HOLDS, OPEN
from hierdp.counts.axes import Names
from hierdp.counts.hierarchy import Hierarchy
from hierdp.execution import seal
from hierdp.measurements import file, query
from hierdp.measurements.file import MeasurementsFile
from hierdp.measurements.measurement import Measurement
from hierdp.measurements.measuring import MeasureTruth, OtherQuery, Recording, ReplayRecorded
from hierdp.measurements.redundant_sums import CountNoise
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.tabulation import tabulate
from hierdp.mechanisms.tabulation.options import METHODS as TABULATIONS
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.top_down import queries, refinements
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.budget import CHOICE, Ledger
from hierdp.privacy.threshold import EXACT
from hierdp.record import files
from hierdp.record.files import MEASUREMENTS
from hierdp.tables import flows
from hierdp.tables.binning import Histogram
from hierdp.tables.tabulated import CrossTable
from models import Tree
from tests.designs import DESIGNS, PLACES
from tests.hierdp.doubles import Double
from tests.hierdp.measurements import of_tree
from tests.marks import quick

CASES = {name: design for name, design in DESIGNS.items() if design.mechanism in MECHANISMS}
"""Releases with measurements."""

OF_TABLES = [name for name, design in CASES.items() if design.mechanism == "tabulation"]
GROUP_SIZES = [name for name, design in CASES.items() if design.mechanism == "group-size"]

FEW = (
    *("AHP", "PHP", "H_2^c, a level left out", "Wavelet", "matrix", "Hc", "TopDown of two towns"),
    *("InfTDA, a secret total", "SH", "M_c^dp"),
)

BY_ONE = {
    *(*OF_TABLES, *GROUP_SIZES, "Hc", "Hg", "bottom-up", "Hc2, all levels at once"),
    "Hg x naive x Hg1, everything secret",
} - {"TopDown of persons"}
"""Releases whose steps start from every answer: no answer can be changed even by 1. (In that of persons,
some states have one town, which has the counts of the state whatever its own answers are.)"""


def made(name, **changes):
    return replace(CASES[name].release(**changes), simulating=None)


@pytest.fixture
def written(tmp_path):
    def write(name):
        return made(name).write(tmp_path / "out", overwrite=True, report=False)

    return write


def change(folder, edit, edit_about=lambda _: None):
    """Edit the measurements of a written release, and seal it again."""
    path = folder / MEASUREMENTS
    table = pq.read_table(path)
    frame = table.to_pandas()
    edited = edit(frame)
    frame = frame if edited is None else edited
    about = json.loads(pq.read_metadata(path).metadata[b"hierdp"])
    edit_about(about)
    changed = table.from_pandas(frame, preserve_index=False)
    pq.write_table(changed.replace_schema_metadata({b"hierdp": json.dumps(about)}), path)
    seal.seal(folder)


@pytest.mark.parametrize("method", quick(CASES, every=2))
def test_a_release_follows_from_its_measurements(method, written):
    folder = written(method)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["budget: queries"] == found["table from steps"] == HOLDS


@pytest.mark.parametrize("method", quick(CASES, every=4))
def test_written_and_read_they_are_the_same(method, written):
    ours = made(method).measurements
    theirs = Measurements.read(written(method) / MEASUREMENTS)
    assert theirs.spends == ours.spends
    assert all(np.array_equal(a.answers, b.answers) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["AHP", "TopDown of two towns", "Hc, everything secret"])
def test_another_reader_sees_the_columns_of_the_page(name, written):
    path = written(name) / MEASUREMENTS
    rows = duckdb.sql(
        f"select query, noise, count(*), sum(answer), min(scale) from '{path}' group by all order by all"
    ).fetchall()
    ours = made(name).measurements
    expected = [
        (one.spend.query, one.spend.noise, one.answers.size, int(one.answers.sum()), one.spend.scale)
        for one in ours
    ]
    assert rows == sorted(expected)
    about = json.loads(pq.read_metadata(path).metadata[b"hierdp"])
    assert about["format"] == 1
    assert about["spends"] == [asdict(spend) for spend in ours.spends]


@pytest.mark.parametrize("method", quick(CASES, slow=lambda name: name not in FEW))
def test_no_answer_can_be_changed(method, written):
    """Each answer by itself: the release says another thing, or the answer is not one of its query's.

    Of a query the first, the last and some others.
    """
    folder = written(method)
    before = (folder / MEASUREMENTS).read_bytes()
    names = pd.read_parquet(folder / MEASUREMENTS)["query"].astype(str).tolist()
    for row, name in enumerate(names):
        inside = 0 < row < len(names) - 1 and names[row - 1] == name == names[row + 1]
        if (inside and row % 4) or name.startswith("deviations"):  # few of these have an effect on DAWA's cut
            continue

        def edit(frame, row=row):
            frame.loc[row, "answer"] += 1 if method in BY_ONE else 10**6

        change(folder, edit)
        assert "table from steps" in failed(folder) if method in BY_ONE else failed(folder), row
        (folder / MEASUREMENTS).write_bytes(before)
    seal.seal(folder)
    assert not failed(folder)


def test_answers_below_a_region_without_persons_are_tested_as_noise(tmp_path):
    """No step starts from them, so a small change is not noticed, and changes nothing; a large one is."""
    data = CrossTable(PLACES, {}, np.array([[90, 90]] * 4 + [[0, 0]]))  # nobody is in town y of state C
    plan = plan_of({"attributes": {"sex": ["f", "m"]}, "invariants": ["state:total"]})
    release = tabulate(data, plan, 90.0, 1e-6, SimulatedNoise(1))
    assert not any(step.name == "town in C: least squares" for step in release.steps)
    folder = release.write(tmp_path / "out")
    assert verdicts(folder)["noise"] == HOLDS
    frame = pd.read_parquet(folder / MEASUREMENTS)
    unused = frame.index[frame["query"].eq("sex by town") & frame["position"].eq(8)]

    def add(number):
        return lambda frame: frame.update(frame.loc[unused, ["answer"]] + number)

    change(folder, add(1))
    assert not failed(folder)
    change(folder, add(1000))
    assert failed(folder) == {"noise"}


@pytest.mark.parametrize(
    ("column", "value"),
    [("query", "counts"), ("noise", "none"), ("scale", 2.5), ("position", 7), ("measurement", 0)],
)
def test_the_rows_are_those_of_the_budget(column, value, written):
    folder = written("AHP")

    def edit(frame):
        if column in ("query", "noise"):
            frame[column] = frame[column].astype(object)
        frame.loc[len(frame) - 1, column] = value

    change(folder, edit)
    line = line_of(folder, "table from steps")
    assert (line.verdict, "measurements.parquet" in str(line)) == (FAILS, True)


def test_the_spends_of_the_file_are_those_of_the_budget(written):
    folder = written("AHP")
    change(folder, lambda _: None)
    assert not failed(folder)
    change(folder, lambda _: None, lambda about: about["spends"][1].update(epsilon=0.1))
    line = line_of(folder, "table from steps")
    assert (line.verdict, "do not have the spends of the budget" in str(line)) == (FAILS, True)


def test_a_row_too_few_and_one_too_many(written):
    folder = written("AHP")
    change(folder, lambda frame: frame.iloc[:-1])
    assert {"table from steps", "budget: queries"} <= failed(folder)
    made("AHP", axes=[Numbers("bin", 0, 12)]).measurements.write(folder / MEASUREMENTS)
    seal.seal(folder)
    assert failed(folder)


@pytest.mark.parametrize("method", quick(CASES, every=4))
def test_a_release_without_its_measurements_fails(method, written):
    folder = written(method)
    (folder / MEASUREMENTS).unlink()
    seal.seal(folder)
    assert "table from steps" in failed(folder)


WITHOUT_PROOFS = {
    **dict.fromkeys(("H_2^c", "H_2^c, a level left out", "H_tree^c", "Hc", "bottom-up", *TABULATIONS), ""),
    **{"GS": "", "AHP": "the first 1 of 2", "Hc, everything secret": "the first 4 of 7"},
    "InfTDA, a secret total": "the first 2 of 4",
}
"""Which queries are checked without proofs: all, of GS and trees, or those that depend on no answer."""


@pytest.mark.parametrize("name", WITHOUT_PROOFS)
def test_without_the_proofs_queries_that_depend_on_no_answer_are_checked(name, tmp_path):
    folder = made(name).write(tmp_path / "out", proofs=False)
    line = line_of(folder, "budget: queries")
    assert line.verdict == (OPEN if WITHOUT_PROOFS[name] else HOLDS)
    assert WITHOUT_PROOFS[name] in str(line)
    at = 0 if line.verdict == OPEN else -1
    change_manifest(folder, lambda manifest: manifest["budget"]["spends"][at].update(query="counts by x"))
    seal.seal(folder)
    assert "budget: queries" in failed(folder)


def test_without_the_proofs_wrong_settings_and_needless_steps_are_found(tmp_path):
    made("H_2^c").write(tmp_path / "out", proofs=False)
    change_manifest(tmp_path / "out", lambda manifest: manifest["settings"].update(shares=[1]))
    seal.seal(tmp_path / "out")
    assert "table from steps" in failed(tmp_path / "out")
    folder = made("H_2").write(tmp_path / "H_2")
    line = {"step": "none", "model": "none", "variables": 1, "objective": "0", "bound": "0"}
    line |= {"proved_optimal": True, "seconds": 0.0}
    change_manifest(folder, lambda manifest: manifest["solved"].append(line))
    seal.seal(folder)
    assert "table from steps" in failed(folder)


def exchange(parts):
    parts[:2] = parts[1::-1]


def spending(**changes):
    def edit(parts):
        parts[0] = replace(parts[0], spend=replace(parts[0].spend, **changes))

    return edit


def moved_loss(parts):
    """The first level's noise is of another scale, and its loss follows; the last has the rest."""
    first, last = parts[0].spend, parts[-1].spend
    if first.rho is None:
        half, rest = first.epsilon / 2, last.epsilon + first.epsilon / 2
        first, last = (
            replace(one, epsilon=loss, scale=1 / loss) for one, loss in ((first, half), (last, rest))
        )
    else:
        half, rest = first.rho / 2, last.rho + first.rho / 2
        first, last = (
            replace(one, rho=loss, scale=one.sensitivity / (2 * loss) ** 0.5)
            for one, loss in ((first, half), (last, rest))
        )
    parts[0], parts[-1] = replace(parts[0], spend=first), replace(parts[-1], spend=last)


def another_law(parts):
    (law,) = {"double-geometric", "discrete Gaussian"} - {parts[0].spend.noise}
    spending(noise=law)(parts)


GONE = object()
ANOTHER = {
    "order": (exchange, "budget: queries"),
    "query": (spending(query="counts by level 7"), "budget: queries"),
    "law": (another_law, "budget: queries"),
    "sensitivity": (spending(sensitivity=3), "budget: queries"),
    "scale": (spending(scale=9.0), "budget: each loss"),
    "share": (moved_loss, "budget: queries"),
    "number of answers": (lambda parts: parts.append(parts.pop(0)), "budget: queries"),
    "measurement less": (lambda parts: parts.pop(), "budget: queries"),
    "measurement more": (lambda parts: parts.append(parts[-1]), "budget: queries"),
}


OTHER_METHODS = (
    *("H_2", "GLS", "InfTDA", "H_2^c", "Hc", "Hg x Hc x naive", "Hc, everything secret"),
    *("TopDown", "BlueDown", "Joint", "InfTDA, a secret total", "TDA", "M_c^dp"),
)


@pytest.mark.parametrize("what", ANOTHER)
@pytest.mark.parametrize("method", quick(OTHER_METHODS, first=2))
def test_another_measurement_in_file_and_budget_is_refused(what, method, tmp_path, monkeypatch):
    """The file, the manifest and the seal agree; the mechanism would not have queried that."""
    edit, found = ANOTHER[what]
    monkeypatch.setattr(Ledger, "__post_init__", lambda _: None)  # a budget that does not add up is written
    release = made(method)
    parts = list(release.measurements)
    edit(parts)
    ours = replace(release.ledger, spends=tuple(part.spend for part in parts))
    release = replace(release, measurements=Measurements(tuple(parts)), budget=ours)
    release.write(tmp_path / "out", report=False)
    monkeypatch.undo()
    assert found in failed(tmp_path / "out")


@pytest.mark.parametrize(
    ("case", "name", "value"),
    quick([
        *(("AHP", "share", 0.6), ("AHP", "eta", 50.0), ("AHP", "clusters", 3), ("AHP", "more", 1)),
        ("H_2^c, a level left out", "shares", [1, 2, 3]),
        ("H_2^c, a level left out", "shares", [0, 3, 2]),
        ("H_2^c, a level left out", "shares", [0, 0, 1]),
        ("H_2^c, a level left out", "shares", [2, 3, 0]),
        ("H_2^c, a level left out", "shares", [2, 3]),
        ("H_2^c, a level left out", "shares", [0, -2, 3]),
        ("H_2^c, a level left out", "shares", None),
        ("H_2^c, a level left out", "shares", "equal"),
        ("H_2^c, a level left out", "repair", "whole, free total"),
        ("H_2^c, a level left out", "repair", "wholesome"),
        ("H_2^c, a level left out", "branching", 3),
        ("H_tree^c, non-negative", "shares", [1, 3]),
        ("H_tree^c, non-negative", "shares", [0, 2]),
        ("H_tree^c, non-negative", "branching", 2),
        ("H_tree^c, non-negative", "repair", "wholesome"),
        ("H_b", "repair", "least squares"),
        ("Wavelet", "shares", [1]),
        ("matrix", "strategy", "identity"),
        ("matrix", "noisy", [1]),
        ("InfTDA", "total", 3000),
        ("InfTDA", "total", GONE),
        ("InfTDA", "trips", 2),
        ("InfTDA", "shares", [1, 1, 2]),
        ("InfTDA", "order", ["to", "from", "to"]),
        ("InfTDA", "order", ["from", "to", "from"]),
        ("InfTDA", "order", ["zone", "from", "from"]),
        ("InfTDA", "unknown", "u"),
        ("InfTDA", "zeros", "from=to"),
        ("InfTDA", "backend", "highs"),
        ("InfTDA, a secret total", "total", 6780),
        ("InfTDA, a secret total", "trips", 3),
        ("InfTDA, a secret total", "distinct", False),
        ("InfTDA, shares", "shares", [1, 2, 5]),
        ("TDA, structural zeros", "zeros", GONE),
        ("VanillaGauss", "trips", 2),
        ("VanillaGauss", "backend", "highs"),
        ("SH", "shares", [1]),
        ("SH", "unknown", "elsewhere"),
        ("SH, persons", "distinct", False),
        *(("M_c^dp", "groups", 14), ("M_c^dp", "max_size", 3), ("M_c^dp", "window", 1)),
        ("M_c^dp", "levels", ["root", "state"]),
        *(("Hc", "max_size", 4), ("Hc", "groups", 14), ("Hc", "smallest_size", 1), ("Hc", "merge", "plain")),
        *(("Hc", "methods", ["Hc", "Hc", "Hc2"]), ("Hc", "shares", [1, 1, 2]), ("Hc", "group_budget", 0.1)),
        *(("Hc", "levels", ["root", "state"]), ("Hc, everything secret", "group_budget", 0.1)),
        *(("Hc, everything secret", "size_budget", 0.2), ("Hc, everything secret", "max_size", 20)),
        *(("Hc, everything secret", "groups", n) for n in (12, -1, "many")),
    ], every=2),
)  # fmt: skip
def test_other_settings_do_not_give_the_release(case, name, value, written):
    folder = written(case)

    def edit(manifest):
        manifest["settings"][name] = value
        if value is GONE:
            del manifest["settings"][name]

    change_manifest(folder, edit)
    seal.seal(folder)
    assert {"table from steps", "budget: queries", "shape", "manifest"} & set(failed(folder))


def exchanged(column, rows):
    def edit(table):
        table.loc[list(rows), column] = table.loc[list(rows[::-1]), column].to_numpy()

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        exchanged("region", (5, 6)),
        exchanged("town_from", (5, 6)),
        exchanged("town_to", (1, 2)),
        lambda table: table.update({"region": table["region"].where(table["level"] < 2, "x")}),
        lambda table: table.update({"level_name": table["level_name"].replace("state", "town")}),
        exchanged("town_first", (1, 2)),
        exchanged("town_end", (1, 2)),
        lambda table: table.update({"level": table["level"].replace(0, 1)}),
        lambda table: (table.pop("level_name"), table.pop("region")),
    ],
)
def test_boxes_and_their_names_follow_from_the_hierarchy(edit, written):
    folder = written("H_tree^c")
    table = pd.read_parquet(folder / "released.parquet")
    before = table.copy()
    edit(table)
    assert not table.equals(before)
    files.write_parts([table], folder, files.TABLE)
    seal.seal(folder)
    assert "table from steps" in failed(folder)


def test_two_bins_of_one_name_are_found(tmp_path):
    flat = Hierarchy.flat("town", list("uvw"))
    made = range_query(Histogram(np.arange(3), (Names.of("town", flat),)), 1.0, SimulatedNoise(1), "Wavelet")
    named = made.table.assign(town_from=list("uvv"), town_to=list("uvv"))
    folder = replace(made, counts=named).write(tmp_path / "out")
    line = line_of(folder, "table from steps")
    assert (line.verdict, line.why) == (FAILS, "two bins of 'town' have the same name")


def moved_to_next(frame):
    """To a cell whose count was under the threshold."""
    gap = np.flatnonzero(np.diff(frame["position"]) > 1)[0]
    frame.loc[gap, "position"] += 1


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (moved_to_next, "is not what the steps give"),
        (lambda frame: frame.iloc[::-1], "are not in ascending order"),
        (lambda frame: pd.concat([frame.iloc[:1], frame]), "are not in ascending order"),
        (lambda frame: frame.assign(position=frame["position"] - 9), "are not in ascending order"),
        (lambda frame: frame.assign(position=frame["position"] + 9), "has 15 answers, but one has"),
        (lambda frame: frame.assign(answer=27), "is 27, below the threshold of 28"),
        (lambda frame: frame.iloc[1:], "rows, its steps give"),
    ],
)
def test_only_counts_that_reach_the_threshold_are_recorded(edit, why, written):
    folder = written("SH")
    change(folder, edit)
    line = line_of(folder, "table from steps")
    assert (line.verdict, why in line.why) == (FAILS, True)


def test_the_positions_over_a_threshold_are_those_of_the_cells(written):
    """Of from × to, the last axis fastest; another reader sees them."""
    folder = written("SH")
    found = duckdb.sql(
        f"select position // 3, position % 3, answer from '{folder / MEASUREMENTS}' order by all"
    ).fetchall()
    assert 0 < len(found) < 15
    table = pd.read_parquet(folder / "released.parquet")
    finest = table[table["level"] == 3]
    places = [list(PLACES.names[-1]).index(town) for town in finest["from"]]
    zones = ["klm".index(zone) for zone in finest["to"]]
    assert found == sorted(zip(places, zones, finest["count"].tolist(), strict=True))
    (ours,) = Measurements.read(folder / MEASUREMENTS)
    assert ours.positions.tolist() == [3 * i + j for i, j, _ in found]


def test_answers_over_a_threshold_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "ROWS", 5)
    spends = [made(method).ledger.spends[0] for method in ("SH", "VanillaGauss")]
    for sizes in itertools.product([0, 1, 5, 12], repeat=3):
        parts = []
        for size, at in zip(sizes, (0, 1, 0), strict=True):
            known = None if at else np.arange(size) ** 2
            parts.append(Measurement(spends[at], np.arange(size) * 7, known))
        Measurements(tuple(parts)).write(tmp_path / "out")
        for ours, theirs in zip(parts, Measurements.read(tmp_path / "out"), strict=True):
            assert theirs.answers.tolist() == ours.answers.tolist()
            assert (theirs.positions is None) == (ours.positions is None)
            assert ours.positions is None or theirs.positions.tolist() == ours.positions.tolist()


@pytest.mark.parametrize("public", [None, 50])
def test_chosen_nodes_and_their_children_are_compared(public):
    """The second and the fourth of four nodes were chosen; the first has two children, the other three."""
    at, offsets = (np.array([1, 3]), np.array([0, 2, 5])) if public is None else (np.zeros(1, int), [0, 5])
    above = query.Query("above", 1, 0.5, 4, lambda truth: truth[:4])
    parents = query.Parents(at, np.array(offsets), public)
    below = query.Query("below", 1, 0.5, 5, lambda truth: truth[4:], parents=parents)
    queried = [above, below] if public is None else [below]
    measure = MeasureTruth(np.array([9, 20, 7, 30, 1, 2, 3, 4, 5]), SimulatedNoise(1))
    found = [measure(one).answers for one in queried]
    recorded = ReplayRecorded(measure.measurements)
    for one in queried:
        recorded(one)
    recorded.end()
    (twice,) = recorded.redundant
    children = found[-1]
    if public is None:
        expected = [found[0][1] - children[:2].sum(), found[0][3] - children[2:].sum()]
        assert (twice.counts.tolist(), twice.own, twice.chosen_of) == ([2, 3], CountNoise(False, 2.0), 4)
    else:
        expected = [50 - children.sum()]
        assert (twice.counts.tolist(), twice.own, twice.chosen_of) == ([5], None, None)
    assert twice.differences.tolist() == expected
    assert (twice.what, twice.law) == ("below and above", CountNoise(False, 2.0))


def test_many_answers_are_written_and_read_in_parts(tmp_path, monkeypatch):
    """As few: a measurement begins and ends anywhere in a row group, or has no answers."""
    monkeypatch.setattr(file, "ROWS", 5)
    for sizes in itertools.product([0, 1, 3, 5, 12], repeat=3):
        found = []
        recording = Recording()
        recording.MOST = 6
        for number, size in enumerate(sizes):
            answers = np.arange(size) * 10**number
            made = MeasureTruth(answers, SimulatedNoise(1))(query.counts(f"counts {number}", 1.0, size))
            found.append(made)
            recording.add(made)
        for where, whole in (("here", recording.measurements), ("there", Measurements(tuple(found)))):
            path = tmp_path / where
            whole.write(path)
            again = Measurements.read(path)
            assert again.spends == whole.spends == tuple(one.spend for one in found)
            for theirs, ours in zip(again, found, strict=True):
                assert theirs.answers.tolist() == ours.answers.tolist()
        assert isinstance(recording.measurements.parts, tuple) == (sum(sizes) <= 6)
        assert pq.read_metadata(path).num_row_groups == -(-sum(sizes) // 5)
        assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


@pytest.mark.parametrize("large", [False, True])
def test_answers_in_parts_have_32_bits_where_these_suffice(tmp_path, monkeypatch, large):
    monkeypatch.setattr(file, "ROWS", 5)
    true = np.array([3, 4, 5, 2**40 if large else 6, 7, 8, 9])
    asks = query.Query("counts", 1, 1.0, 7, lambda truth: (truth[:3], truth[3:]), in_parts=True)
    measure = MeasureTruth(true, SimulatedNoise(1))
    found = measure(asks)
    measure.end()
    with pytest.raises(TypeError):  # the true counts are gone
        measure(asks)
    assert np.abs(found.answers - true).max() < 100
    Measurements((found,)).write(tmp_path / "out")
    (again,) = MeasurementsFile(tmp_path / "out")
    assert again.answers.tolist() == found.answers.tolist()
    assert found.answers.dtype == again.answers.dtype == (np.int64 if large else np.int32)
    recorded = ReplayRecorded(Measurements((again,)))
    assert recorded(asks).answers.dtype == found.answers.dtype
    assert not recorded.ended
    recorded.end()
    assert recorded.ended
    whole = query.Query("counts", 1, 1.0, 7, lambda truth: truth)
    assert ReplayRecorded(Measurements((again,)))(whole).answers.dtype == np.int64


def queried(**changes):
    """A query and its measurement, which answers a query with these changes."""
    one = query.counts("counts", 0.5, 3)
    other = query.Query(**{name: getattr(one, name) for name in one.__dataclass_fields__} | changes)
    return one, MeasureTruth(np.array([3, 4, 5]), SimulatedNoise(1))(other)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "others"}, "the mechanism measures 'counts' with double-geometric noise"),
        ({"sensitivity": 2}, "for a sensitivity of 1, but the manifest has 'counts', double-geometric, 2"),
        ({"loss": 0.5000001}, "'counts' has 0.5 of the budget, but the manifest says 0.5000001"),
        ({"loss": 0.4}, "'counts' has 0.5 of the budget"),
        ({"of": lambda truth: truth[:2]}, "'counts' has 3 answers, but 2 are recorded"),
        ({"noise": "discrete Gaussian"}, "discrete Gaussian"),
    ],
)
def test_a_recorded_answer_is_for_its_query_only(changes, why):
    one, found = queried(**changes)
    with pytest.raises(OtherQuery, match=why):
        ReplayRecorded(Measurements((found,)))(one)
    ReplayRecorded(Measurements((queried()[1],)))(one)


def test_only_a_threshold_costs_a_delta():
    one, found = queried()
    spend = replace(found.spend, delta=1e-9)
    with pytest.raises(OtherQuery, match="costs a δ of 0, but the manifest says 1e-09"):
        ReplayRecorded(Measurements((replace(found, spend=spend),)))(one)


@pytest.mark.parametrize(("times", "fails"), [(1, False), (0.99, True), (1.01, True)])
def test_a_threshold_costs_its_delta(times, fails):
    (found,) = made("SH").measurements
    trips = flows(CASES["SH"].table, axes=CASES["SH"].options["axes"], count="n")
    one = queries.stable(trips, refinements(trips, None), trips_of_a_person(), 1.0, 1e-6, EXACT)
    assert found.spend.delta == pytest.approx(one.delta, rel=1e-9)
    claimed = replace(found, spend=replace(found.spend, delta=times * found.spend.delta))
    recorded = ReplayRecorded(Measurements((claimed,)))
    if fails:
        with pytest.raises(OtherQuery, match="costs a δ of"):
            recorded(one)
    else:
        assert recorded(one).positions.tolist() == found.positions.tolist()


def test_all_measurements_are_used_once():
    one, found = queried()
    recorded = ReplayRecorded(Measurements((found, found)))
    recorded(one)
    with pytest.raises(OtherQuery, match="does not measure 'counts'"):
        recorded.end()
    recorded = ReplayRecorded(Measurements((found,)))
    recorded(one)
    recorded.end()
    with pytest.raises(OtherQuery, match="which the budget does not list"):
        recorded(one)


@pytest.mark.parametrize("answer", [-1, 4])
def test_a_choice_is_among_its_candidates(answer):
    asks = query.choices("which", 1, 0.5, [4], lambda truth: [truth])
    found = MeasureTruth(np.zeros(4, np.int64), SimulatedNoise(1))(asks)
    assert found.spend.noise == CHOICE
    ReplayRecorded(Measurements((found,)))(asks)
    found.answers[0] = answer
    with pytest.raises(OtherQuery, match="not among its candidates"):
        ReplayRecorded(Measurements((found,)))(asks)


def test_sums_that_were_measured_twice_are_compared():
    groups = np.array([0, 1, 0, 1])
    measure = MeasureTruth(np.arange(4), Double(lambda true: true + 1))
    queries = query.counts("counts", 0.5, 4), query.sums("sums", 0.5, groups)
    assert [measure(each).answers.tolist() for each in queries] == [[1, 2, 3, 4], [3, 5]]
    recorded = ReplayRecorded(Measurements(tuple(_drawn(each) for each in queries)))
    for each in queries:
        recorded(each)
    recorded.end()
    (twice,) = recorded.redundant
    counts, sums = (part.noisy for part in recorded.recovered)
    assert twice.differences.tolist() == [counts[groups == group].sum() - sums[group] for group in range(2)]


@pytest.mark.parametrize("numbers", [1, 3])
def test_levels_of_a_tree_are_compared_where_both_were_measured(numbers):
    """As `of_tree` compares them: parents with their children's sums, with the laws of the two levels."""
    rng = np.random.default_rng(numbers)
    tree = Tree.random(rng, 4, branching=3, ragged=True)
    noise = SimulatedNoise(1)
    truth = tree.sum_up(rng.integers(0, 9, (tree.leaves.size, numbers)))

    def asks(level):
        nodes = tree.nodes_of(level)
        size = (nodes.stop - nodes.start) * numbers
        of = lambda true: true[nodes].ravel()  # noqa: E731
        return query.Query(f"level {level}", 1, 0.1 * level, size, of, level=(tree, level))

    measured = [1, 2, 4]
    made = {level: MeasureTruth(truth, noise)(asks(level)) for level in measured}
    recorded = ReplayRecorded(Measurements(tuple(made.values())))
    for level in measured:
        recorded(asks(level))
    noisy = np.zeros((tree.size, numbers), np.int64)
    laws = [None] * 5
    for level, one in made.items():
        noisy[tree.nodes_of(level)] = one.answers.reshape(-1, numbers)
        laws[level] = CountNoise(False, one.spend.scale)
    expected = list(of_tree(tree, noisy, laws, "counts"))
    recorded.end()
    found = recorded.redundant
    assert [one.what for one in found] == ["level 1 and level 2"]
    for one, other in zip(found, expected, strict=True):
        assert (one.differences == other.differences).all()
        assert (one.counts == other.counts).all()
        assert (one.law, one.own, one.chosen_of) == (other.law, other.own, None)


def test_sums_of_cells_are_compared_with_the_finest_answers_that_divide_them():
    """On each level; sums of cells that no other query divides are compared with none."""
    tree, rng = Tree([[0, 0, 0]]), np.random.default_rng(1)
    cells = {"total": [0] * 6, "two": [0, 0, 1, 1, 1, 1], "three": [0, 0, 1, 1, 2, 2], "odd": [0, 1] * 3}
    cells = {name: np.array(one) for name, one in cells.items()}
    queries, shapes = [], {}
    for level, nodes in enumerate((1, 3)):
        for name, one in cells.items():
            if (level, name) == (0, "odd"):
                continue
            shape = shapes[f"{name} by {level}"] = nodes, int(one.max()) + 1
            of = lambda size: rng.integers(0, 99, size)  # noqa: E731
            about = {"level": (tree, level), "cells": one}
            queries.append(query.Query(f"{name} by {level}", 1, 0.1, np.prod(shape), of, **about))
    made = [MeasureTruth(asks.answers, SimulatedNoise(1))(asks) for asks in queries]
    noisy = {one.spend.query: one.answers.reshape(shapes[one.spend.query]) for one in made}
    recorded = ReplayRecorded(Measurements(tuple(made)))
    for asks in queries:
        recorded(asks)
    recorded.end()
    found = {one.what: one for one in recorded.redundant}
    assert sorted(found) == [
        "three by 0 and three by 1",
        "total by 0 and three by 0",
        "total by 0 and total by 1",
        "total by 1 and three by 1",
        "two by 0 and three by 0",
        "two by 0 and two by 1",
        "two by 1 and three by 1",
    ]
    one, three = found["two by 1 and three by 1"], noisy["three by 1"]
    joined = np.stack([three[:, 0], three[:, 1] + three[:, 2]], axis=1)
    assert one.differences.tolist() == (noisy["two by 1"] - joined).ravel().tolist()
    assert one.counts.tolist() == [1, 2] * 3
    one = found["three by 0 and three by 1"]
    assert one.differences.tolist() == (noisy["three by 0"] - three.sum(axis=0)).ravel().tolist()
    assert one.counts.tolist() == [3, 3, 3]


def test_sums_of_a_level_of_a_tree():
    tree = Tree([[0, 0], [0, 0, 1]])
    asks = query.level_sums("counts by level 1", 0.5, tree, 1)
    assert asks.of(np.array([1, 2, 4])).tolist() == [3, 4]
    assert (asks.sensitivity, asks.answers) == (1, 2)


def _drawn(asks):
    return MeasureTruth(np.arange(4), SimulatedNoise(2))(asks)
