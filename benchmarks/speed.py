"""Speed and memory of the reference simulator."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

from bare_heap import bare_heap_s
from public_traces import hashes, oracle

from frostline.policies import make_policy
from frostline.problem import Cluster, Instance
from frostline.simulation import run
from frostline.traces import generate_jobs

# CPU seconds of the fastest independent simulator, AccaSim 1.1.3, for the 5,000 jobs. It took 2.6 s as it comes, which
# includes writing its result files, and 1.3 s with them switched off, on two shared cores of 2026 in one run with ours;
# an earlier machine needed 12.5 s.
_ACCASIM_S = {"as it comes": 2.6, "files off": 1.3, "earlier machine": 12.5}


def _cpu_s(instance: Instance, policy: str, repeats: int) -> float:
    def once() -> float:
        begin = process_time()
        run(instance, make_policy(policy))
        return process_time() - begin

    return min(once() for _ in range(repeats))


def simulator_speed(quick: bool) -> None:
    """Jobs per second on Philly-like jobs, 128 servers of 8 GPUs, load 0.9."""
    count = 2_000 if quick else 100_000
    cluster = Cluster.uniform(128)
    jobs = generate_jobs(count, seed=1, gpus=cluster.gpus, load=0.9)
    instance = Instance(cluster=cluster, jobs=jobs)
    bare_s = bare_heap_s(instance.jobs, cluster.gpus)
    print(f"{count:,} Philly-like jobs on 128x8, load 0.9; a bare heap loop takes {bare_s:.3f} CPU s\n")
    print("| policy | jobs / s | × bare heap |\n|---|---|---|")
    for policy in ("fifo", "sjf", "smallest-area", "easy", "asrpt-strict", "asrpt-budget", "asrpt-guard", "asrpt"):
        cpu_s = _cpu_s(instance, policy, repeats=1 if quick else 3)
        print(f"| {policy} | {count / cpu_s:,.0f} | {cpu_s / bare_s:.1f} |", flush=True)


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
from frostline.policies import make_policy
from frostline.problem import Cluster, Instance
from frostline.simulation import run
from frostline.traces import generate_jobs
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
