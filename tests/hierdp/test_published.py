"""`hierdp.open`, `hierdp.query`: a written release as an object."""

import pandas as pd
import pytest

import hierdp
from hierdp import InputError, Numbers, SimulatedNoise

AGES = pd.DataFrame({"age": [3, 17, 17, 40, 41]})
HOMES = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})


@pytest.fixture(scope="module")
def ages(tmp_path_factory):
    axes = [Numbers("age", 0, 100, 4)]
    made = hierdp.release(AGES, "clustering", epsilon=1, axes=axes, noise=SimulatedNoise(0))
    return made, made.write(tmp_path_factory.mktemp("r") / "ages")


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    made = hierdp.release(HOMES, "group-size", epsilon=1, groups=HOMES.drop_duplicates(), levels=["state"],
                          group=["home"], max_size=3)  # fmt: skip
    return made, made.write(tmp_path_factory.mktemp("r") / "homes & flats")


def test_what_was_written_is_read(ages, homes):
    for made, path in (ages, homes):
        opened = hierdp.open(path)
        pd.testing.assert_frame_equal(opened.table, made.table, check_dtype=False)
        assert opened.manifest["mechanism"] == made.mechanism
        assert opened.ledger["query"].tolist() == [spend.query for spend in made.ledger.spends]
        assert opened.ledger["epsilon"].sum() == pytest.approx(1)
        assert all(line.verdict != "fails" for line in opened.check())
        assert list(opened.regions) == list(made.regions)
    measured = hierdp.open(ages[1]).measurements
    assert [part.answers.tolist() for part in measured] == [p.answers.tolist() for p in ages[0].measurements]


def test_questions(ages, homes):
    counts = ages[0].table["count"]
    found = hierdp.open(ages[1]).query(["0:50", "50:100"])
    assert found["estimate"].tolist() == pytest.approx(
        [counts[:2].sum(), counts[2:].sum()], rel=1e-12
    )  # sums
    assert hierdp.query(ages[1], "0:50").equals(found[:1])
    table = homes[0].table
    answer = hierdp.query(homes[1], "state=A; size=1:3")
    mine = table[(table["region"] == "A") & table["size"].between(1, 2)]["groups"].sum()
    assert answer["estimate"].tolist() == [mine]
    with pytest.raises(InputError, match="unknown axis 'height'"):
        hierdp.query(ages[1], "height=0:1")


def test_a_release_shows_itself(ages, homes):
    assert repr(hierdp.open(ages[1])).endswith("ε = 1; simulated noise: NOT private)")
    opened = hierdp.open(homes[1])
    assert "ε = 1" in repr(opened)
    assert "NOT" not in repr(opened)
    page = opened._repr_html_()
    assert "homes &amp; flats" in page
    assert f"<p>{len(homes[0].table)} rows</p>" in page


def test_a_repair_has_no_ledger(tmp_path):
    noisy = pd.DataFrame({"state": [None, "A", "B"], "people": [10, 4, 9]})
    path = hierdp.repair(noisy, levels=["state"], count="people").write(tmp_path / "r")
    opened = hierdp.open(path)
    assert opened.ledger.empty
    assert opened.measurements is None
    assert "nothing was measured" in repr(opened)


def test_what_is_no_release_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing"):
        hierdp.open(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        hierdp.open(tmp_path / "empty")
