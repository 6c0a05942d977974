"""MPS and LP files are read as written, or refused by the line."""

import bz2
import gzip
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import Program, lagrangian_certificate
from models.programs.file_program import decimal
from models.programs.read import read_program, read_text
from models.programs.read_lp import read_lp
from models.programs.read_mps import read_mps
from models.programs.terms import INFINITY, Block, Rows, Term

INF = INFINITY

MPS = """NAME bakery
ROWS
 N cost
 G need
 L time
COLUMNS
 x cost 2.5 need 1
 x time 0.1
 y cost 3 need 4
RHS
 rhs need 7 time 0.3
BOUNDS
 UP b x 40
ENDATA
"""


def mps(*changes):
    """The text above with parts replaced."""
    text = MPS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_plain_file_is_read_in_fractions():
    found = read_mps(MPS)
    assert (found.name, found.maximize, found.constant, found.beyond) == ("bakery", False, 0, "")
    assert (found.columns, found.rows) == (["x", "y"], ["need", "time"])
    assert (found.cost, found.lower, found.upper) == ([Fraction(5, 2), 3], [0, 0], [40, INF])
    assert (found.least, found.most) == ([7, -INF], [INF, Fraction(3, 10)])
    assert found.entries == {(0, 0): 1, (1, 0): Fraction(1, 10), (0, 1): 4}
    assert found.integer == [False, False]


@pytest.mark.parametrize(
    ("words", "maximize", "beyond"),
    [
        ("OBJSENSE\n    MAX", True, ""),
        ("OBJSENSE\n    MAXIMIZE", True, ""),
        ("OBJSENSE\nMAX", True, ""),
        ("OBJSENSE MAX", True, ""),
        ("OBJSENSE MIN", False, ""),
        ("OBJSENSE MAXIMIZE", True, "OBJSENSE MAXIMIZE on one line"),
        ("SENSE\n MAX", True, "the section SENSE"),
        ("MAX", True, "MAX as a section"),
        ("objsense\n max", True, ""),
    ],
)
def test_the_sense(words, maximize, beyond):
    found = read_mps(mps(("ROWS", f"{words}\nROWS")))
    assert (found.maximize, found.beyond) == (maximize, beyond)
    assert found.program().value(np.array([1, 0])) == (Fraction(-5, 2) if maximize else Fraction(5, 2))


def test_the_objective_is_the_first_free_row_or_that_of_objname():
    second = mps((" N cost", " N other\n N cost"), ("y cost 3", "y other 8 cost 3\n y"))
    assert read_mps(second).cost == [0, 8]
    named = read_mps(second.replace("ROWS", "OBJNAME\n cost\nROWS"))
    assert (named.cost, named.beyond, named.rows) == ([Fraction(5, 2), 3], "OBJNAME", ["need", "time"])
    assert read_mps(second.replace("ROWS", "OBJNAME cost\nROWS")).cost == named.cost


def test_the_constant_is_what_the_objective_has_on_its_right_negated():
    found = read_mps(mps((" rhs need 7", " rhs cost -10.5\n rhs need 7"), ("ROWS", "OBJSENSE MAX\nROWS")))
    assert found.constant == Fraction(21, 2)
    assert found.objective(-4) == Fraction(29, 2)
    assert found.objective(-INF) == INF


@pytest.mark.parametrize(
    ("kind", "width", "ends"),
    [
        ("G", "2", (7, 9)), ("G", "-2", (7, 9)), ("L", "2", (5, 7)), ("L", "-2", (5, 7)),
        ("E", "2", (7, 9)), ("E", "-2", (5, 7)), ("E", "0", (7, 7)), ("G", "1e30", (7, INF)),
    ],
)  # fmt: skip
def test_ranges(kind, width, ends):
    found = read_mps(mps((" G need", f" {kind} need"), ("BOUNDS", f"RANGES\n r need {width}\nBOUNDS")))
    assert (found.least[0], found.most[0]) == ends


INTEGER = (" x cost 2.5", " M 'MARKER' 'INTORG'\n x cost 2.5"), (" y cost", " N 'MARKER' 'INTEND'\n y cost")


