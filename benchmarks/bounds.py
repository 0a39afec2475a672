"""Lower bounds: quality on instances of known optimum, time and memory for a million jobs, and a real trace."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from time import process_time, time

import numpy as np
from public_traces import hashes, philly

from frostline.certify import check_certificate
from frostline.problem import Cluster, Fixed, Instance, Job
from frostline.relaxation import bound_certificate, lower_bound
from frostline.relaxation.lagrangian import PriceProblem, best_prices, certificate_of, one_shot, prove
from frostline.simulation import simulate
from frostline.verify import check_bound

FAMILIES = ("unit", "up to G/4", "powers of two", "any", "1 or G")
_KINDS = ("pool", "width", "job")


@dataclass(frozen=True)
class Known:
    """An instance whose least total completion is known."""

    problem: PriceProblem
    instance: Instance
    optimum: int


def known(family: str, seed: int) -> Known | None:
    """Seeded instance of 9 to 14 jobs on 4 or 8 GPUs; None where CP-SAT does not prove its optimum within 20 s."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    gpus, jobs = int(rng.choice([4, 8])), int(rng.integers(9, 15))
    draws = {
        "unit": lambda: np.ones(jobs, np.int64),
        "up to G/4": lambda: rng.integers(1, gpus // 4 + 1, jobs),
        "powers of two": lambda: 2 ** rng.integers(0, gpus.bit_length(), jobs),
        "any": lambda: rng.integers(1, gpus + 1, jobs),
        "1 or G": lambda: rng.choice([1, gpus], jobs),
    }
    widths, lengths = draws[family](), rng.integers(1, 13, jobs)
    releases = rng.integers(0, int((widths * lengths).sum() / gpus * 0.8) + 2, jobs)
    rows = [tuple(map(int, row)) for row in zip(releases, widths, lengths, strict=True)]
    optimum = _optimum(gpus, rows)
    made = [Job(id=str(i), release_s=r, gpus=g, work=Fixed(duration_s=p)) for i, (r, g, p) in enumerate(rows)]
    problem = PriceProblem.of_rows(gpus, [(r, [(g, p, 0)]) for r, g, p in rows])
    instance = Instance(cluster=Cluster.pool(gpus), jobs=made)
    return None if optimum is None else Known(problem, instance, optimum)


def _optimum(gpus: int, rows: list[tuple[int, int, int]]) -> int | None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    latest = max(release for release, _, _ in rows) + sum(length for _, _, length in rows)
    starts = [model.new_int_var(release, latest, "") for release, _, _ in rows]
    intervals = [
        model.new_fixed_size_interval_var(start, length, "") for start, (_, _, length) in zip(starts, rows, strict=True)
    ]
    model.add_cumulative(intervals, [width for _, width, _ in rows], gpus)
    model.minimize(sum(starts))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 20
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return int(solver.objective_value) + sum(length for _, _, length in rows)


def bound_quality(quick: bool) -> None:
    """Bound over optimum of total completion, mean and least, by family; how many trees prove the optimum."""
    count = 2 if quick else 20
    names = ["pointwise", "mean_busy", "one-shot", *(f"prices of each {kind}" for kind in _KINDS)]
    print(f"| widths | instances | {' | '.join(names)} | proved by tree | median nodes | target + 1 accepted |")
    print(f"|{'---|' * (len(names) + 5)}")
    for family in FAMILIES:
        cases = [case for seed in range(count) if (case := known(family, seed)) is not None]
        ratios = np.array([_ratios(case) for case in cases])
        assert ratios.max() <= 1
        cells = [f"{mean:.3f} ({least:.3f})" for mean, least in zip(ratios.mean(0), ratios.min(0), strict=True)]
        trees = [_tree(case) for case in cases]
        proved, above = sum(done for done, _, _ in trees), sum(more for _, _, more in trees)
        nodes = float(np.median([number for done, number, _ in trees if done] or [0]))
        print(f"| {family} | {len(cases)} | {' | '.join(cells)} | {proved} | {nodes:g} | {above} |", flush=True)


def _ratios(case: Known) -> list[float]:
    cheap = [float(lower_bound(case.instance, name).completion_us) / 1e6 for name in ("pointwise", "mean_busy")]
    prices = [best_prices(case.problem, prices=kind).best for kind in _KINDS]
    values = [*cheap, float(one_shot(case.problem).value), *(float(found.value) for found in prices)]
    return [value / case.optimum for value in values]


def _tree(case: Known) -> tuple[bool, int, bool]:
    """Whether the optimum is proved and accepted, the nodes it took, and whether one more is accepted."""
    tree = prove(case.problem, case.optimum, most_nodes=1000)
    document = certificate_of(case.problem, tree)
    accepted = check_certificate(document).bound_us == case.optimum
    return accepted, tree.explored, check_certificate({**document, "bound": tree.bound + 1}).valid


_SPEED = """
import resource, sys
from time import process_time
from frostline.verify import check_bound
from frostline.problem import Cluster, Instance
from frostline.relaxation import bound_certificate, lower_bound
from frostline.traces import generate_jobs
count, gpus, load = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
warm, cluster = 12_000, Cluster.pool(gpus)
lower_bound(Instance(cluster=cluster, jobs=generate_jobs(warm, seed=2, gpus=gpus, load=load)), "best")
instance = Instance(cluster=cluster, jobs=generate_jobs(count, seed=1, gpus=gpus, load=load))
cells, bounds = [], []
def timed(work):
    begin = process_time()
    result = work()
    cells.append(f"{process_time() - begin:.2f}")
    return result
for method in ("pointwise", "one-shot", "lagrangian"):
    bounds.append(timed(lambda: lower_bound(instance, method)))
document = timed(lambda: bound_certificate(instance, bounds[1]))
report = timed(lambda: check_bound(instance, document))
assert report.valid
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
gains = [f"{bound.mean_flow_s / bounds[0].mean_flow_s:.3f}" for bound in bounds[1:]]
print(" | ".join([*cells, f"{peak:.2f}", *gains]))
"""


def bound_speed(quick: bool) -> None:
    """CPU seconds and peak memory of a process that bounds many Philly-like jobs and checks the certificate."""
    count = 12_000 if quick else 1_000_000
    head = ["GPUs, load", "pointwise", "one-shot", "lagrangian", "certificate", "check with instance", "peak GiB"]
    head += ["one-shot / pointwise", "lagrangian / pointwise"]
    print(f"{count:,} jobs; CPU s, the last two columns are of mean flow\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for gpus, load in ((1024, 0.95), (128, 1.1)):
        command = [sys.executable, "-c", _SPEED, str(count), str(gpus), str(load)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"| {gpus}, {load} | {done.stdout.strip()} |", flush=True)


def bound_trace(quick: bool) -> None:
    """Mean flow on the Philly trace: bounds, and the best policy over the best of them, on pools of GPUs."""
    jobs = philly()[: 2000 if quick else None]
    head = ["GPUs", "pointwise, s", "one-shot, s", "lagrangian, s", "lagrangian / pointwise", "CPU s", "check, s"]
    print(
        f"| {' | '.join([*head, 'best policy', 'its flow / bound', 'flow / pointwise'])} |\n|{'---|' * (len(head) + 3)}"
    )
    for gpus in (400,) if quick else (472, 400, 344):
        instance = Instance(cluster=Cluster.pool(gpus), jobs=jobs)
        pointwise, one = (lower_bound(instance, name).mean_flow_s for name in ("pointwise", "one-shot"))
        begin = process_time()
        bound = lower_bound(instance, "lagrangian")
        spent, begin = process_time() - begin, time()
        assert check_bound(instance, bound_certificate(instance, bound)).valid
        checked = time() - begin
        flows = {name: simulate(instance, name).metrics.mean_flow_s for name in ("asrpt", "sjf", "smallest-area")}
        policy = min(flows, key=lambda name: flows[name])
        cells = [f"{value:,.0f}" for value in (pointwise, one, bound.mean_flow_s)]
        cells += [f"{bound.mean_flow_s / pointwise:.3f}", f"{spent:.1f}", f"{checked:.1f}", policy]
        cells += [f"{flows[policy] / bound.mean_flow_s:.3f}", f"{flows[policy] / pointwise:.3f}"]
        print(f"| {gpus} | {' | '.join(cells)} |", flush=True)
    print(f"\ntrace: {hashes()}")
