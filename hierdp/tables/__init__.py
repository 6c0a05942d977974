"""Read tables into counts: Ibis expressions, run by an embedded DuckDB or by the database of the table.

Rows are checked and aggregated where they are stored; only the small result comes to Python. Errors in the
input raise an `InputError` that names the column, row, region or group, and never a count. Null, NaN and the
empty text are missing values.
"""

from hierdp.counts.size_runs import GroupSizes
from hierdp.tables.axes import Axis, AxisLike, Prefixes
from hierdp.tables.cells import Flows, flows
from hierdp.tables.databases import Database
from hierdp.tables.labels import read_labels
from hierdp.tables.regions import read_hrc, read_parents, read_regions
from hierdp.tables.sizes import counted_groups, group_sizes
from hierdp.tables.sources import read

__all__ = [
    "Axis",
    "AxisLike",
    "Database",
    "Flows",
    "GroupSizes",
    "Prefixes",
    "counted_groups",
    "flows",
    "group_sizes",
    "read",
    "read_hrc",
    "read_labels",
    "read_parents",
    "read_regions",
]
