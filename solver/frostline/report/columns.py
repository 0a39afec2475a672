"""A schedule as columns of numbers, for curves and pictures: every fact once, and only what can be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.outage import Outage
from frostline.problem.schedule import Schedule, Segment
from frostline.units import US_PER_S, instant_us

__all__ = ["Timeline", "timeline"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MOST_US = 2**62
_MOST_LEVEL = 2**31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Who held what from when to when, as columns; made by :func:`timeline`.

    Parameters
    ----------
    cluster : Cluster
        The servers.
    policy : str
        Policy of the schedule, with its parameters.
    ids : tuple of str, length jobs
        Identifiers of the jobs of the instance, in its order.
    release_us : array of int, shape (jobs,)
        Release times in microseconds.
    refused, completed : array of bool, shape (jobs,)
        Jobs that can never fit, and jobs that ran to their end.
    completion_us : array of int, shape (jobs,)
        Completion times in microseconds; 0 where a job has none.
    job, start_us, end_us, gpus, level : array of int, shape (segments,)
        Index of the job, times in microseconds, GPUs and freeze level of each segment, in order of start.
    segment, server, held : array of int, shape (pieces,)
        Index of the segment, index of the server and GPUs of what a segment holds on one server.
    outages : tuple of Outage
        When servers were down.
    """

    cluster: Cluster
    policy: str
    ids: tuple[str, ...]
    release_us: Ints
    refused: Flags
    completed: Flags
    completion_us: Ints
    job: Ints
    start_us: Ints
    end_us: Ints
    gpus: Ints
    level: Ints
    segment: Ints
    server: Ints
    held: Ints
    outages: tuple[Outage, ...]

    @property
    def span_s(self) -> tuple[float, float]:
        """From the first release of a job that is not refused to the last end, in seconds; (0, 1) where nothing is."""
        begins, ends = self.release_us[~self.refused], self.end_us
        if not begins.size:
            return 0.0, 1.0
        first = int(begins.min())
        last = max(int(ends.max(initial=first)), int(begins.max()), first + 1)
        return first / US_PER_S, last / US_PER_S


def timeline(instance: Instance, schedule: Schedule) -> Timeline:
    """Columns of a schedule of an instance.

    Parameters
    ----------
    instance : Instance
        The instance.
    schedule : Schedule
        The schedule; it may break rules, as long as it can be drawn.

    Raises
    ------
    InvalidValueError
        It names a job or a server that the instance does not have, runs a job before its release or twice at once, or
        holds more GPUs than a server has.

    Examples
    --------
    >>> from frostline.problem import Fixed, Job, Placement
    >>> job = Job(id="a", release_s=1, work=Fixed(duration_s=2), gpus=3)
    >>> instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=[job])
    >>> gang = Placement([(0, (2,)), (1, (1,))])
    >>> columns = timeline(instance, Schedule(segments=[Segment("a", 1_000_000, 3_000_000, gang)]))
    >>> columns.span_s, columns.gpus.tolist(), columns.held.tolist(), columns.completed.tolist()
    ((1.0, 3.0), [3], [2, 1], [True])
    """
    number = {job.id: i for i, job in enumerate(instance.jobs)}
    rows = [_row(segment, number) for segment in schedule.segments]
    pieces = [
        (i, server, held) for i, segment in enumerate(schedule.segments) for server, held in segment.placement.loads
    ]
    job, start_us, end_us, gpus, level = _columns(rows, 5)
    _check_servers(pieces, instance.cluster, schedule)
    segment, server, held = _columns(pieces, 3)
    completed = _marks(number, (piece.job for piece in schedule.segments)) & ~_marks(number, schedule.unfinished)
    columns = Timeline(
        cluster=instance.cluster,
        policy=schedule.policy,
        ids=tuple(number),
        release_us=np.array([instant_us(job.release_s) for job in instance.jobs], np.int64),
        refused=_marks(number, (refusal.job for refusal in schedule.refused)),
        completed=completed,
        completion_us=np.where(completed, _latest(job, end_us, len(number)), 0),
        job=job,
        start_us=start_us,
        end_us=end_us,
        gpus=gpus,
        level=level,
        segment=segment,
        server=server,
        held=held,
        outages=schedule.outages,
    )
    _check_times(columns)
    _check_room(columns)
    return columns


