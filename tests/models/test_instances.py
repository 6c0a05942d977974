"""Instances are written to a file and read back without any change."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

import models
from models import HierarchyQIP, Isotonic, Tree
from models.instances import load, save

KINDS = [
    kind
    for kind in (getattr(models, name) for name in models.__all__)
    if hasattr(kind, "random") and kind is not Tree
]


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
    noisy = load(save(Isotonic(np.array([Fraction(1, 3), 2], dtype=object)), tmp_path / "f.npz")).noisy
    assert noisy.tolist() == [Fraction(1, 3), 2]
    assert [type(value) for value in noisy] == [Fraction, int]
    matrix = np.array([[Fraction(1, 3), 2, 5], [1, 0, 2**70]], dtype=object)
    again = load(save(HierarchyQIP(Tree([[0]]), matrix, 9, integer=False), tmp_path / "m.npz"))
    assert np.array_equal(again.noisy, matrix)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"an instance is a \.npz file, not x\.json"):
        save(Isotonic([1]), tmp_path / "x.json")
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    np.savez(tmp_path / "unknown.npz", **{"about.json": '{"model": "NoSuch", "fields": {}}'})
    np.savez(tmp_path / "newer.npz", **{"about.json": '{"model": "Isotonic", "fields": {"x": ["plain", 1]}}'})
    np.savez(tmp_path / "list.npz", **{"about.json": "[1, 2]"})
    np.save(tmp_path / "array.npy", np.zeros(2))
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes(save(Isotonic([1]), tmp_path / "one.npz").read_bytes()[:100])
    for name in ("other.npz", "unknown.npz", "newer.npz", "list.npz", "array.npy", "empty.npz", "cut.npz"):
        with pytest.raises(ValueError, match=f"{name} holds no instance"):
            load(tmp_path / name)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_not_opened(tmp_path):
    about = '{"model": "Isotonic", "fields": {"noisy": ["array", null]}}'
    trap = np.array([Trap(), 1], dtype=object)
    np.savez(tmp_path / "trap.npz", allow_pickle=True, **{"about.json": about, "noisy": trap})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load(tmp_path / "trap.npz")


def test_many_pairs_of_vectors_take_three_arrays():
    from models import GroupMatching
    from models.instances import PAIRS, packed, unpacked

    children = [(np.arange(k % 3), np.ones(k % 3, np.int64)) for k in range(PAIRS)]
    groups = sum(sizes.size for sizes, _ in children)
    model = GroupMatching(([4], [groups]), children)
    stored = packed(model)
    names = ["child_sizes.0", "child_sizes.1", "child_sizes.lengths", "parent_sizes.0", "parent_sizes.1"]
    assert sorted(stored) == ["about.json", *names]
    for made, given in zip(unpacked(stored).model.child_sizes, model.child_sizes, strict=True):
        assert [part.tolist() for part in made] == [part.tolist() for part in given]
    for lengths in ([*stored["child_sizes.lengths"][:-1], 99], [-1, 1], [[1]], [0.5], []):
        with pytest.raises(ValueError, match="lengths of pairs"):
            unpacked({**stored, "child_sizes.lengths": np.array(lengths)})
