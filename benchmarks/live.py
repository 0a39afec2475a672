"""How long a live scheduler takes to decide while many jobs wait."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from time import process_time_ns

import numpy as np

from frostline.problem import Cluster, Job, Training, TrainingPlan, shipped_network
from frostline.scheduler import Scheduler
from frostline.timing.options import least_of
from frostline.traces import generate_jobs

_POLICIES = ("fifo", "sjf", "smallest-area", "easy", "asrpt", "asrpt-guard", "las", "srtf")
_NETWORKS = ("bert_large", "resnet50", "gpt2")


def _known_durations(jobs: int, cluster: Cluster) -> Iterator[Job]:
    """Philly-like jobs; the longer ones last hours to days."""
    return iter(generate_jobs(jobs, seed=1, gpus=cluster.gpus))


def _networks(jobs: int, cluster: Cluster) -> Iterator[Job]:
    """Jobs of the same widths and, at four iterations a second, the same durations, in one to four stages."""
    networks = [shipped_network(name) for name in _NETWORKS]
    plan = cache(lambda i, gpus: TrainingPlan.balanced(networks[i], gpus, stages=min(gpus, 4)))
    for n, job in enumerate(_known_durations(jobs, cluster)):
        iterations = max(round(4 * least_of(job, cluster).duration_us / 1e6), 1)
        yield job.replace(work=Training(plan=plan(n % len(networks), job.gpus), iterations=iterations))


def _decisions_ns(scheduler: Scheduler, jobs: Iterable[Job], queued: int, ends: int) -> list[int]:
    """CPU nanoseconds of every decision while so many wait: as a job ends, another comes in, and on every wake-up."""
    taken, runs, coming = list[int](), dict[str, float](), iter(jobs)

    def decide(now_s: float) -> float:
        begin = process_time_ns()
        decision = scheduler.advance(now_s)
        taken.append(process_time_ns() - begin)
        for job in (*decision.evictions, *decision.failed):
            del runs[job]
        runs.update((start.job, start.end_s) for start in decision.starts)
        return math.inf if decision.wake_s is None else decision.wake_s

    for job in islice(coming, queued):
        scheduler.submit(job.replace(release_s=0))
    wake_s = decide(0.0)
    for _ in range(ends):
        done = min(runs, key=lambda job: (runs[job], job))
        while wake_s < runs[done]:
            wake_s = decide(wake_s)
            done = min(runs, key=lambda job: (runs[job], job))
        now_s = runs.pop(done)
        scheduler.finish(done)
        scheduler.submit(next(coming).replace(release_s=now_s))
        wake_s = decide(now_s)
    return taken[1:]


def live_decision(quick: bool) -> None:
    """CPU milliseconds of a decision on 128 servers of 8 GPUs while 10,000 jobs wait."""
    queued, ends = (2_000, 20) if quick else (10_000, 2_000)
    cluster = Cluster.uniform(128)
    print(f"1,024 GPUs, {queued:,} jobs wait; {ends:,} times one ends and one comes in; CPU ms of a decision\n")
    print("| jobs | policy | decisions | median | p99 | most |\n|---|---|---|---|---|---|")
    for what, make in (("durations", _known_durations), ("networks", _networks)):
        jobs = [*make(queued + ends, cluster)]
        for policy in _POLICIES:
            ms = np.array(_decisions_ns(Scheduler(cluster, policy), jobs, queued, ends)) / 1e6
            cells = f"{np.median(ms):.3f} | {np.quantile(ms, 0.99):.3f} | {ms.max():.2f}"
            print(f"| {what} | {policy} | {len(ms):,} | {cells} |", flush=True)
