"""Offline optimum: exact methods against each other, and side by side with PyJobShop where that is installed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from frostline.certify.document import digest
from frostline.offline import Certified, Objective, TimeLimit, TooLargeError, certified, solve
from frostline.offline.brute_force import brute_force
from frostline.offline.build import case_of
from frostline.offline.cpsat import cpsat
from frostline.offline.milp import milp
from frostline.offline.schedules import schedule_of
from frostline.offline.search import Search
from frostline.problem import Cluster, Fixed, Instance, Job, Locality, PlacementClass, Profiled, Server
from frostline.relaxation import BOUNDS, bound_certificate, lower_bound
from frostline.units import US_PER_S
from frostline.verify import check_bound, check_schedule

_EXACT: dict[str, Callable[[Search], None]] = {"brute-force": brute_force, "cpsat": cpsat, "milp-highs": milp}
_VARIANTS = ("pool", "equal servers", "unequal servers")
_GPUS = 8


def offline_agreement(quick: bool) -> None:
    """Seeded tiny instances by variant: how many each method solves, and every disagreement there is."""
    per_variant = 10 if quick else 200
    print(f"{per_variant} instances per variant and objective; each method alone, from nothing.\n")
    print(f"| variant | objective | {' | '.join(_EXACT)} | optima differ | bounds above | invalid schedules |")
    print(f"|---|---|{'---|' * (len(_EXACT) + 3)}")
    for kind, variant in enumerate(_VARIANTS):
        for objective in ("completion", "makespan"):
            tally = _Tally()
            for seed in range(per_variant):
                tally.add(tiny_instance(kind, seed), objective)
            solved = " | ".join(str(tally.solved[method]) for method in _EXACT)
            wrong = f"{tally.differ} | {tally.above} | {tally.broken}"
            print(f"| {variant} | {objective} | {solved} | {wrong} |", flush=True)


@dataclass
class _Tally:
    """Counts over some instances."""

    solved: Counter[str] = field(default_factory=Counter)
    differ: int = 0
    above: int = 0
    broken: int = 0

    def add(self, instance: Instance, objective: str) -> None:
        """Solve an instance by every method alone, without a start or a bound, and then by all together; compare."""
        case = case_of(instance, Objective(objective), {}, {})
        values, bounds = set(), [Fraction(solve(instance, objective=objective).bound_us)]
        for method, run in _EXACT.items():
            search = Search(case.problem, unit_us=case.unit_us, offset_us=case.offset_us)
            try:
                run(search)
            except TooLargeError:
                continue
            value_us = search.state.objective_us
            if value_us is None or search.plan is None:
                continue
            values.add(value_us)
            bounds.append(Fraction(search.state.bound_us))
            self.solved[method] += search.closed
            self.broken += not check_schedule(instance, schedule_of(case, search.plan)).valid
        if objective == "completion":
            bounds += [lower_bound(instance, name).completion_us for name in (*BOUNDS, "best")]
        self.differ += len(values) > 1
        self.above += any(bound > min(values) for bound in bounds)


def tiny_instance(kind: int, seed: int) -> Instance:
    """Up to five jobs on a pool, or up to four of any locality on two servers, some slower on several servers."""
    rng = np.random.default_rng([kind, seed])
    if kind == 0:
        cluster = Cluster.pool(int(rng.integers(1, 9)))
    elif kind == 1:
        cluster = Cluster.uniform(2, gpus=int(rng.integers(1, 4)))
    else:
        sizes = rng.integers(1, 4, size=2).tolist()
        cluster = Cluster(servers=tuple(Server(id=f"s{i}", gpus=gpus) for i, gpus in enumerate(sizes)))
    jobs = [_tiny_job(rng, f"J{i}", cluster, kind > 0) for i in range(1, int(rng.integers(1, 5 if kind else 6)) + 1)]
    return Instance(cluster=cluster, jobs=jobs)


def _tiny_job(rng: np.random.Generator, name: str, cluster: Cluster, local: bool) -> Job:
    locality = [Locality.ANY, Locality.SERVER, Locality.FEWEST][int(rng.integers(3))] if local else Locality.ANY
    gpus = int(rng.integers(1, (cluster.largest if locality is Locality.SERVER else cluster.gpus) + 1))
    length = int(rng.integers(1, 7))
    work: Fixed | Profiled = Fixed(duration_s=length)
    if local and rng.random() < 0.4:
        table = {PlacementClass.ONE_SERVER: 1.0, PlacementClass.MANY_SERVERS: float(rng.choice([0.5, 2.0]))}
        work = Profiled(iterations=length, seconds_per_iteration=table)
    return Job(id=name, release_s=float(rng.integers(0, 8)), work=work, gpus=gpus, locality=locality)


def offline_quality(quick: bool) -> None:
    """Gangs on 8 GPUs, total flow: certified bound, value, bound and gap, and those of PyJobShop, after 30 s each."""
    limit_s, workers = (0.5, 1) if quick else (30.0, 2)
    rival = find_spec("pyjobshop") is not None and not quick
    print(f"Seeded gangs of 1 to 8 GPUs on 8 GPUs, total flow in s, {limit_s:g} s, {workers} threads each.")
    print("PyJobShop is not installed; its columns are empty." if not rival else "")
    print(f"Load of the machine before the first run, by {os.cpu_count()} cores: {os.getloadavg()[0]:.1f}.\n")
    _certified(gangs(8, 0))  # loads compiled code
    ours, theirs = "certified | after s | value | bound | gap % | time s", "PyJobShop value | bound | gap % | time s"
    print(f"| jobs | seed | {ours} | {theirs} |")
    print(f"|{'---|' * 12}")
    rows = []
    for jobs, seeds in ((8, 1),) if quick else ((8, 2), (10, 2), (12, 2), (15, 2), (20, 3), (30, 3), (50, 3)):
        for seed in range(seeds):
            instance = gangs(jobs, seed)
            certified_s, after_s = _certified(instance)
            found = solve(instance, objective="flow", stop=TimeLimit(limit_s), workers=workers)
            ours = _Answer(found.objective or 0.0, found.bound, found.runtime_s)
            theirs = _pyjobshop(instance, limit_s, workers) if rival else None
            rows.append((jobs, certified_s, after_s, ours, theirs))
            cells = f"{certified_s:g} | {after_s:.1f} | {ours}"
            print(f"| {jobs} | {seed} | {cells} | {theirs or '- | - | - | -'} |", flush=True)
    _verdict([row for row in rows if row[0] >= 20 and row[4] is not None])
    print(f"\nLoad of the machine after the last run: {os.getloadavg()[0]:.1f}, of which up to {workers} its own.")


class _Answer(NamedTuple):
    """What a solver gives for an instance, in seconds; as text, the cells of a row."""

    value: float
    bound: float
    runtime_s: float

    @property
    def gap(self) -> float:
        return (self.value - self.bound) / self.value

    def __str__(self) -> str:
        return f"{self.value:g} | {self.bound:g} | {100 * self.gap:.1f} | {self.runtime_s:.1f}"


def _certified(instance: Instance) -> tuple[float, float]:
    """Bound on total flow that the checker accepts, and the seconds until it has."""
    begin_s = perf_counter()
    bound = lower_bound(instance, "best")
    report = check_bound(instance, bound_certificate(instance, bound))
    after_s = perf_counter() - begin_s
    assert report.bound_us is not None
    return float(report.bound_us - bound.release_us) / US_PER_S, after_s


def _verdict(rows: Sequence[tuple[int, float, float, _Answer, _Answer | None]]) -> None:
    """On how many of the larger instances we are ahead."""
    pairs = [(certified_s, after_s, ours, theirs) for _, certified_s, after_s, ours, theirs in rows if theirs]
    if pairs:
        higher = sum(certified_s > theirs.bound and after_s <= 1 for certified_s, after_s, _, theirs in pairs)
        half = sum(ours.gap <= theirs.gap / 2 for _, _, ours, theirs in pairs)
        print(
            f"\n20 jobs or more: certified within 1 s above its bound after 30 s in {higher} of {len(pairs)}, ", end=""
        )
        print(f"gap after 30 s at most half of its in {half} of {len(pairs)}.")


def offline_certificates(quick: bool) -> None:
    """Optimality trees of gangs on 8 GPUs: how many the checker accepts as proofs that the schedule is optimal."""
    seeds, sizes = (1, (5,)) if quick else (4, (5, 6, 8, 10, 12))
    print(f"Seeded gangs of 1 to 8 GPUs on 8 GPUs, {seeds} of each size; nodes and CPU seconds are medians.\n")
    heads = "proved by tree | nodes | CPU s | bound / optimum where not | bound + 1 accepted"
    print(f"| objective | jobs | solved | {heads} |")
    print(f"|{'---|' * 8}")
    for goal in ("flow", "makespan"):
        for jobs in sizes:
            runs = [_proved(gangs(jobs, seed), goal) for seed in range(seeds)]
            proofs = [found for found, *_ in runs]
            loose = [share for found, _, share, _ in runs if share is not None and not found.optimal]
            solved = sum(share is not None for *_, share, _ in runs)
            cells = [goal, jobs, solved, sum(found.optimal for found in proofs)]
            cells += [f"{median(found.nodes for found in proofs):g}", f"{median(cpu_s for _, cpu_s, *_ in runs):.1f}"]
            cells += [f"{sum(loose) / len(loose):.3f}" if loose else "-", sum(more for *_, more in runs)]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _proved(instance: Instance, goal: str) -> tuple[Certified, float, float | None, bool]:
    """Certificate, its CPU seconds, its bound over the optimum if that is known, and whether one more is accepted."""
    result = solve(instance, objective=goal)
    begin_s = process_time()
    found = certified(result)
    cpu_s = process_time() - begin_s
    assert check_bound(instance, found.document).valid
    more = check_bound(instance, _signed({**found.document, "bound": found.document["bound"] + 1})).valid
    share = found.bound_us / result.objective_us if result.status == "optimal" and result.objective_us else None
    return found, cpu_s, share, more and found.optimal


def _signed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the digest that belongs to what it says now."""
    return {**document, "sha256": digest({name: value for name, value in document.items() if name != "sha256"})}


