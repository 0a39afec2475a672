"""Offline optimum: exact methods against each other, and side by side with PyJobShop where that is installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from frostline.certify import check_schedule
from frostline.offline import Objective, TimeLimit, TooLargeError, solve
from frostline.offline.brute_force import brute_force
from frostline.offline.build import case_of
from frostline.offline.cpsat import cpsat
from frostline.offline.milp import milp
from frostline.offline.schedules import schedule_of
from frostline.offline.search import Search
from frostline.problem import Cluster, Fixed, Instance, Job, Locality, PlacementClass, Profiled, Server
from frostline.relaxation import BOUNDS, lower_bound

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
    """Gangs on 8 GPUs, total flow: value, bound and gap after 1 s and 30 s, and those of PyJobShop after 30 s."""
    limit_s, workers = (0.5, 1) if quick else (30.0, 2)
    rival = find_spec("pyjobshop") is not None and not quick
    print(f"Seeded gangs of 1 to 8 GPUs on 8 GPUs, total flow in s, {limit_s:g} s, {workers} threads each.")
    print("PyJobShop is not installed; its columns are empty.\n" if not rival else "")
    ours, theirs = "bound 1 s | value | bound | gap % | time s", "PyJobShop value | bound | gap % | time s"
    print(f"| jobs | seed | {ours} | {theirs} |")
    print(f"|{'---|' * 11}")
    for jobs, seeds in ((8, 1),) if quick else ((8, 2), (10, 2), (12, 2), (15, 2), (20, 2), (30, 1), (50, 1)):
        for seed in range(seeds):
            instance = gangs(jobs, seed)
            short = solve(instance, objective="flow", stop=TimeLimit(min(limit_s, 1.0)), workers=workers)
            long = solve(instance, objective="flow", stop=TimeLimit(limit_s), workers=workers)
            ours = f"{short.bound:g} | {_cells(long.objective or 0.0, long.bound, long.runtime_s)}"
            theirs = _pyjobshop(instance, limit_s, workers) if rival else "- | - | - | -"
            print(f"| {jobs} | {seed} | {ours} | {theirs} |", flush=True)


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


def _pyjobshop(instance: Instance, limit_s: float, workers: int) -> str:
    """Value, bound, gap and time of PyJobShop's CP-SAT model of the same instance, as cells of a row."""
    from pyjobshop import Model

    model: Any = Model()
    gpus = model.add_renewable(capacity=instance.cluster.gpus)
    for job in instance.jobs:
        task = model.add_task(job=model.add_job(release_date=int(job.release_s)))
        model.add_mode(task, [gpus], duration=int(job.work.duration_s), demands=[job.gpus])  # type: ignore[union-attr]
    model.set_objective(weight_total_flow_time=1)
    result = model.solve(solver="ortools", time_limit=limit_s, display=False, num_workers=workers)
    return _cells(result.objective, result.lower_bound, result.runtime)


def _cells(value: float, bound: float, runtime_s: float) -> str:
    return f"{value:g} | {bound:g} | {100 * (value - bound) / value:.1f} | {runtime_s:.1f}"
