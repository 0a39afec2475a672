"""The loops of the price bound over whole arrays, without compiled code; the same numbers as :mod:`.kernel`."""

from __future__ import annotations

import numpy as np

from frostline.relaxation.lagrangian.kernel import Ints

__all__ = ["cheapest_starts", "held_time"]


def cheapest_starts(
    first: Ints,
    release: Ints,
    latest: Ints,
    weight: Ints,
    kind: Ints,
    duration: Ints,
    penalty: Ints,
    times: Ints,
    price: Ints,
    paid: Ints,
    denominator: int,
) -> tuple[Ints, Ints, Ints]:
    """Cheapest option and start of every job, and what it costs; see :func:`.kernel.cheapest_starts`."""
    job = np.repeat(np.arange(len(release)), np.diff(first))
    search = _Search(times, price, paid, kind, duration, denominator * weight[job], denominator * penalty)
    costs, starts = search.cheapest(release[job], latest[job])
    least = np.minimum.reduceat(costs, first[:-1]) if len(costs) else costs
    options = np.flatnonzero(costs == least[job])
    _, place = np.unique(job[options], return_index=True)  # the first option of those that cost the least
    chosen = options[place]
    return least, starts[chosen], chosen


class _Search:
    """All options, each moved from breakpoint to breakpoint as long as it may become cheaper."""

    def __init__(
        self, times: Ints, price: Ints, paid: Ints, kind: Ints, duration: Ints, rate: Ints, fixed: Ints
    ) -> None:
        self.times, self.price, self.paid = times, price, paid
        self.kind, self.duration, self.rate, self.fixed = kind, duration, rate, fixed
        self.base = np.concatenate([times[:1], times])  # where each interval begins; nothing is paid in the first one
        far = np.iinfo(np.int64).max // 4
        self.next = np.append(times, far)

    def cheapest(self, start: Ints, latest: Ints) -> tuple[Ints, Ints]:
        rows = np.arange(len(start))
        starts, latest = start.copy(), latest.copy()
        costs = np.full(len(start), np.iinfo(np.int64).max)
        a = np.searchsorted(self.times, start, side="right")
        b = np.searchsorted(self.times, start + self.duration, side="right")
        while len(rows):
            end = start + self.duration[rows]
            bare = self.rate[rows] * end + self.fixed[rows]
            cost = bare + self._paid(rows, b, end) - self._paid(rows, a, start)
            better = cost < costs[rows]
            costs[rows[better]], starts[rows[better]] = cost[better], start[better]
            room = latest[rows] - start
            step = np.minimum(np.minimum(self.next[a] - start, self.next[b] - end), room)
            going = (a < len(self.times)) & (room > 0) & (bare + self.rate[rows] * step < costs[rows])
            rows, start, step, a, b = rows[going], start[going] + step[going], step[going], a[going], b[going]
            a = a + (self.next[a] == start)
            b = b + (self.next[b] == start + self.duration[rows])
        return costs, starts

    def _paid(self, rows: Ints, place: Ints, at: Ints) -> Ints:
        """What is paid up to an instant that lies in an interval."""
        kind = self.kind[rows]
        paid: Ints = self.paid[kind, place] + self.price[kind, place] * (at - self.base[place])
        return paid


def held_time(kinds: int, kind: Ints, start: Ints, end: Ints, times: Ints) -> Ints:
    """Time that the jobs of each kind hold their GPUs in each interval; see :func:`.kernel.held_time`."""
    last = len(times)
    whole = np.zeros((kinds, last + 2), np.int64)
    part = np.zeros((kinds, last + 1), np.int64)
    a, b = np.searchsorted(times, start, side="right"), np.searchsorted(times, end, side="right")
    same = a == b
    np.add.at(part, (kind[same], a[same]), (end - start)[same])
    kind, start, end, a, b = kind[~same], start[~same], end[~same], a[~same], b[~same]
    np.add.at(part, (kind, a), times[a] - start)
    np.add.at(part, (kind, b), end - times[b - 1])
    np.add.at(whole, (kind, a + 1), 1)
    np.add.at(whole, (kind, b), -1)
    held: Ints = part[:, 1:last] + np.cumsum(whole, axis=1)[:, 1:last] * np.diff(times)
    return held