def gangs(jobs: int, seed: int) -> Instance:
    """Rigid gangs of 1, 2, 3, 4 or 8 GPUs and 1 to 20 s, released so that the cluster is always busy."""
    rng = np.random.default_rng([jobs, seed])
    drawn = [
        Job(
            id=f"J{i}",
            release_s=float(rng.integers(0, 2 * jobs)),
            work=Fixed(duration_s=float(rng.integers(1, 21))),
            gpus=int(rng.choice([1, 2, 3, 4, 8])),
        )
        for i in range(jobs)
    ]
    return Instance(cluster=Cluster.pool(_GPUS), jobs=drawn, name=f"gangs-{jobs}-{seed}")


def _pyjobshop(instance: Instance, limit_s: float, workers: int) -> _Answer:
    """What PyJobShop's CP-SAT model of the same instance gives."""
    from pyjobshop import Model

    model: Any = Model()
    gpus = model.add_renewable(capacity=instance.cluster.gpus)
    for job in instance.jobs:
        task = model.add_task(job=model.add_job(release_date=int(job.release_s)))
        model.add_mode(task, [gpus], duration=int(job.work.duration_s), demands=[job.gpus])  # type: ignore[union-attr]
    model.set_objective(weight_total_flow_time=1)
    result = model.solve(solver="ortools", time_limit=limit_s, display=False, num_workers=workers)
    return _Answer(result.objective, result.lower_bound, result.runtime)
