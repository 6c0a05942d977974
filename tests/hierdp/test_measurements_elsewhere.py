"""Noisy counts from elsewhere: read, refused by row, taken from other programs, repaired, given back."""

import math
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hierdp import InputError, Measurements, repair
from hierdp.checking import FAILS, check
from hierdp.measurements.elsewhere import Picked, of_mbi

ROWS = pd.DataFrame({
    "state": [None, "A", "A", "A", "B", "B", "B"],
    "county": [None, None, "A1", "A2", None, "B1", "B2"],
    "n": [12, 9, 4, 4, 4, -3, 6],
    "se": [1.0, 2, 1, 1, 2, 1, 3],
    "law": ["unknown", *["Laplace"] * 6],
})  # fmt: skip
KEYS = ["state", "county"]


def changed(**cells):
    frame = ROWS.astype(object)
    for column, (row, value) in cells.items():
        frame.loc[row, column] = value
    return frame


def test_what_a_table_does_not_say_is_unknown():
    made = Measurements.from_frame(ROWS, KEYS, "n")
    assert made.from_elsewhere
    assert [(one.spend.query, one.answers.size) for one in made] == [
        ("the total", 1),
        ("counts by state", 2),
        ("counts by state, county", 4),
    ]
    for one in made:
        assert one.spend.noise == "unknown"
        assert math.isnan(one.spend.sensitivity)
        assert math.isnan(one.spend.scale)
        assert (one.spend.epsilon, one.spend.rho, one.spend.private) == (None, None, False)
        assert np.isnan(one.errors).all()


@pytest.mark.parametrize(
    ("law", "variance"),
    [
        ("Laplace", 2 * 1.5**2),
        ("Gaussian", 1.5**2),
        ("discrete Gaussian", 1.5**2),
        (
            "double-geometric",
            sum(k * k * math.exp(-abs(k) / 1.5) for k in range(-99, 100)) * math.tanh(1 / 3),
        ),
    ],
)
def test_a_scale_gives_the_standard_error_of_its_law(law, variance):
    frame = Measurements.from_frame(ROWS, KEYS, "n", scale=1.5, law=law).to_frame()
    assert frame.standard_error.to_numpy() == pytest.approx([math.sqrt(variance)] * 7, rel=1e-6)
    assert set(frame.scale) == {1.5}
    assert set(frame.noise) == {law}


@pytest.mark.parametrize("spread", ["standard_error", "scale"])
def test_a_frame_goes_in_and_out_without_change(spread):
    frame = ROWS.sample(frac=1, random_state=3)
    law = "law" if spread == "standard_error" else "Gaussian"
    once = Measurements.from_frame(frame, KEYS, "n", **{spread: "se"}, law=law).to_frame()
    assert once["count"].tolist() == frame.n.tolist()
    assert once.standard_error.tolist() == frame.se.tolist()
    assert once.county.fillna("").tolist() == frame.county.fillna("").tolist()
    again = Measurements.from_frame(once, KEYS, "count", **{spread: spread}, law="noise").to_frame()
    pd.testing.assert_frame_equal(once, again)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.concat([ROWS, ROWS.iloc[[3]]]), {}, "county 'A2' has two rows, 4 and 8: keep one"),
        (pd.concat([ROWS, ROWS.iloc[[0]]]), {}, "the total has two rows, 1 and 8"),
        (changed(n=(2, None)), {}, "row 3, county 'A1': column 'n' is empty. fill it"),
        (ROWS.assign(n=[*"12", "many", *"3456"]), {}, "row 3, county 'A1': column 'n' does not contain"),
        (changed(n=(2, math.inf)), {}, "row 3, county 'A1': column 'n' does not contain"),
        (
            changed(se=(1, 0)),
            {"standard_error": "se"},
            "row 2, state 'A': the standard error is not positive",
        ),
        (
            changed(se=(1, -2)),
            {"scale": "se", "law": "Laplace"},
            "row 2, state 'A': the scale is not positive",
        ),
        (
            ROWS.assign(se=[*"1x", *"34567"]),
            {"standard_error": "se"},
            "row 2, state 'A': column 'se' does not contain",
        ),
        (changed(law=(5, "Cauchy")), {"law": "law"}, "row 6, county 'B1': 'Cauchy' is no law of noise"),
        (ROWS, {"law": "law", "scale": "se"}, "row 1, the total: a scale means nothing without the law"),
        (ROWS, {"law": "laplace"}, "no law, and no column of laws, 'laplace'"),
        (ROWS, {"scale": 1, "standard_error": 1}, "not both"),
        (ROWS, {"scale": "sd", "law": "Laplace"}, "no column 'sd' in the table of counts"),
        (ROWS.iloc[:0], {}, "has no rows"),
        (ROWS.rename(columns={"county": "noise"}), {"keys": ["noise"]}, "a key cannot be called 'noise'"),
        (ROWS, {"keys": []}, "no keys"),
    ],
)
def test_bad_rows_are_named(frame, options, message):
    with pytest.raises(InputError, match=message):
        Measurements.from_frame(frame, **{"keys": KEYS, "count": "n", **options})


