"""Placing a job again once its first units are frozen: another stage graph may want another placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import FreezablePlan, frozen_time
from frostline.placement.gpu_types import able_types, servers_of
from frostline.placement.place import place
from frostline.placement.request import DoesNotFitError
from frostline.placement.result import PlacementResult
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.timing.iteration_time import NS_PER_S, iteration_ns
from frostline.units import as_finite, as_int

__all__ = ["Relocation", "change_pays", "place_again", "place_frozen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """The placement a job has, the best one found for it, and whether moving pays.

    Parameters
    ----------
    current_ns, fresh_ns : int
        Iteration time in nanoseconds on the placement that the job has, and on the other one.
    placement : Placement
        The other placement; the one that the job has where none is faster.
    saved_s : float
        Seconds that moving saves over the iterations left, its cost not counted.
    pays : bool
        Whether that is more than moving costs.
    """

    current_ns: int
    fresh_ns: int
    placement: Placement
    saved_s: float
    pays: bool


def change_pays(saved_s: float, iterations_left: int, cost_s: float) -> bool:
    """Whether a change that saves so much per iteration saves more than it costs.

    A change that just breaks even is not made. To undo one saves less than nothing, so nothing flaps.

    Parameters
    ----------
    saved_s : float
        Seconds saved per iteration; below 0 where the change makes them longer.
    iterations_left : int
        Iterations to go.
    cost_s : float
        Seconds that the change takes.

    Examples
    --------
    >>> [change_pays(0.5, left, 20) for left in (30, 40, 50)]
    [False, False, True]
    """
    saved = as_finite(saved_s, "change", "saved_s")
    left = as_int(iterations_left, "change", "iterations_left", 0)
    return saved * left > as_finite(cost_s, "change", "cost_s", 0.0)


def place_frozen(
    freezable: FreezablePlan, cluster: Cluster, frozen: int, free: Sequence[int] | None = None, **options: Any
) -> PlacementResult:
    """Place a plan with its first units frozen on free GPUs, all on servers of one type: the one where it is fastest.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    cluster : Cluster
        The servers.
    frozen : int
        Number of frozen units.
    free : sequence of int, shape (servers,), optional
        Free GPUs of each server; all of them by default.
    **options
        Options of :func:`~frostline.placement.place.place`: ``method``, ``objective``, ``time_limit_s``, ``seed``, ….

    Returns
    -------
    PlacementResult
        Its bound, and whether it is proved optimal, is about the servers of its GPU type.

    Raises
    ------
    DoesNotFitError
        No GPU type has room for it.
    InvalidValueError
        No servers, no such number of units, or a bad option.
    UnknownNameError
        No GPU type has the precision of the plan, or an unknown method.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> from frostline.problem.plan import TrainingPlan
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("gpt2"), 4, stages=2))
    >>> place_frozen(freezable, Cluster.uniform(2, gpus=4), 9).placement.loads
    ((0, 4),)
    """
    room = _checked_room(cluster, cluster.capacities if free is None else free)
    results: list[PlacementResult] = []
    errors: list[DoesNotFitError] = []
    for kind in able_types(freezable.plan, cluster):
        servers = servers_of(cluster, kind)
        timing = frozen_time(freezable, cluster, frozen, servers)
        part = [count if m in set(servers) else 0 for m, count in enumerate(room)]
        try:
            results.append(place(timing, part, **options))
        except DoesNotFitError as error:
            errors.append(error)
    if not results:
        raise max(errors, key=lambda error: error.offer_gpus)
    return min(results, key=lambda result: (result.iteration_ns, result.servers_used))


def place_again(
    freezable: FreezablePlan,
    cluster: Cluster,
    placement: Placement,
    frozen: int,
    *,
    iterations_left: int,
    move_s: float,
    free: Sequence[int] | None = None,
    **options: Any,
) -> Relocation:
    """Whether a job that trains at a new level should move to another placement.

    Its own GPUs count as free. The level decides between the two: the placement that was best without freezing need
    not be with it, since stages whose units are frozen compute less and return no gradients.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    cluster : Cluster
        The servers.
    placement : Placement
        Where the job is.
    frozen : int
        Number of units that are frozen from now on.
    iterations_left : int
        Iterations to go.
    move_s : float
        Seconds that a move costs.
    free : sequence of int, shape (servers,), optional
        GPUs of each server that are free besides its own, on servers where the job may run; none by default, which
        leaves the same GPUs in another order.
    **options
        Options of :func:`~frostline.placement.place.place`.

    Raises
    ------
    InvalidValueError
        The placement is not one of the plan, or a value is out of range.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> from frostline.problem.plan import TrainingPlan
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("vgg19"), 4, stages=1))
    >>> apart, cluster = Placement([(0, (2,)), (1, (2,))]), Cluster.uniform(2, gpus=4)
    >>> for left in (100, 10_000):
    ...     moved = place_again(freezable, cluster, apart, 5, iterations_left=left, move_s=30, free=(0, 2))
    ...     print(moved.placement.loads, round(moved.saved_s, 1), moved.pays)
    ((1, 4),) 1.7 False
    ((1, 4),) 172.4 True
    """
    held = dict(placement.loads)
    if any(m >= len(cluster.servers) for m in held):
        raise InvalidValueError("placement", "server", max(held), f"must be below {len(cluster.servers)}")
    others = _checked_room(cluster, (0,) * len(cluster.servers) if free is None else free)
    room = [count + held.get(m, 0) for m, count in enumerate(others)]
    current_ns = iteration_ns(frozen_time(freezable, cluster, frozen, placement.servers), placement)
    fresh = place_frozen(freezable, cluster, frozen, room, **options)
    better = fresh.iteration_ns < current_ns
    fresh_ns = fresh.iteration_ns if better else current_ns
    saved_s = (current_ns - fresh_ns) / NS_PER_S
    return Relocation(
        current_ns=current_ns,
        fresh_ns=fresh_ns,
        placement=fresh.placement if better else placement,
        saved_s=saved_s * iterations_left,
        pays=change_pays(saved_s, iterations_left, move_s),
    )


def _checked_room(cluster: Cluster, free: Sequence[int]) -> tuple[int, ...]:
    """Free GPUs by server, no more than each has."""
    room = tuple(as_int(count, f"server {m}", "free", 0) for m, count in enumerate(free))
    if len(room) != len(cluster.servers) or not room:
        rule = f"must have one entry for each of {len(cluster.servers)} servers, at least one"
        raise InvalidValueError("placement", "free", room, rule)
    for server, count in zip(cluster.servers, room, strict=True):
        if count > server.gpus:
            raise InvalidValueError(f"server {server.id!r}", "free", count, f"must be at most its {server.gpus} GPUs")
    return room
