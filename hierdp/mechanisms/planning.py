"""`hierdp.plan`: what to expect of a release, without data; and the ε for a wanted standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.expected import ERROR, NOISE, Expected
from hierdp.mechanisms.option import check_options
from hierdp.privacy.account import refuse_protected
from hierdp.privacy.budget import check_epsilon

LEAST, MOST = 1e-6, 1e4
"""The range of ε that is searched for a wanted standard error."""

SIMULATING = ("total", "like", "count", "runs")
"""Options that add simulated errors, which the search for an ε does not need."""

DIGITS = 4
"""Digits of the ε that is found; it is rounded up."""


def plan(
    mechanism: str,
    *,
    epsilon: float | None = None,
    standard_error: float | None = None,
    at: str | None = None,
    confidence: float | None = None,
    public: str | None = None,
    **options: Any,
) -> Expected:
    """What to expect of a release, for every mechanism for which mathematics tells it without data.

    Parameters
    ----------
    mechanism : str
        One of `hierdp.mechanisms.MECHANISMS`.
    epsilon : float, optional
        The budget.
    standard_error : float, optional
        In place of `epsilon`: the standard error wanted. The least ε (rounded up to four digits) that gives
        it is found. Where the standard error of released counts is not known, that of the noise counts.
    at : str, optional
        With `standard_error`: the level, by its name or number, or ``LEVEL:QUERY``; for `range-query`, the
        method. Default: the last level; for `range-query`, the best method.
    confidence : float, optional
        Adds a column `interval_width`; see `with_widths`.
    public : str, optional
        Why the tables of options, such as `like`, are public although they have an account.
    **options
        The shape of the hierarchy and the method: see `hierdp plan MECHANISM --help`.

    Returns
    -------
    Expected

    Raises
    ------
    InputError
        If an option is wrong, or no ε gives the wanted standard error.

    Examples
    --------
    >>> from hierdp import plan
    >>> found = plan("top-down", epsilon=1, delta=1e-8, axes={"origin": {"state": 52},
    ...              "destination": {"state": 52}})
    >>> found.table[["counts_of", "measured", "noise_deviation", "bound"]].round(1).values.tolist()
    [['destination state', 52, 10.8, 84], ['origin state × destination state', 2704, 10.8, 194]]
    >>> plan("tabulation", standard_error=5, at="county:total", delta=1e-10, method="GLS",
    ...      levels=["state=5", "county=100"], attributes=["group=8", "age=2"]).epsilon
    4.904
    """
    if not isinstance(mechanism, str) or mechanism not in MECHANISMS:
        raise InputError(unknown_name(mechanism, MECHANISMS, "no mechanism"))
    expected = MECHANISMS[mechanism].expected
    keywords = MECHANISMS[mechanism].planning_keywords
    check_options(mechanism, keywords, options)
    for name, value in options.items():
        least = keywords[name].option.least
        if least is not None and isinstance(value, int | float) and not value >= least:
            raise InputError(f"`{name}` is {value}: it must be at least {least:g}")
        if keywords[name].option.form == "table":
            refuse_protected(value, public)
    if "optimize" in keywords and options.get("largest") and not options.get("optimize"):
        raise InputError("`largest` says how to optimize: give `optimize`, too")
    if (epsilon is None) == (standard_error is None):
        raise InputError("give `epsilon`, or the `standard_error` that is wanted, and not both")
    if standard_error is None:
        if at is not None:
            raise InputError("`at` says where a `standard_error` is wanted: give that, or leave `at` out")
        return with_widths(expected(epsilon=check_epsilon(epsilon), **options), confidence)
    without = {name: value for name, value in options.items() if name not in SIMULATING}
    found = epsilon_for(standard_error, lambda one: expected(epsilon=one, **without).error(at))
    return with_widths(expected(epsilon=found, **options), confidence)


def with_widths(found: Expected, confidence: float | None) -> Expected:
    """The plan with the width of an interval of each count, before it is cut to what is public.

    From the standard error; where that is not known, from the noise of the count's own answers, which
    least squares over all answers only makes narrower.

    Raises
    ------
    InputError
        If the confidence is none.
    """
    if confidence is None:
        return found
    from hierdp.mechanisms.intervals import checked_confidence, half_widths  # they need SciPy

    miss = 1 - checked_confidence(confidence)
    if found.answers is None:
        return replace(found, notes=(*found.notes, "The widths of intervals do not follow from this plan."))
    errors, noise = (found.table[name].to_numpy(float) for name in (ERROR, NOISE))
    variance = np.where(np.isnan(errors), found.answers * noise**2, errors**2)
    known = ~np.isnan(variance)
    width = np.full(len(variance), np.nan)
    width[known] = 2 * half_widths(variance[known], miss, [found.noise])
    note = (
        "interval_width: at most, of an interval that covers the true count with at least "
        f"{100 * confidence:g} %, for each count by itself."
    )
    table = found.table.assign(interval_width=width)
    return replace(found, table=table, notes=(*found.notes, note))


def epsilon_for(wanted: float, error: Callable[[float], float]) -> float:
    """The least ε, to four digits and rounded up, whose error is at most the wanted one.

    Parameters
    ----------
    wanted : float
    error : callable
        The error for an ε; it falls as ε grows.

    Raises
    ------
    InputError
        If the wanted error is not a positive number, or no ε within `LEAST` … `MOST` gives it.

    Examples
    --------
    >>> epsilon_for(3.0, lambda epsilon: 2 / epsilon)
    0.6667
    """
    if not (isinstance(wanted, int | float) and 0 < wanted < math.inf):
        raise InputError(f"`standard_error` is {wanted!r}: it must be a positive number")
    if math.isnan(error(1.0)):
        raise InputError("no error is known there; choose another level (`at`)")
    guess = error(1.0) / wanted  # exact if errors are proportional to 1/ε, as for ranges
    if not (LEAST <= guess <= MOST and math.isclose(error(guess), wanted, rel_tol=1e-12)):
        guess = _root(lambda log: math.log(max(error(math.exp(log)) / wanted, 1e-300)), guess)
    found = _rounded_up(guess)
    return found if error(found) <= wanted * (1 + 1e-9) else _rounded_up(found * (1 + 10.0**-DIGITS))


def _root(off: Callable[[float], float], near: float) -> float:
    """The ε at whose logarithm a falling function is 0."""
    from scipy.optimize import brentq

    least, most = math.log(LEAST), math.log(MOST)
    low = high = math.log(min(max(near, LEAST), MOST))
    while off(low) < 0 and low > least:
        low = max(least, low - 1)
    while off(high) > 0 and high < most:
        high = min(most, high + 1)
    if off(low) < 0 or off(high) > 0:
        raise InputError(f"no ε from {LEAST:g} to {MOST:g} gives this standard error")
    return math.exp(brentq(off, low, high, xtol=1e-9))


def _rounded_up(epsilon: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(epsilon)) + 1 - DIGITS)
    return float(f"{math.ceil(epsilon / unit - 1e-3) * unit:.{DIGITS}g}")
