"""Non-negative least squares of a parent's children: Newton's method for prices, active sets for children.

At given prices of the parent's cells the children do not depend on each other. Each is a small strictly
convex problem, whose active set (the cells above 0, the rules that bind) is corrected until all signs are
right: a primal-dual active-set method (Hintermüller, Ito & Kunisch 2002). It starts from the set at the last
prices, so that most children need one step. Where it cycles, a projected Newton method with a line search
(Bertsekas 1982) takes over, which does not.

What the children's sums miss is the gradient of the dual function, which is concave and piecewise quadratic.
The sum of their inverse matrices is its curvature. A few Newton steps with a line search find the prices
exactly. Rules enter by the method of multipliers, a price and a steep penalty, which needs no interior.

A child's matrix is a multiple of the identity and the squares of sums. It is inverted on the active cells, by
one exchange of variables for each cell that changes sides. If there are many cells and fewer sums, the system
of the sums is inverted instead (Woodbury's identity), and prices are found by conjugate gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Floats, Ints
from models.arithmetic.kernels import helper, kernel

STEEP = 1e4
"""The penalty of a rule, in units of its child's weights; the prices of rules converge by this factor."""

ZERO = 1e-13
"""Signs of smaller numbers, relative to those that they are computed from, are not trusted."""

TURNS = 12
"""Corrections of a child's active set before the line search takes over."""

RAISES = 3
"""How often the penalties are raised if that helps."""

SMOOTHED = 4
"""Rounds in which rounding errors of the rules' prices are removed."""

SEARCHES = 300
"""The most steps of the line search for a child."""

MOST = 40
"""The most trials of the line search for prices."""

STEPS = 1000
"""The most Newton steps for prices, trials of the line search included; about 5 to 10 are needed."""

SWEEPS = 64
"""Exchanges after which a matrix is inverted anew."""

GRADIENTS = 400
"""The most steps of conjugate gradients; some tens are needed."""

ENOUGH = 1e-9
"""What sums may miss, relative to the largest numbers in them, if another step gains nothing."""

TINY = 1e-300
"""Keeps ratios finite."""

SHORTEST = 1e-9
"""The least length of a step of the line search."""

SINGULAR = 1e-12
"""Pivots of the prices' system below this, relative to the diagonal, count as 0."""


CENTER, LINEAR, FREE, X, SLOPE, ACTIVE, INSIDE, BEFORE = range(8)
"""Rows of `Children.cells`. X and SLOPE are found. ACTIVE are the cells above 0, INSIDE those in the inverse
matrix, BEFORE those that were active at the last prices."""

LOW, HIGH, CHARGE, TAX, ON, BOUND, OFTEN = range(7)
"""Rows of `Children.rules`. CHARGE are prices to which the penalty is added, TAX those with the penalty. ON
are 1 for rules that bind below, -1 above, BOUND the same in
the inverse matrix, OFTEN at the last prices."""

D, STEEPNESS, EXCHANGES = range(3)
"""Columns of `Children.child`: the weight of each cell alone, the penalty of rules, and the exchanges since
the matrix was built, -1 before that."""

SUMS, MORE, HEIGHTS, STEP, OTHER, TRIAL, SHORT, WAY, BASE = range(9)
"""Rows of `Children.work`."""


class Children(NamedTuple):
    """``min Σ_c ½ ‖x_c − center_c‖²_H − linear_c·(x_c − center_c)`` with x ≥ 0, the parent's sums and rules.

    H = d I + Bᵀ diag(weight) B, where B are the coarse sums; after these come the rules. On cells that are
    not free, center and linear are 0. Flags are numbers, as few arrays compile faster.
    """

    place: Ints
    """The sum of each query and rule that counts each cell; shape (queries, cells)."""
    weight: Floats
    """Shape (children, coarse sums)."""
    parent: Floats
    """Shape (cells,); (0,) if there is no parent."""
    cells: Floats
    """See `CENTER`; shape (children, 8, cells)."""
    rules: Floats
    """See `LOW`, bounds of the sum of ``x − center``; shape (children, 7, rules)."""
    child: Floats
    """See `D`; shape (children, 3)."""
    matrix: Floats
    """Inverses of the matrices of cells, or of sums; shape (children, size, size)."""
    gain: Floats
    """The matrix of the prices, shape (cells, cells); (0, 0) if the inverses are those of sums."""
    price: Floats
    """Shape (cells,)."""
    work: Floats


