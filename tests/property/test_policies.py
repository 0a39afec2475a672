"""What every policy owes: valid schedules, all jobs, determinism; and the disciplines against slow references."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from math import log2
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from frostline.policies import Decision, Task, View, Wait, make_policy, policy_names
from frostline.policies.disciplines import backfill
from frostline.policies.headroom import headroom_gpus
from frostline.policies.list_policy import ListPolicy
from frostline.policies.orders import ORDERS
from frostline.problem import Cluster, Fixed, Instance, Job, digest
from frostline.simulation import measure, run
from frostline.testing import assert_feasible, instances
from frostline.units import duration_us, instant_us

LOCALITIES = ("any", "server", "fewest")
WORKS = ("fixed", "profiled", "training")
NAMES = st.sampled_from(
    [*policy_names(), "fifo:discipline=fit-anything", "sjf:discipline=backfill", "sjf:discipline=strict"]
)


@given(instances(max_jobs=8, localities=LOCALITIES, works=WORKS, impossible=True), NAMES)
def test_every_job_runs_or_is_refused_on_a_valid_schedule(instance: Instance, name: str) -> None:
    schedule = run(instance, make_policy(name))
    assert_feasible(instance, schedule)
    metrics = measure(instance, schedule)
    assert metrics.submitted == metrics.jobs + metrics.refused
    assert metrics.unfinished == 0
    assert metrics.evictions == 0 or schedule.restart_us is not None


@given(instances(max_jobs=8, localities=LOCALITIES), NAMES)
def test_running_twice_gives_the_same_schedule(instance: Instance, name: str) -> None:
    assert run(instance, make_policy(name)) == run(instance, make_policy(name))


def test_schedules_do_not_depend_on_the_process_or_on_hash_seeds() -> None:
    script = (
        "from frostline.traces import generate_jobs\n"
        "from frostline.problem import Cluster, Instance\n"
        "from frostline.policies import make_policy, policy_names\n"
        "from frostline.simulation import run\n"
        "import hashlib\n"
        "jobs = generate_jobs(300, seed=3, gpus=32, histogram='mixed')\n"
        "instance = Instance(cluster=Cluster.uniform(4), jobs=jobs)\n"
        "text = repr([run(instance, make_policy(name)).segments for name in policy_names()])\n"
        "print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


def by_scanning(instance: Instance, order: str) -> dict[str, int]:
    """Starts under "scan in order, start what fits" on a pool, by the letter."""
    jobs = list(instance.jobs)
    release = [instant_us(job.release_s) for job in jobs]
    length = [duration_us(job.work.duration_s) for job in jobs]
    key = {
        "arrival": lambda i: i,
        "shortest": lambda i: (length[i], i),
        "smallest-area": lambda i: (length[i] * jobs[i].gpus, i),
        "longest": lambda i: (-length[i], i),
    }[order]
    begun: dict[int, int] = {}
    moments = sorted(set(release))
    while moments:
        now = moments.pop(0)
        free = instance.cluster.gpus
        free -= sum(jobs[i].gpus for i, at in begun.items() if now < at + length[i])
        for i in sorted((i for i in range(len(jobs)) if release[i] <= now and i not in begun), key=key):
            if jobs[i].gpus <= free:
                begun[i] = now
                free -= jobs[i].gpus
                moments = sorted({*moments, now + length[i]})
    return {jobs[i].id: at for i, at in begun.items()}


@given(instances(pool=True, max_jobs=9), st.sampled_from(["arrival", "shortest", "smallest-area", "longest"]))
def test_fit_anything_scans_the_whole_queue(instance: Instance, order: str) -> None:
    policy = ListPolicy(name="x", order=order, discipline="fit-anything")
    assert run(instance, policy).start_us == by_scanning(instance, order)


@given(instances(max_jobs=9, localities=LOCALITIES), st.sampled_from(sorted(ORDERS)))
def test_strict_never_overtakes(instance: Instance, order: str) -> None:
    starts = run(instance, ListPolicy(name="x", order="arrival", discipline="strict")).start_us
    in_order = [starts[job.id] for job in instance.jobs]
    assert in_order == sorted(in_order)


class Watched:
    """EASY backfilling that notes the reservation of the first blocked job whenever it waits."""

    name = "watched"
    parameters: ClassVar[dict[str, object]] = {}
    uses_virtual_machine = False

    def __init__(self) -> None:
        self.reserved: list[tuple[str, int]] = []

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        decision = backfill(view)
        first = view.waiting.first
        if isinstance(decision, Wait) and first is not None:
            self.reserved.append((first.job.id, view.reservation(first).time_us))
        return decision


@given(instances(max_jobs=9, localities=LOCALITIES, works=WORKS))
def test_backfill_keeps_every_promise_to_the_first_blocked_job(instance: Instance) -> None:
    """In arrival order, the reservation of the first waiting job may only come earlier, and is kept."""
    policy = Watched()
    starts = run(instance, policy).start_us
    promised: dict[str, int] = {}
    for job, time_us in policy.reserved:
        assert time_us <= promised.get(job, time_us)
        promised[job] = time_us
    assert all(starts[job] <= time_us for job, time_us in promised.items())


@given(st.data())
def test_input_is_left_as_it_was(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=LOCALITIES))
    before = digest(instance)
    run(instance, make_policy(data.draw(NAMES)))
    assert digest(instance) == before


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.fractions(0, 1), st.integers(0, 2000))
def test_headroom_grows_by_a_share_for_each_doubling(size: int, mean: int, share: Fraction, others: int) -> None:
    headroom = headroom_gpus(size, mean, share, others)
    doublings = max(log2(size / mean), 0)
    assert 0 <= headroom <= others
    assert headroom <= float(share) * doublings * others + 1e-6
    assert headroom >= min(float(share) * (doublings - 1 / 8) * others, others) - 1 - 1e-6
    assert headroom <= headroom_gpus(size + 1, mean, share, others)


def test_headroom_keeps_gpus_for_small_jobs() -> None:
    small = [Job(id=f"s{i}", release_s=0, gpus=1, work=Fixed(duration_s=1)) for i in range(100)]
    large = [Job(id=f"L{i}", release_s=1, gpus=1, work=Fixed(duration_s=1000)) for i in range(100)]
    late = [Job(id="late", release_s=2, gpus=1, work=Fixed(duration_s=1))]
    instance = Instance(cluster=Cluster.pool(100), jobs=[*small, *large, *late])
    assert run(instance, make_policy("asrpt")).start_us["late"] == 2_000_000
    assert run(instance, make_policy("asrpt:headroom=0")).start_us["late"] > 1_000_000_000
