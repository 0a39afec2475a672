"""What freezing buys a cluster: completion times, debt and true accuracy beside elastic and rigid rivals."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product, repeat
from math import exp, fsum, log, sqrt
from statistics import mean, stdev
from time import process_time

from public_traces import TRACES, hashes, philly

from frostline.certify import check_schedule
from frostline.problem import Cluster, Instance
from frostline.simulation import Result, simulate
from frostline.simulation.accuracy import family_curves, true_accuracy
from frostline.traces import elastic_jobs, pollux_profiles, titan_profiles

OURS = ("icefrog", "icefrog-rigid")
RIVALS = ("las", "pollux", "sia")
OTHERS = ("asrpt", "icefrog:freeze=false")
POLICIES = (*RIVALS, *OTHERS, *OURS)
SERVER_GPUS = 4  # the servers on which Pollux was measured
JOBS = {48: 160, 256: 640}
LOADS = (0.7, 0.9, 1.1)
SEEDS = range(5)
MISJUDGED = (1.0, 2.0, 4.0)
"""What freezing costs in truth, over what was measured."""
BUDGETS = (0.25, 1.0)
"""Other budgets than the 0.5 points that all jobs allow."""
_T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # by sample size


@dataclass(frozen=True, order=True)
class Case:
    """One workload."""

    workload: str
    gpus: int
    load: float
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a policy did with a workload."""

    mean_flow_s: float
    flow_s_by_family: dict[str, float]
    evictions: int
    level_changes: int
    believed_points: float
    lost_points: dict[float, tuple[float, float, float]]
    """By how much the debt is misjudged: mean over all jobs, largest, and share of the jobs above their budget."""
    cpu_s: float


Outcomes = dict[tuple[Case, str], Outcome]


def freeze_experiment(quick: bool) -> None:
    """Mean flow of icefrog and icefrog-rigid over that of their rivals, with debt and true accuracy lost."""
    sizes, loads, seeds = ({48: 12}, (0.9,), range(2)) if quick else (JOBS, LOADS, SEEDS)
    workloads = ("applications",) if quick else tuple(WORKLOADS)
    cases = [Case(*row) for row in product(workloads, sizes, loads, seeds)]
    work = [(case, policy, sizes[case.gpus]) for case in cases for policy in POLICIES]
    smaller = [case for case in cases if case.gpus == min(sizes)]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        outcomes: Outcomes = {}
        for (case, policy, _), outcome in zip(work, pool.map(_run, *zip(*work, strict=True)), strict=True):
            outcomes[case, policy] = outcome
            print(f"{len(outcomes)} of {len(work)}: {_name(case)}, seed {case.seed}, {policy}", file=sys.stderr)
        groups = [[Case(*group, seed) for seed in seeds] for group in product(workloads, sizes, loads)]
        _flows(outcomes, groups)
        _ratios(outcomes, groups)
        _accuracy(outcomes, groups)
        _reports(pool, smaller, sizes)
        _budgets(pool, smaller, sizes, outcomes)
        _families(outcomes, cases)
    total_s = fsum(outcome.cpu_s for outcome in outcomes.values())
    philly()
    print(f"\n{len(work)} simulations, every schedule checked; {total_s:.0f} s of CPU time; traces: {hashes()}")


@lru_cache
def _profiles(titan: bool) -> dict[str, object]:
    profiles = dict(pollux_profiles(TRACES / "pollux-osdi21"))
    return profiles | titan_profiles(TRACES / "titan-socc22") if titan else profiles


WORKLOADS = {
    # As Pollux makes its workload: whole trainings of its applications.
    "applications": {"requests": "tuned", "sizes": "application", "scale": "releases"},
    # The same and the transformers of Titan, fine-tuned, with the GPU-time of the jobs of the trace.
    "fine-tuning": {"requests": "tuned", "sizes": "trace", "scale": "durations"},
}


