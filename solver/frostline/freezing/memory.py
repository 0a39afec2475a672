"""Memory of a training plan whose first units are frozen."""

from __future__ import annotations

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import FreezablePlan, GradientExchange, read_elements
from frostline.freezing.units import FreezeUnits
from frostline.problem.cluster import GpuType
from frostline.problem.plan import STATE_BYTES_PER_PARAM
from frostline.units import as_int

__all__ = ["activation_bytes", "fits_memory", "gpu_memory_bytes"]

_FP32 = 4


def activation_bytes(units: FreezeUnits, frozen: int) -> int:
    """Activations per sample at fp32 with so many units frozen, in bytes: an upper bound.

    Kept for the backward pass is what the trained units save. A frozen unit keeps nothing, but its output has to be
    somewhere while the next one reads it: the largest of these is added.

    Parameters
    ----------
    units : FreezeUnits
        The units.
    frozen : int
        Number of frozen units.

    Examples
    --------
    >>> from frostline.freezing.units import FreezeUnit
    >>> units = FreezeUnits([FreezeUnit(forward=1, saved_bytes=40, output_elements=n) for n in (5, 3, 2)])
    >>> [activation_bytes(units, frozen) for frozen in range(3)]
    [120, 100, 60]
    """
    count = units.checked(frozen)
    outputs = (unit.output_elements for unit in units.units[:count])
    return sum(unit.saved_bytes for unit in units.units[count:]) + _FP32 * max(outputs, default=0)


def gpu_memory_bytes(
    freezable: FreezablePlan, frozen: int, *, state_bytes_per_param: int = STATE_BYTES_PER_PARAM
) -> tuple[int, ...]:
    """Memory of one GPU of each stage with so many units frozen, in bytes, shape (stages,).

    It is the sum of

    - weights, gradients and optimizer state of trained parameters; of frozen ones the weights alone, and their
      gradients too where they are exchanged all the same (``static``),
    - the activations that the trained layers save, for each micro-batch under way: stage s of S holds those of
      ``min(b, S - s)`` of b micro-batches when forward and backward passes take turns, and
    - the largest output of a frozen unit that ends in the stage, for one micro-batch, or what it reads from a cache.

    Saved activations of half-precision training are taken to be half of those of fp32. What a replica of several GPUs
    holds is shared evenly by them. Buffers, workspaces and fragmentation are not counted.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    frozen : int
        Number of frozen units.
    state_bytes_per_param : int
        Bytes of weights, gradients and optimizer state of one trained parameter; by default those of Adam.

    Raises
    ------
    InvalidValueError
        No such number of units, or less state than the weights take.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> from frostline.problem.plan import TrainingPlan
    >>> plan = TrainingPlan.balanced(shipped_network("resnet50"), 8, stages=1)
    >>> freezable = FreezablePlan.of(plan, comm="rebuild")
    >>> [round(gpu_memory_bytes(freezable, frozen)[0] / 1e9, 2) for frozen in (0, 9, 17)]
    [1.79, 0.69, 0.13]
    """
    plan, start = freezable.plan, freezable.units.layers(frozen)
    state = as_int(state_bytes_per_param, "memory", "state_bytes_per_param", plan.gradient_bytes)
    kept = plan.gradient_bytes * (2 if freezable.comm is GradientExchange.STATIC else 1)
    if state < kept:
        rule = f"must be at least {kept}, weights and gradients"
        raise InvalidValueError("memory", "state_bytes_per_param", state_bytes_per_param, rule)
    outputs = _frozen_outputs(freezable, frozen)
    return tuple(
        _stage_bytes(freezable, stage, start, (state, kept), outputs[stage]) for stage in range(len(plan.stages))
    )


def fits_memory(
    freezable: FreezablePlan, frozen: int, gpu_type: GpuType, *, state_bytes_per_param: int = STATE_BYTES_PER_PARAM
) -> bool:
    """Whether a plan with so many units frozen fits GPUs of a type; where their memory is unknown it does.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> from frostline.problem.plan import TrainingPlan
    >>> plan = TrainingPlan.balanced(shipped_network("gpt2_xl"), 1, stages=1, global_batch=2)
    >>> small = GpuType(name="small", peak_flops={"fp16": 1e14}, memory_bytes=16 * 2**30)
    >>> [fits_memory(FreezablePlan.of(plan), frozen, small) for frozen in (0, 40)]
    [False, True]
    """
    if gpu_type.memory_bytes is None:
        return True
    needed = gpu_memory_bytes(freezable, frozen, state_bytes_per_param=state_bytes_per_param)
    return max(needed) <= gpu_type.memory_bytes


def _stage_bytes(freezable: FreezablePlan, stage: int, start: int, per_param: tuple[int, int], output: int) -> int:
    plan, network = freezable.plan, freezable.plan.network
    trained = [i for i in plan.stages[stage] if i >= start]
    trained_params = network.params_of(trained)
    frozen_params = network.params_of(plan.stages[stage]) - trained_params
    held = per_param[0] * trained_params + per_param[1] * frozen_params
    samples = -(-plan.global_batch // (plan.replicas[stage] * plan.micro_batches))
    under_way = min(plan.micro_batches, len(plan.stages) - stage)
    saved = sum(network.layers[i].saved_bytes for i in trained) * samples * under_way * plan.activation_bytes
    total = held - (-saved // _FP32) + output * samples * plan.activation_bytes
    return -(-total // plan.replica_gpus[stage])


def _frozen_outputs(freezable: FreezablePlan, frozen: int) -> list[int]:
    """Elements per sample that each stage holds of the output of frozen units."""
    plan, units = freezable.plan, freezable.units
    if freezable.cache_bytes_per_s is not None:
        return [-(-elements // 1) for elements in read_elements(plan, units.layers(frozen))]
    outputs = [0] * len(plan.stages)
    for unit, end in zip(units.units.units[:frozen], units.ends, strict=False):
        stage = next(s for s, stage in enumerate(plan.stages) if end <= stage.stop)
        outputs[stage] = max(outputs[stage], unit.output_elements)
    return outputs
