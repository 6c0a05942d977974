"""Each planted privacy bug is caught, by the test in `test_measurements.py` that is named beside it.

A mutant is a function of hierdp with one expression of its source replaced.
"""

import inspect
import textwrap
import threading

import pytest
import test_measurements as tests

from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.tabulation import mechanism as tabulation
from hierdp.mechanisms.top_down import mechanism as top_down
from hierdp.privacy import noise, tabulated
from hierdp.privacy.tables import random_words
from tests.marks import quick


def mutant(function, old, new):
    """The function with one expression replaced."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{function.__name__} has changed: adapt this mutant"
    made = {}
    exec(source.replace(old, new), vars(inspect.getmodule(function)), made)
    return made[function.__name__]


def opendp(monkeypatch):
    tests.test_blocks_of_opendps_noise_share_no_draw_and_leave_none_out(1, monkeypatch)


def tables(monkeypatch):
    pytest.importorskip("flint")
    tests.test_blocks_of_noise_from_tables_share_no_draw_and_leave_none_out(monkeypatch)


def draws(name):
    return lambda _: tests.own_draws(name)


def answers(name):
    return lambda _: tests.follows(name)


def true_answers(query):
    """Keeps the true answers to a query of the last level: noise is drawn, charged and thrown away."""
    return mutant(
        MeasureTruth._draw,
        "drawn.answers.ravel()",
        f"(true if query.name == {query!r} else drawn.answers).ravel()",
    )


class Keys:
    """Random words with one key for all odd blocks of a measurement."""

    def __init__(self):
        self.blocks, self.kept, self.lock = 0, None, threading.Lock()

    def __call__(self, into):
        with self.lock:
            odd, self.blocks = self.blocks % 2, self.blocks + 1
            if odd and self.kept is not None:
                into[:] = self.kept[: into.size]
                return
            random_words.system_words(into)
            if odd:
                self.kept = into.copy()


def reused_keys(sampler):
    made = ORIGINAL(sampler)
    words = Keys()
    return made._replace(add=lambda counts: tabulated.add(sampler, counts, source=words))


ORIGINAL = tabulated._from

MUTANTS = {
    "true answers to some queries of the last level": (
        *(MeasureTruth, "_draw", true_answers("sex by town")),
        draws("TopDown unbounded"),
    ),
    "the wavelet's total with half its noise": (
        MeasureTruth,
        "_draw",
        mutant(
            MeasureTruth._draw,
            "drawn.answers.ravel()",
            "np.append((drawn.answers[:1] + true[:1]) // 2, drawn.answers[1:])",
        ),
        draws("Wavelet"),
    ),
    "a last block of one count without noise": (
        noise,
        "_draw",
        mutant(
            noise._draw,
            "drawing.add(flat[part])",
            "drawing.add(flat[part]) if flat[part].size > 1 else flat[part]",
        ),
        opendp,
    ),
    "the same in noise from tables": (
        noise,
        "_draw",
        mutant(
            noise._draw,
            "drawing.add(flat[part])",
            "drawing.add(flat[part]) if flat[part].size > 1 else flat[part]",
        ),
        tables,
    ),
    "a key reused in odd blocks": (tabulated, "_from", reused_keys, tables),
    "--unbounded with the true total enforced": (
        tabulation.Tabulation,
        "facts",
        mutant(
            tabulation.Tabulation.facts,
            "constraints_of(queries, places, true, self.bounded)",
            "constraints_of(queries, places, true, True)",
        ),
        answers("TopDown unbounded"),
    ),
    "--unbounded with the true total, of flows": (
        top_down.TopDown,
        "facts",
        mutant(top_down.TopDown.facts, "data.total if self.bounded else None", "data.total"),
        answers("InfTDA unbounded"),
    ),
    "the true total of flows is recorded": (
        MeasureTruth,
        "_draw",
        mutant(
            MeasureTruth._draw,
            "drawn.answers.ravel()",
            "(true if query.name == 'the total' else drawn.answers).ravel()",
        ),
        draws("InfTDA unbounded"),
    ),
    "true counts of flows where they are 0": (
        MeasureTruth,
        "_draw",
        mutant(MeasureTruth._draw, "drawn.answers.ravel()", "np.where(true == 0, 0, drawn.answers).ravel()"),
        draws("InfTDA unbounded"),
    ),
    "true counts over the threshold": (
        MeasureTruth,
        "_large",
        mutant(MeasureTruth._large, "drawn.answers", "counts[drawn.positions]"),
        draws("SH"),
    ),
    "a level of group sizes without noise": (
        MeasureTruth,
        "_draw",
        mutant(
            MeasureTruth._draw,
            "drawn.answers.ravel()",
            "(true if query.level[1] == 2 else drawn.answers).ravel()",
        ),
        draws("M_c^dp"),
    ),
    "a region's last number without noise": (
        MeasureTruth,
        "_parts",
        mutant(
            MeasureTruth._parts,
            "noisy = self._draw(part, query)",
            "noisy = self._draw(part, query); noisy.answers[-1] = part[-1]",
        ),
        draws("Hc of secret groups"),
    ),
    "a box without noise": (
        MeasureTruth,
        "_draw",
        mutant(
            MeasureTruth._draw,
            "drawn.answers.ravel()",
            "np.append(drawn.answers.ravel()[:-1], true.ravel()[-1:])",
        ),
        draws("H_b^c"),
    ),
}


@pytest.mark.parametrize("name", quick(MUTANTS, first=6))
def test_a_planted_bug_is_caught(name, monkeypatch):
    where, function, broken, test = MUTANTS[name]
    with monkeypatch.context() as spoilt:
        spoilt.setattr(where, function, broken)
        with pytest.raises((AssertionError, ValueError, IndexError)):
            test(spoilt)
