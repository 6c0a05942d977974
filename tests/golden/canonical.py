"""Texts that are the same on every machine and with every version of the dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import pandas as pd

DIGITS = 10
"""Significant digits of numbers that are not whole."""

ZERO = 1e-13
"""Smaller numbers are errors of rounding."""

SHA256, NUMBER = r"\b[0-9a-f]{64}\b", r"(?<![\w.])-?\d+(/\d+|\.\d+(e[-+]?\d+)?|e[-+]?\d+)(?![\w.]*\w)"


def canonical(value: Any, digits: int = DIGITS) -> str:
    """A readable text of a table, a mapping or a list, one line for each row, entry or element.

    Whole numbers are exact, others are rounded; keys are sorted, and digests of files are left out.
    """
    if isinstance(value, pd.DataFrame):
        rows = [value.columns, *value.itertuples(index=False)]
        return "\n".join("\t".join(line(one, digits) for one in row) for row in rows)
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {line(value[key], digits)}" for key in sorted(value, key=str))
    return "\n".join(line(one, digits) for one in value)


def line(value: Any, digits: int = DIGITS) -> str:
    """A value in one line."""
    if isinstance(value, str):
        text = re.sub(SHA256, "DIGEST", value)
        return re.sub(NUMBER, lambda found: line(Fraction(found[0]), digits), text).replace("\n", "\\n")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {line(value[key], digits)}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(line(one, digits) for one in value) + "]"
    if value is None or value is pd.NA or value != value:
        return "none"
    if isinstance(value, Integral | Rational) and not isinstance(value, bool) and value.denominator == 1:
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        text = f"{0.0 if abs(value) < ZERO else float(value):.{digits}g}"
        return text if set(text) & set(".en") else f"{text}.0"
    return str(value)
