"""How much slower training jobs iterate where a fragmented cluster leaves them room, by placement method."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from time import process_time

import numpy as np

from frostline.placement.place import METHODS, place
from frostline.placement.result import PlacementResult
from frostline.problem import Cluster, Fixed, Instance, Job, Placement, Training, TrainingPlan, shipped_network
from frostline.simulation import Result, simulate
from frostline.timing.duration import training_time
from frostline.timing.iteration_time import NS_PER_S, iteration_ns
from frostline.traces import generate_jobs
from frostline.verify import check_schedule

_METHODS = ("best-fit", "heavy-edge", "local-search", "patterns")
_WIDTHS = {1: 0.34, 2: 0.12, 3: 0.06, 4: 0.14, 8: 0.09, 12: 0.08, 16: 0.07, 24: 0.04, 32: 0.03, 48: 0.02, 64: 0.01}
_NETWORKS = ("bert_large", "gpt2_medium", "gpt2_xl", "resnet152", "roberta_large", "t5_large", "vgg19", "xlnet_large")
_STAGES = (1, 2, 4)
_SMALL = 8  # jobs of fewer GPUs only fill holes
_LONGEST_S = 10 * 86_400.0

Inflations = list[float]


def placement_inflation(quick: bool) -> None:
    """Iteration time over the best on the empty cluster, of training jobs among smaller ones, by placement method."""
    seeds, count = ((1,), 150) if quick else ((1, 2, 3), 1500)
    cluster = Cluster.uniform(16 if quick else 32, gpus=8, nic_bytes_per_s=12.5e9)
    methods = [name for name in _METHODS if name in METHODS]
    instances = [Instance(cluster=cluster, jobs=_jobs(count, seed, cluster)) for seed in seeds]
    share = _training_share(instances)
    print(f"{len(seeds)} × {count:,} jobs on {len(cluster.servers)}x8 GPUs at load 0.9, {share}\n")
    print("Whole simulations, policy asrpt: each method makes its own holes.\n")
    _head("mean flow, h", "CPU s")
    results: dict[str, list[Result]] = {}
    for method in methods:
        begin = process_time()
        results[method] = [simulate(instance, "asrpt", placement=method) for instance in instances]
        cpu_s = process_time() - begin
        pairs = list(zip(instances, results[method], strict=True))
        assert all(check_schedule(instance, result.schedule).valid for instance, result in pairs)
        found = [value for pair in pairs for value in _inflations(*pair)]
        flow_h = np.mean([result.metrics.mean_flow_s for result in results[method]]) / 3600
        _line(method, found, f"{flow_h:.3f}", f"{cpu_s:.1f}")
    print("\nThe same holes for all: those that jobs on several servers met under local-search, one call each.\n")
    _head("proved", "CPU ms per call")
    holes = [hole for pair in zip(instances, results["local-search"], strict=True) for hole in _holes(*pair)]
    for method in methods:
        begin = process_time()
        placed = [_placed(plan, cluster, free, method) for plan, free in holes]
        cpu_ms = 1000 * (process_time() - begin) / max(len(holes), 1)
        found = [result.iteration_ns / _best_ns(plan, cluster) for result, (plan, _) in zip(placed, holes, strict=True)]
        proved = np.mean([result.status.proved_optimal for result in placed] or [True])
        _line(method, found, f"{100 * proved:.0f} %", f"{cpu_ms:.2f}")


def _jobs(count: int, seed: int, cluster: Cluster) -> tuple[Job, ...]:
    """Philly-like durations; jobs of 8 GPUs and more train a network, as long as they were if placed best."""
    jobs = generate_jobs(
        count, seed=seed, gpus=cluster.gpus, load=0.9, histogram=_WIDTHS, longest_s=_LONGEST_S, interarrival_cv=1.0
    )
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    return tuple(_training(job, rng, cluster) if job.gpus >= _SMALL else job for job in jobs)


def _training(job: Job, rng: np.random.Generator, cluster: Cluster) -> Job:
    plan = _plan(_NETWORKS[int(rng.integers(len(_NETWORKS)))], job.gpus, _STAGES[int(rng.integers(len(_STAGES)))])
    assert isinstance(job.work, Fixed)
    iterations = max(1, round(job.work.duration_s * NS_PER_S / _best_ns(plan, cluster)))
    return job.replace(work=Training(plan=plan, iterations=iterations), name=plan.network.name)


@cache
def _plan(network: str, gpus: int, stages: int) -> TrainingPlan:
    return TrainingPlan.balanced(shipped_network(network), gpus, stages=stages, global_batch=8 * gpus, micro_batches=4)


_BEST: dict[tuple[str, tuple[int, ...], int], int] = {}


def _best_ns(plan: TrainingPlan, cluster: Cluster) -> int:
    """Iteration time on the empty cluster, the shortest that is found; clusters differ in their size alone."""
    key = (plan.network.name, plan.replicas, len(cluster.servers))
    if key not in _BEST:
        timing = training_time(plan, cluster)
        one = cluster.largest >= plan.gpus
        _BEST[key] = timing.bound_ns if one else place(timing, cluster.capacities, method="auto").iteration_ns
    return _BEST[key]


def _trained(instance: Instance, result: Result) -> Iterator[tuple[TrainingPlan, Placement]]:
    works = {job.id: job.work for job in instance.jobs}
    for segment in result.schedule.segments:
        work = works[segment.job]
        if isinstance(work, Training):
            yield work.plan, segment.placement


def _inflations(instance: Instance, result: Result) -> Inflations:
    cluster = instance.cluster
    return [
        iteration_ns(training_time(plan, cluster), placement) / _best_ns(plan, cluster)
        for plan, placement in _trained(instance, result)
    ]


def _holes(instance: Instance, result: Result) -> Iterator[tuple[TrainingPlan, tuple[int, ...]]]:
    """Plans that were put on several servers, each with the GPUs that were free on every server just before."""
    works = {job.id: job.work for job in instance.jobs}
    free = list(instance.cluster.capacities)
    ending: list[tuple[int, Placement]] = []
    for segment in result.schedule.segments:
        for end in [end for end in ending if end[0] <= segment.start_us]:
            ending.remove(end)
            for server, gpus in end[1].loads:
                free[server] += gpus
        work = works[segment.job]
        if isinstance(work, Training) and len(segment.placement.loads) > 1:
            yield work.plan, tuple(free)
        for server, gpus in segment.placement.loads:
            free[server] -= gpus
        assert min(free) >= 0
        ending.append((segment.end_us, segment.placement))


def _placed(plan: TrainingPlan, cluster: Cluster, free: tuple[int, ...], method: str) -> PlacementResult:
    return place(training_time(plan, cluster), free, method=method, objective="consolidate")


def _training_share(instances: list[Instance]) -> str:
    jobs = [job for instance in instances for job in instance.jobs]
    share = sum(isinstance(job.work, Training) for job in jobs) / len(jobs)
    return f"{100 * share:.0f} % of them training on 8 to 64 GPUs"


def _head(*more: str) -> None:
    head = ["method", "jobs", "α / best, mean", "p95", "max", "at the best", *more]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")


def _line(method: str, found: Inflations, *more: str) -> None:
    values = np.array(found or [1.0])
    figures = (values.mean(), np.percentile(values, 95), values.max())
    at_best = f"{100 * np.mean(values <= 1 + 1e-9):.0f} %"
    cells = [method, str(len(found)), *(f"{figure:.3f}" for figure in figures), at_best, *more]
    print(f"| {' | '.join(cells)} |", flush=True)