@lru_cache
def _instance(case: Case, jobs: int) -> Instance:
    titan = case.workload == "fine-tuning"
    made = elastic_jobs(
        jobs,
        seed=case.seed,
        gpus=case.gpus,
        profiles=_profiles(titan),
        load=case.load,
        arrivals=_arrivals(),
        hours=(0.0, 24.0),
        **WORKLOADS[case.workload],
    )
    return Instance(cluster=Cluster.uniform(case.gpus // SERVER_GPUS, gpus=SERVER_GPUS), jobs=made)


_arrivals = lru_cache(philly)


def _run(case: Case, policy: str, jobs: int) -> Outcome:
    instance = _instance(case, jobs)
    before = process_time()
    result = simulate(instance, policy)
    cpu_s = process_time() - before
    assert check_schedule(instance, result.schedule).valid
    assert result.guarantee is None or result.guarantee.holds
    completion_us = result.schedule.completion_us
    flows: dict[str, list[float]] = {}
    for job in instance.jobs:
        flows.setdefault(job.work.family, []).append(completion_us[job.id] / 1e6 - job.release_s)
    lost, believed = {}, 0.0
    for factor in MISJUDGED:
        report = true_accuracy(instance, result.schedule, family_curves(factor))
        if report is None:
            lost[factor] = (0.0, 0.0, 0.0)
            continue
        frozen = report.jobs
        believed = fsum(job.believed_points for job in frozen) / len(instance.jobs)
        over = sum(job.overspent_points > 0 for job in frozen) / len(instance.jobs)
        lost[factor] = (fsum(job.lost_points for job in frozen) / len(instance.jobs), report.max_points, over)
    return Outcome(
        mean_flow_s=result.metrics.mean_flow_s or 0.0,
        flow_s_by_family={family: mean(values) for family, values in flows.items()},
        evictions=result.schedule.evictions,
        level_changes=result.schedule.level_changes,
        believed_points=believed,
        lost_points=lost,
        cpu_s=cpu_s,
    )


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval by Student's t."""
    half = _T_975[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return mean(values), half


def _name(case: Case) -> str:
    return f"{case.workload}, {case.gpus} GPUs, load {case.load:g}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    head = list(head)
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def _flows(outcomes: Outcomes, groups: Sequence[Sequence[Case]]) -> None:
    print("mean flow in minutes over the seeds ± half of its 95 % interval\n")
    rows = []
    for group in groups:
        cells = []
        for policy in POLICIES:
            middle, half = _interval([outcomes[case, policy].mean_flow_s / 60 for case in group])
            cells.append(f"{middle:.1f} ± {half:.1f}")
        rows.append([_name(group[0]), *cells])
    _table(["case", *POLICIES], rows)


def _ratios(outcomes: Outcomes, groups: Sequence[Sequence[Case]]) -> None:
    print("\nmean flow over that of a rival, seed by seed: geometric mean, with its 95 % interval\n")
    rows, pairs = [], [(ours, rival) for ours in OURS for rival in (*RIVALS, "asrpt")]
    pairs.append(("icefrog", "icefrog:freeze=false"))
    for group in (*groups, list(chain.from_iterable(groups))):
        everything = len(group) > len(groups[0])
        cells = []
        for ours, rival in pairs:
            logs = [log(outcomes[case, ours].mean_flow_s / outcomes[case, rival].mean_flow_s) for case in group]
            middle, half = (mean(logs), 0.0) if everything else _interval(logs)
            spread = "" if everything else f" ({exp(middle - half):.2f} to {exp(middle + half):.2f})"
            cells.append(f"{exp(middle):.2f}{spread}")
        rows.append(["all" if everything else _name(group[0]), *cells])
    _table(["case", *(f"{ours} / {rival}" for ours, rival in pairs)], rows)


def _accuracy(outcomes: Outcomes, groups: Sequence[Sequence[Case]]) -> None:
    print("\npercentage points per job: believed debt; true loss, mean / most / jobs above budget, as the truth is")
    print("as measured, twice, and four times that\n")
    rows = []
    for group, ours in product(groups, OURS):
        found = [outcomes[case, ours] for case in group]
        cells = [f"{mean(outcome.believed_points for outcome in found):.3f}"]
        for factor in MISJUDGED:
            average, most, over = zip(*(outcome.lost_points[factor] for outcome in found), strict=True)
            cells.append(f"{mean(average):.3f} / {max(most):.2f} / {mean(over):.0%}")
        changes = mean(outcome.evictions for outcome in found), mean(outcome.level_changes for outcome in found)
        rows.append([_name(group[0]), ours, *cells, *(f"{change:.0f}" for change in changes)])
    head = ["case", "policy", "believed", *(f"true, x{factor:g}" for factor in MISJUDGED)]
    _table([*head, "interruptions", "level changes"], rows)


def _told(case: Case, factor: float, jobs: int) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Log of the mean flow with reports of the metric over that without; losses without and with."""
    instance, curves = _instance(case, jobs), family_curves(factor)
    blind, told = (simulate(instance, "icefrog", curves=curves, reports=reports) for reports in (False, True))
    return log(told.metrics.mean_flow_s / blind.metrics.mean_flow_s), _lost(instance, blind), _lost(instance, told)


def _reports(pool: Executor, cases: Sequence[Case], sizes: dict[int, int]) -> None:
    """What the reports of the jobs' metrics are good for where freezing costs more than is believed."""
    print("\nicefrog, all cases of the smaller cluster: with reports of the metric, over without\n")
    rows = []
    for factor in MISJUDGED:
        columns = pool.map(_told, cases, repeat(factor), [sizes[case.gpus] for case in cases])
        ratios, *lost = zip(*columns, strict=True)
        cells = [f"{mean(points for points, _ in part):.3f} / {mean(over for _, over in part):.0%}" for part in lost]
        rows.append([f"x{factor:g}", *cells, f"{exp(mean(ratios)):.3f}"])
    _table(["truth", "points lost / above budget, no reports", "with reports", "mean flow"], rows)


def _lost(instance: Instance, result: Result) -> tuple[float, float]:
    """Points lost by a job on average, and share of the jobs that lost more than they allowed."""
    jobs, count = () if result.accuracy is None else result.accuracy.jobs, len(instance.jobs)
    return fsum(job.lost_points for job in jobs) / count, sum(job.overspent_points > 0 for job in jobs) / count


def _other_budget(case: Case, budget: float, policy: str, jobs: int) -> tuple[float, float, float]:
    """Mean flow in seconds with another budget; points lost by a job, on average and at most."""
    instance = _instance(case, jobs)
    changed = [job.replace(work=replace(job.work, quality_budget_points=budget)) for job in instance.jobs]
    other = Instance(cluster=instance.cluster, jobs=changed)
    result = simulate(other, policy)
    most = result.accuracy.max_points if result.accuracy else 0.0
    return result.metrics.mean_flow_s, _lost(other, result)[0], most


def _budgets(pool: Executor, cases: Sequence[Case], sizes: dict[int, int], outcomes: Outcomes) -> None:
    """What other quality budgets buy."""
    print(
        "\nother quality budgets, all cases of the smaller cluster: mean flow over that at 0.5 points, and true loss\n"
    )
    rows, counts = [], [sizes[case.gpus] for case in cases]
    for budget, policy in product(BUDGETS, OURS):
        flows, lost, most = zip(*pool.map(_other_budget, cases, repeat(budget), repeat(policy), counts), strict=True)
        ratio = mean(log(flow / outcomes[case, policy].mean_flow_s) for flow, case in zip(flows, cases, strict=True))
        rows.append([f"{budget:g}", policy, f"{exp(ratio):.3f}", f"{mean(lost):.3f} / {max(most):.2f}"])
    _table(["budget", "policy", "mean flow", "points lost, mean / most"], rows)


def _families(outcomes: Outcomes, cases: Sequence[Case]) -> None:
    print("\nmean flow by family over that of a rival: geometric mean over all cases\n")
    pairs = [(ours, rival) for ours in OURS for rival in (*RIVALS, "asrpt")] + [("icefrog", "icefrog:freeze=false")]
    families = sorted({family for outcome in outcomes.values() for family in outcome.flow_s_by_family})
    rows = []
    for family in families:
        cells = []
        for ours, rival in pairs:
            logs = [
                log(outcomes[case, ours].flow_s_by_family[family] / outcomes[case, rival].flow_s_by_family[family])
                for case in cases
                if family in outcomes[case, ours].flow_s_by_family
            ]
            cells.append(f"{exp(mean(logs)):.2f}")
        rows.append([family, *cells])
    _table(["family", *(f"{ours} / {rival}" for ours, rival in pairs)], rows)
