"""Capacity prices as a proof of a lower bound: exact integers and the standard library.

Jobs run on G GPUs, each in one piece, with one of its options: so many GPUs, a duration and a penalty. GPUs have a
price that is not negative and constant between breakpoints. A job costs its weight times its completion, its penalty,
and what it pays for its GPUs while it runs. What all jobs pay, the GPUs earn, and they earn at most the *charge*,
which is what a set of jobs that fits side by side can pay at once. Hence for every schedule

    ``Σ weight · completion + penalty  ≥  Σ_j min over options and starts of the cost of j  −  ∫ charge``.

The cost of a job is linear in s but for breakpoints at its start or its end. It can only be least where the price at
its start drops, where the price at its end rises, or at the ends of the window in which it may start.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from operator import mul

from .document import MalformedError, fields, listed, whole, wholes

Window = tuple[int, int]  # earliest and latest start


class NegativePriceError(MalformedError):
    """A price below 0."""


class Jobs:
    """The jobs that a certificate is about, all of whose fields keep their rules."""

    def __init__(self, record: object) -> None:
        names = "gpus tick_us choices weight_unit ids release weight options width duration penalty"
        gpus, tick, _, unit, ids, release, weight, options, width, duration, penalty = fields(record, "problem", names)
        self.gpus, self.tick_us = whole(gpus, "problem.gpus", 1), whole(tick, "problem.tick_us", 1)
        self.unit = wholes(unit, "problem.weight_unit", 2, 1)
        if type(ids) is not list or set(map(type, ids)) - {str} or len(set(ids)) < len(ids):
            raise MalformedError("problem.ids must be a list of different texts")
        self.ids, self.last_only = ids, weight == "last"
        self.release = wholes(release, "problem.release", len(ids))
        self.weight = _column(None if self.last_only else weight, "weight", len(ids), 1, 1)
        self.first = [0, *accumulate(_column(options, "options", len(ids), 1, 1))]
        self.owner = [job for job, (low, high) in enumerate(pairwise(self.first)) for _ in range(low, high)]
        self.width = wholes(width, "problem.width", self.first[-1], 1)
        self.duration = wholes(duration, "problem.duration", self.first[-1], 0)
        self.penalty = _column(penalty, "penalty", self.first[-1], 0, 0)
        if max(self.width, default=0) > self.gpus:
            option = self.width.index(max(self.width))
            raise MalformedError(f"problem.width[{option}]={self.width[option]} must be at most {self.gpus} GPUs")
        if self.last_only and (unit != [1, 1] or penalty is not None):
            raise MalformedError("problem.weight must not be 'last' where there is a weight_unit or a penalty")
        self.latest = max(self.release, default=0) + sum(self.duration) + 2**60

    def windows(self, end: int | None = None) -> dict[int, Window]:
        """When each job may start, from its release on: so as to complete by ``end``, or else as late as need be.

        In a schedule that cannot be shifted left, each starts at a release or at the end of another.
        """
        spans = pairwise(self.first)
        latest = (self.latest if end is None else end - min(self.duration[low:high]) for low, high in spans)
        return dict(enumerate(zip(self.release, latest, strict=True)))

    def reach(self) -> int:
        """Most GPUs that jobs can hold at once: the largest sum of their widths within the GPUs there are."""
        many = Counter(width for _, width in set(zip(self.owner, self.width, strict=True)))
        sums, within = 1, (1 << (self.gpus + 1)) - 1
        for width, count in many.items():
            for _ in range(min(count, self.gpus // width)):
                sums |= sums << width & within
        return sums.bit_length() - 1


def _column(values: object, name: str, length: int, least: int, default: int) -> list[int]:
    """A column of a problem, which may be left out."""
    return [default] * length if values is None else wholes(values, f"problem.{name}", length, least)


class _Curve:
    """Price and what is paid up to every breakpoint, with an interval of price 0 before and after."""

    def __init__(self, times: Sequence[int], prices: Sequence[int]) -> None:
        lengths = [end - begin for begin, end in pairwise(times)]
        self.times, self.price, self.begin = times, [0, *prices, 0], [times[0], *times]
        self.paid: list[int] = [0, 0, *accumulate(map(mul, prices, lengths))]
        steps = [*zip(times, pairwise(self.price), strict=True)]
        self.drops = [at for at, (before, after) in steps if after < before]
        self.rises = [at for at, (before, after) in steps if after > before]

    def least(self, window: Window, length: int, rate: int, factor: int) -> int:
        """Least of rate · completion + factor · what is paid, over the starts of a window."""
        low, high = window
        best = self._cost(low, length, rate, factor)
        for kinks, shift in ((self.drops, 0), (self.rises, length)):
            for k in range(bisect_right(kinks, low + shift), len(kinks)):
                start = kinks[k] - shift
                if start > high or rate * (start + length) >= best:
                    break
                best = min(best, self._cost(start, length, rate, factor))
        return best if rate * (high + length) >= best else min(best, self._cost(high, length, rate, factor))

    def _cost(self, start: int, length: int, rate: int, factor: int) -> int:
        """Rate · completion + factor · what is paid, for one start."""
        a, b = bisect_right(self.times, start), bisect_right(self.times, start + length)
        into, out = self.price[b] * (start + length - self.begin[b]), self.price[a] * (start - self.begin[a])
        return rate * (start + length) + factor * (self.paid[b] + into - self.paid[a] - out)


class Leaf:
    """Prices over a denominator: one row for a GPU, or for the jobs of each width, or for each option."""

    def __init__(self, record: object, path: str, jobs: Jobs) -> None:
        self.by, denominator, times, prices = fields(record, path, "by denominator times prices")
        every, rank = range(len(jobs.width)), {width: i for i, width in enumerate(sorted(set(jobs.width)))}
        kinds = {"gpu": [0 for _ in every], "width": [rank[width] for width in jobs.width], "option": [*every]}
        if type(self.by) is not str or self.by not in kinds:
            raise MalformedError(f"{path}.by={self.by!r} must be gpu, width or option")
        self.kind: list[int] = kinds[self.by]
        self.jobs, self.denominator = jobs, whole(denominator, f"{path}.denominator", 1)
        self.times = wholes(times, f"{path}.times")
        if len(self.times) < 2 or any(begin >= end for begin, end in pairwise(self.times)):
            raise MalformedError(f"{path}.times must be at least two breakpoints, ascending")
        self.lengths = [end - begin for begin, end in pairwise(self.times)]
        rows = enumerate(listed(prices, f"{path}.prices", len(set(self.kind))))
        self.prices = [wholes(row, f"{path}.prices[{i}]", len(self.lengths)) for i, row in rows]
        for i, row in enumerate(self.prices):
            if min(row) < 0:
                k = row.index(min(row))
                raise NegativePriceError(f"{path}.prices[{i}][{k}]={row[k]} must not be below 0")

    def bound(self, windows: Mapping[int, Window], narrower: Mapping[int, Window]) -> int:
        """Bound, as totals are whole a whole one, where jobs start within their windows, one outside any narrower."""
        curves = [_Curve(self.times, row) for row in self.prices]
        costs = [self._cost(curves, job, window) for job, window in windows.items()]
        dearer = list[int]()
        for job, (first, last) in narrower.items():
            low, high = windows[job]
            outside = [(low, min(first - 1, high)), (max(last + 1, low), high)]
            dearer += [self._cost(curves, job, part) - costs[job] for part in outside if part[0] <= part[1]]
        total = sum(costs) - self._charge(windows) + min(dearer, default=0)
        return -(-total // self.denominator)

    def _cost(self, curves: Sequence[_Curve], job: int, window: Window) -> int:
        """Least cost of a job over its options and the starts of a window."""
        jobs, denominator = self.jobs, self.denominator
        pooled, rate = self.by == "gpu", denominator * jobs.weight[job]
        return min(
            curves[self.kind[option]].least(window, jobs.duration[option], rate, jobs.width[option] if pooled else 1)
            + denominator * jobs.penalty[option]
            for option in range(jobs.first[job], jobs.first[job + 1])
        )

    def _charge(self, windows: Mapping[int, Window]) -> int:
        """What GPUs can earn over all time."""
        if self.by == "gpu":
            return self.jobs.reach() * int(sum(map(mul, self.prices[0], self.lengths)))
        return sum(self._most(k, windows) * length for k, length in enumerate(self.lengths))

    def _most(self, k: int, windows: Mapping[int, Window]) -> int:
        """Most that jobs which may run in an interval pay at once, for a tick: a knapsack."""
        jobs = self.jobs
        best, left = [0] * (jobs.gpus + 1), {width: jobs.gpus // width for width in set(jobs.width)}
        for option, job in enumerate(jobs.owner):
            width, price = jobs.width[option], self.prices[self.kind[option]][k]
            idle = windows[job][0] >= self.times[k + 1] or windows[job][1] + jobs.duration[option] <= self.times[k]
            if price and not idle and (self.by != "width" or left[width]):
                left[width] -= 1
                for room in range(jobs.gpus, width - 1, -1):
                    best[room] = max(best[room], best[room - width] + price)
        return best[-1]
