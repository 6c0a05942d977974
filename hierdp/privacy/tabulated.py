"""Exact noise from tables: the laws, scales and losses of `ExactNoise`, drawn hundreds of times faster."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from hierdp.errors import InputError
from hierdp.privacy.budget import GAUSSIAN
from hierdp.privacy.noise import TABLES, Drawing, ExactNoise
from hierdp.privacy.tables import VERSION, random_words
from hierdp.privacy.tables.sampler import LARGEST_GAUSSIAN, Sampler, add, discrete_gaussian, double_geometric
from models.arithmetic.arrays import Ints

NEEDED = {"python-flint": "flint", "cryptography": "cryptography.hazmat.primitives.ciphers"}
"""The packages of the extra ``noise``, and what is imported of each."""

AT_ONCE = 1 << 15
"""Counts in a block, chosen so that its words, noise and counts fit into the processor's cache."""


class TabulatedNoise(ExactNoise):
    """Exact noise from tables of the distribution functions (docs/noise.md); needs ``hierdp[noise]``.

    The loss on record is that of OpenDP's privacy map for the same scale. OpenDP draws the rest: choices, and
    discrete Gaussian noise of a scale over 100,000. The record names the sampler of each measurement.

    Raises
    ------
    InputError
        If python-flint or cryptography is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from hierdp.privacy.noise import geometric
    >>> law = geometric("zeros", sensitivity=1, epsilon=0.1)
    >>> noisy = TabulatedNoise().draw(law, np.zeros(1000, np.int64))
    >>> bool(9 < noisy.answers.std() < 20), noisy.spend.sampler
    (True, 'hierdp tables 1')
    """

    sample = AT_ONCE
    """Draws by which their time is estimated: so many that what precedes them hardly counts."""

    def __init__(self) -> None:
        for package, module in NEEDED.items():
            try:
                import_module(module)
            except ImportError:
                raise InputError(
                    f"noise from tables needs {package}: install hierdp[noise], or use OpenDP's noise, the "
                    "default"
                ) from None

    def _drawing(
        self, noise: str, scale: float, measure: Callable[[Ints], Any], least: int | None = None
    ) -> Drawing:
        if noise == GAUSSIAN:
            small = scale <= LARGEST_GAUSSIAN
            return (
                _from(discrete_gaussian(Fraction(scale)))
                if small
                else super()._drawing(noise, scale, measure)
            )
        every = _from(double_geometric(Fraction(scale)))
        if least is None:
            return every

        def large(counts: Ints) -> Ints:
            noisy = every.add(counts)
            return np.where(noisy >= least, noisy, 0)

        return every._replace(add=large)


def _from(sampler: Sampler) -> Drawing:
    add_noise = partial(add, sampler, source=random_words.system_words)
    return Drawing(f"{TABLES} {VERSION}", add_noise, AT_ONCE)