@helper
def _exchange(matrix: Any, k: int) -> None:
    """Exchange variable k and its value in ``values = matrix · variables``; twice is the identity."""
    size, own = len(matrix), matrix[k]
    pivot = 1.0 / own[k]
    for i in range(size):
        row = matrix[i]
        factor = row[k] * pivot
        if i != k and factor != 0.0:
            for j in range(size):
                row[j] -= factor * own[j]
            row[k] = factor
    for j in range(size):
        own[j] *= -pivot
    own[k] = pivot


@helper
def _reduced(p: Any, c: int, at: Any, slope: Any) -> None:
    """The slope of a child's cells less all prices at a point; sets the present prices of its rules."""
    place, weight, price, sums, cells = p.place, p.weight[c], p.price, p.work[SUMS], p.cells[c]
    rules = p.rules[c]
    center, linear, low, high, charge = cells[CENTER], cells[LINEAR], rules[LOW], rules[HIGH], rules[CHARGE]
    tax = rules[TAX]
    d, steep, first = p.child[c, D], p.child[c, STEEPNESS], len(weight)
    for i in range(first + len(tax)):
        sums[i] = 0.0
    for q in range(len(place)):
        for j in range(len(center)):
            sums[place[q, j]] += at[j] - center[j]
    for i in range(first):
        sums[i] *= weight[i]
    for k in range(len(tax)):
        up = charge[k] + steep * (low[k] - sums[first + k])
        down = charge[k] + steep * (high[k] - sums[first + k])
        tax[k] = 0.0
        if up > 0.0 or low[k] == high[k]:
            tax[k] = up
        elif down < 0.0:
            tax[k] = down
        sums[first + k] = -tax[k]
    for j in range(len(center)):
        slope[j] = d * (at[j] - center[j]) - linear[j] - price[j]
    for q in range(len(place)):
        for j in range(len(center)):
            slope[j] += sums[place[q, j]]


@helper
def _bind(rules: Any) -> Any:
    """Take a child's rules that have a price as binding; return whether that changes them."""
    low, high, tax, on = rules[LOW], rules[HIGH], rules[TAX], rules[ON]
    changed = False
    for k in range(len(on)):
        binds = 0.0
        if tax[k] > 0.0 or low[k] == high[k]:
            binds = 1.0
        elif tax[k] < 0.0:
            binds = -1.0
        changed = changed or binds != on[k]
        on[k] = binds
    return changed


@helper
def _alike(p: Any, c: int, other: int) -> Any:
    """Whether two children's matrices differ in their active cells only."""
    mine, others, weight, weights = p.child[c], p.child[other], p.weight[c], p.weight[other]
    on, bound = p.rules[c, ON], p.rules[other, BOUND]
    alike = others[EXCHANGES] >= 0.0 and mine[D] == others[D] and mine[STEEPNESS] == others[STEEPNESS]
    for i in range(len(weight)):
        alike = alike and weight[i] == weights[i]
    for k in range(len(on)):
        alike = alike and on[k] == bound[k]
    return alike


@helper
def _heights(p: Any, c: int) -> None:
    """The weights of the sums in a child's matrix."""
    weight, on, steep, heights = p.weight[c], p.rules[c, ON], p.child[c, STEEPNESS], p.work[HEIGHTS]
    for i in range(len(weight)):
        heights[i] = weight[i]
    for k in range(len(on)):
        heights[len(weight) + k] = steep * abs(on[k])


