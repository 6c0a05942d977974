"""The front door: from a table to a release, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hierdp.errors import InputError, listed
from hierdp.noise import Noise
from hierdp.record import Release


def release(
    source: Any,
    mechanism: str,
    *,
    epsilon: float,
    delta: float | None = None,
    noise: Noise | None = None,
    first: str | None = None,
    method: str | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    window: int | None = None,
    trips: int | None = None,
    distinct: bool = False,
    bounded: bool = True,
    shares: Sequence[float] | None = None,
    **columns: Any,
) -> Release:
    """Release a table's counts under differential privacy, consistent, and proved optimal.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        See `hierdp.tables.read`.
    mechanism : "group-size" or "top-down"
        Groups by size (M_c^dp by default), or counts along hierarchies such as origin and destination
        (InfTDA by default).
    epsilon : float
    delta : float, optional
        For "top-down" only, and needed there.
    noise : Noise, optional
        Exact noise by default. `SimulatedNoise(seed)` is for experiments: the release is not private.
    first : str, optional
        "top-down": the axis refined first.
    method : str, optional
        "group-size": any mechanism of Fioretto & Van Hentenryck 2019; "top-down": InfTDA or what it is
        compared with (TDA, SH, …). See `hierdp mechanisms`.
    backend, time_limit : optional
        The solver and its seconds, for the methods that leave them open.
    window : int, optional
        "group-size": truncated domains.
    trips, distinct, bounded : optional
        "top-down": how many trips a person has, whether all in different cells (less noise), and whether
        neighbours have the same total; see `hierdp.mechanisms.top_down.Unit`. Default: one trip, the total
        is public.
    shares : sequence of float, optional
        "top-down": the budget of each level in proportion, from the top. Default: even.
    **columns
        Where the table holds what: the arguments of `hierdp.tables.group_sizes` (`levels` or `regions` and
        `region`; `group`, `entities`, `max_size`, `unknown`) or of `hierdp.tables.flows` (`axes`, `count`,
        `unknown`).

    Returns
    -------
    Release

    Raises
    ------
    InputError
        Whatever is wrong with the input, by name; nothing has been released then.
    NotSolved
        If a solver of choice does not solve the post-processing.

    Examples
    --------
    >>> import pandas as pd
    >>> homes = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
    >>> result = release(homes, "group-size", epsilon=1, levels=["state"], group=["home"], max_size=3)
    >>> result.table.columns.tolist(), len(result.table), int(result.table.groups[:4].sum())
    (['level', 'level_name', 'region', 'parent', 'size', 'groups'], 12, 3)
    >>> result.ledger.private, result.manifest()["all_proved_optimal"]
    (True, True)
    """
    # Imported on use, so that asking for one mechanism does not load the other.
    from hierdp import tables
    from hierdp.budget import check_delta, check_epsilon

    check_epsilon(epsilon)
    if mechanism == "group-size":
        from hierdp.mechanisms.group_size import group_size
        from hierdp.mechanisms.how import How

        if delta is not None or first is not None:
            raise InputError("delta and first are for top-down; group-size is pure differential privacy")
        if trips is not None or shares is not None or distinct or not bounded:
            raise InputError("trips, distinct, bounded and shares are for top-down")
        how = How(backend, time_limit, window)
        made = group_size(tables.group_sizes(source, **columns), epsilon, noise, method or "M_c^dp", how)
        public = columns.get("regions") is not None
        said = {"which_groups": "those with a row in the data, which makes them public"}
    elif mechanism == "top-down":
        from hierdp.mechanisms.how import How, checked
        from hierdp.mechanisms.top_down import METHODS, Unit, top_down

        how, unit = How(backend, time_limit, window), Unit(1 if trips is None else trips, distinct, bounded)
        checked(method or "InfTDA", how, METHODS)  # before the table, which may be large, is read
        if delta is None:
            raise InputError("top-down needs a delta between 0 and 1, such as 1e-8")
        check_delta(delta)
        data = tables.flows(source, **columns)
        made = top_down(data, epsilon, delta, noise, method or "InfTDA", unit, shares, first, how)
        said = {}
        public = all(tables.Axis.of(axis).hierarchy is not None for axis in columns["axes"].values())
    else:
        raise InputError(f"no mechanism {mechanism!r}; there are {listed(['group-size', 'top-down'])}")
    where = "from a table of regions" if public else "as seen in the data, which makes them public"
    return replace(made, settings={**made.settings, "regions": where, **said})
