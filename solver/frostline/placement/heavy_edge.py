"""Heavy-Edge: keep the heaviest edges inside a server."""

from __future__ import annotations

from frostline.placement.jit import start_loops
from frostline.placement.request import Request
from frostline.placement.tables import traffic_of
from frostline.timing.iteration_time import Matrix

__all__ = ["heavy_edge"]


def heavy_edge(request: Request, *, by_total: bool = False) -> Matrix:
    """Endpoints of the heaviest edges first, on the server with most free GPUs; then the next server.

    Edges join replicas: those of neighbouring stages carry D_st / (K_s K_t) bytes, those in a row on the ring of a
    stage R_s (twice that where the ring has two replicas). A server starts with both ends of the heaviest edge that
    is left and grows by the replica with the heaviest edge to what it holds, or with the largest total weight. The idea
    is that of the A-SRPT paper (INFOCOM 2025), of which the abstract says no more.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    by_total : bool
        Whether a server grows by total weight.

    Returns
    -------
    ndarray of int64, shape (rows, stages)
        Where the idea leaves replicas of several GPUs without a place, some placement that fits.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> heavy_edge(Request(timing=ContentionTime(graph=path), free=(2, 2))).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    matrix = request.empty()
    traffic = traffic_of(request.timing.graph)
    if start_loops().heavy_edge(traffic, request.stages, request.room, by_total, matrix):
        return matrix
    return request.fallback()
