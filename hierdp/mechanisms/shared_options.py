"""Options that several mechanisms have, each declared once: types for the keywords of ``from_table``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.option import Option
from hierdp.tables.binning import AxisOf

ALL_REGIONS = "Public list of all regions there are, whether or not they occur in the data."

# Where a table with one hierarchy has what.

Group = Annotated[
    Sequence[str],
    Option("Column that names a row's group (household, taxi); several if they do so together.", "COLUMN"),
]
Groups = Annotated[
    Any,
    Option(
        "Table of all groups, a row each, with the columns of `group` and of the regions, which the table "
        "itself then need not have. Public. Groups without a row in the table have size 0.",
        "TABLE",
        form="table",
    ),
]
GroupsFromData = Annotated[
    bool,
    Option(
        "In place of `groups`: there are the groups that occur in the data. Their number is then published "
        "exactly, whatever ε is, so the only person of a group is not protected. The release warns of it."
    ),
]
Entities = Annotated[
    str | None,
    Option("Column with numbers of entities. Default: each row is one entity.", "COLUMN"),
]
Levels = Annotated[
    Sequence[str] | None,
    Option("The table's columns of regions, from coarse to fine: state,county.", "COLUMNS", form="columns"),
]
Regions = Annotated[Hierarchy | None, Option(ALL_REGIONS, form="regions")]
RegionsFromData = Annotated[
    bool,
    Option(
        "In place of a public list of regions: there are the regions that occur in the data. Which they are "
        "is then published exactly, whatever ε is, so the only person of a region is not protected. The "
        "release warns of it."
    ),
]
Region = Annotated[
    str | None,
    Option(
        "With `regions` (or --prefixes): the table's column of the finest region.",
        "COLUMN",
    ),
]
Root = Annotated[str, Option("Name of the region above all others.", "NAME")]

# Rows that have no region.

Unknown = Annotated[
    str | None,
    Option(
        "Put rows with a missing or unknown region into a region of this name. Without it they are an error; "
        "they are never dropped.",
        "NAME",
    ),
]
UnknownOrNoGroup = Annotated[
    str | None,
    Option(
        "Put rows with a missing or unknown region, or a missing group, into a region, or a group, of this "
        "name. Without it they are an error; they are never dropped.",
        "NAME",
    ),
]

# Whom the guarantee is for.

Person = Annotated[
    str | None,
    Option(
        "Column that names a row's person (household, device), whose rows are protected together: ε is that "
        "of a person, and at most `rows_per_person` of their rows are counted. Without it, a row is taken "
        "for a person: one with several rows is protected for one of them.",
        "COLUMN",
    ),
]
RowsPerPerson = Annotated[
    int | None,
    Option(
        "With `person`: how many rows of a person are counted at most, or, of a table of counts, how much of "
        "a person's counts. A keyed hash picks them. Noise grows with it.",
        "NUMBER",
        least=1,
    ),
]

# Histograms.

Bins = Annotated[
    Sequence[AxisOf],
    Option(
        "The columns to divide into bins, an axis each: `hierdp.Numbers`, `hierdp.Dates`, or a name and the "
        "columns of the levels of a hierarchy, or a name and (hierarchy, column).",
        form="bins",
    ),
]
Count = Annotated[str | None, Option("Column with counts. Default: each row counts one.", "COLUMN")]
Clip = Annotated[
    bool,
    Option(
        "Count numbers and dates outside the bins in the first or the last bin. Without this option they "
        "are an error."
    ),
]

# How to solve what a method leaves open.

TimeLimit = Annotated[
    float | None,
    Option(
        "Seconds for each step, all its solves together. When they are over, nothing is released.",
        "SECONDS",
        above=0,
        most=1e9,
    ),
]
