"""The freeze menu of a training plan: what each level takes and what it saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import FreezablePlan, frozen_time, stage_work
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.memory import gpu_memory_bytes
from frostline.freezing.relocation import place_frozen
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.problem.plan import STATE_BYTES_PER_PARAM
from frostline.timing.iteration_time import NS_PER_S, iteration_ns
from frostline.units import as_finite

__all__ = ["FreezeRow", "freeze_menu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRow:
    """One level of a freeze menu.

    Parameters
    ----------
    level : int
        The level, 0 without freezing.
    frozen_units : int
        Units that it freezes.
    compute_share : float
        Share of the work of all units but the head that the frozen units do.
    compute_flops : int
        FLOPs per sample that are left, both passes.
    gradient_bytes : int
        Bytes of the gradients that are exchanged in one iteration, over all stages.
    iteration_ns : int
        Iteration time in nanoseconds.
    memory_bytes : int
        Memory of the GPU that needs most.
    fits : bool
        Whether the GPUs of the placement have that much.
    placement : Placement
        Where the replicas are.
    debt : float or None
        What the level costs in quality, where the caller says so.
    """

    level: int
    frozen_units: int
    compute_share: float
    compute_flops: int
    gradient_bytes: int
    iteration_ns: int
    memory_bytes: int
    fits: bool
    placement: Placement
    debt: float | None = None

    @property
    def iteration_s(self) -> float:
        """Iteration time in seconds."""
        return self.iteration_ns / NS_PER_S


def freeze_menu(
    freezable: FreezablePlan,
    cluster: Cluster,
    placement: Placement | None = None,
    *,
    levels: FreezeLevels | None = None,
    free: Sequence[int] | None = None,
    debt_of: Callable[[FreezeRow], float] | None = None,
    state_bytes_per_param: int = STATE_BYTES_PER_PARAM,
    **options: Any,
) -> tuple[FreezeRow, ...]:
    """What each level of a plan takes: one row per level, level 0 first.

    Parameters
    ----------
    freezable : FreezablePlan
        The plan and its units.
    cluster : Cluster
        The servers.
    placement : Placement, optional
        Where the job is. Without one it is placed anew at each level, and stays where the level before was placed if
        that is no slower.
    levels : FreezeLevels, optional
        The levels; by default those of :meth:`~frostline.freezing.levels.FreezeLevels.evenly`.
    free : sequence of int, shape (servers,), optional
        Free GPUs of each server, for a placement anew; all of them by default.
    debt_of : callable, optional
        What a row costs in quality.
    state_bytes_per_param : int
        Bytes of weights, gradients and optimizer state of one trained parameter.
    **options
        Options of :func:`~frostline.placement.place.place`.

    Returns
    -------
    tuple of FreezeRow
        Rows that do not fit the memory are kept and say so.

    Raises
    ------
    InvalidValueError
        Levels of other units, a placement that is not one of the plan, or a bad option.
    DoesNotFitError
        Too few free GPUs.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> from frostline.problem.plan import TrainingPlan
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("resnet50"), 8, stages=1), comm="rebuild")
    >>> levels = FreezeLevels.evenly(freezable.units.units, 2)
    >>> for row in freeze_menu(freezable, Cluster.uniform(1), levels=levels):
    ...     print(row.level, row.frozen_units, round(row.iteration_s * 1e3, 2), row.gradient_bytes, row.fits)
    0 0 6.53 51114064 True
    1 9 4.31 45199312 True
    2 17 2.12 4098000 True
    """
    offered = FreezeLevels.evenly(freezable.units.units) if levels is None else levels
    if offered.units != freezable.units.units:
        raise InvalidValueError("freeze menu", "levels", offered.frozen_units, "must be levels of the plan's units")
    rows: list[FreezeRow] = []
    where: Placement | None = None
    for level, frozen in enumerate(offered.frozen_units):
        where = _best(freezable, cluster, frozen, free, where, options) if placement is None else placement
        row = _row(freezable, cluster, offered, level, where, state_bytes_per_param)
        debt = None if debt_of is None else as_finite(debt_of(row), f"freeze level {level}", "debt", 0.0)
        rows.append(replace(row, debt=debt))
    return tuple(rows)


def _best(
    freezable: FreezablePlan,
    cluster: Cluster,
    frozen: int,
    free: Sequence[int] | None,
    before: Placement | None,
    options: dict[str, Any],
) -> Placement:
    fresh = place_frozen(freezable, cluster, frozen, free, **options)
    return fresh.placement if before is None or fresh.iteration_ns < _ns(freezable, cluster, frozen, before) else before


def _ns(freezable: FreezablePlan, cluster: Cluster, frozen: int, placement: Placement) -> int:
    return iteration_ns(frozen_time(freezable, cluster, frozen, placement.servers), placement)


def _row(
    freezable: FreezablePlan,
    cluster: Cluster,
    levels: FreezeLevels,
    level: int,
    placement: Placement,
    state_bytes_per_param: int,
) -> FreezeRow:
    frozen = levels.frozen_units[level]
    work = stage_work(freezable, frozen)
    memory_bytes = max(gpu_memory_bytes(freezable, frozen, state_bytes_per_param=state_bytes_per_param))
    limits = [cluster.servers[m].gpu_type.memory_bytes for m in placement.servers]
    return FreezeRow(
        level=level,
        frozen_units=frozen,
        compute_share=levels.compute_shares[level],
        compute_flops=sum(work.flops),
        gradient_bytes=sum(work.params) * freezable.plan.gradient_bytes,
        iteration_ns=_ns(freezable, cluster, frozen, placement),
        memory_bytes=memory_bytes,
        fits=all(limit is None or memory_bytes <= limit for limit in limits),
        placement=placement,
    )