@helper
def _invert(p: Any, c: int) -> None:
    """Bring a child's inverse matrix up to date with its active cells and binding rules."""
    place, matrix, child, heights = p.place, p.matrix[c], p.child[c], p.work[HEIGHTS]
    active, inside, on, bound = p.cells[c, ACTIVE], p.cells[c, INSIDE], p.rules[c, ON], p.rules[c, BOUND]
    cells, size = len(active), len(matrix)
    alike = _alike(p, c, c)
    same = alike
    for j in range(cells):
        same = same and active[j] == inside[j]
    if same:
        return
    source = c if alike or c == 0 else c - 1
    if len(p.gain) > 0 and p.child[source, EXCHANGES] < SWEEPS and _alike(p, c, source):
        if source != c:
            others = p.matrix[source]
            for i in range(size):
                for j in range(size):
                    matrix[i, j] = others[i, j]
                inside[i] = p.cells[source, INSIDE, i]
        child[EXCHANGES] = p.child[source, EXCHANGES]
    else:
        _heights(p, c)
        child[EXCHANGES] = 0.0
        for i in range(size):
            for j in range(size):
                matrix[i, j] = 0.0
        if len(p.gain) > 0:
            for i in range(cells):
                for q in range(len(place)):
                    height = heights[place[q, i]]
                    for j in range(cells):
                        if place[q, i] == place[q, j]:
                            matrix[i, j] += height
                matrix[i, i] += child[D]
                inside[i] = 0.0
        else:
            for j in range(cells):
                if active[j] > 0.0:
                    for q in range(len(place)):
                        for r in range(len(place)):
                            matrix[place[q, j], place[r, j]] += 1.0 / child[D]
            for i in range(size):
                for j in range(size):
                    matrix[i, j] *= np.sqrt(heights[i] * heights[j])
                matrix[i, i] += 1.0
            for i in range(size):
                _exchange(matrix, i)
    for j in range(cells):
        if active[j] != inside[j]:
            inside[j] = active[j]
            if len(p.gain) > 0:
                _exchange(matrix, j)
                child[EXCHANGES] += 1.0
    for k in range(len(on)):
        bound[k] = on[k]


@helper
def _eased(p: Any, c: int, right: Any, found: Any) -> None:
    """The inverse of a child's matrix on its active cells, times `right`; 0 on others."""
    place, matrix, inside, d = p.place, p.matrix[c], p.cells[c, INSIDE], p.child[c, D]
    sums, more, heights = p.work[SUMS], p.work[MORE], p.work[HEIGHTS]
    for j in range(len(inside)):
        found[j] = 0.0
    if len(p.gain) > 0:
        for j in range(len(inside)):
            if inside[j] > 0.0:
                row, part = matrix[j], right[j]
                for i in range(len(inside)):
                    found[i] += part * row[i]
        for j in range(len(inside)):
            found[j] *= inside[j]
        return
    _heights(p, c)
    for i in range(len(matrix)):
        sums[i] = 0.0
        more[i] = 0.0
    for j in range(len(inside)):
        if inside[j] > 0.0:
            found[j] = right[j] / d
            for q in range(len(place)):
                sums[place[q, j]] += found[j]
    for i in range(len(matrix)):
        row, part = matrix[i], sums[i] * np.sqrt(heights[i])
        if part != 0.0:
            for j in range(len(matrix)):
                more[j] += part * row[j]
    for i in range(len(matrix)):
        more[i] *= np.sqrt(heights[i]) / d
    for j in range(len(inside)):
        if inside[j] > 0.0:
            for q in range(len(place)):
                found[j] -= more[place[q, j]]


@helper
def _corrected(p: Any, c: int) -> Any:
    """Take the cells and rules with the right signs as active ones; return whether that changes the set."""
    cells, rules, price, sums = p.cells[c], p.rules[c], p.price, p.work[SUMS]
    center, linear, free, x, slope = cells[CENTER], cells[LINEAR], cells[FREE], cells[X], cells[SLOPE]
    active = cells[ACTIVE]
    largest, steepest = 0.0, 0.0
    for j in range(len(x)):
        if free[j] > 0.0:
            largest = max(largest, abs(x[j] - center[j]))
            steepest = max(steepest, abs(linear[j]), abs(price[j]))
    for i in range(p.weight.shape[1] + rules.shape[1]):  # what each sum adds to the slopes, from `_reduced`
        steepest = max(steepest, abs(sums[i]))
    steepest = max(steepest, p.child[c, D] * largest)
    for k in range(rules.shape[1]):
        steepest = max(steepest, abs(rules[ON, k]) * p.child[c, STEEPNESS] * largest)
    changed = False
    for j in range(len(x)):
        if active[j] > 0.0:
            if x[j] < -10.0 * ZERO * (abs(center[j]) + largest):
                active[j] = 0.0
                changed = True
        elif free[j] > 0.0 and slope[j] < -ZERO * steepest:
            active[j] = 1.0
            changed = True
    return _bind(rules) or changed


