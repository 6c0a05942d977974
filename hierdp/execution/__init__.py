"""Run independent tasks (regions, sizes, subtrees, runs) in this process, in several processes, or on Dask.

    with execution.using(workers=4):
        made = release(table, "group-size", ...)

Results are in the order of the tasks, so they do not depend on where the tasks ran, or on the number of
workers. Tasks contain the post-processing of noisy counts, and runs of experiments. True counts, and drawing
noise, stay in the process that reads the data.
"""

from hierdp.execution.engine import chunks as chunks
from hierdp.execution.engine import each as each
from hierdp.execution.engine import using as using
from hierdp.execution.engine import within as within
from hierdp.execution.protocol import LostWorker as LostWorker
