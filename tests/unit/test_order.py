"""The natural order of identifiers, and mappings that cannot change."""

from __future__ import annotations

import copy
import pickle

import pytest

from frostline.problem import Cluster, Fixed, Instance, Job, PlacementClass, Profiled
from frostline.problem.frozen import FrozenMap
from frostline.problem.order import natural_key


@pytest.mark.parametrize(
    "ordered",
    [
        ["1", "2", "10", "11"],
        ["job2", "job10", "job10b", "job11"],
        ["07", "7", "8"],
        ["a", "a1", "b"],
        ["a9b2", "a9b10", "a10b1"],
        ["1", "9" * 5000, "x"],
    ],
)
def test_digits_compare_as_numbers(ordered: list[str]) -> None:
    backwards = ordered[::-1]
    assert sorted(backwards, key=natural_key) == ordered


def test_keys_of_different_ids_differ() -> None:
    ids = ["7", "07", "7.0", " 7", "７", "a7", "a07"]
    assert len({natural_key(identifier) for identifier in ids}) == len(ids)


def test_frozen_map_reads_like_a_dict_and_cannot_be_written() -> None:
    frozen = FrozenMap({"b": 1, "a": 2})
    assert (dict(frozen), list(frozen), len(frozen)) == ({"b": 1, "a": 2}, ["b", "a"], 2)
    with pytest.raises(TypeError):
        frozen["c"] = 3  # type: ignore[index]


def test_instances_pickle_and_copy() -> None:
    profiled = Profiled(iterations=2, seconds_per_iteration={PlacementClass.ONE_SERVER: 0.5})
    jobs = [Job(id="a", release_s=0, gpus=1, work=profiled), Job(id="b", release_s=0, gpus=1, work=Fixed(duration_s=1))]
    instance = Instance(cluster=Cluster.uniform(2), jobs=jobs, provenance={"source": "hand"})
    assert pickle.loads(pickle.dumps(instance)) == instance
    assert copy.deepcopy(instance) == instance
