"""Pieces of a job that must each stay inside one server, and on how few servers they fit."""

from __future__ import annotations

from collections.abc import Sequence

from frostline.problem.bin_packing import pack
from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Training

__all__ = ["Pieces", "pieces_hold", "pieces_of", "servers_needed"]

Pieces = tuple[tuple[int, int], ...]
"""Sizes of pieces in GPUs, descending, and the number of pieces of each; empty where all are single GPUs."""


def pieces_of(job: Job) -> Pieces:
    """Pieces of a job: the replicas of its training plan, if some fill several GPUs.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> pieces_of(Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=4))
    ()
    """
    if not isinstance(job.work, Training) or not job.work.plan.gpus_per_replica:
        return ()
    plan = job.work.plan
    counts: dict[int, int] = {}
    for gpus, count in zip(plan.gpus_per_replica, plan.replicas, strict=True):
        counts[gpus] = counts.get(gpus, 0) + count
    return tuple(sorted(counts.items(), reverse=True))


def pieces_hold(room: Sequence[int], pieces: Pieces) -> bool:
    """Whether servers with so many free GPUs hold all pieces.

    Examples
    --------
    >>> pieces_hold([3, 3], ((2, 2), (1, 1))), pieces_hold([3, 3], ((2, 3),))
    (True, False)
    """
    if sum(room) < sum(gpus * count for gpus, count in pieces):
        return False
    return pack(room, [gpus for gpus, _ in pieces], [count for _, count in pieces])[0] is not None


def servers_needed(job: Job, cluster: Cluster) -> int:
    """Fewest servers of an empty cluster that hold a job; one more than there are servers if none do.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> servers_needed(Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=9), Cluster.uniform(4))
    2
    """
    needed, pieces = cluster.servers_needed(job.gpus), pieces_of(job)
    if pieces and needed > 1:
        room = sorted(cluster.capacities, reverse=True)
        while needed <= len(room) and not pieces_hold(room[:needed], pieces):
            needed += 1
    return needed
