"""Instances survive the way to a file and back, to the last bit."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

import models
from models import Isotonic, Tree
from models.instances import load, save

KINDS = [kind for kind in vars(models).values() if hasattr(kind, "random") and kind is not Tree]


def same(a, b):
    if isinstance(a, Tree):
        return same(a.levels, b.levels)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("kind", [k for k in KINDS if k.__name__ != "Model"], ids=lambda kind: kind.__name__)
def test_every_model_comes_back(kind, tmp_path):
    rng = np.random.default_rng(0)
    for size in (1, 5, 40):
        model = kind.random(rng, size)
        again = load(save(model, tmp_path / "one.npz"))
        assert type(again) is kind
        for field in fields(model):
            assert same(getattr(model, field.name), getattr(again, field.name)), field.name


def test_fractions_come_back(tmp_path):
    model = Isotonic(np.array([Fraction(1, 3), 2], dtype=object))
    assert load(save(model, tmp_path / "f.npz")).noisy.tolist() == [Fraction(1, 3), 2]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"an instance is a \.npz file, not x\.json"):
        save(Isotonic([1]), tmp_path / "x.json")
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match="holds no instance"):
        load(tmp_path / "other.npz")
