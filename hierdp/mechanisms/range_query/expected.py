"""What to expect of answers to ranges, without data: the exact variances of all methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from hierdp.analysis.methods import Row, analyse, scaled
from hierdp.analysis.queries import Regular
from hierdp.analysis.report import advice, frame
from hierdp.mechanisms.expected import Expected, RowsOfAPerson
from hierdp.mechanisms.mechanism import Planned
from hierdp.mechanisms.option import Option
from hierdp.privacy.budget import check_epsilon, of_one_row


@dataclass(frozen=True, kw_only=True)
class PlannedRangeQuery(Planned):
    """The options of a plan for answers to ranges."""

    OF_THE_RELEASE: ClassVar = ()

    bins: Annotated[int, Option("The number of bins along each dimension.", "NUMBER", least=1)]
    dimensions: Annotated[int, Option("The number of dimensions.", "NUMBER", least=1, most=16)] = 1
    ways: Annotated[
        int | None,
        Option(
            "In place of all ranges: all prefixes of all marginals of so many dimensions.", "NUMBER", least=1
        ),
    ] = None
    rows_per_person: RowsOfAPerson = 1

    def expected(self, epsilon: float) -> Expected:
        """The exact expected variance of an answer, for each method; see `hierdp analyze`."""
        queries = _queries(self.bins, self.dimensions, self.ways)
        budget = of_one_row(check_epsilon(epsilon), self.rows_per_person)
        rows = scaled(_analysed(self.bins, self.dimensions, self.ways), budget)
        notes = tuple(advice(queries, rows))
        return Expected(f"all methods, {queries}", frame(rows, queries), notes, epsilon, ("method",))


def _queries(bins: int, dimensions: int, ways: int | None) -> Regular:
    return Regular.ranges(bins, dimensions) if ways is None else Regular.marginals(bins, dimensions, ways)


@lru_cache(maxsize=4)
def _analysed(bins: int, dimensions: int, ways: int | None) -> tuple[Row, ...]:
    """The analysis for ε = 1, kept because a search for ε needs it several times."""
    return tuple(analyse(_queries(bins, dimensions, ways), 1.0))
