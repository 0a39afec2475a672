"""B-saturation: GPUs that are surely busy while the head of the queue is blocked.

The guarantees of A-SRPT use the cluster only through this number B.
"""

from __future__ import annotations

from collections.abc import Iterable

from frostline.placement.free_gpus import Shape
from frostline.problem.cluster import Cluster

__all__ = ["busy_when_blocked", "saturation"]


def busy_when_blocked(shape: Shape, cluster: Cluster) -> int:
    """Fewest busy GPUs in any state of the cluster in which a job of this shape does not fit.

    A job of g GPUs on at most k servers is blocked when the k freest servers have at most g − 1 GPUs free together.
    With v free GPUs on the k-th freest, every other server has at most v, so the free GPUs are at most
    Σ min(c, v) − k·v + g − 1, which grows with v up to ⌊(g − 1)/k⌋.

    Examples
    --------
    >>> cluster = Cluster.uniform(4, gpus=8)
    >>> busy_when_blocked(Shape(8, 4), cluster)  # any free GPUs: G − g + 1
    25
    >>> busy_when_blocked(Shape(8, 1), cluster)  # one whole server: one busy GPU on each suffices
    4
    >>> busy_when_blocked(Shape(16, 2), cluster)  # two whole servers
    3
    """
    gpus, servers = shape.gpus, min(shape.most_servers, len(cluster.servers))
    capacities = sorted(cluster.capacities, reverse=True)
    level = min((gpus - 1) // servers, capacities[servers - 1])
    free = sum(min(capacity, level) for capacity in capacities) - servers * level + gpus - 1
    return cluster.gpus - free


def saturation(shapes: Iterable[Shape], cluster: Cluster) -> int:
    """B of a set of shapes: the least of :func:`busy_when_blocked`; all GPUs where there are no shapes.

    Examples
    --------
    >>> saturation([Shape(1, 4), Shape(8, 4)], Cluster.uniform(4, gpus=8))
    25
    """
    return min((busy_when_blocked(shape, cluster) for shape in set(shapes)), default=cluster.gpus)
