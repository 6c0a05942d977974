"""The mechanisms, one package each, and the registry that lists them."""

from hierdp.mechanisms.description import Mechanism as Mechanism
from hierdp.mechanisms.description import MethodInfo as MethodInfo
from hierdp.mechanisms.registry import MECHANISMS as MECHANISMS
