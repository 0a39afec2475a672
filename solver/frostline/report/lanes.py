"""Which of its GPUs a server gives to whom: a lane for each GPU, so that a schedule can be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from frostline.report.columns import Timeline

__all__ = ["Bar", "bars"]


class Bar(NamedTuple):
    """Neighbouring lanes that a segment holds: its index, the first lane and how many; lanes count over all servers."""

    segment: int
    lane: int
    lanes: int


def bars(columns: Timeline) -> list[Bar]:
    """Lanes of every piece of a schedule: neighbours where there are enough, and the same ones at a change of level.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Instance, Job, Placement, Schedule, Segment
    >>> from frostline.report.columns import timeline
    >>> jobs = [Job(id=name, release_s=0, work=Fixed(duration_s=1), gpus=2) for name in "ab"]
    >>> segments = [Segment(job.id, 0, 1_000_000, Placement([(1, (2,))])) for job in jobs]
    >>> bars(timeline(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=jobs), Schedule(segments=segments)))
    [Bar(segment=0, lane=4, lanes=2), Bar(segment=1, lane=6, lanes=2)]
    """
    first = [0]
    for gpus in columns.cluster.capacities:
        first.append(first[-1] + gpus)
    free_us = [[-(2**63)] * gpus for gpus in columns.cluster.capacities]
    holder = [[-1] * gpus for gpus in columns.cluster.capacities]
    drawn = []
    pieces = zip(columns.segment.tolist(), columns.server.tolist(), columns.held.tolist(), strict=True)
    for segment, server, count in pieces:
        job, start_us = int(columns.job[segment]), int(columns.start_us[segment])
        lanes = _choice(free_us[server], holder[server], job, start_us, count)
        for lane in lanes:
            free_us[server][lane], holder[server][lane] = int(columns.end_us[segment]), job
        drawn += [Bar(segment, first[server] + lane, length) for lane, length in _runs(lanes)]
    return drawn


def _choice(free_us: Sequence[int], holder: Sequence[int], job: int, start_us: int, count: int) -> list[int]:
    """Lanes for a piece: those that the job has just held, else the first run that is long enough, else the first."""
    free = [lane for lane, at_us in enumerate(free_us) if at_us <= start_us]
    own = [lane for lane in free if free_us[lane] == start_us and holder[lane] == job]
    if len(own) >= count:
        return own[:count]
    for lane, length in _runs(free):
        if length >= count:
            return list(range(lane, lane + count))
    return free[:count]


def _runs(lanes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First lane and length of each run of neighbours."""
    begin = 0
    for i in range(1, len(lanes) + 1):
        if i == len(lanes) or lanes[i] != lanes[i - 1] + 1:
            yield lanes[begin], i - begin
            begin = i
