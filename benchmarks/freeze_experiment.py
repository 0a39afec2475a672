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

from frostline.problem import Cluster, Instance
from frostline.simulation import Result, simulate
from frostline.simulation.accuracy import family_curves, true_accuracy
from frostline.traces import elastic_jobs, pollux_profiles, titan_profiles
from frostline.verify import check_schedule

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
VARIANTS = (("rebuild", 0.25), ("rebuild", 0.7), ("rebuild", 1.0), ("static", 0.5), ("static", 0.7))
"""Other exchanges of gradients and quality budgets."""
GOAL = 1 - 0.36
_T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # by sample size


@dataclass(frozen=True, order=True)
class Case:
    """One workload."""

    workload: str
    gpus: int
    load: float
    seed: int
    jobs: int
    exchange: str = "rebuild"
    budget_points: float = 0.5


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
    rows = product(workloads, sizes, loads)
    groups = [[Case(*row, seed, sizes[row[1]]) for seed in seeds] for row in rows]
    cases = list(chain.from_iterable(groups))
    smaller = [case for case in cases if case.gpus == min(sizes)]
    variants = VARIANTS[:1] if quick else VARIANTS
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        outcomes = _outcomes(pool, list(product(cases, POLICIES)))
        _flows(outcomes, groups)
        _ratios(outcomes, groups)
        _accuracy(outcomes, groups)
        _families(outcomes, cases)
        _reports(pool, smaller)
        outcomes |= _outcomes(pool, [(_like(case, *row), ours) for row, case, ours in product(variants, cases, OURS)])
        _variants(outcomes, groups, sorted([(cases[0].exchange, cases[0].budget_points), *variants]))
    total_s = fsum(outcome.cpu_s for outcome in outcomes.values())
    philly()
    print(f"\n{len(outcomes)} simulations, every schedule checked; {total_s:.0f} s of CPU time; traces: {hashes()}")


def _outcomes(pool: Executor, work: Sequence[tuple[Case, str]]) -> Outcomes:
    """What each policy does with each case, with progress on the standard error."""
    outcomes: Outcomes = {}
    for pair, outcome in zip(work, pool.map(_run, *zip(*work, strict=True)), strict=True):
        outcomes[pair] = outcome
        print(f"{len(outcomes)} of {len(work)}: {_name(pair[0])}, seed {pair[0].seed}, {pair[1]}", file=sys.stderr)
    return outcomes


def _like(case: Case, exchange: str, budget_points: float) -> Case:
    """The same workload with another exchange of gradients, and other budgets."""
    return replace(case, exchange=exchange, budget_points=budget_points)


@lru_cache
def _profiles(titan: bool, comm: str) -> dict[str, object]:
    profiles = dict(pollux_profiles(TRACES / "pollux-osdi21", comm=comm))
    return profiles | titan_profiles(TRACES / "titan-socc22", comm=comm) if titan else profiles


WORKLOADS = {
    # As Pollux makes its workload: whole trainings of its applications.
    "applications": {"requests": "tuned", "sizes": "application", "scale": "releases"},
    # The same and the transformers of Titan, fine-tuned, with the GPU-time of the jobs of the trace.
    "fine-tuning": {"requests": "tuned", "sizes": "trace", "scale": "durations"},
}


@lru_cache
def _instance(case: Case) -> Instance:
    made = elastic_jobs(
        case.jobs,
        seed=case.seed,
        gpus=case.gpus,
        profiles=_profiles(case.workload == "fine-tuning", case.exchange),
        load=case.load,
        arrivals=_arrivals(),
        hours=(0.0, 24.0),
        quality_budget_points=case.budget_points,
        **WORKLOADS[case.workload],
    )
    return Instance(cluster=Cluster.uniform(case.gpus // SERVER_GPUS, gpus=SERVER_GPUS), jobs=made)


_arrivals = lru_cache(philly)


def _run(case: Case, policy: str) -> Outcome:
    instance = _instance(case)
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


def _told(case: Case, factor: float) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Log of the mean flow with reports of the metric over that without; losses without and with."""
    instance, curves = _instance(case), family_curves(factor)
    blind, told = (simulate(instance, "icefrog", curves=curves, reports=reports) for reports in (False, True))
    return log(told.metrics.mean_flow_s / blind.metrics.mean_flow_s), _lost(instance, blind), _lost(instance, told)


def _reports(pool: Executor, cases: Sequence[Case]) -> None:
    """What the reports of the jobs' metrics are good for where freezing costs more than is believed."""
    print("\nicefrog, all cases of the smaller cluster: with reports of the metric, over without\n")
    rows = []
    for factor in MISJUDGED:
        columns = pool.map(_told, cases, repeat(factor))
        ratios, *lost = zip(*columns, strict=True)
        cells = [f"{mean(points for points, _ in part):.3f} / {mean(over for _, over in part):.0%}" for part in lost]
        rows.append([f"x{factor:g}", *cells, f"{exp(mean(ratios)):.3f}"])
    _table(["truth", "points lost / above budget, no reports", "with reports", "mean flow"], rows)


def _lost(instance: Instance, result: Result) -> tuple[float, float]:
    """Points lost by a job on average, and share of the jobs that lost more than they allowed."""
    jobs, count = () if result.accuracy is None else result.accuracy.jobs, len(instance.jobs)
    return fsum(job.lost_points for job in jobs) / count, sum(job.overspent_points > 0 for job in jobs) / count


def _variants(outcomes: Outcomes, groups: Sequence[Sequence[Case]], variants: Iterable[tuple[str, float]]) -> None:
    """What other exchanges of gradients and other quality budgets are worth."""
    print(
        "\nby exchange of gradients and quality budget, all cases: mean flow over that of a rival, in how many of the"
    )
    print(f"{len(groups)} rows above it is {1 - GOAL:.0%} below all three, and true loss\n")
    rows = []
    for variant, ours in product(variants, OURS):
        ratios = [[_ratio(outcomes, group, ours, rival, variant) for rival in RIVALS] for group in groups]
        found = [outcomes[_like(case, *variant), ours].lost_points[1.0] for case in chain.from_iterable(groups)]
        cells = [f"{exp(mean(map(log, column))):.2f}" for column in zip(*ratios, strict=True)]
        goal = sum(max(row) <= GOAL for row in ratios)
        lost = f"{mean(average for average, *_ in found):.3f} / {max(most for _, most, _ in found):.2f}"
        rows.append([variant[0], f"{variant[1]:g}", ours, *cells, str(goal), lost])
    _table(["exchange", "budget", "policy", *RIVALS, "rows", "points lost, mean / most"], rows)


def _ratio(outcomes: Outcomes, group: Sequence[Case], ours: str, rival: str, variant: tuple[str, float]) -> float:
    """Geometric mean of one of our mean flows, in a variant of the cases, over that of a rival that never freezes."""
    pairs = [(outcomes[_like(case, *variant), ours], outcomes[case, rival]) for case in group]
    return exp(mean(log(mine.mean_flow_s / theirs.mean_flow_s) for mine, theirs in pairs))


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