@helper
def _settle(p: Any, c: int) -> Any:
    """Solve a child at the present prices; return whether its active cells or binding rules have changed."""
    cells, rules, step, trial, other = p.cells[c], p.rules[c], p.work[STEP], p.work[TRIAL], p.work[OTHER]
    free, x, slope, active, before = cells[FREE], cells[X], cells[SLOPE], cells[ACTIVE], cells[BEFORE]
    on, often = rules[ON], rules[OFTEN]
    for j in range(len(x)):
        before[j] = active[j]
    for k in range(len(on)):
        often[k] = on[k]
    for turn in range(TURNS + SEARCHES):
        searching = turn >= TURNS
        if turn == TURNS:
            for j in range(len(x)):
                x[j] = max(x[j], 0.0)
        _reduced(p, c, x, slope)
        if searching:
            for j in range(len(x)):
                active[j] = 1.0 if free[j] > 0.0 and (x[j] > 0.0 or slope[j] < 0.0) else 0.0
        _bind(rules)
        _invert(p, c)
        _eased(p, c, slope, step)
        whole, length = True, 1.0
        while searching:
            fall, after = 0.0, 0.0
            for j in range(len(x)):
                trial[j] = max(0.0, x[j] - length * step[j])
            _reduced(p, c, trial, other)
            for j in range(len(x)):
                fall += slope[j] * (trial[j] - x[j])
                after += other[j] * (trial[j] - x[j])
            if after <= 1e-6 * abs(fall) or length < SHORTEST:
                break
            length *= 0.5
        for j in range(len(x)):
            x[j] -= length * step[j]
            if searching and active[j] > 0.0 and x[j] <= 0.0:
                active[j] = 0.0
                x[j], whole = 0.0, False
        _reduced(p, c, x, slope)
        if not _corrected(p, c) and whole and length == 1.0:
            break
        for j in range(len(x)):
            x[j] *= active[j]
    _invert(p, c)
    changed = False
    for j in range(len(x)):
        changed = changed or active[j] != before[j]
    for k in range(len(on)):
        changed = changed or on[k] != often[k]
    return changed


@helper
def _priced(p: Any, step: Any) -> None:
    """The Newton step of the prices."""
    if len(p.gain) > 0:
        _by_elimination(p, step)
    else:
        _by_gradients(p, step)


@helper
def _by_elimination(p: Any, step: Any) -> None:
    """From the sum of the children's inverses."""
    gain, short, scale = p.gain, p.work[SHORT], p.work[TRIAL]
    size = len(gain)
    for i in range(size):
        for j in range(size):
            gain[i, j] = 0.0
    for c in range(len(p.cells)):
        inside, matrix = p.cells[c, INSIDE], p.matrix[c]
        for i in range(size):
            if inside[i] > 0.0:
                row, total = matrix[i], gain[i]
                for j in range(size):
                    total[j] += inside[j] * row[j]
    for k in range(size):
        scale[k] = gain[k, k]
        step[k] = short[k]
    for k in range(size):
        own = gain[k]
        if not own[k] > SINGULAR * scale[k]:
            own[k] = 0.0
            continue
        for i in range(k + 1, size):
            row = gain[i]
            factor = row[k] / own[k]
            if factor != 0.0:
                for j in range(k, size):
                    row[j] -= factor * own[j]
                step[i] -= factor * step[k]
    for k in range(size - 1, -1, -1):
        own, held = gain[k], step[k]
        for j in range(k + 1, size):
            held -= own[j] * step[j]
        step[k] = held / own[k] if own[k] != 0.0 else 0.0


