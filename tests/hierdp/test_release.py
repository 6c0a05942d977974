"""What a release states: its manifest and its files."""

import json
import platform
from dataclasses import replace
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
from doubles import hierarchy

import solvers
from hierdp import SimulatedNoise, release
from hierdp.errors import InputError
from hierdp.mechanisms.group_size import m_c_dp
from hierdp.mechanisms.top_down import inf_tda
from hierdp.record.spool import Spool
from hierdp.record.step import NotProved
from hierdp.tables import Flows, GroupSizes

FILES = {
    *("released.parquet", "released.csv", "finest.parquet", "finest.csv", "regions.csv"),
    *("manifest.json", "measurements.parquet", "proofs.zip", "report.html", "SHA256SUMS", "NOT-PRIVATE.txt"),
}


def small_sizes():
    places = hierarchy([[0, 0]])
    return GroupSizes(places, places.tree.sum_up(np.array([[3, 1, 2], [0, 5, 1]])))


def small_flows(count=40):
    axes = (hierarchy([[0, 0]], "o"), hierarchy([[0, 0], [0, 1, 1]], "d"))
    return Flows(axes, ("from", "to"), np.array([[0, 0], [1, 2]]), np.array([count, 20]))


@pytest.fixture
def made():
    return m_c_dp(small_sizes(), 1.0, SimulatedNoise(1))


def test_manifest_of_group_sizes(made):
    manifest = json.loads(json.dumps(made.manifest()))
    assert manifest["mechanism"] == "M_c^dp"
    assert manifest["warning"] == "SIMULATED NOISE: this release is NOT private"
    budget = manifest["budget"]
    assert (budget["private"], budget["epsilon"], budget["delta"]) == (False, 1.0, 0.0)
    assert budget["composition"] == "pure differential privacy"
    assert budget["neighbouring_relation"].startswith("one entity joins or leaves a group")
    assert [s["query"] for s in budget["spends"]] == [
        "cumulative sizes by root",
        "cumulative sizes by level1",
    ]
    assert [s["epsilon"] for s in budget["spends"]] == [0.5, 0.5]
    assert [s["scale"] for s in budget["spends"]] == [2.0, 2.0]
    assert budget["spent"] == 1.0
    assert manifest["settings"] == {
        "max_size": 2,
        "last_size_means": "this size or more",
        "groups": 12,
        "levels": ["root", "level1"],
    }
    assert [s["model"] for s in manifest["solved"]] == ["Isotonic", "HierarchyQIP"]
    assert [s.get("problems") for s in manifest["solved"]] == [3, None]
    for solved in manifest["solved"]:
        assert solved["proved_optimal"] is True
        assert solved["objective"] == solved["bound"]
        assert solved["seconds"] >= 0
    assert [s["variables"] for s in manifest["solved"]] == [9, 9]
    assert manifest["all_proved_optimal"] is True
    versions = manifest["versions"]
    assert versions["python"] == platform.python_version()
    assert versions["opendp"] == metadata.version("opendp")
    assert "not installed" not in versions.values()


def test_a_manifest_lists_a_step_that_is_not_proved(made):
    first, *others = made.steps
    solution = replace(first.solution, certificate=first.model.certificate([0, 9, 9] * 3))
    manifest = replace(made, steps=Spool([replace(first, solution=solution), *others])).manifest()
    assert manifest["all_proved_optimal"] is False
    assert [s["proved_optimal"] for s in manifest["solved"]] == [False, True]


def test_manifest_of_flows():
    made = inf_tda(small_flows(), 1.0, 1e-8, SimulatedNoise(1), "from")
    manifest = json.loads(json.dumps(made.manifest()))
    budget = manifest["budget"]
    assert (manifest["mechanism"], budget["delta"]) == ("InfTDA", 1e-8)
    assert budget["composition"] == "zero-concentrated differential privacy"
    assert budget["spent"] == pytest.approx(budget["rho"])
    assert "replaced" in budget["neighbouring_relation"]
    assert manifest["settings"] == {
        "axes": {"from": ["root", "olevel1"], "to": ["root", "dlevel1", "dlevel2"]},
        "order": ["from", "to", "to"],
        "total": 60,
    }
    assert [s["model"] for s in manifest["solved"]] == ["Chebyshev"] * 3


