"""The stage graph and the iteration time of a training plan whose first units are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.network_units import NetworkUnits, freeze_units
from frostline.problem.cluster import Cluster, GpuType
from frostline.problem.plan import TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import slowest_type
from frostline.timing.stage_graph import StageGraph, StageWork, stage_graph
from frostline.units import as_finite

__all__ = [
    "FreezablePlan",
    "GradientExchange",
    "as_exchange",
    "frozen_stage_graph",
    "frozen_time",
    "read_elements",
    "stage_work",
]

_MAX_BANDWIDTH = 1e18


class GradientExchange(StrEnum):
    """Which gradients are exchanged once units are frozen."""

    STATIC = "static"  # all of them: the data-parallel wrapper was built once, over all parameters
    REBUILD = "rebuild"  # those of the trained units: the wrapper is built anew at each change of level


def as_exchange(name: object) -> GradientExchange:
    """Exchange of a name; an unknown one is an error that suggests a near miss.

    Examples
    --------
    >>> as_exchange("statik")
    Traceback (most recent call last):
    frostline.errors.UnknownNameError: unknown gradient exchange 'statik'; did you mean 'static'? Known: rebuild, static
    """
    known = {exchange.value: exchange for exchange in GradientExchange}
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError("gradient exchange", str(name), known)
    return known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezablePlan:
    """A training plan whose first units may be frozen.

    The frozen units run forward without recording anything for a backward pass, so nothing in them costs time on the
    way back, and parameters that they share with trained units are trained through those.

    Parameters
    ----------
    plan : TrainingPlan
        The plan. Units may be cut by its stages: each layer of a unit counts with the stage that has it.
    units : NetworkUnits
        Freeze units of its network.
    comm : GradientExchange
        Which gradients are exchanged.
    cache_bytes_per_s : float, optional
        Where the output of the frozen units is kept for each sample: bandwidth at which a replica reads it in place
        of computing it. By default it is computed anew in each iteration.

    Raises
    ------
    InvalidValueError
        Units of another network, or a bandwidth below 1 byte per second.
    UnknownNameError
        Another exchange.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("gpt2"), 4, stages=2), comm="rebuild")
    >>> len(freezable.units.units), freezable.comm.value
    (15, 'rebuild')
    """

    plan: TrainingPlan
    units: NetworkUnits
    comm: GradientExchange = GradientExchange.STATIC
    cache_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if self.units.network is not self.plan.network and self.units.network != self.plan.network:
            rule = f"must be those of its network {self.plan.network.name!r}"
            raise InvalidValueError("freezable plan", "units", self.units.network.name, rule)
        object.__setattr__(self, "comm", as_exchange(self.comm))
        if self.cache_bytes_per_s is not None:
            bandwidth = as_finite(self.cache_bytes_per_s, "freezable plan", "cache_bytes_per_s", 1.0, _MAX_BANDWIDTH)
            object.__setattr__(self, "cache_bytes_per_s", bandwidth)

    @classmethod
    def of(cls, plan: TrainingPlan, *, comm: str = "static", cache_bytes_per_s: float | None = None) -> FreezablePlan:
        """The plan with the units that :func:`~frostline.freezing.network_units.freeze_units` finds."""
        units = freeze_units(plan.network)
        return cls(plan=plan, units=units, comm=as_exchange(comm), cache_bytes_per_s=cache_bytes_per_s)


def frozen_stage_graph(freezable: FreezablePlan, gpu_type: GpuType, frozen: int) -> StageGraph:
    """Stage graph of a plan with its first units frozen; with none it is that of the plan, to the last bit.

    A stage computes the forward pass of its layers and what is left of their backward pass
    (:meth:`~frostline.freezing.network_units.NetworkUnits.backward_flops`). It exchanges the gradients of all its
    parameters, or of those that are trained (:class:`GradientExchange`). An edge carries activations forward, and
    gradients back only where its sender belongs to a trained unit. With a cached prefix frozen layers compute and send
    nothing; each stage reads what its trained layers need of their output, and then computes.

    The iteration lasts as long as the slowest stage, so freezing a stage that is not the slowest saves nothing.
    Without a cache neither compute, gradients nor traffic ever rise with the number of frozen units.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    gpu_type : GpuType
        Type of all GPUs.
    frozen : int
        Number of frozen units.

    Raises
    ------
    InvalidValueError
        No such number of units.
    UnknownNameError
        The GPU type has no such precision.

    Examples
    --------
    >>> from frostline.problem.cluster import gpu_type
    >>> from frostline.problem.library import shipped_network
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("gpt2"), 4, stages=2), comm="rebuild")
    >>> for frozen in (0, 4):
    ...     graph = frozen_stage_graph(freezable, gpu_type("A100-SXM-80"), frozen)
    ...     print([round(seconds, 3) for seconds in graph.compute_s], graph.gradient_bytes, dict(graph.edges))
    [0.436, 0.461] (192173568, 133900800) {(0, 1): 402653184}
    [0.327, 0.461] (70878720, 133900800) {(0, 1): 402653184}
    """
    return stage_graph(freezable.plan, gpu_type, stage_work(freezable, frozen))


def stage_work(freezable: FreezablePlan, frozen: int) -> StageWork:
    """What the stages of a plan do in one iteration with so many units frozen."""
    plan, units = freezable.plan, freezable.units
    network, start = plan.network, units.layers(frozen)
    cached = start if freezable.cache_bytes_per_s is not None else 0
    backward = units.backward_flops(frozen)
    trained = start if freezable.comm is GradientExchange.REBUILD else 0
    sent = network.traffic(plan.stages, cached)
    returned = network.traffic(plan.stages, start)
    return StageWork(
        flops=tuple(
            sum(backward[i] + (network.layers[i].forward_flops if i >= cached else 0) for i in stage)
            for stage in plan.stages
        ),
        params=tuple(network.params_of(i for i in stage if i >= trained) for stage in plan.stages),
        elements={ends: Fraction(elements) + Fraction(returned.get(ends, 0)) for ends, elements in sent.items()},
        read_elements=read_elements(plan, cached) if cached else (),
        read_bytes_per_s=freezable.cache_bytes_per_s or 1.0,
    )


def frozen_time(
    freezable: FreezablePlan, cluster: Cluster, frozen: int, servers: tuple[int, ...] | None = None
) -> ContentionTime:
    """Iteration time model of a plan with its first units frozen, on the slowest GPU type among some servers.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    cluster : Cluster
        The servers.
    frozen : int
        Number of frozen units.
    servers : tuple of int, optional
        Indices of the servers that are used; all by default.

    Raises
    ------
    InvalidValueError
        No such number of units, no servers, or one that the cluster does not have.
    UnknownNameError
        A GPU type has no such precision.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("gpt2"), 4, stages=2))
    >>> from frostline.timing import iteration_ns
    >>> [iteration_ns(frozen_time(freezable, Cluster.uniform(1), k), [[2, 2]]) / 1e9 for k in (0, 4, 9)]
    [0.46239246, 0.46239246, 0.462056915]
    """
    slowest = slowest_type(freezable.plan, cluster, servers)
    return ContentionTime.of_cluster(frozen_stage_graph(freezable, slowest, frozen), cluster)


def read_elements(plan: TrainingPlan, cached: int) -> tuple[Fraction, ...]:
    """Elements per sample that each stage reads of the output of the layers before position ``cached``."""
    groups = [range(cached), *([i for i in stage if i >= cached] for stage in plan.stages)]
    read = plan.network.traffic(groups)
    return tuple(Fraction(read.get((0, stage), 0)) for stage in range(1, len(groups)))
