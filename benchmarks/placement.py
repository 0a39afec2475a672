"""Distance of placement methods from the best proved bound, and their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from frostline.placement.place import place
from frostline.placement.result import PlacementResult
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

_METHODS = ("best-fit", "heavy-edge", "contiguous", "local-search", "patterns")
_REGIMES = {
    "tight": ((0.0,), ("whole", "fragments", "mixed")),
    "spare": ((0.25, 1.0), ("whole", "fragments", "mixed")),
    "tight, whole": ((0.0,), ("whole",)),
    "spare, whole": ((0.25,), ("whole",)),
}
"""GPUs to spare as a share of those that are needed, and where they are free."""
_SMALL_JOBS, _LARGE_JOBS = ("tight", "spare"), ("tight, whole", "spare, whole")
_GPUS_PER_SERVER = 8
_LARGE = 1024


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job, timed by a model, and the free GPUs of each server."""

    timing: IterationTime
    free: list[int]


def placement(quick: bool) -> None:
    """Gap to the best proved bound and time of every method, by size, model of the iteration time and regime."""
    sizes = {8: 2, 16: 2, _LARGE: 1} if quick else {8: 60, 16: 60, 24: 60, 32: 60, 64: 60, _LARGE: 15}
    limit_s = 2.0 if quick else 10.0
    print(f"{' + '.join(f'{count} × {gpus}' for gpus, count in sizes.items())} GPUs per model and regime; gap in % of")
    print(f"the best bound that auto proves in {limit_s:g} s; time in ms of the fastest of several calls, of auto and")
    print("patterns of one.\n")
    print("| GPUs | model | regime | method | gap mean | p95 | max | at bound % | proved in 1 s % | ms median | p95 |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    _load(limit_s)
    small_ms: list[float] = []
    for gpus, count in sizes.items():
        for model in ("contention", "link"):
            for regime in _LARGE_JOBS if gpus == _LARGE else _SMALL_JOBS:
                times_ms = _compare(gpus, model, regime, count, limit_s)["local-search"]
                small_ms += [] if gpus == _LARGE else times_ms
    print(
        f"\nlocal-search up to 64 GPUs: median {np.median(small_ms):.2f} ms, p95 {np.percentile(small_ms, 95):.2f} ms"
    )


def _load(limit_s: float) -> None:
    """Load solvers and compiled loops before anything is timed."""
    for case in cases(24, "link", "tight", 3):
        for method in _METHODS:
            place(case.timing, case.free, method=method, time_limit_s=limit_s)
        place(case.timing, case.free, method="cpsat", time_limit_s=limit_s)


def _compare(gpus: int, model: str, regime: str, count: int, limit_s: float) -> dict[str, list[float]]:
    """Print the rows of the table for one size, model and regime; times in milliseconds by method."""
    drawn = list(cases(gpus, model, regime, count))
    best = [_timed(case, "auto", 1, time_limit_s=limit_s) for case in drawn]
    found = {method: [_timed(case, method, _calls(method)) for case in drawn] for method in _METHODS}
    times_ms = {}
    for method, results in {**found, f"auto, {limit_s:g} s": best}.items():
        pairs = list(zip(results, best, strict=True))
        gaps = [100 * (result.iteration_ns / reference.bound_ns - 1) for (result, _), (reference, _) in pairs]
        times_ms[method] = [1000 * time_s for _, time_s in results]
        reached = [result.iteration_ns == reference.bound_ns for (result, _), (reference, _) in pairs]
        soon = [result.status.proved_optimal and time_s <= 1 for result, time_s in results]
        print(
            f"| {gpus} | {model} | {regime} | {method} | {np.mean(gaps):.2f} | {np.percentile(gaps, 95):.2f} "
            f"| {max(gaps):.2f} | {100 * np.mean(reached):.0f} | {100 * np.mean(soon):.0f} "
            f"| {np.median(times_ms[method]):.2f} | {np.percentile(times_ms[method], 95):.2f} |",
            flush=True,
        )
    return times_ms


def _calls(method: str) -> int:
    return 1 if method == "patterns" else 5


def _timed(case: Case, method: str, calls: int, **limits: float) -> tuple[PlacementResult, float]:
    """Answer of a method and the seconds of its fastest call."""
    times = []
    for _ in range(calls):
        begin = perf_counter()
        result = place(case.timing, case.free, method=method, **limits)
        times.append(perf_counter() - begin)
    return result, min(times)


def cases(gpus: int, model: str, regime: str, count: int) -> Iterator[Case]:
    """Pipelines on servers of up to eight free GPUs; a case depends on its number and not on those before it."""
    for number in range(count):
        rng = np.random.default_rng(np.random.SeedSequence([313, gpus, list(_REGIMES).index(regime), number]))
        graph = _pipeline(rng, gpus)
        free = _free(rng, gpus, regime)
        card = float(rng.choice([12.5e9, 25e9, 50e9]))
        if model == "contention":
            yield Case(timing=ContentionTime(graph=graph, nic_bytes_per_s=card), free=free)
        else:
            yield Case(timing=LinkTime(graph=graph, link_bytes_per_s=card / _GPUS_PER_SERVER), free=free)


def _pipeline(rng: np.random.Generator, gpus: int) -> StageGraph:
    """Chain of up to 16 stages: replicas equal, any or powers of two; traffic and gradients equal or not."""
    replicas = (_equal, _any, _powers)[int(rng.integers(3))](rng, gpus)
    stages = len(replicas)
    traffic = np.exp(rng.uniform(np.log(25e6), np.log(8e9), stages))
    gradients = np.exp(rng.uniform(np.log(20e6), np.log(4e9), stages))
    traffic = traffic if rng.random() < 0.5 else np.full(stages, traffic[0])
    gradients = gradients if rng.random() < 0.5 else np.full(stages, gradients[0])
    return StageGraph(
        replicas=replicas,
        compute_s=(rng.uniform(0.1, 0.4) * np.exp(rng.normal(0, 0.2, stages))).tolist(),
        gradient_bytes=gradients.round().astype(int).tolist(),
        edges={(s, s + 1): round(float(traffic[s])) for s in range(stages - 1)},
    )


def _equal(rng: np.random.Generator, gpus: int) -> list[int]:
    stages = int(rng.choice([d for d in range(1, min(16, gpus) + 1) if gpus % d == 0]))
    return [gpus // stages] * stages


def _any(rng: np.random.Generator, gpus: int) -> list[int]:
    stages = int(rng.integers(1, min(12, gpus) + 1))
    return (1 + rng.multinomial(gpus - stages, rng.dirichlet(np.ones(stages)))).tolist()


def _powers(rng: np.random.Generator, gpus: int) -> list[int]:
    replicas: list[int] = []
    largest = int(np.log2(max(2, gpus // 3)))
    while sum(replicas) < gpus and len(replicas) < 15:
        replicas.append(min(2 ** int(rng.integers(largest + 1)), gpus - sum(replicas)))
    replicas += [gpus - sum(replicas)] if sum(replicas) < gpus else []
    return rng.permutation(replicas).tolist()


def _free(rng: np.random.Generator, gpus: int, regime: str) -> list[int]:
    """Free GPUs of whole servers, of fragments, or of both, with no or some GPUs to spare."""
    slack, kinds = _REGIMES[regime]
    kind = kinds[int(rng.integers(len(kinds)))]
    target = int(np.ceil(gpus * (1 + rng.choice(slack))))
    free: list[int] = []
    while sum(free) < target:
        whole = kind == "whole" or (kind == "mixed" and rng.random() < 0.5)
        free.append(_GPUS_PER_SERVER if whole else int(rng.integers(1, 9 if kind == "fragments" else 5)))
    return free