def test_their_repair_is_that_of_the_table_and_claims_no_privacy(tmp_path):
    made = Measurements.from_frame(ROWS, KEYS, "n", standard_error="se", law="law")
    ours = repair(made, levels=KEYS, method="hierarchy-qip", fixed=["root"])
    table = repair(ROWS, levels=KEYS, count="n", standard_error="se", fixed=["root"])
    pd.testing.assert_frame_equal(ours.table, table.table)
    assert ours.settings["weights"] == "1 / standard error²"
    out = ours.write(tmp_path / "out")
    found = {line.check: line.verdict for line in check(out)}
    assert FAILS not in found.values()
    assert found["privacy"] == "not claimed"
    assert ours.manifest()["budget"] is None
    equal = repair(Measurements.from_frame(ROWS, KEYS, "n"), levels=KEYS)
    assert equal.settings["weights"] == "equal"


def test_counts_that_are_no_tree_and_measurements_of_releases_are_refused(tmp_path):
    frame = ROWS.replace({"county": {"A2": "B1"}})
    with pytest.raises(InputError, match="region 'B1' of level 'county' has two parents"):
        repair(Measurements.from_frame(frame, KEYS, "n"), levels=KEYS)
    made = Measurements.from_frame(ROWS, KEYS, "n")
    with pytest.raises(InputError, match="write to_frame"):
        made.write(tmp_path / "m.parquet")
    with pytest.raises(InputError, match="measurements of a release"):
        repair(Measurements(()), levels=KEYS)


DOMAIN = SimpleNamespace(attributes=("sex", "age"), shape=(2, 3), labels=None)


def linear(values, clique, stddev=1.0, query=lambda factor: factor.datavector()):
    return SimpleNamespace(noisy_measurement=values, clique=clique, stddev=stddev, query=query)


def test_margins_of_mbi_keep_cells_and_errors():
    given = [
        linear([99.5], ()),
        linear(np.arange(6.0), ("age", "sex"), 2.5),
        linear([7.0, 8.0], ("age",), 0.5, lambda factor: factor.datavector()[1:]),
    ]
    frame = Measurements.from_mbi(given, DOMAIN).to_frame()
    assert frame[["age", "sex"]].fillna("").to_numpy().tolist() == [
        ["", ""],
        *[[age, sex] for age in "012" for sex in "01"],
        *(["1", ""], ["2", ""]),
    ]
    assert frame["count"].tolist() == [99.5, *range(6), 7, 8]
    assert frame.standard_error.tolist() == [1.0, *[2.5] * 6, 0.5, 0.5]
    assert set(frame.noise) == {"unknown"}


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (linear([1.0], ("height",)), "measurement 0: 'height' is not an attribute"),
        (linear([1.0], ("sex",)), "does not pick single counts"),
        (linear([1.0, 2], ("sex",), query=lambda f: 2 * f.datavector()), "does not pick single counts"),
        (linear([1.0], ("sex",), query=lambda f: f.datavector().sum()), "does not pick single counts"),
        (linear([1.0], ("age",), query=lambda f: f.datavector()[:2].mean()), "does not pick single counts"),
        (linear([1.0, math.nan], ("sex",)), "not all finite"),
        (linear([1.0, 2], ("sex",), 0), "stddev is not positive"),
    ],
)
def test_measurements_of_mbi_that_are_no_counts_are_refused(one, message):
    with pytest.raises(InputError, match=message):
        of_mbi([one], DOMAIN)


class Mechanism(Enum):
    LAPLACE = 1
    GEOMETRIC = 2
    DISCRETE_GAUSSIAN = 3
    EXPONENTIAL = 4


