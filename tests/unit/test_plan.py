"""Training plans: their rules, balanced stages and balanced replicas."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.library import shipped_network
from frostline.problem.network import Edge, Layer, Network
from frostline.problem.plan import BYTES_PER_ELEMENT, TrainingPlan, balanced_ranges, balanced_replicas


def chain(*flops: int, params: int = 1) -> Network:
    layers = [
        Layer(id=i, params=params, forward_flops=f, backward_flops=2 * f, output_elements=1, saved_bytes=0)
        for i, f in enumerate(flops)
    ]
    edges = [Edge(source=i, target=i + 1, elements=1) for i in range(len(flops) - 1)]
    return Network(name="chain", layers=layers, edges=edges)


def plan(**changes: Any) -> TrainingPlan:
    fields = {
        "network": chain(1, 1, 1),
        "stages": [range(2), range(2, 3)],
        "replicas": [2, 1],
        "global_batch": 8,
        "micro_batches": 2,
    }
    return TrainingPlan(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "gpt2"}, "network='gpt2' must be a Network"),
        ({"stages": []}, r"stages=\(\) must cover all 3 layers"),
        ({"stages": 2}, "stages=2 must be a sequence"),
        ({"stages": [range(3)]}, r"replicas=\(2, 1\) must be one per stage, 1 in all"),
        ({"stages": [range(2)]}, "must cover all 3 layers"),
        ({"stages": [range(2), range(2, 4)]}, "must cover all 3 layers"),
        ({"stages": [range(1), range(2, 3)]}, r"stages=range\(2, 3\) must start at layer 1"),
        ({"stages": [range(2), range(1, 3)]}, r"stages=range\(1, 3\) must start at layer 2"),
        ({"stages": [range(1, 2), range(2, 3)]}, r"stages=range\(1, 2\) must start at layer 0"),
        ({"stages": [range(2), range(2, 2)]}, "must be a range of at least one layer"),
        ({"stages": [range(0, 2, 2), range(2, 3)]}, "with step 1"),
        ({"stages": [(0, 2), (2, 3)]}, r"stages=\(0, 2\) must be a range"),
        ({"replicas": [2, 0]}, r"replicas\[1\]=0 must be at least 1"),
        ({"replicas": [2, 1.5]}, r"replicas\[1\]=1.5 must be a whole number"),
        ({"replicas": "21"}, "replicas='21' must be a sequence"),
        ({"global_batch": 3}, "global_batch=3 must give each of 2 replicas a sample of each of 2 micro-batches"),
        ({"global_batch": 10**13}, "global_batch=10000000000000 must be at most"),
        ({"micro_batches": 0}, "micro_batches=0 must be at least 1"),
        ({"utilisation": 0}, "utilisation=0 must be above 0"),
        ({"utilisation": 1.01}, "utilisation=1.01 must be at most 1"),
        ({"utilisation": float("nan")}, "utilisation=nan must be finite"),
    ],
)
def test_a_plan_is_validated(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=f"training plan: .*{message}"):
        plan(**changes)


@pytest.mark.parametrize("precision", ["fp8", "", None, 16])
def test_unknown_precisions_are_refused(precision: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown precision"):
        plan(precision=precision)


def test_numpy_and_whole_floats_are_taken() -> None:
    numpy_plan = plan(replicas=np.array([2, 1]), global_batch=8.0)
    assert numpy_plan == plan()
    assert numpy_plan.gpus == 3
    assert {type(count) for count in numpy_plan.replicas} == {int}


@pytest.mark.parametrize(("precision", "size"), [("fp32", 4), ("tf32", 4), ("fp16", 2), ("bf16", 2)])
def test_bytes_by_precision(precision: str, size: int) -> None:
    assert plan(precision=precision).activation_bytes == plan(precision=precision).gradient_bytes == size
    assert len(BYTES_PER_ELEMENT) == 4


def test_replace_validates_again() -> None:
    assert plan().replace(global_batch=4).global_batch == 4
    with pytest.raises(InvalidValueError, match="global_batch=1"):
        plan().replace(global_batch=1)


# --- balanced plans


def test_balanced_spends_all_gpus_and_passes_fields_on() -> None:
    balanced = TrainingPlan.balanced(chain(4, 1, 1, 1, 1, 4), 6, stages=3, micro_batches=4, precision="bf16")
    assert balanced.stages == (range(1), range(1, 5), range(5, 6))
    assert balanced.replicas == (2, 2, 2)
    assert (balanced.micro_batches, balanced.precision, balanced.global_batch) == (4, "bf16", 192)


def test_the_default_batch_feeds_every_micro_batch() -> None:
    assert TrainingPlan.balanced(chain(9, 1), 10, stages=2, micro_batches=64).global_batch == 640


def test_stages_by_default_are_the_fewest_that_fit() -> None:
    network = chain(1, 1, 1, 1, params=100)
    for memory_bytes, stages in ((6400, 1), (6399, 2), (3200, 2), (1600, 4)):
        assert len(TrainingPlan.balanced(network, 8, memory_bytes=memory_bytes).stages) == stages
    for gpus, memory_bytes in ((8, 1599), (1, 6399)):
        with pytest.raises(InvalidValueError, match=r"memory_bytes=.*is too little"):
            TrainingPlan.balanced(network, gpus, memory_bytes=memory_bytes)
    assert TrainingPlan.balanced(network, 1, stages=1, memory_bytes=1).gpus == 1


@pytest.mark.parametrize(("gpus", "stages"), [(2, 3), (9, 7), (0, 1), (4, 0), (4, 1.5)])
def test_impossible_counts_are_refused(gpus: int, stages: int) -> None:
    with pytest.raises(InvalidValueError, match=r"training plan: (stages|gpus)="):
        TrainingPlan.balanced(chain(1, 1, 1, 1, 1, 1), gpus, stages=stages)


def test_shipped_networks_split_evenly() -> None:
    balanced = TrainingPlan.balanced(shipped_network("llama_7b"), 16)
    assert len(balanced.stages) == 2  # 108 GB of state on GPUs of 80 GiB
    work = [sum(balanced.network.layers[i].forward_flops for i in stage) for stage in balanced.stages]
    assert max(work) / sum(work) < 0.51
    assert balanced.replicas == (8, 8)


def partitions(n: int, parts: int) -> Any:
    for cuts in itertools.combinations(range(1, n), parts - 1):
        yield tuple(range(a, b) for a, b in itertools.pairwise((0, *cuts, n)))


@pytest.mark.parametrize("loads", [[0, 3, 1, 4, 1, 5, 9, 2], [0, 0, 0, 0], [5, 0, 0, 5, 0], [1], [7, 1, 1, 1, 1, 1, 7]])
def test_ranges_reach_the_least_bottleneck(loads: list[int]) -> None:
    for parts in range(1, len(loads) + 1):
        ranges = balanced_ranges(loads, parts)
        assert ranges in set(partitions(len(loads), parts))
        best = min(max(sum(loads[i] for i in part) for part in split) for split in partitions(len(loads), parts))
        assert max(sum(loads[i] for i in part) for part in ranges) == best


def test_equal_layers_split_equally() -> None:
    assert [len(part) for part in balanced_ranges([10**15] * 10, 4)] == [2, 3, 2, 3]
    assert [len(part) for part in balanced_ranges([1] * 12, 4)] == [3, 3, 3, 3]


@pytest.mark.parametrize(("loads", "parts"), [([1, 2], 3), ([1, 2], 0), ([], 1), ([3, -1], 1)])
def test_impossible_splits_are_refused(loads: list[int], parts: int) -> None:
    with pytest.raises(InvalidValueError, match=r"split: (parts|loads)="):
        balanced_ranges(loads, parts)


@pytest.mark.parametrize("compute", [[14, 26, 40], [1, 1, 1], [0, 0, 5], [100, 1, 1], [3]])
def test_replicas_reach_the_least_share(compute: list[int]) -> None:
    for gpus in range(len(compute), 9):
        replicas = balanced_replicas(compute, gpus)
        assert sum(replicas) == gpus
        counts = itertools.product(range(1, gpus + 1), repeat=len(compute))
        best = min(share(compute, c) for c in counts if sum(c) == gpus)
        assert share(compute, replicas) == best


def share(compute: list[int], replicas: tuple[int, ...]) -> Fraction:
    return max(Fraction(c, k) for c, k in zip(compute, replicas, strict=True))


def test_equal_stages_differ_by_one_replica_the_first_have_more() -> None:
    assert balanced_replicas([5, 5, 5, 5], 10) == (3, 3, 2, 2)


@pytest.mark.parametrize(("compute", "gpus"), [([1, 1], 1), ([1, -1], 4)])
def test_impossible_replicas_are_refused(compute: list[int], gpus: int) -> None:
    with pytest.raises(InvalidValueError, match=r"training plan: (gpus|compute)="):
        balanced_replicas(compute, gpus)
