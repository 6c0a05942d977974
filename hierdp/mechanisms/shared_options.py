"""Options of several mechanisms, each declared once, as types for the fields of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.option import Option
from hierdp.tables.binning import AxisOf

ALL_REGIONS = "Public list of all regions, whether or not they occur in the data."

# Columns of a table with one hierarchy.

Group = Annotated[
    Sequence[str],
    Option(
        "Column that identifies a row's group (household, taxi), or several columns that do so together.",
        "COLUMN",
    ),
]
Groups = Annotated[
    Any,
    Option(
        "Public table of all groups, one row each, with the columns of `group` and of the regions, which "
        "the table itself then does not need. Listed groups without a row in the table have size 0.",
        "TABLE",
        form="table",
    ),
]
GroupsFromData = Annotated[
    bool,
    Option(
        "In place of `groups`: the groups that occur in the data. Their number is then published exactly, so "
        "the only person of a group is not protected."
    ),
]
Entities = Annotated[
    str | None, Option("Column with numbers of entities. Default: each row is one entity.", "COLUMN")
]
Levels = Annotated[
    Sequence[str] | None,
    Option(
        "The table's columns of regions, from coarse to fine: state,county. With `regions` (or --prefixes): "
        "its one column of the finest regions.",
        "COLUMNS",
        form="columns",
    ),
]
Regions = Annotated[Hierarchy | None, Option(ALL_REGIONS, form="regions")]
RegionsFromData = Annotated[
    bool,
    Option(
        "In place of a public list of regions: those that occur in the data. They are then published, so "
        "the only person of a region is not protected."
    ),
]
Region = Annotated[
    str | None, Option("With `regions`: the table's column of the finest regions.", form="in levels")
]
Root = Annotated[str, Option("Name of the root region, above all others.", "NAME")]

Shares = Annotated[
    Sequence[float] | None,
    Option(
        "The relative part of a level in the budget; one for each level that is measured, from the top (with "
        "unbounded neighbours of top-down, the total first). Default: equal parts.",
        "NUMBER",
        flag="--share",
    ),
]

# Rows without a region.

Unknown = Annotated[
    str | None,
    Option(
        "Count rows with a missing or unknown region in a region of this name. Without this option they are "
        "an error; they are never dropped.",
        "NAME",
    ),
]
UnknownOrNoGroup = Annotated[
    str | None,
    Option(
        "Count rows with a missing or unknown region, or a missing group, in a region, or a group, of this "
        "name. Without this option they are an error; they are never dropped.",
        "NAME",
    ),
]

# The guarantee, and whom it is for.

Delta = Annotated[
    float, Option("The δ of (ε, δ)-DP: far below 1 / number of people, such as 1e-8.", "NUMBER")
]
Concentrated = Annotated[
    float | None,
    Option(
        "The δ of (ε, δ)-DP by zCDP, with discrete Gaussian noise: far below 1 / number of people, such as "
        "1e-8. Default: ε-DP, with double-geometric noise.",
        "NUMBER",
    ),
]
Bounded = Annotated[
    bool,
    Option(
        "Also protect whether a person is in the table at all: then the total is noisy, not public.",
        flag="--unbounded",
    ),
]

Person = Annotated[
    str | None,
    Option(
        "Column that identifies a row's person (or household, or device). ε is then for all rows of a "
        "person, of which at most `rows_per_person` are counted. Without it, ε is for one row.",
        "COLUMN",
    ),
]
RowsPerPerson = Annotated[
    int | None,
    Option(
        "With `person`: the most rows of a person that are counted; in a table of counts, their largest sum. "
        "Noise grows with it.",
        "NUMBER",
        least=1,
    ),
]

MostPerRow = Annotated[
    int | None,
    Option(
        "In a table of counts: larger numbers in a row count as this one, and ε is for a row. Without it "
        "(and `person`), ε is for one of what the column counts. Noise grows with it.",
        "NUMBER",
        least=1,
    ),
]

# Histograms.

Bins = Annotated[
    Sequence[AxisOf],
    Option(
        "The columns to divide into bins, one axis each: `hierdp.Numbers`, `hierdp.Dates`, or a name and the "
        "columns of the levels of a hierarchy, or a name and (hierarchy, column).",
        form="bins",
    ),
]
Count = Annotated[str | None, Option("Column with counts. Default: each row counts as one.", "COLUMN")]
Clip = Annotated[
    bool,
    Option(
        "Count numbers and dates outside the bins in the first or the last bin. Without this option they "
        "are an error."
    ),
]

# Options of the solver.

TimeLimit = Annotated[
    float | None,
    Option(
        "Time limit for each step, in seconds, for all its solves together. If it is reached, nothing is "
        "released.",
        "SECONDS",
        above=0,
        most=1e9,
    ),
]