@pytest.mark.parametrize(("law", "scale"), [("GEOMETRIC", 4), ("DISCRETE_GAUSSIAN", 2), ("LAPLACE", 4)])
def test_counts_of_tumult_have_their_law_and_scale(law, scale):
    """In Tumult the parameter of Gaussian noise is its variance."""
    table = pd.DataFrame({"X": [0, 1], "count": [5, 7]})
    info = [{"noise_mechanism": Mechanism[law], "noise_parameter": 4}]
    (one,) = Measurements.from_tumult(table, info, "count")
    assert (one.spend.scale, one.answers.tolist(), one.keys["X"].tolist()) == (scale, [5, 7], ["0", "1"])
    assert one.spend.noise.lower().replace("double-", "").replace(" ", "_") == law.lower()


def test_other_noise_of_tumult_is_refused():
    table = pd.DataFrame({"X": [0, 1], "count": [5, 7]})
    with pytest.raises(InputError, match="EXPONENTIAL is not noise on counts"):
        Measurements.from_tumult(
            table, [{"noise_mechanism": Mechanism.EXPONENTIAL, "noise_parameter": 1}], "count"
        )
    with pytest.raises(InputError, match="2 mechanisms"):
        Measurements.from_tumult(table, [{}, {}], "count")


def test_counts_of_opendp_have_the_law_of_its_summary():
    table = pd.DataFrame({"grade": ["1", "2"], "len": [20, 31], "pets": [4, 5]})
    summary = pd.DataFrame({
        "column": ["len", "pets"],
        "aggregate": ["Frame Length", "Sum"],
        "distribution": ["Integer Gaussian", "Exponential"],
        "scale": [2.0, 5.0],
    })  # fmt: skip
    (one,) = Measurements.from_opendp(table, summary)
    assert (one.spend.noise, one.spend.scale, list(one.keys)) == ("discrete Gaussian", 2.0, ["grade"])
    with pytest.raises(InputError, match="'Exponential' is not noise on counts"):
        Measurements.from_opendp(table, summary, "pets")
    with pytest.raises(InputError, match="no column 'n'"):
        Measurements.from_opendp(table, summary, "n")
    with pytest.raises(InputError, match="under a threshold"):
        Measurements.from_opendp(table, summary.assign(threshold=[33, None]))


def test_a_list_of_opendp_has_the_scale_that_it_was_made_with():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    counts = (space >> dp.m.then_laplace(scale=1e-9))([3, 1, 4])
    frame = pd.DataFrame({"bin": range(3), "n": counts})
    made = Measurements.from_frame(frame, ["bin"], "n", scale=2.0, law="double-geometric").to_frame()
    assert made["count"].tolist() == [3, 1, 4]


NMF = pd.DataFrame({  # written as in 2020-pl94-nmf-parquets, but for the sizes
    "geocode": ["050100011", "050100011", "050100011", "050100013", "050100013", "050100013"],
    "query_name": ["total_dpq", "hispanic * cenrace_dpq", "hhinstlevels_dpq", "detailed_dpq",
                   "hispanic * cenrace_dpq", "nurse_nva_0_con"],
    "sign": [None] * 5 + ["="],
    "hhgq": ["*", "*", "hhinstlevels", "detailed", "*", "gqNursingTotal"],
    "hispanic": ["*", "hispanic", "*", "detailed", "hispanic", "*"],
    "cenrace": ["*", "cenrace", "*", "detailed", "cenrace", "*"],
    "query_shape": [[1, 1, 1], [1, 2, 3], [2, 1, 1], [4, 2, 3], [1, 2, 3], [1, 1, 1]],
    "value": [[50], list(range(6)), [30, -2], list(range(24)), list(range(6, 12)), [0]],
    "variance": np.array([4, 9, 1, 16, 9, 0], np.float32),
    "plb": ["1/5"] * 5 + [None],
    "State": 50,
})  # fmt: skip
QUERIES = NMF[NMF["sign"].isna()].drop(columns="sign")


@pytest.mark.parametrize("table", [NMF, QUERIES], ids=["with constraints", "of queries"])
def test_a_noisy_measurement_file_has_a_margin_for_each_kind_of_query(table, tmp_path):
    folder = tmp_path / "State=50"  # a folder of the file, which is a column of what is read
    folder.mkdir()
    table.drop(columns="State").to_parquet(folder / "part-0.parquet")
    made = Measurements.from_census(pd.read_parquet(tmp_path))
    assert [list(one.keys) for one in made] == [
        ["geocode"],
        ["geocode", "hispanic", "cenrace"],
        ["geocode", "hhinstlevels"],
        ["geocode", "hhgq", "hispanic", "cenrace"],
    ]
    assert [one.errors[0] for one in made] == [2, 3, 1, 4]
    pairs = made.parts[1]
    cells = list(zip(*pairs.keys.values(), strict=True))
    assert cells == [(g, h, c) for g in ("050100011", "050100013") for h in "01" for c in "012"]
    assert pairs.answers.tolist() == list(range(12))
    assert made.to_frame()["count"].tolist() == [n for row in QUERIES["value"] for n in row]
    assert {one.spend.noise for one in made} == {"discrete Gaussian"}


