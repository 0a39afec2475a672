"""Speed of the simulators, and memory of the reference."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

from bare_heap import bare_heap_s
from public_traces import hashes, oracle

from frostline.placement.jit import compiled, compiled_or_none
from frostline.policies import make_policy
from frostline.problem import Cluster, Instance
from frostline.simulation import run
from frostline.simulation.compiled import Twin, kernel
from frostline.traces import generate_jobs

_POLICIES = ("fifo", "sjf", "smallest-area", "ljf", "easy", "asrpt-strict", "asrpt-budget", "asrpt-guard", "asrpt")

# CPU seconds of the fastest independent simulator, AccaSim 1.1.3, for the 5,000 jobs. It took 2.6 s as it comes, which
# includes writing its result files, and 1.3 s with them switched off, on two shared cores of 2026 in one run with ours;
# an earlier machine needed 12.5 s.
_ACCASIM_S = {"as it comes": 2.6, "files off": 1.3, "earlier machine": 12.5}


def _cpu_s(instance: Instance, policy: str, repeats: int, engine: str = "reference") -> float:
    def once() -> float:
        begin = process_time()
        run(instance, make_policy(policy), engine=engine)
        return process_time() - begin

    return min(once() for _ in range(repeats))


def _loops_cpu_s(instance: Instance, policy: str, repeats: int) -> float:
    """CPU seconds of the loops of the compiled twin alone, from arrays to arrays."""

    def once() -> float:
        twin = Twin(instance, make_policy(policy), compiled(kernel))
        begin = process_time()
        twin.run()
        return process_time() - begin

    return min(once() for _ in range(repeats))


def simulator_speed(quick: bool) -> None:
    """Jobs per second of the reference on Philly-like jobs, 128 servers of 8 GPUs, load 0.9."""
    count = 2_000 if quick else 100_000
    cluster = Cluster.uniform(128)
    jobs = generate_jobs(count, seed=1, gpus=cluster.gpus, load=0.9)
    instance = Instance(cluster=cluster, jobs=jobs)
    bare_s = bare_heap_s(instance.jobs, cluster.gpus)
    print(f"{count:,} Philly-like jobs on 128x8, load 0.9; a bare heap loop takes {bare_s:.3f} CPU s\n")
    print("| policy | jobs / s | × bare heap |\n|---|---|---|")
    for policy in _POLICIES:
        cpu_s = _cpu_s(instance, policy, repeats=1 if quick else 3)
        print(f"| {policy} | {count / cpu_s:,.0f} | {cpu_s / bare_s:.1f} |", flush=True)


def twin_speed(quick: bool) -> None:
    """Jobs per second of the compiled twin on Philly-like jobs, load 0.9: its loops, the whole run, and the reference.

    The loops lead from arrays to arrays. The whole run and the reference lead from jobs to a schedule.
    """
    count, few = (2_000, 500) if quick else (1_000_000, 50_000)
    if compiled_or_none(kernel) is None:
        print(f"{count:,} jobs are not simulated: nothing is compiled without the extra fast")
        return
    for cluster, name in ((Cluster.uniform(128), "128x8"), (Cluster.pool(1024), "a pool of 1024")):
        jobs = generate_jobs(count, seed=1, gpus=cluster.gpus, load=0.9)
        instance = Instance(cluster=cluster, jobs=jobs)
        part = instance.replace(jobs=instance.jobs[:few])
        print(f"{count:,} Philly-like jobs on {name}, load 0.9; the reference on the first {few:,}\n")
        print("| policy | loops, jobs / s | whole run, jobs / s | reference, jobs / s | loops | whole run |")
        print("|---|---|---|---|---|---|")
        for policy in _POLICIES:
            loops = count / _loops_cpu_s(instance, policy, repeats=2)
            whole = count / _cpu_s(instance, policy, repeats=1, engine="compiled")
            slow = few / _cpu_s(part, policy, repeats=2)
            ratios = f"{loops / slow:.0f} × | {whole / slow:.0f} ×"
            print(f"| {policy} | {loops:,.0f} | {whole:,.0f} | {slow:,.0f} | {ratios} |", flush=True)
        print()


def oracle_speed(quick: bool) -> None:
    """CPU seconds for the 5,000 jobs of the oracle trace under FIFO on a pool of 128 GPUs."""
    instance = Instance(cluster=Cluster.pool(128), jobs=oracle("philly-480" if quick else "philly-5000"))
    bare_s = bare_heap_s(instance.jobs, 128, repeats=20)
    cpu_s = _cpu_s(instance, "fifo", repeats=5)
    print(f"{len(instance.jobs):,} jobs of {hashes()}")
    print(f"{cpu_s:.4f} CPU s, a bare heap loop {bare_s:.4f}: {cpu_s / bare_s:.1f} ×")
    for name, rival_s in _ACCASIM_S.items():
        print(f"AccaSim, {name}: {rival_s} CPU s, {rival_s / cpu_s:.0f} × ours")


_MEMORY = """
import resource, sys
from frostline.placement.jit import compiled, compiled_or_none
from frostline.policies import make_policy
from frostline.problem import Cluster, Instance
from frostline.simulation import run
from frostline.simulation.compiled import Twin, kernel
from frostline.traces import generate_jobs

_POLICIES = ("fifo", "sjf", "smallest-area", "ljf", "easy", "asrpt-strict", "asrpt-budget", "asrpt-guard", "asrpt")
count, policy = int(sys.argv[1]), sys.argv[2]
instance = Instance(cluster=Cluster.uniform(128), jobs=generate_jobs(count, seed=1, gpus=1024, load=0.9))
schedule = run(instance, make_policy(policy))
assert len(schedule.segments) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def memory(quick: bool) -> None:
    """Peak memory of a whole process that generates and simulates many jobs on 128 servers."""
    count = 2_000 if quick else 1_000_000
    for policy in ("fifo", "asrpt"):
        command = [sys.executable, "-c", _MEMORY, str(count), policy]
        peak_gib = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{policy}: {count:,} jobs, peak {peak_gib:.2f} GiB", flush=True)
