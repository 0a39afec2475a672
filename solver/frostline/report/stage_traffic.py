"""What stages send each other and around their rings, and how much of it crosses between servers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from frostline.problem.placement import Placement
from frostline.report.numbers import bytes_text
from frostline.timing.stage_graph import StageGraph

__all__ = ["StageTraffic", "stage_letters", "stage_traffic", "traffic_lines", "traffic_summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTraffic:
    """Bytes per iteration of two stages, or of the all-reduce ring of one.

    Parameters
    ----------
    stages : tuple of int
        Two stages, or the one whose ring it is.
    total : Fraction
        Bytes between the two stages, or on all links of the ring.
    cut : Fraction
        Those of them that cross between servers, each counted once.
    """

    stages: tuple[int, ...]
    total: Fraction
    cut: Fraction


def stage_traffic(graph: StageGraph, placement: Placement) -> tuple[StageTraffic, ...]:
    """Traffic of every pair of stages that exchange bytes, then of every ring that carries some.

    What crosses adds up, but for rounding, to :func:`~frostline.timing.iteration_time.cut_bytes`.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 1], compute_s=[0, 0], gradient_bytes=[8, 8], edges={(0, 1): 6})
    >>> for found in stage_traffic(graph, Placement([(0, (1, 1)), (1, (1, 0))])):
    ...     print(found.stages, found.total, found.cut)
    (0, 1) 6 3
    (0,) 16 16
    """
    columns = [column for _, column in placement.columns]
    counts = graph.replicas
    pairs = [
        StageTraffic(stages=(s, t), total=Fraction(amount), cut=amount * _apart(columns, counts, s, t))
        for (s, t), amount in graph.traffic.items()
        if amount
    ]
    rings = [
        StageTraffic(stages=(s,), total=ring * counts[s], cut=ring * _ends(columns, counts[s], s))
        for s, ring in enumerate(graph.ring_bytes)
        if ring
    ]
    return (*pairs, *rings)


def _apart(columns: Sequence[Sequence[int]], counts: Sequence[int], s: int, t: int) -> Fraction:
    """Share of the pairs of replicas of two stages that are on two servers."""
    inside = sum(column[s] * column[t] for column in columns)
    return 1 - Fraction(inside, counts[s] * counts[t])


def _ends(columns: Sequence[Sequence[int]], count: int, s: int) -> int:
    """Links of a ring that join two servers."""
    return sum(0 < column[s] < count for column in columns)


def stage_letters(stages: int) -> tuple[str, ...]:
    """Letters of stages: A to Z, then AA, AB, …

    Examples
    --------
    >>> stage_letters(3), stage_letters(28)[-2:]
    (('A', 'B', 'C'), ('AA', 'AB'))
    """
    return tuple(map(_letters, range(stages)))


def _letters(number: int) -> str:
    head, last = divmod(number, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + last)


def traffic_lines(graph: StageGraph, placement: Placement) -> list[str]:
    """One line for each pair of stages and each ring: its bytes, and how many cross between servers.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 1], compute_s=[0, 0], gradient_bytes=[8, 8], edges={(0, 1): 6})
    >>> for line in traffic_lines(graph, Placement([(0, (1, 1)), (1, (1, 0))])):
    ...     print(line)
    A ── B   6 B per iteration, 3 B (50 %) between servers
    A ring   16 B per iteration, all between servers
    """
    letters = stage_letters(graph.stages)
    found = stage_traffic(graph, placement)
    names = [" ── ".join(letters[s] for s in item.stages) + ("" if item.stages[1:] else " ring") for item in found]
    width = max(map(len, names), default=0)
    return [
        f"{name.ljust(width)}   {bytes_text(float(item.total))} per iteration, {_crossing(item)}"
        for name, item in zip(names, found, strict=True)
    ]


def _crossing(item: StageTraffic) -> str:
    if not item.cut:
        return "all inside servers"
    if item.cut == item.total:
        return "all between servers"
    return f"{bytes_text(float(item.cut))} ({100 * float(item.cut / item.total):.3g} %) between servers"


def traffic_summary(graph: StageGraph, placement: Placement) -> list[dict[str, Any]]:
    """Traffic of pairs of stages and of rings as plain JSON values, in whole bytes, rounded up."""
    return [
        {"stages": list(item.stages), "bytes": math.ceil(item.total), "cut_bytes": math.ceil(item.cut)}
        for item in stage_traffic(graph, placement)
    ]