def test_a_noisy_measurement_file_of_units_has_one_attribute():
    table = pd.DataFrame({
        "geocode": ["050100011"], "query_name": ["detailed_dpq"], "h1": ["detailed"], "query_shape": [[2]],
        "value": [[30, 80]], "variance": [25.0],
    })  # fmt: skip
    (one,) = Measurements.from_census(table)
    assert (list(one.keys), one.keys["h1"].tolist(), one.answers.tolist()) == (
        ["geocode", "h1"],
        ["0", "1"],
        [30, 80],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": [[1, 2]]}, "row 1, 'total_dpq' of geocode '050100011': 2 answers do not fit the shape"),
        ({"variance": [0.0]}, "row 1, .* its variance is not positive"),
        ({"query_shape": [[2, 1, 1]], "value": [[1, 2]]}, "'hhgq' is summed, but has several sizes"),
        ({"age": ["*"]}, "do not fit the shape .* of 'hhgq', 'hispanic', 'cenrace', 'age'"),
    ],
)
def test_rows_of_a_noisy_measurement_file_that_do_not_fit_are_named(change, message):
    with pytest.raises(InputError, match=message):
        Measurements.from_census(QUERIES.iloc[:1].assign(**change))
    with pytest.raises(InputError, match="no column 'variance'"):
        Measurements.from_census(NMF.drop(columns="variance"))


MARGINS = pd.DataFrame({
    "sex": ["f", "m", "m", "f", None],
    "age": ["old", "old", "young", "young", None],
    "n": [1, 2, 3, 4, 10.5],
})  # fmt: skip


def stand_in(monkeypatch):
    def made(noisy, clique, stddev, query=lambda factor: factor.datavector()):
        return linear(noisy, clique, stddev, query)

    monkeypatch.setitem(__import__("sys").modules, "mbi", SimpleNamespace(LinearMeasurement=made))


@pytest.mark.parametrize("dropped", [None, 2])
def test_margins_go_to_mbi_and_back(dropped, monkeypatch):
    stand_in(monkeypatch)
    frame = MARGINS if dropped is None else MARGINS.drop(dropped)
    if dropped is not None:  # so that all categories are known
        frame = pd.concat([frame, pd.DataFrame({"age": ["young"], "n": [7.0]})], ignore_index=True)
    made = Measurements.from_frame(frame, ["sex", "age"], "n", standard_error=2.0)
    assert made.categories == {"sex": ("f", "m"), "age": ("old", "young")}
    given = made.to_mbi()
    if dropped is None:
        assert given[0].noisy_measurement.tolist() == [1, 4, 2, 3]
    assert (dropped is None) == (not any(isinstance(one.query, Picked) for one in given))
    names = made.categories
    domain = SimpleNamespace(attributes=tuple(names), shape=(2, 2), labels=tuple(names.values()))
    back = Measurements.from_mbi(given, domain).to_frame()
    order = ["sex", "age", "count"]
    one, two = (
        table[order].fillna("").sort_values(order, ignore_index=True) for table in (made.to_frame(), back)
    )
    pd.testing.assert_frame_equal(one, two)
    assert set(back.standard_error) == {2.0}


def test_mbi_needs_standard_errors_and_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mbi", None)
    with pytest.raises(InputError, match="pip install mbi"):
        Measurements.from_frame(MARGINS, ["sex", "age"], "n").to_mbi()
    stand_in(monkeypatch)
    with pytest.raises(InputError, match="a standard error of counts by sex, age is unknown"):
        Measurements.from_frame(MARGINS, ["sex", "age"], "n").to_mbi()


def test_mbi_itself_estimates_from_what_it_is_given():
    mbi = pytest.importorskip("mbi")
    made = Measurements.from_frame(MARGINS, ["sex", "age"], "n", standard_error=1.0)
    domain = mbi.Domain.fromdict({key: len(names) for key, names in made.categories.items()})
    found = mbi.estimation.MirrorDescent().estimate(domain, made.to_mbi())
    values = np.asarray(found.project(("sex", "age")).datavector())
    assert values == pytest.approx([1, 4, 2, 3], abs=0.5)
    assert len(Measurements.from_mbi(made.to_mbi(), domain).to_frame()) == 5
