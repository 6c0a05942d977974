"""The cases of an audit: each mechanism on two tiny, invented neighbouring tables.

Each mechanism's cases are in its package, one for each of its neighbouring relations. The tables, ε and the
division of the budget are chosen so that the release shows as much of the difference as possible: one region
or one group, so that post-processing does not average noise away; counts far from 0; and most of the budget
for the counts that differ. For each method there is also a case of a count that is 0 in one table and 1 in
the other, which reveals missing noise on zeros. For the number of runs that show half the noise, see
`python -m benchmarks audit`. For the samplers of exact noise, see `hierdp.audit.samplers`.
"""

from __future__ import annotations

from hierdp.mechanisms.registry import MECHANISMS

CASES = tuple(case for mechanism in MECHANISMS.values() for case in mechanism.cases)