def _marks(number: Mapping[str, int], names: Iterable[str]) -> Flags:
    """Which jobs of the instance are named."""
    marks = np.zeros(len(number), np.bool_)
    marks[[number[name] for name in names if name in number]] = True
    return marks


def _latest(job: Ints, end_us: Ints, jobs: int) -> Ints:
    """Last end of each job."""
    latest = np.full(jobs, -_MOST_US, np.int64)
    np.maximum.at(latest, job, end_us)
    return latest


def _row(segment: Segment, number: dict[str, int]) -> tuple[int, int, int, int, int]:
    name = f"segment of job {segment.job!r}"
    if segment.job not in number:
        raise InvalidValueError("schedule", "job", segment.job, "must be a job of the instance")
    if not -_MOST_US < segment.start_us < segment.end_us < _MOST_US:
        times = (segment.start_us, segment.end_us)
        raise InvalidValueError(name, "start_us, end_us", times, "must be two times, the second after the first")
    if not 0 <= segment.freeze_level < _MOST_LEVEL:
        raise InvalidValueError(name, "freeze_level", segment.freeze_level, "must be a level")
    placement = segment.placement
    gpus = placement.loads[0][1] if len(placement.loads) == 1 else placement.gpus
    return number[segment.job], segment.start_us, segment.end_us, min(gpus, _MOST_US), segment.freeze_level


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Ints]:
    return list(np.array(rows, np.int64).reshape(len(rows), width).T.copy())


def _check_servers(pieces: list[tuple[int, int, int]], cluster: Cluster, schedule: Schedule) -> None:
    servers, capacities = len(cluster.servers), cluster.capacities
    for i, server, held in pieces:
        if server >= servers or held > capacities[server]:
            name = f"segment of job {schedule.segments[i].job!r}"
            if server >= servers:
                raise InvalidValueError(name, "server", server, f"must be below {servers}, the servers of the instance")
            rule = f"must be at most {capacities[server]}, the GPUs of server {cluster.servers[server].id!r}"
            raise InvalidValueError(name, "gpus", held, rule)


def _check_times(columns: Timeline) -> None:
    """Refuse what runs before its release, and jobs that run twice at once."""
    early = np.flatnonzero(columns.start_us < columns.release_us[columns.job])
    if early.size:
        _refuse(columns, int(early[0]), "must not lie before the release of the job")
    order = np.lexsort((columns.start_us, columns.job))
    job, start_us, end_us = columns.job[order], columns.start_us[order], columns.end_us[order]
    twice = np.flatnonzero((job[1:] == job[:-1]) & (start_us[1:] < end_us[:-1]))
    if twice.size:
        _refuse(columns, int(order[twice[0] + 1]), "must not lie before the end of the segment before it")


def _check_room(columns: Timeline) -> None:
    """Refuse servers that hold more than they have; at one instant, ends come before starts."""
    time_us = np.concatenate([columns.start_us[columns.segment], columns.end_us[columns.segment]])
    change, server = np.concatenate([columns.held, -columns.held]), np.tile(columns.server, 2)
    order = np.lexsort((change, time_us, server))
    used = np.cumsum(change[order])
    full = np.flatnonzero(used > np.array(columns.cluster.capacities, np.int64)[server[order]])
    if full.size:
        at = order[full[0]]
        name = columns.cluster.servers[server[at]].id
        rule = f"must be at most the GPUs of the server, at {int(time_us[at]) / US_PER_S:g} s"
        raise InvalidValueError(f"server {name!r} of the schedule", "gpus held", int(used[full[0]]), rule)


def _refuse(columns: Timeline, segment: int, rule: str) -> None:
    name = f"segment of job {columns.ids[columns.job[segment]]!r}"
    raise InvalidValueError(name, "start_us", int(columns.start_us[segment]), rule)
