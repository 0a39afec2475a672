"""Curves behind the pictures of schedules: distributions, step functions of time, and their means over equal bins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.problem.cluster import Cluster
from frostline.problem.outage import Outage
from frostline.report.columns import Timeline
from frostline.units import US_PER_S

__all__ = [
    "Steps",
    "busy_shares",
    "capacity_steps",
    "down_shares",
    "flow_curve",
    "flows_s",
    "gpu_steps",
    "level_shares",
    "steps_of",
    "waiting_steps",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Steps(NamedTuple):
    """A step function of time: ``values[i]`` from ``at_s[i]`` on, nothing before the first.

    Parameters
    ----------
    at_s : array of float, shape (n,)
        Times in seconds, ascending.
    values : array of int, shape (n,)
        Values from then on.

    Examples
    --------
    >>> steps = Steps(np.array([0.0, 2.0, 3.0]), np.array([4, 8, 0]))
    >>> steps.means(np.array([0.0, 2.5, 5.0])).tolist()
    [4.8, 1.6]
    >>> steps.between(1.0, 4.0).at_s.tolist(), steps.between(1.0, 4.0).values.tolist()
    ([1.0, 2.0, 3.0], [4, 8, 0])
    """

    at_s: Floats
    values: Ints

    def means(self, edges_s: Floats) -> Floats:
        """Mean over each bin between edges in seconds, which ascend."""
        if not self.at_s.size:
            return np.zeros(edges_s.size - 1)
        ends = np.append(self.at_s, max(self.at_s[-1], edges_s[-1]) + 1)
        area = np.concatenate([[0.0], np.cumsum(self.values * np.diff(ends))])
        below: Floats = np.interp(edges_s, ends, area)
        return np.diff(below) / np.diff(edges_s)

    def between(self, start_s: float, end_s: float) -> Steps:
        """The part from a start to just before an end, with a step at the start."""
        first = int(np.searchsorted(self.at_s, start_s, "right"))
        last = int(np.searchsorted(self.at_s, end_s, "left"))
        value = self.values[first - 1] if first else 0
        at_s = np.concatenate([[start_s], self.at_s[first:last]])
        return Steps(at_s, np.concatenate([[value], self.values[first:last]]).astype(np.int64))


def steps_of(at_us: Ints, changes: Ints) -> Steps:
    """Step function of changes at times in microseconds, in any order; those of one instant count together.

    Examples
    --------
    >>> steps = steps_of(np.array([0, 5_000_000, 5_000_000]), np.array([4, -4, 6]))
    >>> steps.at_s.tolist(), steps.values.tolist()
    ([0.0, 5.0], [4, 6])
    """
    order = np.argsort(at_us, kind="stable")
    times, total = at_us[order], np.cumsum(changes[order])
    last = np.append(times[1:] != times[:-1], True)[: times.size]
    return Steps(times[last] / US_PER_S, total[last].astype(np.int64))


def flows_s(columns: Timeline) -> Floats:
    """Flow times of the completed jobs in seconds, ascending."""
    flow_us = (columns.completion_us - columns.release_us)[columns.completed]
    return np.sort(flow_us) / US_PER_S


def flow_curve(flow_s: Floats, most: int = 1000) -> tuple[Floats, Floats]:
    """Empirical distribution function of flow times: times, and the share of the jobs that took no longer.

    Parameters
    ----------
    flow_s : array of float, shape (jobs,)
        Flow times in seconds, ascending.
    most : int
        Most points; of more jobs, those at equal distances in rank are taken, and the last.

    Examples
    --------
    >>> at_s, share = flow_curve(np.array([1.0, 2.0, 2.0, 8.0]))
    >>> at_s.tolist(), share.tolist()
    ([1.0, 2.0, 8.0], [0.25, 0.75, 1.0])
    """
    at_s, first = np.unique(flow_s[::-1], return_index=True)
    share = (flow_s.size - first) / max(flow_s.size, 1)
    if at_s.size <= most:
        return at_s, share
    kept = np.unique(np.searchsorted(share, np.linspace(share[0], 1.0, most)))
    return at_s[kept], share[kept]


def gpu_steps(columns: Timeline) -> Steps:
    """GPUs held over time."""
    at_us = np.concatenate([columns.start_us, columns.end_us])
    return steps_of(at_us, np.concatenate([columns.gpus, -columns.gpus]))


def waiting_steps(columns: Timeline) -> Steps:
    """Jobs that are released, not refused, not complete and hold no GPUs, over time."""
    waits, ends = ~columns.refused, columns.completion_us[columns.completed]
    at_us = np.concatenate([columns.release_us[waits], columns.start_us, columns.end_us, ends])
    counts = (int(waits.sum()), columns.job.size, columns.job.size, ends.size)
    return steps_of(at_us, np.repeat(np.array([1, -1, 1, -1]), counts))


def capacity_steps(cluster: Cluster, outages: Iterable[Outage], start_s: float) -> Steps:
    """GPUs of the servers that are up, from a start in seconds on.

    Examples
    --------
    >>> steps = capacity_steps(Cluster.uniform(2), [Outage(server="s1", start_s=5, end_s=9)], 0.0)
    >>> steps.at_s.tolist(), steps.values.tolist()
    ([0.0, 5.0, 9.0], [16, 8, 16])
    """
    gpus = {server.id: server.gpus for server in cluster.servers}
    start_us = round(start_s * US_PER_S)
    changes = [(start_us, cluster.gpus)]
    for outage in outages:
        if outage.server in gpus and (outage.end_us is None or outage.end_us > start_us):
            changes.append((max(outage.start_us, start_us), -gpus[outage.server]))
            if outage.end_us is not None:
                changes.append((outage.end_us, gpus[outage.server]))
    at_us, change = np.array(changes, np.int64).T
    return steps_of(at_us, change)


def busy_shares(columns: Timeline, edges_s: Floats) -> Floats:
    """Share of the GPUs of each server that is held in each bin of time.

    Parameters
    ----------
    columns : Timeline
        The schedule.
    edges_s : array of float, shape (bins + 1,)
        Edges of equal bins in seconds.

    Returns
    -------
    array of float, shape (servers, bins)
        Shares from 0 to 1.
    """
    start_s, end_s = columns.start_us[columns.segment] / US_PER_S, columns.end_us[columns.segment] / US_PER_S
    weight = columns.held / np.array(columns.cluster.capacities, np.float64)[columns.server]
    return _bin_means(columns.server, start_s, end_s, weight, len(columns.cluster.servers), edges_s)


def down_shares(columns: Timeline, edges_s: Floats) -> Floats:
    """Share of each bin of time in which each server is down; the shape is that of :func:`busy_shares`."""
    number = {server.id: m for m, server in enumerate(columns.cluster.servers)}
    rows = [
        (number[outage.server], outage.start_s, np.inf if outage.end_s is None else outage.end_s)
        for outage in columns.outages
        if outage.server in number
    ]
    server, start_s, end_s = np.array(rows, np.float64).reshape(len(rows), 3).T
    return _bin_means(server.astype(np.int64), start_s, end_s, np.ones(len(rows)), len(number), edges_s)


def level_shares(columns: Timeline, edges_s: Floats) -> tuple[list[int], Floats]:
    """Freeze levels, ascending, and the mean GPUs that are held at each in each bin of time, shape (levels, bins)."""
    levels = sorted(set(columns.level.tolist()))
    means = []
    for level in levels:
        chosen = columns.level == level
        at_us = np.concatenate([columns.start_us[chosen], columns.end_us[chosen]])
        gpus = columns.gpus[chosen]
        means.append(steps_of(at_us, np.concatenate([gpus, -gpus])).means(edges_s))
    return levels, np.array(means).reshape(len(levels), edges_s.size - 1)


def _bin_means(row: Ints, start_s: Floats, end_s: Floats, weight: Floats, rows: int, edges_s: Floats) -> Floats:
    """Mean of the sum of weighted intervals in each bin, by rows."""
    bins = edges_s.size - 1
    width = (edges_s[-1] - edges_s[0]) / bins
    rate = np.zeros((rows, bins + 1))
    for at_s, sign in ((start_s, 1.0), (end_s, -1.0)):
        place = np.clip((at_s - edges_s[0]) / width, 0, bins)
        whole = np.minimum(place.astype(np.int64), bins - 1)
        part = place - whole
        np.add.at(rate, (row, whole), sign * weight * (1 - part))
        np.add.at(rate, (row, whole + 1), sign * weight * part)
    return np.clip(np.cumsum(rate, axis=1)[:, :bins], 0.0, 1.0)
