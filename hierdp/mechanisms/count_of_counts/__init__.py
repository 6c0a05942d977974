"""Groups by size over a hierarchy, up to very large sizes: Kuo et al. 2018."""

from hierdp.mechanisms.count_of_counts.mechanism import (
    Measured,
    count_of_counts,
    from_table,
    measure,
    post_process,
)

__all__ = ["Measured", "count_of_counts", "from_table", "measure", "post_process"]
