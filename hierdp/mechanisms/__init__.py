"""The mechanisms: a package a paper, and the registry that lists them."""

from hierdp.mechanisms.registry import MECHANISMS as MECHANISMS
from hierdp.mechanisms.registry import Mechanism as Mechanism
from hierdp.mechanisms.registry import Method as Method
