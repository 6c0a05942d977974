"""Released CSV files are equal to those of pandas; a faster writer makes most of them."""

import csv

import pandas as pd
import pytest

from hierdp.record import files

TEXTS = ["a b", "", None, "=1", "'", "é\u2028", "\t", "nan", "\x00", " a", "c,d", 'e"', "\n", '"', ","]


def slow(frame):
    """The table as pandas writes it."""
    texts = [*map(str, frame), *(text for name in frame for text in frame[name] if isinstance(text, str))]
    quoting = csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL
    return frame.to_csv(None, index=False, quoting=quoting, lineterminator="\n").encode()


def written(frame):
    return b"".join(files.csv_parts(frame, csv_safe=False))


@pytest.mark.parametrize("more", [[], ["\r"]])
@pytest.mark.parametrize("name", ["a", "b,", "\r"])
def test_rows_are_written_as_pandas_writes_them(monkeypatch, name, more):
    """Written in parts of two rows, some with texts that need quotes."""
    monkeypatch.setattr(files, "_ROWS", 2)
    texts = TEXTS + more
    frame = pd.DataFrame({"region": texts, name: texts[::-1]}, dtype="str")
    frame["count"] = [-(2**63), 2**63 - 1, *range(len(texts) - 2)]
    named = frame.astype({"region": "category", name: "category"})
    for rows in (frame, named):
        assert written(rows) == slow(frame)
        assert written(rows[["region"]]) == slow(frame[["region"]])
        assert written(rows[:0]) == slow(frame[:0])
    safe = [b"".join(files.csv_parts(rows, csv_safe=True)) for rows in (frame, named)]
    assert safe[0] == safe[1]


@pytest.mark.parametrize("column", [[0.1, 1e22], [True, False], [1, None]])
def test_other_numbers_are_written_as_pandas_writes_them(column):
    frame = pd.DataFrame({"region": ["a", "b"], "count": column})
    assert written(frame) == slow(frame)


def test_plain_rows_are_written_by_the_fast_writer():
    texts = pd.array(["a b", None], dtype="string")  # before pandas 3, lists of texts become objects
    plain = pd.DataFrame({"region": texts, "count": [1, -2]})
    for rows in (plain, plain.astype({"region": "category"})):
        assert files._unquoted(rows) == b"a b,1\n,-2\n"
    assert files._unquoted(plain.assign(region="a,b")) is None
