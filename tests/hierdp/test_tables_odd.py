"""Clear messages for files whose contents do not match their names, and for counts near 64 bits."""

import gzip

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.tables import flows

OPTIONS = ["--axis", "a=a", "--count", "n", "--epsilon", "1", "--delta", "1e-8", "--simulate", "1",
    "--regions-from-data"]  # fmt: skip


def refusal(table):
    """The message of a release of a table that must be refused before anything is measured."""
    done = CliRunner().invoke(main, ["release", "top-down", str(table), *OPTIONS, "--out", "out"])
    assert done.exit_code == 2, done.output
    return done.output


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(b"a,n\nx,1\n"), "is compressed (gzip): unpack it first"),
        (b"PK\x03\x04" + bytes(30), "is compressed (zip)"),
        (b"PAR1" + bytes(30), "Parquet: end its name in .parquet"),
        ("a,n\nx,1\n".encode("utf-16"), "is UTF-16, not UTF-8"),
        (b"a,n\r\nx,1\ny,2\r\n", "end in different ways ('CR LF', 'LF')"),
        (b"a,n\nx,1\ry,2\n", "end in different ways ('LF', 'CR')"),
    ],
    ids=["gzip", "zip", "Parquet", "UTF-16", "mixed line ends", "a carriage return"],
)
def test_a_file_that_is_not_plain_csv(place, content, why):
    (place / "in.csv").write_bytes(content)
    assert why in refusal("in.csv")


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_all_kinds_of_line_ends(place, ends):
    inside = b"\n" if ends == b"\r\n" else ends  # a line end of another kind within quotes is part of a name
    (place / "in.csv").write_bytes(ends.join([b"a,n", b"x,1", b'"y' + inside + b'z",2', b""]))
    assert flows("in.csv", axes={"a": ["a"]}, count="n").counts.tolist() == [1, 2]


EXACT = "the counts are too large for exact sums over 2 cells in 64 bits"
BEYOND = "too large for 64 bits"


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("int64", 2**63 - 1, EXACT),
        ("int64", 2**62, EXACT),
        ("uint64", 2**63 - 1, EXACT),
        ("uint64", 2**63, BEYOND),
        ("float64", 2**62, EXACT),
        ("float64", 2**63, BEYOND),
        ("text", 2**63 - 1, EXACT),
        ("text", 2**63, BEYOND),
    ],
)
def test_counts_at_the_end_of_64_bits(kind, value, why):
    """The largest int64 fits 64 bits; counts too large for exact sums over cells are refused nevertheless."""
    counts = [str(value), "0"] if kind == "text" else np.array([value, 0], kind)
    pd.DataFrame({"a": ["x", "y"], "n": counts}).to_parquet("in.parquet")
    assert why in refusal("in.parquet")


@pytest.mark.parametrize(
    ("value", "why"),
    [(np.nan, "the count is missing"), (np.inf, BEYOND), ("NaN", "not a number"), ("inf", "not a number")],
)
def test_missing_and_infinite_counts(value, why):
    pd.DataFrame({"a": ["x"], "n": [value]}).to_parquet("in.parquet")
    assert why in refusal("in.parquet")
