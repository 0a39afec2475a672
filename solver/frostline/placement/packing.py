"""Placements that look at room only: stages in order on the fewest servers, and stages kept whole."""

from __future__ import annotations

import numpy as np

from frostline.placement.request import Request
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
    matrix = request.empty()
    row, room = 0, int(request.room[0])
    for stage, count in enumerate(request.counts):
        while count:
            if not room:
                row += 1
                room = int(request.room[row])
            taken = min(count, room)
            matrix[row, stage] += taken
            count, room = count - taken, room - taken
    return matrix


def whole_stages(request: Request) -> Matrix:
    """Stages whole where they fit, largest first: beside most traffic, then in the tightest hole.

    What fits nowhere whole is split over the rows with most room left.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)
    """
    matrix, room = request.empty(), request.room.copy()
    graph = request.timing.graph
    neighbours, rings = graph.neighbours(), graph.ring_bytes
    home: dict[int, int] = {}
    left = list(request.counts)
    for stage in sorted(range(graph.stages), key=lambda s: (-left[s], -rings[s], s)):
        fitting = np.flatnonzero(room >= left[stage]).tolist()
        if fitting:
            beside = dict.fromkeys(fitting, 0)
            for other, amount in neighbours[stage]:
                if home.get(other) in beside:
                    beside[home[other]] += amount
            row = min(fitting, key=lambda r: (-beside[r], int(room[r]), r))
            home[stage] = row
            matrix[row, stage], room[row], left[stage] = left[stage], room[row] - left[stage], 0
    for stage, count in enumerate(left):
        while count:
            row = int(np.argmax(room))
            taken = min(count, int(room[row]))
            matrix[row, stage] += taken
            room[row] -= taken
            count -= taken
    return matrix
