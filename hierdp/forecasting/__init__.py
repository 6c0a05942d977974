"""Reconciled forecasts: coherent, non-negative or whole, and proved optimal. No noise, no privacy.

>>> from hierdp.forecasting import Reconciler, aggregate
"""

from hierdp.forecasting.files import reconcile_file as reconcile_file
from hierdp.forecasting.reconciler import Reconciler as Reconciler
from hierdp.forecasting.tables import SummingMatrix as SummingMatrix
from hierdp.forecasting.tables import aggregate as aggregate

__all__ = ["Reconciler", "SummingMatrix", "aggregate", "reconcile_file"]
