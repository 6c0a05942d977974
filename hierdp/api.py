"""`hierdp.release`: from a table to a release in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.option import check_options
from hierdp.mechanisms.own import parts_of
from hierdp.privacy.account import Account, refuse_uncharged
from hierdp.privacy.budget import check_epsilon
from hierdp.privacy.charging import ChargingNoise, check_charged
from hierdp.privacy.noise import ExactNoise, Noise, check_noise
from hierdp.questions.bias import simulated_errors
from hierdp.record.release import Release

if TYPE_CHECKING:
    from hierdp.mechanisms.mechanism import Mechanism


def release(
    source: Any,
    mechanism: str | Mechanism[Any],
    *,
    epsilon: float | None = None,
    noise: Noise | None = None,
    account: Account | None = None,
    without_account: str | None = None,
    confidence: float | None = None,
    simultaneous: bool = False,
    **options: Any,
) -> Release:
    """Release the counts of a table under differential privacy, made consistent by proved optimization.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        See `hierdp.tables.read`.
    mechanism : str or Mechanism
        What to release: "group-size" (groups by size), "top-down" (counts along hierarchies, such as origin
        and destination), or another of `hierdp.mechanisms.MECHANISMS`; or its options as a value, such as
        ``GroupSize(epsilon=1, …)``, with nothing in `epsilon` and `options`.
    epsilon : float
        The budget.
    noise : Noise, optional
        Exact noise of OpenDP by default. `TabulatedNoise()` is exact as well, and hundreds of times faster
        (docs/noise.md). `SimulatedNoise(seed)` is for experiments: the release is not private.
    account : Account, optional
        The budget for all releases of the data together. The release is charged to it before noise is drawn,
        and refused if too little is left. See `hierdp.privacy.account`. Needed if an account for these data
        lies beside the table.
    without_account : str, optional
        Why the release is charged to no account, although one lies beside the table; the manifest says it.
        With `account`: why it is not charged to the other accounts there, with their names.
    confidence : float, optional
        If given, each count has an interval in the columns `lower` and `upper`, which covers the true count
        with at least this probability, at no further budget; see docs/intervals.md. Unlike the commands,
        this makes none by default, as studies make thousands of releases.
    simultaneous : bool
        With `confidence`: it is the probability that all intervals cover, which are wider for it.
    **options
        The mechanism's own options: the columns of the table, the method, the solver. See
        `hierdp.mechanisms.group_size.GroupSize`, `hierdp.mechanisms.top_down.TopDown`, and so on.

    Returns
    -------
    Release

    Raises
    ------
    InputError
        If anything in the input is wrong; nothing is released.
    NotSolved
        If the chosen solver does not solve the post-processing.

    Examples
    --------
    >>> import pandas as pd
    >>> homes = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
    >>> result = release(homes, "group-size", epsilon=1, groups=homes.drop_duplicates(), levels=["state"],
    ...                  group=["home"], max_size=3)
    >>> result
    Release(M_c^dp: 12 rows, ε = 1, 4 of 4 steps proved optimal)
    >>> result.table.columns.tolist(), len(result.table), int(result.table.groups[:4].sum())
    (['level', 'level_name', 'region', 'parent', 'size', 'groups'], 12, 3)
    >>> result.ledger.private, result.manifest()["all_proved_optimal"]
    (True, True)
    """
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            raise InputError(unknown_name(mechanism, MECHANISMS, "no mechanism"))
        info = MECHANISMS[mechanism]
    else:
        info, own_epsilon, own_options = parts_of(mechanism)
        if epsilon is not None or options:
            raise InputError("epsilon and options are those of the mechanism that is given; give no others")
        epsilon, options = own_epsilon, own_options
    epsilon = check_epsilon(epsilon)
    check_noise(noise)
    check_options(info.name, info.keywords, options)
    if confidence is not None:
        from hierdp.questions.intervals import check_confidence, with_intervals  # they need SciPy

        check_confidence(info, confidence)
    elif simultaneous:
        raise InputError("`simultaneous` says what `confidence` means: give that, such as 0.9")
    simulating = partial(simulated_errors, info)
    if account is None:
        refuse_uncharged(source, without_account)
        made = info.release(source, epsilon=epsilon, noise=noise, **options)
        made = replace(made, without_account=without_account, simulating=simulating, own_mechanism=info.own)
        return made if confidence is None else with_intervals(made, confidence, simultaneous)
    if not isinstance(account, Account):
        raise InputError(f"account must be an Account(path), not {type(account).__name__}")
    refuse_uncharged(source, without_account, account)
    if not isinstance(noise, ExactNoise | None):
        raise InputError(
            "simulated noise protects nobody, so it cannot be charged to an account; leave out one of the two"
        )
    loss, data = info.loss(epsilon, options), name_of(source)
    account.check(loss, data)  # before reading the table, which may be large
    charging = ChargingNoise(noise or ExactNoise(), lambda: account.charge(loss, info.name, data))
    with charging.failing():
        made = info.release(source, epsilon=epsilon, noise=charging, **options)
        check_charged(made.ledger, loss)
        if confidence is not None:
            made = with_intervals(made, confidence, simultaneous)
    charge = charging.entry
    made = replace(made, charge=charge, without_account=without_account)
    return replace(made, simulating=simulating, own_mechanism=info.own)


def name_of(source: Any) -> str | None:
    """The name of a table: the file's name, or the table's name in a database; None if it has none."""
    if isinstance(source, str | Path):
        return Path(source).name
    named = getattr(source, "get_name", None)
    return str(named()) if callable(named) else None
