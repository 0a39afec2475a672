"""Mean flow of the policies on real traces."""

from __future__ import annotations

from math import exp, log

from public_traces import hashes, itp, philly

from frostline.problem import Cluster, Instance
from frostline.relaxation import lower_bound
from frostline.simulation import simulate
from frostline.traces import take

CASES = {
    "Philly": (philly, (472, 400, 344)),
    "ITP 03": (lambda: itp("03"), (176, 152, 128)),
    "ITP 04": (lambda: itp("04"), (624, 520, 456)),
    "ITP 07": (lambda: itp("07"), (328, 272, 240)),
}
LISTS = ("fifo", "fifo:discipline=fit-anything", "sjf", "smallest-area")
POLICIES = (*LISTS, "asrpt-strict", "asrpt-budget", "asrpt-guard", "asrpt")


def policy_quality(quick: bool) -> None:
    """Mean flow over the pointwise bound, and of asrpt over the better of sjf and smallest-area; pools of GPUs."""
    print("mean flow / pointwise bound on pools of GPUs\n")
    head = ["case", *POLICIES, "asrpt / better of sjf and smallest-area", "Γ / longest", "worst slack, s"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    ratios: list[float] = []
    for name, (read, sizes) in CASES.items():
        jobs = take(read(), 300) if quick else read()
        instances = (Instance(cluster=Cluster.pool(gpus), jobs=jobs) for gpus in sizes)
        ratios.extend(_case(f"{name}, {instance.cluster.gpus}", instance) for instance in instances)
    print(f"\ngeometric mean {exp(sum(map(log, ratios)) / len(ratios)):.3f}, worst {max(ratios):.3f}")
    print(f"traces: {hashes()}")


def _case(name: str, instance: Instance) -> float:
    bound_s = lower_bound(instance).mean_flow_s
    results = {policy: simulate(instance, policy) for policy in POLICIES}
    flows = {policy: result.metrics.mean_flow_s for policy, result in results.items()}
    ratio = flows["asrpt"] / min(flows["sjf"], flows["smallest-area"])
    report = results["asrpt"].guarantee
    assert all(result.guarantee is None or result.guarantee.holds for result in results.values())
    patience = report.parameters["gamma_s"] / report.parameters["longest_s"]
    cells = " | ".join(f"{flows[policy] / bound_s:.2f}" for policy in POLICIES)
    print(f"| {name} | {cells} | {ratio:.3f} | {patience:g} | {report.worst_slack_s:,.0f} |", flush=True)
    return ratio