def test_release_records_where_regions_come_from():
    rows = pd.DataFrame({"s": ["A", "B"], "g": [1, 2]})
    seen = release(rows, "group-size", epsilon=1, levels=["s"], group=["g"], max_size=2,
        regions_from_data=True, groups_from_data=True)  # fmt: skip
    assert seen.taken_as_public["regions"] == "as seen in the data, which makes them public"
    assert seen.taken_as_public["which_groups"] == "those with a row in the data, which makes them public"
    places = hierarchy([[0, 0]])
    rows["s"] = places.names[1]
    listed = release(rows, "group-size", epsilon=1, regions=places, region="s", group=["g"],
        max_size=2, groups_from_data=True)  # fmt: skip
    assert listed.taken_as_public["regions"] == "from a table of regions"
    both = release(rows, "top-down", epsilon=1, delta=1e-8, axes={"a": (places, "s"), "b": (places, "s")})
    assert both.taken_as_public["regions"] == "from a table of regions"
    one = release(
        rows, "top-down", epsilon=1, delta=1e-8, axes={"a": (places, "s"), "b": ["s"]}, regions_from_data=True
    )
    assert one.taken_as_public["regions"] == "as seen in the data, which makes them public"


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (
            "group-sizes",
            {},
            "no mechanism 'group-sizes'; did you mean 'group-size'\\? There are .*'top-down'",
        ),
        ("group-size", {"branching": 2}, "group-size takes no branching; it takes delta, group, .*window"),
        ("group-size", {"first": "a"}, "group-size takes no first"),
        ("group-size", {"group": ["g"]}, "group-size needs max_size"),
        ("top-down", {"axes": {"a": ["s"]}}, "top-down needs delta"),
        ("top-down", {"axes": {"a": ["s"]}, "delta": 2}, "delta is 2.0"),
        ("top-down", {"axes": {"a": ["s"]}, "delta": None}, "delta must be a number"),
        ("group-size", {"epsilon": "no"}, "epsilon must be a number"),
    ],
)
def test_release_refuses_bad_input(mechanism, options, message):
    rows = pd.DataFrame({"s": ["A"], "g": [1]})
    with pytest.raises(InputError, match=message):
        release(rows, mechanism, **{"epsilon": 1, **options})


def test_files(made, tmp_path):
    path = made.write(tmp_path / "out")
    assert {file.name for file in path.iterdir()} == FILES
    assert (path.stat().st_mode & 0o777) == 0o755
    tables = (pd.read_parquet(path / "released.parquet"), made.table)
    first, second = (table.fillna({"parent": ""}) for table in tables)  # pandas 2 reads nan as None
    pd.testing.assert_frame_equal(first, second)
    again = pd.read_csv(path / "released.csv", dtype={"parent": str}, keep_default_na=False)
    assert again["groups"].tolist() == made.table["groups"].tolist()
    assert json.loads((path / "manifest.json").read_text())["settings"] == made.settings
    assert {file.name for file in made.write(tmp_path / "bare", report=False).iterdir()} == FILES - {
        "report.html"
    }
    page = (path / "report.html").read_text()
    assert "<svg" in page
    for fetched in ("http://", "https://", "<script", "<link", "src=", "@import", "url("):
        assert fetched not in page.replace("url(#", "")  # references within the page


def test_an_answer_that_is_not_proved_is_no_release(monkeypatch):
    good = solvers.solve

    def lies(model):
        from dataclasses import replace

        return replace(good(model), status="feasible", message="a gap of 1")

    monkeypatch.setattr(solvers, "solve", lies)
    with pytest.raises(
        NotProved, match=r"monotone sizes from root all on: feasible; a gap of 1\. Please report this"
    ):
        m_c_dp(small_sizes(), 1.0, SimulatedNoise(1))
