"""The largest change of linear queries as an integer program, for universes too large to enumerate."""

import numpy as np
from scipy.sparse import csr_matrix, eye, hstack

from models.programs.program import Program
from models.programs.terms import Block, Rows, Term


def largest_change(queries, rows, replaced, norm, distinct=False):
    """A program whose optimum is minus the largest ‖queries · (joined − left)‖ of one person.

    Parameters
    ----------
    queries : int array, shape (answers, kinds)
        What a row of each kind adds to each answer.
    rows : int
        The most rows of a person.
    replaced : bool
        Whether a person's rows are replaced by as many others; otherwise they join.
    norm : 1 or 2
        The sum of the absolute changes, or of their squares.
    distinct : bool
        Whether a person's rows are all of different kinds.
    """
    queries = np.asarray(queries)
    answers, kinds = queries.shape
    most = int(np.abs(queries).max()) * rows * (1 + replaced)
    cap = 1 if distinct else rows
    blocks = [
        Block("joined", (kinds,), 0, cap, True),
        Block("left", (kinds,), 0, cap if replaced else 0, True),
        Block("change", (answers,), -most, most, True),
    ]
    matrix = csr_matrix(queries.astype(float))
    ones, none = csr_matrix(np.ones((1, kinds))), csr_matrix((1, answers))
    balance = [
        Rows(
            "changes",
            csr_matrix(hstack([matrix, -matrix, -eye(answers)])),
            np.zeros(answers),
            np.zeros(answers),
        ),
        Rows("rows", csr_matrix(hstack([ones, csr_matrix((1, kinds)), none])), np.zeros(1), np.full(1, rows)),
    ]
    if replaced:
        same = Rows("replaced", csr_matrix(hstack([ones, -ones, none])), np.zeros(1), np.zeros(1))
        balance.append(same)
    costs = -(np.abs(np.arange(-most, most + 1)) ** norm)
    change = 2 * kinds + np.arange(answers)
    # A table's first cost is that of the least value, which is its center.
    terms = [Term("table", change, center=-most, tables=[costs] * answers)]
    return Program("largest change", blocks, balance, terms)
