"""Questions to releases of every kind: sums over regions and categories, and errors that name the cause."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import InputError, Numbers, SimulatedNoise, query, release, repair
from hierdp.cli import main
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_table import SizeTable
from hierdp.mechanisms.range_query.reading import read_answers
from hierdp.questions.tables import Questions
from tests.hierdp.test_repair import COLUMNS, EVERY
from tests.hierdp.test_repair import table as noisy

PLACES = Hierarchy.from_columns({"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}, ["state", "county"])
SIZES = SizeTable(PLACES, PLACES.tree.sum_up(np.array([[1, 2, 4], [8, 16, 32], [64, 128, 256]])))


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", 511),
        ("state=A", 63),
        ("region=A", 63),
        ("county=A1|B1", 455),
        ("county=A2; size=1", 16),
        ("state=A;size=1:", 54),
        ("size=:2; county=A1", 3),
        ("region=all; size=0|2", 9 * 1 + 64 + 292),
    ],
)
@pytest.mark.parametrize("parts", [True, False])
def test_sums_of_sizes(text, answer, parts):
    table = SIZES if parts else SIZES.frame()
    found = Questions(table, {}, {"region": PLACES}).ask(text)
    assert found.estimate == answer
    assert np.isnan(found.standard_error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("county=A11", "unknown name 'A11'; did you mean 'A1'"),
        ("town=A1", "no column 'town'; there are 'region', 'size', 'state', 'county'"),
        ("size=3", "unknown name '3'"),
        ("size=2:1", "1 comes before 2"),
        ("size=a:b", "write sizes as whole numbers"),
        ("region=A|A1", "'A', 'A1' are not regions of one level"),
        ("state=A; county=A1", "'region' is selected twice"),
        ("state", "write COLUMN=NAME"),
        ("state=A; state=B", "'state' is named twice"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(text, message):
    with pytest.raises(InputError, match=message):
        Questions(SIZES.frame(), {}, {"region": PLACES}).ask(text)


FROM, TO = PLACES, Hierarchy.flat("place", ["X", "Y"])
CELLS = [("A1", "X", 1), ("A1", "Y", 2), ("A2", "X", 4), ("B1", "X", 8), ("B1", "Y", 16)]


def cells():
    """A table over two axes, refined in the order o, d, o, without empty cells."""
    rows = []
    for level, (o, d) in enumerate([(0, 0), (1, 0), (1, 1), (2, 1)]):
        sums = {}
        for county, place, count in CELLS:
            key = (["all", county[0], county][o], ["all", place][d])
            sums[key] = sums.get(key, 0) + count
        rows += [(level, FROM.levels[o], key[0], TO.levels[d], key[1], n) for key, n in sums.items()]
    return pd.DataFrame(rows, columns=["level", "o_level", "o", "d_level", "d", "count"])


ORDER = {"axes": {"o": list(FROM.levels), "d": list(TO.levels)}, "order": ["o", "d", "o"]}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", 31),
        ("o=A1", 3),
        ("state=A; place=X", 5),
        ("d.place=Y", 18),
        ("o=A2; d=X|Y", 4),
        ("o=A2;d=Y", 0),
        ("d.root=all; county=A1", 3),
    ],
)
def test_cells_of_two_axes_are_summed_over_what_is_not_named(text, answer):
    assert Questions(cells(), ORDER, {"o": FROM, "d": TO}).ask(text).estimate == answer


def test_regions_of_a_coarser_level_stand_for_those_below_them():
    order = {**ORDER, "order": ["o", "o", "d"]}  # places are known for counties only
    assert Questions(cells(), order, {"o": FROM, "d": TO}).ask("state=A; place=X").estimate == 5


def test_one_row_of_several_cells_has_no_known_standard_error():
    questions = Questions(cells().assign(standard_error=2.0), ORDER, {"o": FROM, "d": TO})
    assert questions.ask("o=A2; d=X")[:2] == (4, 2.0)
    assert np.isnan(questions.ask("o=A2; d=X|Y").standard_error)


LISBON = Hierarchy.from_columns(
    {"district": ["Évora", "Lisboa", "Lisboa"], "town": ["Évora", "Lisboa", "Sintra"]}, ["district", "town"]
)


@pytest.mark.parametrize("axes", [["region"], ["origin", "destination"]])
def test_a_name_on_two_levels_is_refused_with_questions_that_are_taken(axes, tmp_path):
    rows = pd.DataFrame({axis: ["Lisboa", "Sintra", "E\u0301vora"] for axis in axes} | {"n": [1, 2, 4]})
    made = {"axes": {axis: (LISBON, axis) for axis in axes}, "count": "n", "noise": SimulatedNoise(0)}
    release(rows, "top-down", epsilon=1e4, delta=1e-6, bounded=False, **made).write(tmp_path / "made")
    with pytest.raises(InputError, match="'Lisboa' is on several levels; write ") as refused:
        query(tmp_path / "made", f"{axes[0]}=Lisboa")
    choices = re.findall("'([^']*)'", str(refused.value).partition("write")[2])
    with pytest.raises(InputError, match="no column 'x'; there are ") as refused:
        query(tmp_path / "made", "x=1")
    columns = re.findall("'([^']*)'", str(refused.value).partition("there are")[2])[len(axes) :]
    for form in ("Évora", "E\u0301vora"):
        asked = [*choices, *(f"{column}={form}" for column in columns)]
        assert query(tmp_path / "made", asked).estimate.tolist() == [3, 1, *[4] * len(columns)]


def test_a_level_of_two_axes_needs_the_name_of_one():
    with pytest.raises(InputError, match=r"'root' is a level of several axes; write 'o.root', 'd.root'"):
        Questions(cells(), ORDER, {"o": FROM, "d": TO}).ask("root=all")


def test_the_command_answers_questions_of_a_file(tmp_path):
    made = repair(noisy(EVERY), **COLUMNS)
    out, lines = made.write(tmp_path / "out"), tmp_path / "questions.txt"
    lines.write_text("county=A1|B2\n\nstate=A\n")
    answered = run("query", out, "--file", lines, "--csv")
    assert answered.exit_code == 0, answered.output
    count = made.table.set_index("region")["count"]
    both = f"county=A1|B2,{count['A1'] + count['B2']},"
    assert answered.output.splitlines()[1:] == [both, f"state=A,{count['A']},"]
    assert "not known" in run("query", out, "--where", "state=A").output
    assert "unknown name 'Z'" in run("query", out, "--where", "state=Z").output
    assert "by --where" in run("query", out, "--range", "1:2").output


def test_a_single_row_has_its_standard_error_and_a_sum_has_none():
    made = repair(noisy(EVERY), **COLUMNS, standard_error="se", method="least-squares")
    questions = Questions(made.table, made.settings, made.regions)
    row = made.table.set_index("region").loc["A1"]
    assert questions.ask("county=A1")[:2] == (row["count"], row.standard_error)
    assert np.isnan(questions.ask("county=A1|A2").standard_error)


def test_categories_of_a_tabulation_may_have_no_row():
    rows = [(0, "root", "all", None, "old", 3), (1, "state", "A", "all", "old", 1)]
    rows.append((1, "state", "B", "all", "old", 2))
    table = pd.DataFrame(rows, columns=["level", "level_name", "region", "parent", "age", "count"])
    states = Hierarchy.flat("state", ["A", "B"])
    questions = Questions(table, {"plan": {"attributes": {"age": ["young", "old"]}}}, {"region": states})
    answered = ["age=young", "age=old|young; state=B", "state=A; age=old"]
    assert [questions.ask(text).estimate for text in answered] == [0, 2, 1]
    with pytest.raises(InputError, match="unknown name 'odd'; did you mean 'old'"):
        questions.ask("age=odd")


@pytest.mark.slow
def test_ranges_of_a_histogram_by_clusters_are_sums_of_its_bins(tmp_path):
    people = pd.DataFrame({"age": np.arange(40) % 10})
    people.to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "out"
    made = run("release", "clustering", tmp_path / "people.csv", "--numbers", "age=0:10", "--method", "NF",
               "--epsilon", 1, "--out", out)  # fmt: skip
    assert made.exit_code == 0, made.output
    counts = pd.read_csv(out / "released.csv")["count"].to_numpy()
    answered = run("query", out, "--range", "2:5", "--csv").output.splitlines()
    _, held, error, lower, upper = answered[1].split(",")
    assert float(held) == pytest.approx(counts[2:5].sum())
    assert error == ""  # cuts depend on the data
    assert float(lower) <= float(held) <= float(upper)
    assert "it answers ranges (--range)" in run("query", out, "--where", "age=1").output
    assert "give one of them" in run("query", out, "--where", "age=1", "--range", ":").output


@pytest.mark.parametrize(("options", "known"), [({"repair": "whole"}, False), ({}, True)])
def test_a_histogram_says_what_is_known_of_its_errors(tmp_path, capsys, options, known):
    people = pd.DataFrame({"age": np.arange(40) % 10})
    axes, noise = [Numbers("age", 0, 10)], SimulatedNoise(1)
    out = release(people, "range-query", epsilon=1, axes=axes, noise=noise, **options).write(tmp_path / "out")
    linear = release(people, "range-query", epsilon=1, axes=axes, noise=SimulatedNoise(1))
    capsys.readouterr()
    main(["query", str(out), "--range", "2:5", "--confidence", "0.9", "--csv"], standalone_mode=False)
    printed = capsys.readouterr()
    (row,) = pd.read_csv(io.StringIO(printed.out)).to_dict("records")
    exact = linear.range(2, 5).standard_error
    assert row["standard_error" if known else "before_repair"] == pytest.approx(float(exact))
    assert known or np.isnan(row["standard_error"])
    assert 0 <= row["lower"] < row["upper"]


def test_sums_of_bins_without_clusters_have_their_standard_error(tmp_path):
    people = pd.DataFrame({"age": np.arange(40) % 10})
    made = release(people, "clustering", method="Laplace", epsilon=1, axes=[Numbers("age", 0, 10)],
                   noise=SimulatedNoise(1))  # fmt: skip
    answers = read_answers(made.write(tmp_path / "out", report=False))
    one = made.table["standard_error"].iloc[0]
    assert answers.range([2, 4], [6, 5]).standard_error.tolist() == pytest.approx([2 * one, one])
    assert answers.before_repair is None
