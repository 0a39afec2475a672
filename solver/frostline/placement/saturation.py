"""B-saturation: GPUs that are surely busy while the head of the queue is blocked.

The guarantees of A-SRPT use the cluster only through this number B.
"""

from __future__ import annotations

from collections.abc import Iterable

from frostline.placement.free_gpus import FreeGpus, Shape
from frostline.problem.cluster import Cluster

__all__ = ["busy_when_blocked", "saturation"]


def busy_when_blocked(shape: Shape, cluster: Cluster) -> int:
    """Fewest busy GPUs in any state of the cluster in which a job of this shape does not fit.

    A job of g GPUs on at most k servers is blocked when the k freest servers have at most g − 1 GPUs free together.
    With v free GPUs on the k-th freest, every other server has at most v, so the free GPUs are at most
    Σ min(c, v) − k·v + g − 1, which grows with v up to ⌊(g − 1)/k⌋.

    Where it comes in pieces, put on the k freest servers one by one as they fit, the first piece that does not fit, of
    p GPUs, leaves less than p free on each: together they have at most g − p GPUs beyond p − 1 on each. The bound
    follows as before, beyond p − 1 free GPUs on every server; the least over all sizes of pieces counts. Where that is
    nothing, one busy GPU is needed all the same, if the job fits the empty cluster.

    Examples
    --------
    >>> cluster = Cluster.uniform(4, gpus=8)
    >>> busy_when_blocked(Shape(8, 4), cluster)  # any free GPUs: G − g + 1
    25
    >>> busy_when_blocked(Shape(8, 1), cluster)  # one whole server: one busy GPU on each suffices
    4
    >>> busy_when_blocked(Shape(16, 2), cluster)  # two whole servers
    3
    >>> busy_when_blocked(Shape(8, 4, ((4, 2),)), cluster)  # two halves of a server
    16
    """
    servers = min(shape.most_servers, len(cluster.servers))
    sizes = [gpus for gpus, _ in shape.pieces] if servers > 1 else []
    busy = min(_busy(shape.gpus, servers, gpus, cluster) for gpus in sizes or [1])
    return busy or int(FreeGpus(cluster.capacities).fits(shape))


def _busy(gpus: int, servers: int, piece: int, cluster: Cluster) -> int:
    """Fewest busy GPUs where a piece does not fit."""
    beyond = sorted((max(capacity - piece + 1, 0) for capacity in cluster.capacities), reverse=True)
    level = min((gpus - piece) // servers, beyond[servers - 1])
    free = sum(min(room, level) for room in beyond) - servers * level + gpus - piece
    return max(cluster.gpus - free - sum(min(capacity, piece - 1) for capacity in cluster.capacities), 0)


def saturation(shapes: Iterable[Shape], cluster: Cluster) -> int:
    """B of a set of shapes: the least of :func:`busy_when_blocked`; all GPUs where there are no shapes.

    Examples
    --------
    >>> saturation([Shape(1, 4), Shape(8, 4)], Cluster.uniform(4, gpus=8))
    25
    """
    return min((busy_when_blocked(shape, cluster) for shape in set(shapes)), default=cluster.gpus)
