"""What is audited: each mechanism on two neighbouring tables, tiny ones, made up.

Each mechanism's cases are in its package. Where it protects several kinds of neighbours there is a case of
each. The tables, ε and the shares of a budget are chosen so that as much as possible of what noise hides can
be seen in the release: one region or one group where that keeps repairs from averaging noise away, counts far
from 0, and most of the budget where the neighbour moves something. For each method there is also a case of a
count that is 0 on one table and 1 on the other, which shows noise that zeros do not get. How many runs that
takes: docs/privacy.md, and `python -m benchmarks.audit`.
"""

from __future__ import annotations

from hierdp.mechanisms.registry import MECHANISMS

CASES = tuple(case for mechanism in MECHANISMS.values() for case in mechanism.cases)
