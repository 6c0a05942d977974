"""The interface of every model: the contract between models, backends and certificates."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.programs.program import Program


class Model(Protocol):
    """A post-processing step as an optimization problem; a frozen dataclass of arrays.

    Optional: ``row_prices(witness) -> array``, the witness as one price for each row of `program`.
    `models.lagrangian_bound` at these prices is at least the certificate's bound; `hierdp check` compares
    the two. With it may come what `models.witnesses.row_proofs` needs for that, and to write proofs down:
    ``program_answer(x) -> array``, if an answer is not simply the first block of `program`;
    ``exact_program()``, if `program` is `rounded`, or takes longer; ``program_size``, if `program` may have
    far more variables than the answer, so that it is not built in vain; and ``apart(x, witness)``, the
    problems side by side, if the bound is rounded up for each of them.

    Optional: ``variables(x) -> array``, all variables of `program` at an answer, and
    ``from_row_prices(x, prices) -> witness``, the reverse of ``row_prices``. With these, `solvers.prove`
    finds prices through a backend if there is no fast path.

    The class also declares what is special about a model, so that no other file needs to know its name:

    - ``typical(rng, size, **options) -> model``: an instance as hard as those of releases, with about `size`
      numbers and the model's own options. Benchmarks measure it; default: `random`.
    - ``variants``, dict of dicts: by name, the options of each variant that benchmarks measure. Default: one
      variant, without options.
    - ``random_up_to``, int: size beyond which instances of `random` cost too much. Default: no limit.
    - ``relaxed() -> model or None``: the model over the reals, on which solvers over the reals are compared;
      None if the model is over the reals already, or has no such version.
    - ``always_proved``, bool: whether the fast path proves every answer. Default: True.
    """

    def program(self) -> Program:
        """The model as a neutral program; its first block is the answer, in the model's own order."""

    def objective(self, x: Any) -> Number:
        """The objective at an answer, exact for integer data."""

    def violations(self, x: Any) -> list[str]:
        """Every constraint that the answer breaks, by name; empty for a feasible answer."""

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check a witness: prove that the answer is optimal, or bound how far it is from the optimum.

        It never searches. Without a witness it may read one off the answer, in one pass. The bound is at most
        the optimum for any witness: an unusable one proves nothing, or raises a ValueError.
        """

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """An instance for tests, of about `size` variables; edge cases (ties, zeros, extremes) are common."""
