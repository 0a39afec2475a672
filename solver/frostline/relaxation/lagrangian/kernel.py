"""Loops of the price bound, over whole numbers in arrays.

The functions are plain Python and run compiled where numba is there, see :mod:`frostline.relaxation.lagrangian.jit`.
:func:`cheapest_starts` and :func:`held_time` give what :mod:`frostline.relaxation.lagrangian.whole_arrays` computes
over whole arrays, number by number: all is whole, so that the order of additions does not matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INLINED = ("interval", "sift_up", "sift_down")
"""Functions that compiled code takes into their callers."""


def interval(times: Ints, at: int) -> int:
    """How many breakpoints are not after an instant: the number of the interval that begins there."""
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


def cheapest_starts(  # noqa: C901
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
    """Cheapest option and start of every job, and what it costs.

    Interval i lies between the breakpoints i - 1 and i; a job of kind c pays ``price[c, i]`` for a unit of it, and
    ``paid[c, i]`` for all before it. Between breakpoints, costs are linear in the start: only starts at which the job
    starts or ends at a breakpoint are looked at, the first one and the last one of the window.
    """
    jobs, last = len(release), len(times)
    costs = np.empty(jobs, np.int64)
    starts = np.empty(jobs, np.int64)
    chosen = np.empty(jobs, np.int64)
    for job in range(jobs):
        best = -1
        rate = denominator * weight[job]
        for option in range(first[job], first[job + 1]):
            c, length, fixed = kind[option], duration[option], denominator * penalty[option]
            start, end = release[job], release[job] + length
            a, b = interval(times, start), interval(times, end)
            while True:
                bare = rate * end + fixed
                if best >= 0 and bare >= best:
                    break
                cost = bare + paid[c, b] - paid[c, a]
                if b > 0:
                    cost += price[c, b] * (end - times[b - 1])
                if a > 0:
                    cost -= price[c, a] * (start - times[a - 1])
                if best < 0 or cost < best:
                    best = cost
                    starts[job], chosen[job] = start, option
                if a == last or start >= latest[job]:
                    break
                step = times[a] - start
                if b < last:
                    step = min(step, times[b] - end)
                step = min(step, latest[job] - start)
                start, end = start + step, end + step
                if times[a] == start:
                    a += 1
                if b < last and times[b] == end:
                    b += 1
        costs[job] = best
    return costs, starts, chosen


def held_time(kinds: int, kind: Ints, start: Ints, end: Ints, times: Ints) -> Ints:
    """Time that the jobs of each kind hold their GPUs in each interval between two breakpoints."""
    last = len(times)
    whole = np.zeros((kinds, last + 2), np.int64)
    part = np.zeros((kinds, last + 1), np.int64)
    for job in range(len(kind)):
        c = kind[job]
        a, b = interval(times, start[job]), interval(times, end[job])
        if a == b:
            part[c, a] += end[job] - start[job]
            continue
        part[c, a] += times[a] - start[job]
        part[c, b] += end[job] - times[b - 1]
        whole[c, a + 1] += 1
        whole[c, b] -= 1
    for c in range(kinds):
        held = 0
        for i in range(1, last):
            held += whole[c, i]
            part[c, i] += held * (times[i] - times[i - 1])
    return part[:, 1:last].copy()


def sift_up(key: Ints | Floats, job: Ints, size: int, new_key: float, new_job: int) -> None:
    """Put an entry into a heap of a size, in order of key and then of job."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if key[parent] < new_key or (key[parent] == new_key and job[parent] < new_job):
            break
        key[i], job[i] = key[parent], job[parent]
        i = parent
    key[i], job[i] = new_key, new_job


def sift_down(key: Ints | Floats, job: Ints, size: int, new_key: float, new_job: int) -> None:
    """Put an entry in place of the first one of a heap of a size."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (key[right] < key[child] or (key[right] == key[child] and job[right] < job[child])):
            child = right
        if new_key < key[child] or (new_key == key[child] and new_job < job[child]):
            break
        key[i], job[i] = key[child], job[child]
        i = child
    key[i], job[i] = new_key, new_job


def shortest_remaining(release: Ints, work: Ints) -> Ints:
    """Completions on the machine of unit speed that serves the least remaining work, ties to the earlier job."""
    jobs = len(release)
    completion = np.empty(jobs, np.int64)
    key = np.empty(jobs + 1, np.int64)
    job = np.empty(jobs + 1, np.int64)
    size = coming = clock = 0
    while size or coming < jobs:
        if not size:
            clock = max(clock, release[coming]) if coming else release[0]
        while coming < jobs and release[coming] <= clock:
            sift_up(key, job, size, work[coming], coming)
            size += 1
            coming += 1
        done = clock + key[0]
        if coming < jobs and release[coming] < done:
            sift_down(key, job, size, done - release[coming], job[0])
            clock = release[coming]
            continue
        clock = done
        completion[job[0]] = clock
        size -= 1
        sift_down(key, job, size, key[size], job[size])
    return completion


def static_priority(release: Ints, work: Ints, priority: Floats) -> tuple[Ints, Ints, Ints]:
    """Pieces of the machine of unit speed that serves the job of least priority number: start, end and job of each."""
    jobs = len(release)
    begin = np.empty(2 * jobs, np.int64)
    end = np.empty(2 * jobs, np.int64)
    piece = np.empty(2 * jobs, np.int64)
    key = np.empty(jobs + 1, np.float64)
    job = np.empty(jobs + 1, np.int64)
    left = work.copy()
    size = coming = count = clock = 0
    while size or coming < jobs:
        if not size:
            clock = max(clock, release[coming]) if coming else release[0]
        while coming < jobs and release[coming] <= clock:
            sift_up(key, job, size, priority[coming], coming)
            size += 1
            coming += 1
        served = job[0]
        until = clock + left[served]
        if coming < jobs:
            until = min(until, release[coming])
        begin[count], end[count], piece[count] = clock, until, served
        count += 1
        left[served] -= until - clock
        clock = until
        if not left[served]:
            size -= 1
            sift_down(key, job, size, key[size], job[size])
    return begin[:count].copy(), end[:count].copy(), piece[:count].copy()


def piece_prices(begin: Ints, end: Ints, piece: Ints, slope: Floats) -> tuple[Floats, Floats]:
    """Price of the machine at begin and end of every piece: the exact dual of the sum of weighted mean busy times.

    Going back in time, the price is 0 where the machine falls idle, continuous where it changes jobs, and rises by the
    slope of the job that is served; a job that was interrupted comes back to the line that it left.
    """
    count = len(begin)
    at_begin = np.empty(count, np.float64)
    at_end = np.empty(count, np.float64)
    line = np.empty(len(slope), np.float64)
    seen = np.zeros(len(slope), np.bool_)
    price = 0.0
    for i in range(count - 1, -1, -1):
        job = piece[i]
        if i == count - 1 or begin[i + 1] > end[i]:
            price = 0.0
        if not seen[job]:
            line[job] = price + end[i] * slope[job]
            seen[job] = True
        at_end[i] = line[job] - end[i] * slope[job]
        at_begin[i] = line[job] - begin[i] * slope[job]
        price = at_begin[i]
    return at_begin, at_end
