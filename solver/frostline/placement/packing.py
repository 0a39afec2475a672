"""Placements that look at room only: stages in order on the fewest servers, and stages kept whole."""

from __future__ import annotations

from frostline.placement.jit import start_loops
from frostline.placement.request import Request, fewest_servers
from frostline.placement.tables import traffic_of
from frostline.problem.bin_packing import pack_replicas
from frostline.timing.iteration_time import Matrix

__all__ = ["best_fit", "whole_stages"]


def best_fit(request: Request) -> Matrix:
    """Stages in their order on the fewest servers; traffic is ignored.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)
    """
    if request.packing is not None:
        return _packed(request)
    rooms = request.room.tolist()
    columns = []
    column, room = [0] * len(request.counts), rooms[0]
    for stage, count in enumerate(request.counts):
        while count:
            if not room:
                columns.append(column)
                column, room = [0] * len(request.counts), rooms[len(columns)]
            taken = min(count, room)
            column[stage] += taken
            count, room = count - taken, room - taken
    columns.append(column)
    matrix = request.empty()
    matrix[: len(columns)] = columns
    return matrix


def _packed(request: Request) -> Matrix:
    """Replicas of several GPUs on the fewest of the largest rows."""
    matrix = request.empty()
    largest = (-request.room).argsort(kind="stable")[: fewest_servers(request)]
    graph = request.timing.graph
    packed, _ = pack_replicas(request.room[largest].tolist(), graph.gpus_per_replica, graph.replicas)
    assert packed is not None
    matrix[largest] = packed
    return matrix


def whole_stages(request: Request) -> Matrix:
    """Stages whole where they fit, largest first: beside most traffic, then in the tightest hole.

    What fits nowhere whole is split over the rows with most room left. Where that leaves replicas of several GPUs
    without a place, the answer is some placement that fits.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)
    """
    matrix = request.empty()
    traffic = traffic_of(request.timing.graph)
    if start_loops().whole_stages(traffic, request.stages, request.room, matrix):
        return matrix
    return request.fallback()
