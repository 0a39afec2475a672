"""The least a simulator can do: first come, first served on a pool, with a heap of completions and nothing else."""

from __future__ import annotations

from heapq import heappop, heappush
from time import process_time

from frostline.problem import Fixed, Job
from frostline.units import duration_us, instant_us


def bare_heap_s(jobs: tuple[Job, ...], gpus: int, repeats: int = 3) -> float:
    """Least CPU seconds of several runs of a bare loop over the jobs, which are sorted by release."""
    rows = [
        (instant_us(job.release_s), duration_us(job.work.duration_s) if isinstance(job.work, Fixed) else 0, job.gpus)
        for job in jobs
    ]
    return min(_run(rows, gpus) for _ in range(repeats))


def _run(rows: list[tuple[int, int, int]], gpus: int) -> float:
    begin = process_time()
    running: list[tuple[int, int]] = []
    free, now = gpus, 0
    flow = 0
    for release, duration, width in rows:
        now = max(now, release)
        while free < width or (running and running[0][0] <= now):
            end, given = heappop(running)
            now = max(now, end)
            free += given
        free -= width
        heappush(running, (now + duration, width))
        flow += now + duration - release
    return process_time() - begin
