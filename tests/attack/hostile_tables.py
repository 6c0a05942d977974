"""About a hundred unusual tables: names, counts and files of every kind that a table may have."""

import datetime
import decimal
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

NAMES = {
    "a carriage return": "a\rb", "a line feed": "a\nb", "both": "a\r\nb", "a tab": "\ta", "quotes": 'a"b"',
    "an apostrophe": "'a", "a comma": "a,b", "an escape": "\x1b[31ma", "a bell": "a\x07", "a null": "a\0b",
    "a formula": "=cmd|' /C calc'!A0", "markup": "[red]a[/red]", "broken markup": "[/a", "a script":
    "<script>alert(1)</script>", "right to left": "\u202ea", "a zero width": "a\u200b", "empty": "",
    "a blank": " ", "blanks around": " a ", "NaN in words": "nan", "NULL in words": "NULL", "the root": "all",
    "a slash": "../a", "percent": "%s", "braces": "{a}", "an emoji": "\U0001f600", "composed": "e\u0301",
    "a byte order mark": "\ufeffa", "long": "a" * 100_000, "a separator": "a\u2028b", "a number": "007",
    "infinite": "inf", "a semicolon": "a;drop table", "a backslash": "a\\",
}  # fmt: skip

COUNTS = {
    "NaN": [1.0, float("nan")], "infinite": [1.0, float("inf")], "minus infinity": [1.0, float("-inf")],
    "negative": [1, -1], "half": [1, 0.5], "2^62": [2**62, 2**62], "the largest int64": [2**63 - 1, 0],
    "2^63": pa.array([2**63, 1], pa.uint64()), "the largest uint64": pa.array([2**64 - 1, 1], pa.uint64()),
    "the least int64": [-(2**63), 1], "huge floats": [1e308, 1e308], "denormal": [5e-324, 1.0],
    "minus zero": [-0.0, 1.0], "text": ["1", "two"], "numbers as text": ["1", "2"], "none": [None, None],
    "one missing": [1, None], "truth": [True, False], "dates": [datetime.date(2020, 1, 1)] * 2,
    "times": [datetime.datetime(2020, 1, 1)] * 2, "spans": [datetime.timedelta(1)] * 2,
    "decimals": [decimal.Decimal("1.50"), decimal.Decimal(2)], "bytes": [b"1", b"\xff"],
    "large decimals": [decimal.Decimal(10) ** 30, decimal.Decimal(1)], "lists": [[1], [2, 3]],
    "records": [{"a": 1}, {"a": 2}], "small": pa.array([1, 2], pa.int8()),
    "halves": pa.array(np.array([1, 2], np.float16)), "2^53 + 1": [2**53 + 1, 1],
    "a dictionary": pa.array([1, 2]).dictionary_encode(),
}  # fmt: skip

GOOD = b"town,home,n\na,1,2\nb,2,3\nb,3,1\n"

FILES = {
    "no bytes": b"", "a line feed": b"\n", "header only": b"town,home,n\n", "no header": b"a,1,2\n",
    "Latin-1": "town,home,n\ncaf\xe9,1,2\n".encode("latin-1"), "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-32": GOOD.decode().encode("utf-32"), "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "gzip": gzip.compress(GOOD), "a Parquet file": b"PAR1" + bytes(20), "ragged": GOOD + b"c\nd,4,5,6\n",
    "an open quote": GOOD + b'"c,4,5\n', "null bytes": GOOD + b"c\0,4,5\n", "zeros": bytes(1000),
    "every byte": bytes(range(256)), "mixed line ends": GOOD + b"c,4,5\r\n", "CR alone": GOOD.replace(
    b"\n", b"\r"), "semicolons": GOOD.replace(b",", b";"), "the same column twice":
    b"town,town,home,n\na,a,1,2\n", "columns of one name but for case": b"town,TOWN,home,n\na,b,1,2\n",
    "an unnamed column": b"town,,home,n\na,x,1,2\n", "one long line": b"town,home,n\n" + b"a" * 3_000_000,
    "many columns": b"town,home,n," + b",".join(b"c%d" % i for i in range(3000)) + b"\n",
    "only commas": b",,,\n" * 99, "surrogates": b"town,home,n\n\xed\xa0\x80,1,2\n",
    "numbers of a thousand digits": b"town,home,n\na,1," + b"9" * 1000 + b"\n",
    "a comment": b"# x\n" + GOOD, "HTML": b"<html><body>404</body></html>\n",
}  # fmt: skip


def named(name):
    """Write a table in which a region has this name, in the first row and in the last."""

    def write(path):
        frame = pd.DataFrame({"town": [name, "b", "b", name], "home": [1, 2, 3, 4], "n": [1, 2, 3, 4]})
        frame.to_parquet(path)
        return path

    return write  # fmt: skip


def counting(values):
    """Write a table with these counts."""

    def write(path):
        column = values if isinstance(values, pa.Array | pa.DictionaryArray) else pa.array(values)
        pq.write_table(pa.table({"town": ["a", "b"], "home": [1, 2], "n": column}), path)
        return path

    return write  # fmt: skip


def holding(content):
    """Write these bytes as CSV."""

    def write(path):
        path = path.with_suffix(".csv")
        path.write_bytes(content)
        return path

    return write  # fmt: skip


def cut(part):
    """Write this part of a Parquet file."""

    def write(path):
        named("a")(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * part)])
        return path

    return write  # fmt: skip


def flipped(at):
    """Write a Parquet file with a byte changed."""

    def write(path):
        named("a")(path)
        content = bytearray(path.read_bytes())
        content[int(len(content) * at)] ^= 0xFF
        path.write_bytes(content)
        return path

    return write  # fmt: skip


def no_rows(path):
    pd.DataFrame({"town": [], "home": [], "n": []}).to_parquet(path)
    return path


def a_folder(path):
    path.mkdir()
    return path


def not_there(path):
    return path


def link_to_itself(path):
    path.symlink_to(Path(path.name))
    return path


TABLES = {
    **{f"a name that holds {what}": ("group-size", named(name)) for what, name in NAMES.items()},
    **{f"counts: {what}": ("top-down", counting(values)) for what, values in COUNTS.items()},
    **{f"values to bin: {what}": ("range-query", counting(values)) for what, values in COUNTS.items()},
    **{f"a file: {what}": ("top-down", holding(content)) for what, content in FILES.items()},
    **{f"{part:.0%} of a file": ("clustering", cut(part)) for part in (0, 0.01, 0.3, 0.9, 0.99)},
    **{f"a byte changed at {at:.0%}": ("top-down", flipped(at)) for at in (0.01, 0.1, 0.3, 0.5, 0.8, 0.97)},
    "no rows": ("top-down", no_rows),
    "a folder": ("top-down", a_folder),
    "not there": ("top-down", not_there),
    "a link to itself": ("top-down", link_to_itself),
}