@helper
def _by_gradients(p: Any, step: Any) -> None:
    """By conjugate gradients, preconditioned as if all cells were active; then it is exact."""
    place, heights, sums = p.place, p.work[HEIGHTS], p.work[SUMS]
    count, size = p.matrix.shape[1], len(step)
    ease, together, left, gain = np.zeros(size), np.zeros(count), np.zeros(size), np.zeros(size)
    one = np.zeros(size)
    way, short = p.work[WAY], p.work[SHORT]
    largest, last = 0.0, 0.0
    for c in range(len(p.cells)):
        _heights(p, c)
        for j in range(size):
            ease[j] += p.cells[c, INSIDE, j] / p.child[c, D]
        for i in range(count):
            together[i] += 1.0 / heights[i] if heights[i] > 0.0 else np.inf
    for j in range(size):
        step[j], way[j] = 0.0, 0.0
        left[j] = short[j] if ease[j] > 0.0 else 0.0
        largest = max(largest, abs(left[j]))
    for _ in range(GRADIENTS):
        for i in range(count):
            sums[i] = 0.0
        for q in range(len(place)):
            for j in range(size):
                sums[place[q, j]] += left[j]
        now, along, worst = 0.0, 0.0, 0.0
        for j in range(size):
            one[j], gain[j] = 0.0, 0.0
            if ease[j] > 0.0:
                one[j] = left[j] / ease[j]
                for q in range(len(place)):
                    one[j] += sums[place[q, j]] / together[place[q, j]]
            now += left[j] * one[j]
        for j in range(size):
            way[j] = one[j] + (now / last * way[j] if last > 0.0 else 0.0)
        for c in range(len(p.cells)):
            _eased(p, c, way, one)
            for j in range(size):
                gain[j] += one[j]
        for j in range(size):
            along += way[j] * gain[j]
        if not along > 0.0:
            return
        for j in range(size):
            step[j] += now / along * way[j]
            if ease[j] > 0.0:
                left[j] -= now / along * gain[j]
            worst = max(worst, abs(left[j]))
        if worst <= ZERO * largest:
            return
        last = now


@helper
def _opened(p: Any) -> None:
    """Activate a cell that no child has, and the parent fills, in the child with the least slope there."""
    short, step = p.work[SHORT], p.work[STEP]
    for j in range(len(p.price)):
        likely, empty = -1, short[j] > 0.0
        for c in range(len(p.cells)):
            empty = empty and p.cells[c, INSIDE, j] == 0.0
            if p.cells[c, FREE, j] > 0.0 and (likely < 0 or p.cells[c, SLOPE, j] < p.cells[likely, SLOPE, j]):
                likely = c
        if empty and likely >= 0:
            x, slope = p.cells[likely, X], p.cells[likely, SLOPE]
            p.cells[likely, ACTIVE, j] = 1.0
            _invert(p, likely)
            _eased(p, likely, slope, step)
            for i in range(len(x)):
                x[i] -= step[i]
                short[i] += step[i]
            _reduced(p, likely, x, slope)


@helper
def _charged(p: Any) -> Any:
    """Add the penalty to the present prices of rules from now on.

    Returns their largest change, and what rounding may change.
    """
    off, scale = 0.0, 0.0
    for c in range(len(p.cells)):
        cells, charge, tax = p.cells[c], p.rules[c, CHARGE], p.rules[c, TAX]
        held = 0.0
        for j in range(cells.shape[1]):
            held += abs(cells[X, j]) + abs(cells[CENTER, j])
        for k in range(len(tax)):
            off = max(off, abs(tax[k] - charge[k]))
            scale = max(scale, 10.0 * abs(tax[k]), p.child[c, STEEPNESS] * held)
            charge[k] = tax[k]
    return off, ZERO * scale


