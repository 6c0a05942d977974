"""The same work over independent regions, sizes, subtrees or runs: here, over processes, or on Dask.

    with execution.using(workers=4):
        made = release(table, "group-size", ...)

Results come in the order of the work, so an answer is the same, byte for byte, wherever it was made and by
however many. What travels is the post-processing of noisy counts, and the runs of experiments; true counts
and the drawing of noise stay in the process that holds the data.
"""

from hierdp.execution.engine import chunks as chunks
from hierdp.execution.engine import each as each
from hierdp.execution.engine import using as using
from hierdp.execution.engine import within as within
from hierdp.execution.protocol import LostWorker as LostWorker
