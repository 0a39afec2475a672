"""A training plan: how a network is cut into pipeline stages and how often each stage is replicated."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.network import Network
from frostline.units import as_finite, as_int

__all__ = ["BYTES_PER_ELEMENT", "STATE_BYTES_PER_PARAM", "TrainingPlan", "balanced_ranges", "balanced_replicas"]

BYTES_PER_ELEMENT: Mapping[str, int] = MappingProxyType({"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2})
"""Bytes of one activation, and of one gradient, on the wire. TF32 rounds inside the tensor cores only: its tensors are
fp32 in memory. Half-precision training sends activations and gradients in half precision."""

STATE_BYTES_PER_PARAM = 16
"""Bytes of weights, gradients and Adam's state per parameter: 2 + 2 + 12 in mixed precision (Rajbhandari et al.,
*ZeRO*, SC 2020, section 3.1) and 4 + 4 + 8 in fp32."""

_SUBJECT = "training plan"
_MEMORY_BYTES = 80 * 2**30
_SAMPLES_PER_GPU = 32
_LARGEST = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A network cut into contiguous stages, each on one or more replicas.

    A replica is one GPU, or several of one server that share its layers (tensor parallelism).

    Parameters
    ----------
    network : Network
        The network.
    stages : sequence of range
        Positions of each stage's layers in ``network.layers``: not empty, contiguous, covering all layers in order.
    replicas : sequence of int
        Replicas of each stage, at least 1.
    global_batch : int
        Samples per iteration, over all replicas: at least one for each replica in each micro-batch.
    micro_batches : int
        Micro-batches that an iteration is cut into to fill the pipeline, at least 1.
    precision : str
        Precision of the arithmetic, one of :data:`BYTES_PER_ELEMENT`.
    utilisation : float
        Share of the peak FLOPs that a GPU reaches, above 0 and at most 1.
    gpus_per_replica : sequence of int
        GPUs that one replica of each stage fills, all in one server; 1 by default, and kept empty where all are 1.

    Raises
    ------
    InvalidValueError
        A field breaks its rule.
    UnknownNameError
        Unknown precision.

    Examples
    --------
    >>> from frostline.problem.network import Edge, Layer, Network
    >>> layers = [Layer(id=i, params=8, forward_flops=6, backward_flops=12, output_elements=2, saved_bytes=8)
    ...           for i in range(6)]
    >>> edges = [Edge(source=i, target=i + 1, elements=2) for i in range(5)]
    >>> network = Network(name="chain", layers=layers, edges=edges)
    >>> plan = TrainingPlan.balanced(network, 4, stages=3)
    >>> plan.stages, plan.replicas, plan.gpus
    ((range(0, 2), range(2, 4), range(4, 6)), (2, 1, 1), 4)
    """

    network: Network
    stages: tuple[range, ...]
    replicas: tuple[int, ...]
    global_batch: int
    micro_batches: int = 1
    precision: str = "fp16"
    utilisation: float = 0.4
    gpus_per_replica: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise InvalidValueError(_SUBJECT, "network", self.network, "must be a Network")
        stages = _checked_stages(self.stages, len(self.network.layers))
        replicas = _checked_replicas(self.replicas, len(stages))
        micro_batches = _count(self.micro_batches, "micro_batches")
        utilisation = as_finite(self.utilisation, _SUBJECT, "utilisation", maximum=1.0)
        if utilisation <= 0:
            raise InvalidValueError(_SUBJECT, "utilisation", self.utilisation, "must be above 0")
        _bytes_per_element(self.precision)
        values = {
            "stages": stages,
            "replicas": replicas,
            "global_batch": _checked_batch(self.global_batch, micro_batches, max(replicas)),
            "micro_batches": micro_batches,
            "utilisation": utilisation,
            "gpus_per_replica": _checked_sizes(self.gpus_per_replica, len(stages)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def gpus(self) -> int:
        """GPUs of the plan, over all replicas."""
        return sum(count * gpus for count, gpus in zip(self.replicas, self.replica_gpus, strict=True))

    @property
    def replica_gpus(self) -> tuple[int, ...]:
        """GPUs that one replica of each stage fills."""
        return self.gpus_per_replica or (1,) * len(self.stages)

    @property
    def activation_bytes(self) -> int:
        """Bytes of one activation, or of its gradient, sent from stage to stage."""
        return _bytes_per_element(self.precision)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of one parameter's gradient in the all-reduce."""
        return _bytes_per_element(self.precision)

    @classmethod
    def balanced(
        cls,
        network: Network,
        gpus: int,
        *,
        stages: int | None = None,
        global_batch: int | None = None,
        memory_bytes: int = _MEMORY_BYTES,
        gpus_per_replica: int = 1,
        **fields: Any,
    ) -> TrainingPlan:
        """Plan on so many GPUs with stages of balanced compute.

        The largest stage is as small as any split into contiguous stages allows (:func:`balanced_ranges`), and the
        replicas make the largest share of one replica as small as any counts allow (:func:`balanced_replicas`).

        Parameters
        ----------
        network : Network
            The network.
        gpus : int
            GPUs of the plan.
        stages : int, optional
            Number of stages. By default the fewest for which weights, gradients and optimizer state of every stage
            (:data:`STATE_BYTES_PER_PARAM`) fit in ``memory_bytes``; activations are not counted.
        global_batch : int, optional
            Samples per iteration; by default 32 per GPU, or one per GPU and micro-batch where that is more.
        memory_bytes : int
            Memory of one GPU, for the default number of stages.
        gpus_per_replica : int
            GPUs that one replica of any stage fills.
        **fields
            Further fields of the plan: ``micro_batches``, ``precision``, ``utilisation``.

        Raises
        ------
        InvalidValueError
            More stages than replicas or layers, no number of stages fits the memory, or GPUs that do not make whole
            replicas.
        """
        size = _count(gpus_per_replica, "gpus_per_replica")
        gpus, units = _count(gpus, "gpus"), _units(gpus, size)
        limit, compute = min(units, len(network.layers)), _compute(network)
        if stages is None:
            ranges = _fewest_that_fit(network, limit, size * as_int(memory_bytes, _SUBJECT, "memory_bytes", 1))
        else:
            stages = _count(stages, "stages")
            if stages > limit:
                rule = f"must be at most {units} (its {_noun(size)}) and {len(network.layers)} (its layers)"
                raise InvalidValueError(_SUBJECT, "stages", stages, rule)
            ranges = balanced_ranges(compute, stages)
        replicas = balanced_replicas([sum(compute[i] for i in stage) for stage in ranges], units)
        fields["gpus_per_replica"] = (size,) * len(ranges)
        if global_batch is None:
            global_batch = gpus * max(_SAMPLES_PER_GPU, _count(fields.get("micro_batches", 1), "micro_batches"))
        return cls(network=network, stages=ranges, replicas=replicas, global_batch=global_batch, **fields)

    def replace(self, **changes: Any) -> TrainingPlan:
        """Copy with some fields changed, validated again."""
        return replace(self, **changes)


def balanced_ranges(loads: Sequence[int], parts: int) -> tuple[range, ...]:
    """Contiguous non-empty parts whose largest sum is the least possible.

    The least largest sum is found exactly, by bisection on whole numbers with a greedy test. Among the splits that
    reach it, each cut in turn lies nearest to an even share of what is left, the earlier one of two equally near.

    Parameters
    ----------
    loads : sequence of int, shape (n,)
        Non-negative loads.
    parts : int
        Number of parts, 1 to n.

    Returns
    -------
    tuple of range, length ``parts``

    Examples
    --------
    >>> balanced_ranges([1, 2, 3, 4, 5, 6], 3)
    (range(0, 3), range(3, 5), range(5, 6))
    """
    if not 1 <= parts <= len(loads):
        raise InvalidValueError("split", "parts", parts, f"must be from 1 to {len(loads)}, the number of loads")
    if min(loads) < 0:
        raise InvalidValueError("split", "loads", min(loads), "must be at least 0")
    prefix = [0, *accumulate(loads)]
    limit = _least_bottleneck(prefix, parts, max(loads))
    earliest = _earliest_cuts(prefix, parts, limit)
    cuts = [0]
    for part in range(1, parts):
        share = prefix[cuts[-1]] * (parts - part) + prefix[-1]  # times (parts - part + 1)
        last = min(bisect_right(prefix, prefix[cuts[-1]] + limit) - 1, len(loads) - (parts - part))
        first = max(earliest[part], cuts[-1] + 1)
        cuts.append(min(range(first, last + 1), key=lambda cut: abs(prefix[cut] * (parts - part + 1) - share)))
    return tuple(range(start, stop) for start, stop in pairwise([*cuts, len(loads)]))


def balanced_replicas(compute: Sequence[int], gpus: int) -> tuple[int, ...]:
    """Replicas of each stage, in all ``gpus``, that make the largest ``compute / replicas`` the least possible.

    Every stage gets one; each further GPU goes to the stage with the largest share per replica, the first one of
    equals. That is optimal: the largest share never grows, so a stage's share before its last GPU was at least the
    final largest one, and no stage can spare a GPU for the bottleneck.

    Parameters
    ----------
    compute : sequence of int, shape (stages,)
        Non-negative compute of each stage.
    gpus : int
        GPUs, at least one per stage.

    Examples
    --------
    >>> balanced_replicas([14, 26, 40], 8)
    (2, 2, 4)
    """
    if min(compute, default=0) < 0:
        raise InvalidValueError(_SUBJECT, "compute", min(compute), "must be at least 0")
    if gpus < len(compute):
        raise InvalidValueError(_SUBJECT, "gpus", gpus, f"must be at least {len(compute)}, one per stage")
    replicas = [1] * len(compute)
    heap = [(Fraction(-load), stage) for stage, load in enumerate(compute)]
    heapq.heapify(heap)
    for _ in range(gpus - len(compute)):
        stage = heap[0][1]
        replicas[stage] += 1
        heapq.heapreplace(heap, (Fraction(-compute[stage], replicas[stage]), stage))
    return tuple(replicas)


def _least_bottleneck(prefix: Sequence[int], parts: int, largest: int) -> int:
    low, high = max(largest, -(-prefix[-1] // parts)), prefix[-1]
    while low < high:
        middle = (low + high) // 2
        if _parts_needed(prefix, middle, parts) <= parts:
            high = middle
        else:
            low = middle + 1
    return low


def _parts_needed(prefix: Sequence[int], limit: int, most: int) -> int:
    """Fewest parts with sums of at most ``limit``; more than ``most`` is as good as ``most + 1``."""
    position, needed, end = 0, 0, len(prefix) - 1
    while position < end and needed <= most:
        position = bisect_right(prefix, prefix[position] + limit) - 1
        needed += 1
    return needed


def _earliest_cuts(prefix: Sequence[int], parts: int, limit: int) -> list[int]:
    """For each part, the first position from which the parts left can hold all that follows."""
    cuts = [0] * parts
    position = len(prefix) - 1
    for part in range(parts - 1, 0, -1):
        position = bisect_left(prefix, prefix[position] - limit)
        cuts[part] = position
    return cuts


def _compute(network: Network) -> list[int]:
    return [layer.forward_flops + layer.backward_flops for layer in network.layers]


def _fewest_that_fit(network: Network, limit: int, memory_bytes: int) -> tuple[range, ...]:
    for stages in range(1, limit + 1):
        ranges = balanced_ranges(_compute(network), stages)
        if all(network.params_of(stage) * STATE_BYTES_PER_PARAM <= memory_bytes for stage in ranges):
            return ranges
    rule = f"is too little for the training state of {network.name!r} on {limit} stages; give the number of stages"
    raise InvalidValueError(_SUBJECT, "memory_bytes", memory_bytes, rule)


def _count(value: object, name: str) -> int:
    number = as_int(value, _SUBJECT, name, 1)
    if number > _LARGEST:
        raise InvalidValueError(_SUBJECT, name, value, f"must be at most {_LARGEST}")
    return number


def _bytes_per_element(precision: str) -> int:
    if not isinstance(precision, str) or precision not in BYTES_PER_ELEMENT:
        raise UnknownNameError("precision", str(precision), BYTES_PER_ELEMENT)
    return BYTES_PER_ELEMENT[precision]


def _tuple(value: object, name: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValueError(_SUBJECT, name, value, "must be a sequence")
    return tuple(value)


def _checked_stages(stages: Sequence[range], layers: int) -> tuple[range, ...]:
    expected, stages = 0, _tuple(stages, "stages")
    for stage in stages:
        if not isinstance(stage, range) or stage.step != 1 or len(stage) == 0:
            raise InvalidValueError(_SUBJECT, "stages", stage, "must be a range of at least one layer with step 1")
        if stage.start != expected:
            raise InvalidValueError(_SUBJECT, "stages", stage, f"must start at layer {expected}, where the last ended")
        expected = stage.stop
    if expected != layers:
        raise InvalidValueError(_SUBJECT, "stages", stages, f"must cover all {layers} layers")
    return stages


def _checked_replicas(replicas: Sequence[int], stages: int) -> tuple[int, ...]:
    counts = _tuple(replicas, "replicas")
    if len(counts) != stages:
        raise InvalidValueError(_SUBJECT, "replicas", counts, f"must be one per stage, {stages} in all")
    return tuple(_count(count, f"replicas[{stage}]") for stage, count in enumerate(counts))


def _checked_sizes(sizes: Sequence[int], stages: int) -> tuple[int, ...]:
    """GPUs per replica, nothing where all replicas fill one."""
    counts = _tuple(sizes, "gpus_per_replica")
    if counts and len(counts) != stages:
        raise InvalidValueError(_SUBJECT, "gpus_per_replica", counts, f"must be one per stage, {stages} in all")
    checked = tuple(_count(gpus, f"gpus_per_replica[{stage}]") for stage, gpus in enumerate(counts))
    return checked if any(gpus > 1 for gpus in checked) else ()


def _units(gpus: int, size: int) -> int:
    """Replicas of so many GPUs each that use all GPUs."""
    if gpus % size:
        raise InvalidValueError(_SUBJECT, "gpus", gpus, f"must be a multiple of {size}, the GPUs of a replica")
    return gpus // size


def _noun(size: int) -> str:
    return "GPUs" if size == 1 else "replicas"


def _checked_batch(value: object, micro_batches: int, replicas: int) -> int:
    batch = _count(value, "global_batch")
    if batch < micro_batches * replicas:
        rule = f"must give each of {replicas} replicas a sample of each of {micro_batches} micro-batches"
        raise InvalidValueError(_SUBJECT, "global_batch", value, rule)
    return batch