@pytest.mark.parametrize(
    ("bound", "ends"),
    [
        ("UP b x 3", (0, 3)), ("UP b x 0", (0, 0)), ("LO b x 2", (2, INF)),
        ("LO b x -0.5", (Fraction(-1, 2), INF)),
        ("MI b x", (-INF, INF)), ("PL b x", (0, INF)), ("FR b x", (-INF, INF)), ("FX b x 4", (4, 4)),
        ("MI b x\n UP b x -3", (-INF, -3)), ("UP b x -3\n LO b x -9", (-9, -3)), ("UP x 3", (0, 3)),
        ("UP b x 1e20", (0, INF)), ("UP b x inf", (0, INF)), ("LO b x -Infinity", (-INF, INF)),
        ("FR b x 0", (-INF, INF)), ("FR x", (-INF, INF)),
        ("UP b x 99999999999999999999", (0, 10**20 - 1)), ("LO b x -1e30\n UP b x 5", (-INF, 5)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whole", [False, True])
def test_bounds(bound, ends, whole):
    found = read_mps(mps((" UP b x 40", f" {bound}"), *(INTEGER if whole else ())))
    assert (found.lower[0], found.upper[0]) == ends
    assert (found.integer, found.binary) == ([whole, False], [])


@pytest.mark.parametrize(
    ("bound", "ends"),
    [("BV b x", (0, 1)), ("LI b x 2", (2, INF)), ("UI b x 2", (0, 2)), ("BV b x 1", (0, 1))],
)
def test_bounds_that_make_a_variable_whole(bound, ends):
    found = read_mps(mps((" UP b x 40", f" {bound}")))
    assert (found.lower[0], found.upper[0], found.integer[0]) == (*ends, True)


def test_a_whole_column_of_a_marker_without_bounds_is_binary_and_named():
    found = read_mps(mps(("BOUNDS\n UP b x 40\n", ""), *INTEGER))
    assert (found.integer, found.upper, found.binary) == ([True, False], [1, INF], ["x"])


@pytest.mark.parametrize("section", ["QUADOBJ", "QMATRIX"])
def test_squares_are_halved(section):
    found = read_mps(mps(("ENDATA", f"{section}\n x x 3\n x y 0\nENDATA")))
    assert found.square == [Fraction(3, 2), 0]


FIXED = """NAME          two words
ROWS
 N  cost
 G  the need
COLUMNS
    x one     cost               2.5   the need             1
    y         cost               3.0   the need             4
RHS
    my rhs    the need             7
BOUNDS
 UP my bound  x one               40
 FR my bound  y
ENDATA
"""


def test_names_with_blanks_are_read_in_fixed_form():
    found = read_mps(FIXED)
    assert (found.columns, found.rows) == (["x one", "y"], ["the need"])
    assert (found.upper, found.lower) == ([40, INF], [0, -INF])
    assert found.entries == {(0, 0): 1, (0, 1): 4}
    proof = lagrangian_certificate(found.program(), [50, 0], [0])
    assert "bounds: x one = 50, not at most 40" in proof.reason
    marked = FIXED.replace("    y    ", "    M1        'MARKER'                 'INTORG'\n    y    ").replace(
        "RHS\n", "    M1        'MARKER'                 'INTEND'\nRHS\n", 1
    )
    assert read_mps(marked).integer == [False, True]


REFUSED = [
    ((" x time 0.1", " x time nan"), "line 8: 'nan' in place of a number"),
    ((" x time 0.1", " x time inf"), "line 8: 'inf' in place of a number"),
    ((" x time 0.1", " x time 1_0"), "line 8: '1_0' in place of a number"),
    ((" x time 0.1", " x time 4O"), "line 8: '4O' in place of a number"),
    ((" x time 0.1", " x time 1.0D2"), "line 8: '1.0D2' in place of a number"),
    ((" x time 0.1", " x time ١"), "line 8: '١' in place of a number"),
    ((" x time 0.1", " x time 1e999"), "line 8: '1e999' in place of a number, which must be"),
    ((" x time 0.1", " x time 0.1\n x time 2"), "line 9: a second entry of the column 'x' in the row 'time'"),
    ((" x time 0.1", " x cost 1"), "line 8: a second entry of the column 'x' in the row 'cost'"),
    ((" x time 0.1", " x tine 0.1"), "line 8: no row has the name 'tine'"),
    ((" x time 0.1", " x time"), "line 8: a column's name and one or two entries have 3 or 5 words, not 2"),
    (("RHS", " x time 2\nRHS"), "line 10: the column 'x' goes on after other columns"),
    ((" rhs need 7", " rhs neeed 7"), "line 11: no row has the name 'neeed'"),
    ((" rhs need 7", " rhs need 7\n rhs need 8"), "line 12: a second right-hand side of the row 'need'"),
    ((" rhs need 7", " rhs need 7\n other time 8"), "line 12: a second set 'other' in RHS"),
    ((" rhs need 7", " rhs need 1e30"), "line 11: the row 'need' is never kept with the"),
    ((" rhs need 7", " rhs need 7 time 4O"), "line 11: one or two rows with their numbers, not 6 words"),
    ((" G need", " X need"), "line 4: the type 'X' of a row; it is N, E, L or G"),
    ((" G need", " G need 1"), "line 4: a row has a type and a name, not 3 words"),
    ((" G need", " G need\n L need"), "line 5: a second row 'need'"),
    ((" UP b x 40", " UP b x -3"), "line 13: 'x' has a negative upper bound and no lower one"),
    ((" UP b x 40", " UP b x 40\n UP b x 50"), "line 14: a second upper bound of 'x'; the first is in line"),
    ((" UP b x 40", " UP b x 40\n FR b x"), "line 14: a second upper bound of 'x'"),
    ((" UP b x 40", " UP b x 40\n LO c x 1"), "line 14: a second set 'c' in BOUNDS; the first is 'b'"),
    ((" UP b x 40", " UP b x 4O"), "line 13: '4O' in place of a number"),
    ((" UP b x 40", " UP b z 40"), "line 13: no column has the name 'z'"),
    ((" UP b x 40", " FX b x 1e20"), "line 13: the bound 1e20 excludes every value of 'x'"),
    ((" UP b x 40", " SC b x 40"), "line 13: the bound SC: semi-continuous variables are not supported"),
    ((" UP b x 40", " SI b x 40"), "line 13: the bound SI: semi-integer variables are not supported"),
    ((" UP b x 40", " XX b x 40"), "line 13: the type 'XX' of a bound"),
    (("ENDATA", "SOS\n S1 s\nENDATA"), "line 14: the section SOS: special ordered sets are not supported"),
    (("ENDATA", "INDICATORS\n IF need x 1\nENDATA"), "line 14: the section INDICATORS: indicator"),
    (("ENDATA", "QCMATRIX need\n x x 1\nENDATA"), "line 14: the section QCMATRIX: quadratic rows"),
    (("ENDATA", "LAZYCONS\n G lazy\nENDATA"), "line 14: the section LAZYCONS: lazy constraints"),
    (("ENDATA", "MAGIC\nENDATA"), "line 14: the unknown section 'MAGIC'"),
    (("ENDATA", "QUADOBJ\n x y 3\nENDATA"), "line 15: the product of 'x' and 'y': only squares"),
    (("ENDATA", "QUADOBJ\n x x 3\n x x 3\nENDATA"), "line 16: a second entry of 'x' and 'x'"),
    (("ENDATA", "RANGES\n r cost 1\nENDATA"), "line 15: a range of the row 'cost', which is of the type N"),
    (("ENDATA", ""), "the file ends without ENDATA"),
    (("ENDATA", "ENDATA\n UP b y 3"), "line 15: text after ENDATA"),
    (("ROWS", "OBJSENSE\nROWS"), "line 2: OBJSENSE without a word"),
    (("ROWS", "OBJSENSE\n UP\nROWS"), "line 3: the sense 'UP'; it is MIN or MAX"),
    (("ROWS", "OBJSENSE\n MAX\nOBJSENSE MIN\nROWS"), "line 4: a second sense; the first is in line 3"),
    (("ROWS", "OBJNAME\n c0st\nROWS"), "OBJNAME 'c0st' is not the name of an N row"),
    (("RHS", "OBJNAME\n cost\nRHS"), "line 10: the section OBJNAME after COLUMNS"),
    ((" x cost 2.5", " M 'MARKER' 'INTORG'\n x cost 2.5"), "line 7: the marker INTORG has no INTEND"),
    ((" x cost 2.5", " M 'MARKER' 'SOSORG'\n x cost 2.5"), "line 7: the marker 'SOSORG'"),
    ((" x time 0.1", " M 'MARKER' 'INTORG'\n x time 0.1"), "a marker between the entries of the column 'x'"),
    (("ROWS\n N cost\n G need\n L time\n", ""), "no row has the name 'cost'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_a_file_does_not_say_is_refused_by_the_line(change, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        read_mps(mps(change))


def test_a_bound_that_may_be_of_two_columns_is_refused():
    with pytest.raises(ValueError, match="line 13: this bound may be of 'x' or of '7'"):
        read_mps(mps((" y cost", " 7 cost"), (" UP b x 40", " FR x 7")))


LP = """\\ comment
Maximize
 profit: 2.5 x + 3y - z + 10
Subject To
 need: x + 4 y >= 7
 -1 <= x - y <= 4.5
 time: 0.1 x + 2 x
   + z = 0.3 \\ the rest
Bounds
 x <= 40
 -2 <= y <= +inf
 z free
General
 x
 y
End
"""


def test_a_plain_lp_is_read_in_fractions():
    found = read_lp(LP)
    assert (found.maximize, found.constant, found.columns) == (True, 10, ["x", "y", "z"])
    assert found.cost == [Fraction(5, 2), 3, -1]
    assert found.rows == ["need", "c2", "time"]
    assert (found.least, found.most) == ([7, -1, Fraction(3, 10)], [INF, Fraction(9, 2), Fraction(3, 10)])
    assert found.entries == {(0, 0): 1, (0, 1): 4, (1, 0): 1, (1, 1): -1, (2, 0): Fraction(21, 10), (2, 2): 1}
    assert (found.lower, found.upper) == ([0, -2, -INF], [40, INF, INF])
    assert found.integer == [True, True, False]


@pytest.mark.parametrize(
    ("text", "cost", "square"),
    [
        ("min x + [ 2 x ^2 + 4 y^2 ] / 2\nst\n c: x >= 1\nend", [1, 0], [1, 2]),
        ("min\n obj: x - [ 3 x * x ]/2 + y\nst\n c: x >= 1\nend", [1, 1], [Fraction(-3, 2), 0]),
        ("min\nst\n c: x + y >= 1\nend", [0, 0], [0, 0]),
        ("minimize - -3 x + + 2 y + y\nsuch that\nx<1\nEND", [3, 3], [0, 0]),
        ("min x[1] + 2 x[1,2] s.t. c: x[1] => 2 end", None, None),
        ("min x(1) + 2 y#2\nst\n c: x(1) = 1e2\nend\n", [1, 2], [0, 0]),
    ],
)
def test_objectives_of_an_lp(text, cost, square):
    if cost is None:  # sections begin lines
        with pytest.raises(ValueError, match="line 1: "):
            read_lp(text)
        return
    found = read_lp(text)
    assert (found.cost, found.square) == (cost, square)


def lp(rows, rest="", head="min x + y"):
    return f"{head}\nst\n{rows}\n{rest}\nend\n"


REFUSED_LP = [
    (lp(" c: x + nan y >= 2"), "line 3: 'nan' in place of a number or a variable"),
    (lp(" c: inf x >= 2"), "line 3: 'inf' in place of"),
    (lp(" c: 1_0 x >= 2"), "line 3: 'x' in place of a sense"),
    (lp(" c: 4O x >= 2"), "line 3: 'x' in place of a sense"),
    (lp(" c: x >= 4O"), "line 3: 'O' in place of the end of the line"),
    (lp(" c: x >= 2 y"), "line 3: 'y' in place of the end of the line"),
    (lp(" c: x >= y"), "line 3: 'y' in place of a number"),
    (lp(" c: x + 3 >= 2"), "line 3: the row 'c' has a number on its left side"),
    (lp(" c: 1 <= x >= 2"), "line 3: the row 'c' has two senses that make no range"),
    (lp(" c: 1 <= x + 2 <= 2"), "line 3: the row 'c' has no variables, or a number among them"),
    (lp(" c: 1 <= 2"), "line 3: the row 'c' has no variables"),
    (lp(" c: x + >= 2"), "line 3: '>=' in place of a number or a variable after a sign"),
    (lp(" c: x ^2 >= 2"), "line 3: '^' in place of a sense"),
    (lp(" c: x + [ x ^2 ] >= 2"), "line 3: the squares of an objective are followed by '/ 2'"),
    (lp(" c: x + [ x ^2 ] / 2 >= 2"), "line 3: the row 'c' has squares, which are not supported"),
    (lp(" c: x = 1 -> y >= 2"), "line 3: '->': indicator constraints are not supported"),
    (lp(" c: x >= 1\n c: y >= 2"), "line 4: a second row 'c'"),
    (lp(" c: 2 (x + y) >= 2"), "line 3: the name '(x', with half a pair of brackets"),
    (lp(" c: x/2 + y >= 2"), "line 3: '/' in place of a sense"),
    (lp(" c: x >= 1", "bounds\n x <= -3"), "line 5: 'x' has a negative upper bound and no lower one"),
    (lp(" c: x >= 1", "bounds\n z <= 3"), "line 5: 'z' is in no row and not in the objective"),
    (lp(" c: x >= 1", "bounds\n x <= 4O"), "line 5: 'O' in place of the end of the line"),
    (lp(" c: x >= 1", "bounds\n 1 <= x >= 4"), "line 5: two senses that make no range"),
    (lp(" c: x >= 1", "bounds\n x >= inf"), "line 5: the bound excludes every value of 'x'"),
    (lp(" c: x >= 1", "bounds\n x >= nan"), "line 5: 'nan' in place of a number"),
    (lp(" c: x >= 1", "bounds\n x >= 1 y <= 3"), "line 5: 'y' in place of the end of the line"),
    (lp(" c: x >= 1", "general\n z"), "line 5: 'z' is in no row and not in the objective"),
    (
        lp(" c: x >= 1", "bounds\n x <= 5\nbinary\n x"),
        "line 7: 'x' is binary, and its bounds go beyond",
    ),
    (lp(" c: x >= 1", "semi-continuous\n x"), "line 4: the section semi-continuous is not supported"),
    (lp(" c: x >= 1", "sos\n s: S1:: x:1"), "line 4: the section sos is not supported"),
    (
        lp(" c: x >= 1", "lazy constraints\n d: x >= 2"),
        "line 4: the section lazy constraints is not",
    ),
    (lp(" c: x >= 1", "st\n d: x >= 2"), "line 4: the section 'subject to' after 'subject to'"),
    (lp(" c: x >= 1", "end\nbounds\n x <= 3"), "line 5: the section 'bounds' after 'end'"),
    (lp(" c: x >= 1").replace("end", ""), "the file has no line 'end'"),
    (lp(" c: x >= 1", head="max: 3x + 2y;"), "line 1: the file must begin with minimize or maximize"),
    (lp(" c: x >= 1", head="min 2 x 3"), "line 1: '3' in place of a sign or 'subject to'"),
    (lp(" c: x >= 1", head="min 3 * x"), "line 1: '*' in place of a sign or 'subject to'"),
    (lp(" c: x >= 1", head="min [ x ^2 ]"), "line 1: the squares of an objective are followed by '/ 2'"),
    (lp(" c: x >= 1", head="min [ x * y ] / 2"), "line 1: the product of 'x' and 'y': only squares"),
    (lp(" c: x >= 1", head="min [ x ^3 ] / 2"), "line 1: '^' in place of '^2' after a variable"),
    (lp(" c: x >= 1e999"), "line 3: '1e999' in place of a number"),
    ("bounds\n x <= 3\nend\n", "line 2: the file must begin with minimize or maximize"),
    ("min\nst\nend\n", "the file has no variables"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED_LP, ids=[why for _, why in REFUSED_LP])
def test_what_an_lp_does_not_say_is_refused_by_the_line(text, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        read_lp(text)


def test_bounds_of_an_lp():
    found = read_lp(lp(" c: x + y + z + w + v >= 1", """bounds
 3 >= x
 5 >= y >= -1e30
 z = 2.5
 -inf <= w <= 4
 w >= -3
 v >= - 2
binary
 u
""", head="min u + x"))  # fmt: skip
    ends = dict(zip(found.columns, zip(found.lower, found.upper, strict=True), strict=True))
    assert ends == {
        "u": (0, 1), "x": (0, 3), "y": (-INF, 5), "z": (Fraction(5, 2), Fraction(5, 2)), "w": (-3, 4),
        "v": (-2, INF),
    }  # fmt: skip


def test_endings_and_packing(tmp_path):
    for name, data in {
        "a.mps": MPS.encode(), "b.MPS": MPS.encode(), "c.qps": MPS.encode(), "d.Lp": LP.encode(),
        "f.mps.gz": gzip.compress(MPS.encode()), "g.lp.BZ2": bz2.compress(LP.encode()),
        "h.MPS.GZ": gzip.compress(MPS.replace("\n", "\r\n").encode("utf-8-sig")),
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
        assert read_program(tmp_path / name).columns[:2] == ["x", "y"]
    for name, data, why in [
        ("a.nl", b"g3", "the name must end in .mps, .qps, .lp, also with .gz or .bz2, not in '.nl'"),
        ("b.gz", gzip.compress(MPS.encode()), "the name must end in .mps"),
        ("c.mps", b"\xff\xfe", "it is not text in UTF-8"),
        ("d.mps.gz", MPS.encode(), "it is not text packed as .gz"),
        ("e.mps.gz", gzip.compress(MPS.encode())[:-9], "it is not text packed as .gz"),
        ("f.lp.bz2", b"BZh91", "it is not text packed as .bz2"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=re.escape(why)):
            read_program(tmp_path / name)
    assert read_text(tmp_path / "h.MPS.GZ") == (".mps", MPS)


@pytest.mark.parametrize(
    "word", ["", "+", "1e", ".", "e5", "0x10", "1,5", "1 0", "1__0", "٣", "1e99999", "1" * 1001, "NaN", "1/2"]
)
def test_words_that_are_no_decimals(word):
    assert decimal(word) is None


@given(st.integers(-(10**30), 10**30), st.integers(-40, 40))
def test_decimals_are_read_by_value(digits, power):
    assert decimal(f"{digits}e{power}") == Fraction(digits) * Fraction(10) ** power


# ---------------------------------------------------------------- fractions reach the checker


def test_decimals_reach_the_checker_as_fractions():
    """0.1 x + 0.2 y <= 0.3 admits (1, 1), which its doubles do not."""
    text = "max x + y\nst\n c: 0.1 x + 0.2 y <= 0.3\nbinary\n x y\nend\n"
    program = read_lp(text).program()
    assert lagrangian_certificate(program, [1, 1], [0]).optimal
    third = read_lp(text.replace("0.3", "0.29999999999999999")).program()
    assert "row c: 3/10, not at most" in lagrangian_certificate(third, [1, 1], [0]).reason


def test_a_matrix_holds_fractions_beside_the_nearest_floats():
    from models.arithmetic.door import Entries
    from models.programs.linear import linear_program

    tenth = Fraction(1, 10)
    dense = linear_program(
        "p", [1, 1], np.array([[tenth, 0], [2, tenth]], object), 0, 1, (0, 1), np.zeros(2, bool)
    )
    entries = Entries([1, 0, 1], [0, 0, 1], [2, tenth, tenth], (2, 2))
    sparse = linear_program("p", [1, 1], entries, 0, 1, (0, 1), np.zeros(2, bool))
    for program in (dense, sparse):
        (rows,) = program.rows
        assert rows.exactly.tolist() == [tenth, 2, tenth]
        assert program.matrix.toarray().tolist() == [[0.1, 0], [2, 0.1]]
        assert lagrangian_certificate(program, [Fraction(1, 2), 0], [0, 0]).bound == 0
    with pytest.raises(ValueError, match="exact entries are not those of its matrix"):
        Rows("r", program.matrix, 0, 1, exactly=np.array([tenth, 3, tenth], object))
    again = Rows("r", program.matrix, 0, 1, exactly=rows.exactly)
    assert again.exactly.tolist() == rows.exactly.tolist()
    twice = Entries([0, 0], [0, 0], [tenth, tenth], (1, 1))
    assert Rows("r", twice, 0, 1).exactly.tolist() == [Fraction(1, 5)]
    assert Rows("r", Entries([0], [0], [Fraction(1, 2)], (1, 1)), 0, 1).exactly is None


# ---------------------------------------------------------------- round trips


def numbers(draw, decimals):
    digits = st.integers(-9999, 9999)
    return draw(st.builds(lambda n, p: Fraction(n, 10**p), digits, st.integers(0, 4 if decimals else 0)))


@st.composite
def programs(draw):
    """Small programs whose numbers are decimals of few digits, whose doubles are written as these."""
    size, height = draw(st.integers(1, 4)), draw(st.integers(0, 3))

    def number():
        return numbers(draw, True)

    def ends():
        low, high = sorted([number(), number()])
        open_ = draw(st.sampled_from(["", "low", "high", "both", "equal"]))
        low, high = (low, low) if open_ == "equal" else (low, high)
        return -INF if open_ in ("low", "both") else low, INF if open_ in ("high", "both") else high

    boxes = [ends() for _ in range(size)]
    whole = [draw(st.booleans()) for _ in range(size)]
    blocks = [Block(f"x{j}", (1,), [low], [high], whole[j]) for j, (low, high) in enumerate(boxes)]
    matrix = np.array([[number() if draw(st.booleans()) else 0 for _ in range(size)] for _ in range(height)])
    sides = [ends() for _ in range(height)]
    rows = [
        Rows(f"r{i}", matrix[i : i + 1].astype(object), [low], [high]) for i, (low, high) in enumerate(sides)
    ]
    terms = [Term("linear", np.arange(size), [number() for _ in range(size)])]
    bent = [j for j in range(size) if draw(st.booleans())]
    if bent and draw(st.booleans()):
        terms.append(Term("quadratic", bent, [number() for _ in bent]))
    return Program("p", blocks, rows, terms)


@given(programs(), st.sampled_from([".mps", ".lp"]))
def test_what_is_written_is_read_back(tmp_path_factory, program, suffix):
    """Exactly: the decimals of the file are those of the program."""
    path = tmp_path_factory.mktemp("p") / f"a{suffix}"
    program.write(path)
    found = read_program(path)
    assert found.columns == program.variable_names()
    assert found.integer == program.integer.tolist()
    box = [
        [v for b in program.blocks for v in np.atleast_1d(getattr(b, side))] for side in ("lower", "upper")
    ]
    assert (found.lower, found.upper) == (box[0], box[1])
    cost, square = [0] * program.size, [0] * program.size
    for term in program.objective:
        for j, weight in zip(term.index, term.data[0], strict=True):
            (cost if term.kind == "linear" else square)[j] += weight
    assert (found.cost, found.square, found.constant) == (cost, square, 0)
    read = {}  # the sides of rows of the same coefficients, as a row with two sides is written as two rows
    for i, name in enumerate(found.rows):
        key = name.removesuffix("_most")
        row = {j: value for (k, j), value in found.entries.items() if k == i}
        before = read.setdefault(key, [row, -INF, INF])
        assert before[0] == row
        before[1], before[2] = max(before[1], found.least[i]), min(before[2], found.most[i])
    stated = {}
    for rows in program.rows:
        exactly = rows.matrix.data if rows.exactly is None else rows.exactly
        row = {j: v for j, v in zip(rows.matrix.indices.tolist(), exactly.tolist(), strict=True) if v}
        if rows.lower[0] > -INF or rows.upper[0] < INF:
            stated[f"{rows.name}_0"] = [row, rows.lower[0], rows.upper[0]]
    assert read == stated


def test_a_program_of_a_file_is_saved_with_its_names_and_fractions(tmp_path):
    from models.claim import Claim
    from models.witnesses.read_vipr import check_vipr

    program = read_lp("max 0.1 x + y\nst\n c: 0.1 x + 0.2 y <= 0.3\nbinary\n x y\nend\n").program()
    claim = Claim(program, np.array([1, 1]), {"prices": np.array([0])})
    for name in ("a.json", "a.npz"):
        again = Claim.load(claim.save(tmp_path / name))
        assert again.certificate().optimal
        assert (again.model.variable_names(), again.model.row_names()) == (["x", "y"], ["c"])
        assert again.model.rows[0].exactly.tolist() == [Fraction(1, 10), Fraction(1, 5)]
    assert '"slack"' not in (tmp_path / "a.json").read_text()  # fields that are None are left out
    assert check_vipr(claim.save(tmp_path / "a.vipr")) == (Fraction(-11, 10), Fraction(-11, 10))
    assert "\nrow -inf 3/10 1 1/10 2 1/5\n" in claim.save(tmp_path / "a.txt").read_text()
    fixed = read_mps(FIXED).program()
    proof = lagrangian_certificate(fixed, [7, 0], [0])
    with pytest.raises(ValueError, match=r"cannot be written: .* the name 'x one'"):
        fixed.write(tmp_path / "b.mps")
    assert proof.objective == Fraction(35, 2)
    text = (
        Claim(read_mps(mps()).program(), np.array([3, 1]), {"prices": [0, 0]})
        .save(tmp_path / "c.vipr")
        .read_text()
    )
    assert "\nx y\n" in text
