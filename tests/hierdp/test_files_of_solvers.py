"""Solution files of solvers, by value; and HiGHS's reader as a second opinion on problems."""

import gzip
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

from hierdp.bench.answers import read_answer
from hierdp.bench.reading import read_by_highs, second_opinion
from hierdp.cli import main
from hierdp.errors import InputError
from models.programs.read import read_program
from models.programs.write import quiet_highs
from tests.marks import quick

TENTH = Fraction(1, 10)


def answer(tmp_path, text, name="a.sol"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_answer(tmp_path / name)


MOSEK = """NAME                :
PROBLEM STATUS      : PRIMAL_AND_DUAL_FEASIBLE
SOLUTION STATUS     : {status}
OBJECTIVE NAME      : obj
PRIMAL OBJECTIVE    : 1.000e+00
DUAL OBJECTIVE      : 1.000e+00

CONSTRAINTS
INDEX      NAME           AT ACTIVITY        LOWER LIMIT        UPPER LIMIT
0          x y            UL 9.0000000000    NONE               9.0000000000

VARIABLES
INDEX      NAME           AT ACTIVITY        LOWER LIMIT        UPPER LIMIT
0          x y            BS 0.1000000000    0.0000000000       NONE
1          z              LL 0.0000000000    0.0000000000       NONE
"""

GLPK = """Problem:    p
Rows:       1
Columns:    2
Non-zeros:  2
Status:     {status}
Objective:  obj = 1 (MINimum)

   No.   Row name   St   Activity     Lower bound   Upper bound    Marginal
------ ------------ -- ------------- ------------- ------------- -------------
     1 x y          NU             9                           9         < eps

   No. Column name  St   Activity     Lower bound   Upper bound    Marginal
------ ------------ -- ------------- ------------- ------------- -------------
     1 x y          B            0.1             0
     2 z            NL             0             0                           7

Karush-Kuhn-Tucker optimality conditions:

KKT.PE: max.abs.err = 0.00e+00 on row 0
"""

CPLEX = """<?xml version = '1.0' encoding='UTF-8' standalone="yes"?>
<CPLEXSolution version="1.2">
 <header problemName="p" solutionName='{name}' solutionStatusString="{status}" objectiveValue="1"/>
 <linearConstraints><constraint name="x y" index="0" slack="9"/></linearConstraints>
 <variables>
  <variable index="0" value='0.1' name='x y'/>
  <variable name="z" index="1"
            value="0"/>
 </variables>
</CPLEXSolution>
"""

TEXTS = {
    "highs": ("Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n"
              "# Columns 2\nx y 0.1\nz 0\n# Rows 1\nx y 9\n\n# Dual solution values\nFeasible\n"
              "# Columns 2\nx y 0\nz 7\n", "optimal"),
    "highs sparse": ("Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n"
                     "# Columns -1 sparse\nx y 0.1 0\n", "optimal"),
    "highs table": ("Columns\n"
                    "    Index Status        Lower        Upper       Primal         Dual  Type        Name\n"
                    "        0     BS            0          inf          0.1               Integer     x y\n"
                    "        1                   0            3            0               Continuous  z\n"
                    "Rows\n    Index Status        Lower        Upper       Primal         Dual  Name\n"
                    "        0                   7          inf            9               x y\n\n"
                    "Model status: Optimal\n\nObjective value: 1\n", "optimal"),
    "scip": ("solution status: optimal solution found\nobjective value:                  1\n"
             "x y                                 0.1 \t(obj:1)\n", "optimal"),
    "scip exact": ("solution status: optimal\nobjective value: 1\nx y 1/10 (obj:1)\n", "optimal"),
    "scip stopped": ("solution status: time limit reached\nobjective value: 1\nx y 0.1\n", "feasible"),
    "gurobi": ("# Solution for model p\n# Objective value = 1\nx y 0.1\nz 0\n", None),
    "miplib": ("=obj= 1\nx y 0.1\n", None),
    "cbc": ("Optimal - objective value 1.00000000\n      0 x y           0.1             9\n", "optimal"),
    "cbc stopped": ("Stopped on time - objective value 1.0\n**     0 x y   1e-1   9\n", "feasible"),
    "mosek": (MOSEK.format(status="OPTIMAL"), "optimal"),
    "mosek integer": (MOSEK.format(status="INTEGER_OPTIMAL"), "optimal"),
    "glpk": (GLPK.format(status="OPTIMAL"), "optimal"),
    "glpk, long names": (GLPK.format(status="INTEGER OPTIMAL").replace("     1 x y          B ",
                                                                       "     1 x y\n        * "), "optimal"),
    "cplex": (CPLEX.format(name="incumbent", status="integer optimal solution"), "optimal"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_each_kind_of_file_is_read_by_value(tmp_path, kind):
    text, status = TEXTS[kind]
    for changed in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        found = answer(tmp_path, changed)
        assert (found.status, found.answered) == (status, True)
        assert found.columns(["z", "x y"]) == [0, TENTH]
        with pytest.raises(InputError, match=r"no variable of the file has the name 'x y'; its first is 'z'"):
            found.columns(["z"])


@pytest.mark.parametrize("kind", ["highs", "highs table", "gurobi", "mosek", "glpk", "cplex"])
def test_names_without_a_value_in_a_full_list_are_named(tmp_path, kind):
    found = answer(tmp_path, TEXTS[kind][0])
    with pytest.raises(InputError, match="no value of 'a', 'b', 'c' and 1 more, though such a file lists"):
        found.columns(["x y", "z", "a", "b", "c", "d"])
    short = answer(tmp_path, TEXTS["miplib"][0])
    assert short.columns(["x y", "z"]) == [TENTH, 0]
    assert short.missing(["x y", "z"]) == ["z"]


def test_columns_by_their_number(tmp_path):
    head = "c Problem: p\nc Status: OPTIMAL\nc\n"
    for lines, status in [
        ("s bas 1 2 f f 1\ni 1 b 9 0\nj 1 b 0.1 0\nj 2 l 0 7\ne o f\n", "optimal"),
        ("s mip 1 2 o 1\ni 1 9\nj 1 0.1\nj 2 0\ne o f\n", "optimal"),
        ("s ipt 1 2 f 1\ni 1 9 0\nj 1 0.1 0\nj 2 0 0\ne o f\n", "feasible"),
    ]:
        found = answer(tmp_path, head + lines)
        assert (found.status, found.columns(["x", "y"])) == (status, [TENTH, 0])
        assert found.columns(["x", "y", "z"]) is None
    with pytest.raises(InputError, match="line 5: not the line of column 1"):
        answer(tmp_path, head + "s mip 1 2 o 1\nj 2 0\n")
    with pytest.raises(InputError, match="it has 1 columns, and says 2"):
        answer(tmp_path, head + "s mip 1 2 o 1\nj 1 0\n")


NO_ANSWER = {
    "scip": ("solution status: infeasible\nno solution available\n", "infeasible", "infeasible"),
    "scip stopped": ("solution status: time limit reached\nno solution available\n", "time limit reached",
                     "feasible"),
    "highs": ("Model status\nInfeasible\n\n# Primal solution values\nNone\n", "Infeasible", "infeasible"),
    "highs with values": (TEXTS["highs"][0].replace("Optimal", "Infeasible"), "Infeasible", "infeasible"),
    "highs table": (TEXTS["highs table"][0].replace("  0.1  ", 7 * " ").replace(" 3            0 ", 15 * " ")
                    .replace("Optimal", "Unbounded"), "Unbounded", "unbounded"),
    "cbc": ("Infeasible - objective value 3.00000000\n      0 x 0.1 9\n", "Infeasible", "infeasible"),
    "cbc integer": ("Integer infeasible - objective value 3.0\n", "Integer infeasible", "infeasible"),
    "glpk": (GLPK.format(status="UNDEFINED"), "UNDEFINED", None),
    "glpk by number": ("s mip 3 2 n inf\n", "infeasible", "infeasible"),
    "mosek": (MOSEK.format(status="PRIMAL_INFEASIBLE_CER"), "PRIMAL_INFEASIBLE_CER", "infeasible"),
    "cplex": (CPLEX.format(name="x", status="integer infeasible"), "integer infeasible", "infeasible"),
    "cplex either": (CPLEX.format(name="x", status="infeasible or unbounded"),
                     "infeasible or unbounded", None),
    "miplib": ("=infeas=\n", "infeasible", "infeasible"),
    "empty": ("", "", None),
    "blank": ("\n  \n", "", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_ANSWER)
def test_a_file_without_an_answer_is_not_the_answer_0(tmp_path, kind):
    text, claim, status = NO_ANSWER[kind]
    found = answer(tmp_path, text)
    assert (found.answered, found.claim, found.status) == (False, claim, status)
    (tmp_path / "a.lp").write_text("min x\nst\n c: x <= 5\nend\n")
    done = CliRunner().invoke(main, ["prove", str(tmp_path / "a.lp"), str(tmp_path / "a.sol")])
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert (
        f"has no answer: it says '{claim}'. Nothing" in said if claim else "has no answer: it has no" in said
    )


@pytest.mark.parametrize(
    "text", ["solution status: optimal solution found\nobjective value: 0\n", "=obj= 0\n",
             "Optimal - objective value 0.00000000\n"]
)  # fmt: skip
def test_an_answer_whose_values_are_all_0_needs_no_lines(tmp_path, text):
    found = answer(tmp_path, text)
    assert (found.answered, found.columns(["x", "y"])) == (True, [0, 0])


def test_names_that_begin_like_comments(tmp_path):
    text = "# Solution file\n# Objective value = 2\n=obj= 5\n#x 2\n=y 3\nz 1\n"
    assert answer(tmp_path, text).columns(["#x", "=y", "z"]) == [2, 3, 1]
    assert answer(tmp_path, text).columns(["z"]) == [1]
    with pytest.raises(InputError, match="no value of '#y', though"):
        answer(tmp_path, "# Solution for model p\n#x 2\n").columns(["#x", "#y"])


def test_entities_and_pools_of_cplex(tmp_path):
    one = CPLEX.format(name="incumbent", status="optimal").partition("?>\n")[2]
    named = one.replace("'x y'", "'a&lt;b&quot;'")
    assert answer(tmp_path, named).columns(['a<b"', "z"]) == [TENTH, 0]
    others = [
        one.replace("incumbent", name).replace("0.1", value) for name, value in (("p1", "5"), ("p2", "6"))
    ]
    pool = f"<CPLEXSolutions version='1.2'>{others[0]}{one}{others[1]}</CPLEXSolutions>"
    found = answer(tmp_path, pool)
    assert (found.columns(["x y", "z"]), found.choice) == ([TENTH, 0], "the answer 'incumbent' of 3")
    found = answer(tmp_path, pool.replace("incumbent", "p0"))
    assert (found.columns(["x y", "z"]), found.choice) == ([5, 0], "the answer 'p1' of 3")
    for wrong, why in [
        (one[:-20], "no solution file"),
        ("<other/>", "no CPLEXSolution in the XML, whose first element is 'other'"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]>" + one, "document type"),
        (one.replace('name="z"', 'name="x y"'), "has no name, no value or two values"),
    ]:
        with pytest.raises(InputError, match=why):
            answer(tmp_path, wrong)


def test_json_by_value(tmp_path):
    big = 2**53 + 1
    found = answer(tmp_path, f'{{"x": {{"a": {big}, "b": 0.1}}, "status": "optimal", "bound": 3}}', "a.json")
    assert (found.columns(["b", "a"]), found.status, found.bound) == ([TENTH, big], "optimal", 3.0)
    assert answer(tmp_path, '{"x": [[1, 2.5], [1e2]]}', "a.JSON").values == [1, Fraction(5, 2), 100]
    gurobi = {"SolutionInfo": {"Status": 2, "ObjVal": 1}, "Vars": [{"VarName": "a", "X": 3}]}
    assert answer(tmp_path, json.dumps(gurobi), "a.json").columns(["a", "b"]) == [3, 0]
    assert not answer(tmp_path, '{"status": "infeasible"}', "a.json").answered
    assert not answer(tmp_path, '{"status": "infeasible", "x": [0]}', "a.json").answered
    for text, why in [
        ('{"x": {"a": 1, "a": 2}}', "'a' has two values"), ('{"x": [true]}', "True in place of a number"),
        ('{"x": [1e999]}', "'1e999' in place of a finite number"), ('{"x": [null]}', "None in place"),
        ("[" * 100_000, "no solution file"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=why):
            answer(tmp_path, text, "a.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x 1\nx 1\n", "line 2: a second value of 'x'"), ("x 1_0\n", "line 1: '1_0' in place of a finite"),
        ("x\n", "line 1: 'x' in place of a name and a value"), ("y 2\nx nan\n", "line 2: 'nan' in place"),
        ("x inf\n", "line 1: 'inf' in place"), ("x 1/0\n", "line 1: '1/0' in place"),
        ("Optimal - objective value 1\n x 3\n", "line 2: 'x 3' in place of a column"),
        ("Optimal - objective value 1\n 0 x 3 0\n 1 x 4 0\n", "line 3: a second value of 'x'"),
        (TEXTS["highs"][0].replace("# Columns 2\nx", "# Columns 3\nx"), "it has 2 columns, and says 3"),
    ],
)  # fmt: skip
def test_lines_that_are_none_are_refused(tmp_path, text, why):
    with pytest.raises(InputError, match=why):
        answer(tmp_path, text)


@pytest.mark.parametrize("style", range(5))
def test_all_styles_of_highs_are_those_that_it_writes(tmp_path, style):
    problem = tmp_path / "a.lp"
    problem.write_text("min x + 2 a_long_name_of_a_variable + 0 z\nst\n c: x + 3 a_long_name_of_a_variable\n"
                       " >= 7\n d: z - x >= -2\nbounds\n x <= 2.5\ngeneral\n z\nend\n")  # fmt: skip
    highs = quiet_highs()
    highs.readModel(str(problem))
    highs.run()
    highs.writeSolution(str(tmp_path / "a.sol"), style)
    found, value = read_answer(tmp_path / "a.sol"), highs.getSolution().col_value
    columns = found.columns(["x", "a_long_name_of_a_variable", "z"])
    assert found.status == "optimal"
    assert [float(one) for one in columns] == pytest.approx(value, rel=1e-5)  # some styles have six digits


@pytest.mark.parametrize("head", ["# Columns -1", "# Columns -1 sparse"])
def test_the_sparse_style_of_old_and_new_highs(tmp_path, head):
    lines = (
        "Model status",
        "Optimal",
        "",
        "# Primal solution values",
        "Feasible",
        "Objective 2",
        head,
        "y 2.5 1",
    )
    (tmp_path / "a.sol").write_text("\n".join(lines) + "\n")
    assert read_answer(tmp_path / "a.sol").columns(["x", "y"]) == [0, Fraction(5, 2)]


def test_a_large_value_is_proved_by_value(tmp_path):
    """2**53 + 1 is no double; it keeps a row that its neighbours break."""
    (tmp_path / "a.lp").write_text(f"min x\nst\n c: x >= {2**53 + 1}\ngeneral\n x\nend\n")
    for value, code in ((2**53 + 1, 0), (2**53, 1)):
        (tmp_path / "a.sol").write_text(f"x {value}\n")
        done = CliRunner().invoke(main, ["prove", str(tmp_path / "a.lp"), str(tmp_path / "a.sol")])
        assert done.exit_code == code, done.output


# ---------------------------------------------------------------- HiGHS as a second opinion


def random_mps(rng):
    """A file with most of what MPS has, but nothing that readers are at odds about."""

    def number():
        return rng.choice(["0", "1", "-2", "3.25", "1e1", "0.1", "-.5", "7.", "12345.678e-2"])

    rows = [(rng.choice(["E", "L", "G", "N"]), f"r{i}") for i in range(rng.integers(1, 5))]
    columns = [f"x{j}" for j in range(rng.integers(1, 5))]
    out = ["NAME          p"]
    if rng.random() < 0.5:
        out += ["OBJSENSE", "    MAX" if rng.random() < 0.5 else "    MINIMIZE"]
    out += ["ROWS", " N  cost", *(f" {kind}  {name}" for kind, name in rows), "COLUMNS"]
    whole, marks = False, 0
    for name in columns:
        if rng.random() < 0.4:
            marks, whole = marks + 1, not whole
            word = "'INTORG'" if whole else "'INTEND'"
            out.append(f"    M{marks:<9}{chr(39)}MARKER{chr(39)}                 {word}")
        cells = [(row, number()) for row in ("cost", *(row for _, row in rows)) if rng.random() < 0.7]
        cells = cells or [("cost", "0")]
        while cells:
            count = rng.integers(1, 3)
            few, cells = cells[:count], cells[count:]
            out.append(f"    {name:<10}" + "   ".join(f"{row:<10}{value:>12}" for row, value in few))
    if whole:
        out.append(f"    M{marks + 1:<9}'MARKER'                 'INTEND'")
    out.append("RHS")
    out += [
        f"    rhs       {row:<10}{number():>12}"
        for row in ("cost", *(r for _, r in rows))
        if rng.random() < 0.7
    ]
    ranged = [row for kind, row in rows if kind != "N" and rng.random() < 0.4]
    if ranged:
        out += ["RANGES", *(f"    rng       {row:<10}{number():>12}" for row in ranged)]
    bounds = []
    for name in columns:
        kind = rng.choice(["", "FR", "MI", "PL", "BV", "LO", "UP", "FX", "both", "LI"])
        value = {"LO": "-1.5", "UP": "2.5", "FX": "0.25", "LI": "2"}.get(kind, "")
        if kind == "both":
            bounds += [f" LO bnd       {name:<10}{'-3':>12}", f" UP bnd       {name:<10}{'-1':>12}"]
        elif kind:
            bounds.append(f" {kind} bnd       {name:<10}{value:>12}")
    out += ["BOUNDS", *bounds] if bounds else []
    if rng.random() < 0.3:
        out += [
            "QUADOBJ",
            *(f"    {name:<10}{name:<10}{number():>12}" for name in columns if rng.random() < 0.5),
        ]
    return "\n".join([*(line.rstrip() for line in out), "ENDATA", ""])


@pytest.mark.parametrize("seed", quick(range(12), first=2))
def test_highs_reads_the_same_programs(tmp_path, seed):
    rng = np.random.default_rng(seed)
    agreed = 0
    for turn in range(40):
        path = tmp_path / f"a{turn}.mps"
        path.write_text(random_mps(rng))
        own = read_program(path)
        try:
            other = second_opinion(path, own)
        except ValueError:
            continue
        assert other == "", path.read_text()
        agreed += 1
    assert agreed >= 20


def random_lp(rng):
    names = [f"x{j}" for j in range(rng.integers(1, 5))]
    """A file with most of what an LP has, but nothing that readers are at odds about."""

    def number():
        return rng.choice(["", "1 ", "2.5 ", "0.1 ", "3e1 ", ".5 ", "12 "])

    def total(of):
        words = [f"{rng.choice(['+', '-'])} {number()}{name}" for name in of if rng.random() < 0.8]
        return " ".join(words or [f"{number()}{of[0]}"])

    lines = [rng.choice(["min", "Maximize", "MINIMIZE"]), f" obj: {total(names)}"]
    if rng.random() < 0.3:
        lines.append(
            f" + [ {total(names).replace(names[0], names[0] + ' ^2')} ] / 2" if len(names) == 1 else " + 4.5"
        )
    lines.append(rng.choice(["st", "Subject To", "s.t."]))
    for i in range(rng.integers(1, 4)):
        label = f"r{i}: " if rng.random() < 0.7 else ""
        sense, side = rng.choice(["<=", ">=", "=", "<", "=>"]), rng.choice(["3", "-2.5", "0.1"])
        lines.append(f" {label}{total(names)} {sense} {side}")
    lines.append("bounds")
    for name in names:
        if any(name in line for line in lines):
            forms = [
                " {} free",
                " -1 <= {} <= 2.5",
                " {} >= -3",
                " {} <= 4",
                " {} = 0.5",
                " -inf <= {} <= 8",
                "",
            ]
            lines.append(str(rng.choice(forms)).format(name))
    shown = [name for name in names if any(name in line for line in lines[:-1])]
    if rng.random() < 0.5:
        lines += ["general", " " + " ".join(shown[: rng.integers(1, 3)])]
    return "\n".join([*lines, "end", ""])


@pytest.mark.parametrize("seed", quick(range(12), first=2))
def test_highs_reads_the_same_lps(tmp_path, seed):
    rng = np.random.default_rng(seed)
    agreed = 0
    for turn in range(40):
        path = tmp_path / f"a{turn}.lp"
        path.write_text(random_lp(rng))
        try:
            other = second_opinion(path, read_program(path))
        except ValueError:
            continue
        assert other == "", path.read_text()
        agreed += 1
    assert agreed >= 10


SOME = """NAME p
OBJSENSE
 MAX
ROWS
 N cost
 G need
 L time
COLUMNS
 M 'MARKER' 'INTORG'
 x cost 2.5 need 1
 x time 0.1
 M 'MARKER' 'INTEND'
 y cost 3 need 4
RHS
 rhs need 7 time 0.3
 rhs cost 2
BOUNDS
 UP b x 40
QUADOBJ
 y y -2
ENDATA
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cost": [2, 3]}, "linear costs: -2.5 in place of -2, of x"),
        ({"square": [0, 1]}, "squares: 1 in place of -1, of y"),
        ({"constant": 0}, "constant: 2 in place of 0, of the objective"),
        ({"maximize": False}, "linear costs: -2.5 in place of 2.5, of x"),
        ({"lower": [1, 0]}, "lower bounds: 0 in place of 1, of x"),
        ({"upper": [40, 5]}, "upper bounds: inf in place of 5, of y"),
        ({"upper": [float("inf"), float("inf")]}, "upper bounds: 40 in place of inf, of x"),
        ({"integer": [False, False]}, "whole variables: 1 in place of 0, of x"),
        ({"least": [6, -float("inf")]}, "lower sides of rows: 7 in place of 6, of need"),
        (
            {"most": [float("inf"), 0.25]},
            "upper sides of rows: 0.29999999999999999 in place of 0.25, of time",
        ),
        ({"entries": {(0, 0): 1, (1, 0): 1, (0, 1): 4}}, "coefficients of the row time"),
        ({"columns": ["x", "z"]}, "names of the columns: y in place of z"),
        ({"rows": ["need", "rest"]}, "names of the rows: time in place of rest"),
    ],
)
def test_a_second_opinion_names_what_differs(tmp_path, change, words):
    (tmp_path / "A.MPS.gz").write_bytes(gzip.compress(SOME.encode()))
    own = read_program(tmp_path / "A.MPS.gz")
    assert second_opinion(tmp_path / "A.MPS.gz", own) == ""
    assert second_opinion(tmp_path / "A.MPS.gz", replace(own, **change)) == words


def test_what_highs_does_not_know_is_not_compared(tmp_path):
    path = tmp_path / "a.mps"
    path.write_text(SOME.replace("OBJSENSE\n MAX", "OBJSENSE MAXIMIZE"))
    own = read_program(path)
    assert second_opinion(path, own) == ""
    assert second_opinion(path, replace(own, beyond="")) != ""
    assert read_by_highs(path).cost[0] == 2.5  # HiGHS 1.16 minimizes


def test_another_reading_of_highs_is_an_error(tmp_path, monkeypatch):
    from hierdp.bench import reading

    path = tmp_path / "a.mps"
    path.write_text(SOME)
    (tmp_path / "a.sol").write_text("x 3\ny 1\n")
    line = ["prove", str(path), str(tmp_path / "a.sol")]
    assert "second opinion" not in CliRunner().invoke(main, line).output
    theirs = read_by_highs(path)
    monkeypatch.setattr(reading, "read_by_highs", lambda _: replace(theirs, constant=0.0))
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 2
    assert "different programs: constant: 0 in place of 2, of the objective" in " ".join(done.output.split())

    def none(_):
        raise ValueError("no")

    monkeypatch.setattr(reading, "read_by_highs", none)
    assert "there is no second opinion on it" in CliRunner().invoke(main, line).output
