"""Servers as boxes of text, with the stage that fills each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.report.stage_traffic import stage_letters

__all__ = ["MOST_SERVERS", "gpu_cells", "placement_drawing", "servers_to_draw"]

FREE, BUSY = "·", "#"
MOST_SERVERS = 16
"""Where there are more servers, only those that hold replicas are drawn."""

_MOST_CELLS = 16
_WIDTH = 100
_GAP = "  "
_NO_BREAK = "\N{NO-BREAK SPACE}"


def placement_drawing(placement: Placement, cluster: Cluster, free: Sequence[int], width: int = _WIDTH) -> list[str]:
    """Lines that show servers as boxes: a letter for each GPU that a stage fills, and which others are free or busy.

    GPUs of one replica are joined by a dash.

    Parameters
    ----------
    placement : Placement
        Where the replicas are.
    cluster : Cluster
        The servers.
    free : sequence of int, shape (servers,)
        GPUs of each server that were free before.
    width : int
        Columns of text to stay within, if a box does.

    Examples
    --------
    >>> placement = Placement([(0, (2, 1)), (1, (0, 1))], gpus_per_replica=(1, 2))
    >>> for line in placement_drawing(placement, Cluster.uniform(2, gpus=5), [5, 3]):
    ...     print(line)
    ┌ s0 ───────┐  ┌ s1 ───────┐
    │ A A B-B · │  │ B-B · # # │
    └───────────┘  └───────────┘
    A stage 0, B stage 1, · free, # busy
    """
    shown = servers_to_draw(placement, cluster)
    boxes = [_box(cluster.servers[m].id, _cells(placement, cluster, free, m)) for m in shown]
    lines = [line for row in _rows(boxes, width) for line in _beside(row)]
    letters = stage_letters(placement.stages)
    legend = [*(f"{letter} stage {s}" for s, letter in enumerate(letters)), f"{FREE} free", f"{BUSY} busy"]
    hidden = len(cluster.servers) - len(shown)
    more = [f"{hidden:,} servers that hold none are not drawn"] if hidden else []
    return [*lines, *_wrapped([*legend, *more], width)]


def servers_to_draw(placement: Placement, cluster: Cluster) -> tuple[int, ...]:
    """All servers, or those that hold replicas where there are more than :data:`MOST_SERVERS`."""
    return tuple(range(len(cluster.servers))) if len(cluster.servers) <= MOST_SERVERS else placement.servers


def gpu_cells(placement: Placement, cluster: Cluster, free: Sequence[int], server: int) -> list[tuple[int | None, int]]:
    """What fills a server, in order: (stage, GPUs) of each replica, (None, 1) of a free GPU, (None, 0) of a busy one.

    Examples
    --------
    >>> placement = Placement([(0, (1, 1))], gpus_per_replica=(1, 2))
    >>> gpu_cells(placement, Cluster.uniform(1, gpus=5), [4], 0)
    [(0, 1), (1, 2), (None, 1), (None, 0)]
    """
    column = dict(placement.columns).get(server, ())
    sizes = placement.gpus_per_replica or (1,) * len(column)
    held = [(s, sizes[s]) for s, count in enumerate(column) for _ in range(count)]
    left = free[server] - sum(gpus for _, gpus in held)
    busy = cluster.servers[server].gpus - free[server]
    return [*held, *[(None, 1)] * left, *[(None, 0)] * busy]


def _cells(placement: Placement, cluster: Cluster, free: Sequence[int], server: int) -> str:
    """GPUs of a server in one line; runs of equal ones are counted where a line would be too long."""
    letters = stage_letters(placement.stages)
    marks = [
        (BUSY, FREE)[gpus] if stage is None else "-".join([letters[stage]] * gpus)
        for stage, gpus in gpu_cells(placement, cluster, free, server)
    ]
    if cluster.servers[server].gpus <= _MOST_CELLS:
        return " ".join(marks)
    return " ".join(f"{mark}×{marks.count(mark)}" for mark in dict.fromkeys(marks))


def _wrapped(items: Sequence[str], width: int) -> list[str]:
    """Items with commas between, in lines that break between items."""
    joined = ", ".join(item.replace(" ", _NO_BREAK) for item in items)
    return [line.replace(_NO_BREAK, " ") for line in wrap(joined, width)]


def _box(name: str, cells: str) -> list[str]:
    inner = max(len(cells), len(name) + 1)
    return [f"┌ {name} {'─' * (inner - len(name))}┐", f"│ {cells.ljust(inner)} │", f"└{'─' * (inner + 2)}┘"]


def _rows(boxes: Sequence[list[str]], width: int) -> list[list[list[str]]]:
    """Boxes in rows that stay within the width."""
    rows: list[list[list[str]]] = []
    used = 0
    for box in boxes:
        needed = len(box[0]) + len(_GAP)
        if not rows or used + needed > width + len(_GAP):
            rows.append([])
            used = 0
        rows[-1].append(box)
        used += needed
    return rows


def _beside(boxes: Sequence[list[str]]) -> list[str]:
    return [_GAP.join(parts) for parts in zip_longest(*boxes, fillvalue="")]