@helper
def _smoothed(p: Any, c: int) -> None:
    """Give each binding rule the price at which the mean slope of its active cells is 0.

    The penalty multiplies rounding errors of sums, all cells of a rule alike.
    """
    place, cells, rules = p.place, p.cells[c], p.rules[c]
    slope, active, low, high, tax = cells[SLOPE], cells[ACTIVE], rules[LOW], rules[HIGH], rules[TAX]
    first = p.weight.shape[1]
    for _ in range(SMOOTHED):
        for k in range(len(tax)):
            total, count, before = 0.0, 0, tax[k]
            for q in range(len(place)):
                for j in range(len(slope)):
                    if place[q, j] == first + k and active[j] > 0.0:
                        total += slope[j]
                        count += 1
            if rules[ON, k] == 0.0 or count == 0:
                continue
            tax[k] += total / count
            if low[k] != high[k]:
                tax[k] = max(0.0, tax[k]) if before > 0.0 else min(0.0, tax[k])
            for q in range(len(place)):
                for j in range(len(slope)):
                    if place[q, j] == first + k:
                        slope[j] += before - tax[k]


@kernel()
def children_newton(p: Children) -> int:
    """Find x, the parent's prices and the rules' taxes, in place; return the steps, or -1 without success."""
    children, size, joint = len(p.cells), len(p.price), len(p.parent) > 0
    step, short, base, price = np.zeros(size), p.work[SHORT], p.work[BASE], p.price
    if joint:  # all cells active: a first guess of the prices
        for j in range(size):
            short[j] = p.parent[j]
        for c in range(children):
            _reduced(p, c, p.cells[c, X], p.cells[c, SLOPE])
            _bind(p.rules[c])
            _invert(p, c)
            _eased(p, c, p.cells[c, SLOPE], p.work[STEP])
            for j in range(size):
                short[j] += p.work[STEP, j]
        _priced(p, price)
    # The line search looks for a length at which the slope along the step is small, between two ends.
    length, rise, least, most, low, high = 1.0, 0.0, 0.0, np.inf, 0.0, 0.0
    before, last, searches, raised, moved, lowered = np.inf, np.inf, 0, 0, False, True
    for turn in range(STEPS):
        changed = False
        for j in range(size):
            short[j] = p.parent[j] if joint else 0.0
        for c in range(children):
            changed = _settle(p, c) or changed
            for j in range(size):
                short[j] -= p.cells[c, X, j]
        along, worst, largest, farthest = 0.0, 0.0, TINY, 0.0
        if joint:
            for j in range(size):
                along += short[j] * step[j]
                held = p.parent[j] + TINY
                for c in range(children):
                    held = max(held, abs(p.cells[c, CENTER, j]))
                worst, farthest = max(worst, abs(short[j]) / held), max(farthest, abs(short[j]))
                largest = max(largest, held)
            moved = moved or changed
            if moved and searches < MOST and (along < -0.3 * rise or (along > 0.3 * rise and most < np.inf)):
                searches += 1
                if along < 0.0:  # the end that stays twice loses half of its slope (Dowell & Jarratt 1971)
                    low = 0.5 * low if most < np.inf and lowered else low
                    most, high, lowered = length, along, True
                else:
                    high = 0.5 * high if not lowered else high
                    least, low, lowered = length, along, False
                share = low / (low - high) if low > high else 0.5
                length = least + min(0.95, max(0.02, share)) * (most - least)
                for j in range(size):
                    price[j] = base[j] + length * step[j]
                continue
        settled = worst <= ZERO or (farthest <= ENOUGH * largest and worst >= 0.5 * before)
        before = worst
        if settled and not changed:
            off, rounding = _charged(p)
            if not off < np.inf:
                return -1
            if off <= 1e-3 * rounding or (off > 0.5 * last and (off <= rounding or raised == RAISES)):
                for c in range(children):
                    _smoothed(p, c)
                return turn + 1
            if off > rounding and off > 0.1 * last and raised < RAISES:
                raised += 1
                for c in range(children):
                    p.child[c, STEEPNESS] *= 100.0
                    p.child[c, EXCHANGES] = -1.0
            last, before, rise, most, moved = off, np.inf, 0.0, np.inf, False
            for j in range(size):
                step[j] = 0.0
            continue
        if joint:
            for j in range(size):
                base[j] = short[j]
            _opened(p)
            _priced(p, step)
            rise, length, least, most, searches, moved, lowered = 0.0, 1.0, 0.0, np.inf, 0, False, True
            for j in range(size):
                rise += base[j] * step[j]
                base[j] = price[j]
                price[j] += step[j]
            low = rise
    return -1
