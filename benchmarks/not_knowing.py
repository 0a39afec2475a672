"""What it costs to predict sizes instead of knowing them: mean flow on whole traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time

from public_traces import hashes, itp, philly

from frostline.problem import Cluster, Instance, Job
from frostline.relaxation import lower_bound
from frostline.simulation import Result, simulate
from frostline.traces import generate_recurring_jobs, take

_GENERATED_GPUS = 512


def _generated() -> tuple[Job, ...]:
    return generate_recurring_jobs(20_000, seed=1, gpus=_GENERATED_GPUS, load=1.5)


CASES: dict[str, tuple[Callable[[], Sequence[Job]], int]] = {
    "Philly": (philly, 50),
    "ITP 03": (lambda: itp("03"), 19),
    "ITP 04": (lambda: itp("04"), 65),
    "ITP 07": (lambda: itp("07"), 34),
    "generated, load 1.5": (_generated, _GENERATED_GPUS // 8),
}
PREDICTED = ("asrpt", "asrpt-guard", "asrpt-budget", "smallest-area", "sjf")
BLIND = ("fifo", "las")


def not_knowing(quick: bool) -> None:
    """Mean flow with predicted sizes over that with known ones, beside policies that ask for no size."""
    print("mean flow / that of asrpt with known sizes; servers of 8 GPUs; sizes predicted by `combined`\n")
    head = ["case", "asrpt, known: flow / bound", *(f"{policy}, predicted" for policy in PREDICTED), *BLIND]
    head += ["D", "least slack of asrpt, predicted, s", "CPU time, predicted / known"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name, (read, servers) in CASES.items():
        jobs = take(read(), 300) if quick else read()
        _case(f"{name}, {servers}x8", Instance(cluster=Cluster.uniform(servers, gpus=8), jobs=jobs))
    print(f"\ntraces: {hashes()}")


def _case(name: str, instance: Instance) -> None:
    known, known_s = _timed(instance, "asrpt", None)
    predicted, predicted_s = _timed(instance, "asrpt", "combined")
    results = {"asrpt": predicted}
    results |= {policy: _timed(instance, policy, "combined")[0] for policy in PREDICTED[1:]}
    results |= {policy: _timed(instance, policy, None)[0] for policy in BLIND}
    assert all(result.guarantee is None or result.guarantee.holds for result in results.values())
    flow = known.metrics.mean_flow_s
    cells = " | ".join(f"{results[policy].metrics.mean_flow_s / flow:.2f}" for policy in (*PREDICTED, *BLIND))
    report = predicted.guarantee
    facts = f"{report.parameters['D']:.1e} | {report.worst_slack_s:,.0f} | {predicted_s / known_s:.1f}"
    print(f"| {name} | {flow / lower_bound(instance).mean_flow_s:.2f} | {cells} | {facts} |", flush=True)


def _timed(instance: Instance, policy: str, predictor: str | None) -> tuple[Result, float]:
    before = process_time()
    result = simulate(instance, policy, predictor=predictor)
    return result, process_time() - before
