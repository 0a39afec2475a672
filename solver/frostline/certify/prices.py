"""Capacity prices as a proof of a lower bound: exact integers and the standard library.

Jobs run on G GPUs, each in one piece, with one of its options: so many GPUs, a duration and a penalty. GPUs have a
price that is not negative and constant between breakpoints. A job costs its weight times its completion, its penalty,
and what it pays for its GPUs while it runs. What all jobs pay, the GPUs earn, and they earn at most the *charge*,
which is what a set of jobs that fits side by side can pay at once. Hence for every schedule

    ``Σ weight · completion + penalty  ≥  Σ_j min over options and starts of the cost of j  −  ∫ charge``.

The cost of a job is linear in s but for breakpoints at its start or its end. It can only be least where the price at
its start drops, where the price at its end rises, or at the ends of the window in which it may start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import mul

from frostline.certify.document import MalformedError, fields, whole, wholes

__all__ = ["Jobs", "Leaf", "NegativePriceError", "Window"]

Window = tuple[int, int | None]
"""Earliest and latest start; None for any time."""


class NegativePriceError(MalformedError):
    """A price below 0."""


class Jobs:
    """The jobs that a certificate is about, all of whose fields keep their rules."""

    def __init__(self, record: object) -> None:
        names = "gpus tick_us choices weight_unit ids release weight options width duration penalty"
        gpus, tick, self.choices, unit, ids, release, weight, options, *rest = fields(record, "problem", names)
        self.gpus, self.tick_us = whole(gpus, "problem.gpus", 1), whole(tick, "problem.tick_us", 1)
        self.unit = wholes(unit, "problem.weight_unit", 2, 1)
        if type(ids) is not list or set(map(type, ids)) - {str} or len(set(ids)) < len(ids):
            raise MalformedError("problem.ids must be a list of different texts")
        self.ids, count = ids, len(ids)
        self.release = wholes(release, "problem.release", count)
        self.weight = [1] * count if weight is None else wholes(weight, "problem.weight", count, 1)
        many = [1] * count if options is None else wholes(options, "problem.options", count, 1)
        self.first = [0, *accumulate(many)]
        total = self.first[-1]
        self.width = wholes(rest[0], "problem.width", total, 1)
        self.duration = wholes(rest[1], "problem.duration", total, 0)
        self.penalty = [0] * total if rest[2] is None else wholes(rest[2], "problem.penalty", total, 0)
        if self.width and max(self.width) > self.gpus:
            option = self.width.index(max(self.width))
            raise MalformedError(f"problem.width[{option}]={self.width[option]} must be at most {self.gpus} GPUs")
        self.rigid = total == count

    def owners(self) -> Iterator[tuple[int, int]]:
        """Every option and its job."""
        for job, (low, high) in enumerate(pairwise(self.first)):
            for option in range(low, high):
                yield option, job

    def reach(self) -> int:
        """Most GPUs that jobs can hold at once: the largest sum of their widths within the GPUs there are."""
        many: dict[int, set[int]] = {}
        for option, job in self.owners():
            holders = many.setdefault(self.width[option], set())
            if len(holders) < self.gpus // self.width[option]:
                holders.add(job)
        sums, all_sums = 1, (1 << (self.gpus + 1)) - 1
        for width, holders in many.items():
            for _ in holders:
                sums |= sums << width & all_sums
        return sums.bit_length() - 1


class _Curve:
    """Price and what is paid up to every breakpoint, with an interval of price 0 before and after."""

    def __init__(self, times: Sequence[int], prices: Sequence[int]) -> None:
        lengths = [end - begin for begin, end in pairwise(times)]
        self.times, self.price = times, [0, *prices, 0]
        self.begin = [times[0], *times]
        self.paid = [0, 0, *accumulate(price * length for price, length in zip(prices, lengths, strict=True))]
        change = [after - before for before, after in pairwise(self.price)]
        self.drops = [at for at, by in zip(times, change, strict=True) if by < 0]
        self.rises = [at for at, by in zip(times, change, strict=True) if by > 0]

    def least(self, window: Window, length: int, rate: int, factor: int) -> int:
        """Least of rate · completion + factor · what is paid, over the starts of a window."""
        low, high = window
        times, price, paid, begin = self.times, self.price, self.paid, self.begin
        end = low + length
        a, b = bisect_right(times, low), bisect_right(times, end)
        cost = paid[b] + price[b] * (end - begin[b]) - paid[a] - price[a] * (low - begin[a])
        best = rate * end + factor * cost
        if not cost or low == high:
            return best
        drops, rises = self.drops, self.rises
        for i in range(bisect_right(drops, low), len(drops)):
            start = drops[i]
            end = start + length
            if rate * end >= best or (high is not None and start > high):
                break
            best = min(best, rate * end + factor * self._between(start, end))
        for i in range(bisect_right(rises, low + length), len(rises)):
            end = rises[i]
            if rate * end >= best or (high is not None and end - length > high):
                break
            best = min(best, rate * end + factor * self._between(end - length, end))
        if high is not None:
            best = min(best, rate * (high + length) + factor * self._between(high, high + length))
        return best

    def _between(self, start: int, end: int) -> int:
        a, b = bisect_right(self.times, start), bisect_right(self.times, end)
        into, out = self.price[b] * (end - self.begin[b]), self.price[a] * (start - self.begin[a])
        return self.paid[b] + into - self.paid[a] - out


def _outside(window: Window, inside: Window) -> Iterator[Window]:
    """What a window has before and after another one, in whole starts."""
    (low, high), (first, last) = window, inside
    if low < first:
        yield low, first - 1 if high is None else min(first - 1, high)
    if last is not None and (high is None or last < high):
        yield max(last + 1, low), high


class Leaf:
    """Prices over a denominator: one row for a GPU, or for the jobs of each width, or for each option."""

    def __init__(self, record: object, path: str, jobs: Jobs) -> None:
        by, denominator, times, prices = fields(record, path, "by denominator times prices")
        self.jobs, self.by = jobs, by
        widths = sorted(set(jobs.width))
        kinds = {"gpu": 1, "width": len(widths), "option": len(jobs.width)}
        if type(by) is not str or by not in kinds:
            raise MalformedError(f"{path}.by={by!r} must be gpu, width or option")
        self.denominator = whole(denominator, f"{path}.denominator", 1)
        self.times = wholes(times, f"{path}.times")
        if len(self.times) < 2 or any(begin >= end for begin, end in pairwise(self.times)):
            raise MalformedError(f"{path}.times must be at least two breakpoints, ascending")
        if type(prices) is not list or len(prices) != kinds[by]:
            raise MalformedError(f"{path}.prices must be a list of {kinds[by]} rows")
        self.prices = [wholes(row, f"{path}.prices[{i}]", len(self.times) - 1) for i, row in enumerate(prices)]
        for i, row in enumerate(self.prices):
            if min(row) < 0:
                k = row.index(min(row))
                raise NegativePriceError(f"{path}.prices[{i}][{k}]={row[k]} must not be below 0")
        place = {width: i if by == "width" else 0 for i, width in enumerate(widths)}
        self.kind = [*range(len(jobs.width))] if by == "option" else [place[width] for width in jobs.width]

    def bound(self, windows: Mapping[int, Window], narrower: Mapping[int, Window] | None = None) -> int:
        """Bound on every schedule whose jobs start within their windows, rounded up to a whole number.

        With narrower windows of some jobs, the bound is on the schedules in which one of them starts outside its own.
        The totals of an optimum are whole: it can be made to start every job at its release or at the end of another.
        """
        jobs = self.jobs
        curves = [_Curve(self.times, row) for row in self.prices]
        all_windows = {job: windows.get(job) or (jobs.release[job], None) for job in range(len(jobs.ids))}
        costs = [self._cost(curves, job, window) for job, window in all_windows.items()]
        total = sum(costs) - self._charge(windows)
        if narrower is not None:
            dearer = (
                self._cost(curves, job, part) - costs[job]
                for job, inside in narrower.items()
                for part in _outside(all_windows[job], inside)
            )
            total += min(dearer, default=0)
        return -(-total // self.denominator)

    def _cost(self, curves: Sequence[_Curve], job: int, window: Window) -> int:
        """Least cost of a job over its options and the starts of a window."""
        jobs, denominator = self.jobs, self.denominator
        pooled, rate = self.by == "gpu", denominator * jobs.weight[job]
        return min(
            [
                curves[self.kind[option]].least(
                    window, jobs.duration[option], rate, jobs.width[option] if pooled else 1
                )
                + denominator * jobs.penalty[option]
                for option in range(jobs.first[job], jobs.first[job + 1])
            ]
        )

    def _charge(self, windows: Mapping[int, Window]) -> int:
        """What GPUs can earn over all time."""
        lengths = [end - begin for begin, end in pairwise(self.times)]
        if self.by == "gpu":
            earned: int = sum(map(mul, self.prices[0], lengths))
            return self.jobs.reach() * earned
        return sum(self._most(k, windows) * length for k, length in enumerate(lengths))

    def _most(self, k: int, windows: Mapping[int, Window]) -> int:
        """Most that jobs which may run in an interval pay at once, for a tick: a knapsack."""
        jobs = self.jobs
        best, left = [0] * (jobs.gpus + 1), {width: jobs.gpus // width for width in set(jobs.width)}
        for option, job in jobs.owners():
            width, price = jobs.width[option], self.prices[self.kind[option]][k]
            low, high = windows.get(job) or (jobs.release[job], None)
            idle = low >= self.times[k + 1] or (high is not None and high + jobs.duration[option] <= self.times[k])
            if not price or idle or (self.by == "width" and not left[width]):
                continue
            left[width] -= 1
            for room in range(jobs.gpus, width - 1, -1):
                best[room] = max(best[room], best[room - width] + price)
        return best[-1]
