"""Read a table of codes and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.labels import Labels
from hierdp.errors import InputError, listed
from hierdp.tables.columns import column_of, text_of
from hierdp.tables.sources import read, run

CODE, NAME = "code", "name"

OTHER_CODES = (
    "no code of the table of labels is a region or category of the release: are they the same codes, with "
    "their leading zeros"
)


def read_labels(source: Any) -> Labels:
    """The names of codes, from a table with the columns ``code`` and ``name``, or with two columns.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        See `hierdp.tables.read`. Rows without a name are left out.

    Raises
    ------
    InputError
        If it has other columns, or a code has two names.

    Examples
    --------
    >>> import pandas as pd
    >>> read_labels(pd.DataFrame({"fips": ["06037", "06073"], "county": ["Los Angeles", "San Diego"]}))
    {'06037': 'Los Angeles', '06073': 'San Diego'}
    """
    table = read(source)
    there = list(table.columns)
    if not {CODE, NAME} <= set(there) and len(there) != 2:
        raise InputError(
            f"a table of labels has the columns {CODE!r} and {NAME!r}, or two columns; this one has "
            f"{listed(there, most=9)}"
        )
    code, name = (CODE, NAME) if {CODE, NAME} <= set(there) else there
    columns = {CODE: text_of(column_of(table, code)), NAME: text_of(column_of(table, name))}
    found: dict[str, str] = {}
    for row in run(table.select(**columns)).to_pylist():
        if row[CODE] is None or row[NAME] is None:
            continue
        if found.setdefault(row[CODE], row[NAME]) != row[NAME]:
            raise InputError(f"the table of labels has two names for {row[CODE]!r}: keep one")
    return found


def codes_in(table: Any, regions: Mapping[str, Hierarchy]) -> set[str]:
    """The names of a release's regions, and all texts of its table."""
    from pandas.api.types import is_numeric_dtype

    found = {str(name) for hierarchy in regions.values() for names in hierarchy.names for name in names}
    if not hasattr(table, "dtypes"):  # a large table of regions and sizes
        return found
    texts = [column for column in table if not is_numeric_dtype(table[column].dtype)]
    return found.union(*(map(str, table[column].unique()) for column in texts))


def named_in(labels: Labels, codes: Iterable[str]) -> Labels:
    """The labels of codes that occur in a release."""
    there = set(codes)
    return {code: name for code, name in labels.items() if code in there}


def labels_for(source: Any, manifest: Mapping[str, Any], codes: Iterable[str]) -> Labels:
    """The names of a written release's codes: those in its manifest, and those of a table of labels.

    Raises `InputError` if a table is given and has none of the codes.
    """
    own: Labels = manifest.get("labels", {})
    if source is None:
        return own
    found = named_in(read_labels(source), codes)
    if not found:
        raise InputError(OTHER_CODES)
    return {**own, **found}
