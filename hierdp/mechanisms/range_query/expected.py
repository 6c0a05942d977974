"""What to expect of answers to ranges, without data: the exact variances of all methods."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from hierdp.analysis.methods import Row, analyse, scaled
from hierdp.analysis.queries import Regular
from hierdp.analysis.report import advice, frame
from hierdp.mechanisms.expected import Expected, RowsOfAPerson
from hierdp.mechanisms.option import Option, documented
from hierdp.privacy.budget import check_epsilon, of_one_row


@documented
def expected(
    *,
    epsilon: float,
    bins: Annotated[int, Option("The number of bins along each dimension.", "NUMBER", least=1)],
    dimensions: Annotated[int, Option("The number of dimensions.", "NUMBER", least=1, most=16)] = 1,
    ways: Annotated[
        int | None,
        Option(
            "In place of all ranges: all prefixes of all marginals of so many dimensions.", "NUMBER", least=1
        ),
    ] = None,
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The exact expected variance of an answer, for each method; see `hierdp analyze`."""
    queries = Regular.ranges(bins, dimensions) if ways is None else Regular.marginals(bins, dimensions, ways)
    rows = scaled(_analysed(bins, dimensions, ways), of_one_row(check_epsilon(epsilon), rows_per_person))
    notes = tuple(advice(queries, rows))
    return Expected(f"all methods, {queries}", frame(rows, queries), notes, epsilon, ("method",))


@lru_cache(maxsize=4)
def _analysed(bins: int, dimensions: int, ways: int | None) -> tuple[Row, ...]:
    """The analysis for ε = 1, kept because a search for ε needs it several times."""
    queries = Regular.ranges(bins, dimensions) if ways is None else Regular.marginals(bins, dimensions, ways)
    return tuple(analyse(queries, 1.0))
