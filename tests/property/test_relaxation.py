"""SRPT against brute force and against every schedule; every bound below every schedule and the optimum."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frostline.policies import make_policy, policy_names
from frostline.problem import Instance, Schedule
from frostline.relaxation import BOUNDS, VirtualMachine, lower_bound, virtual_completions
from frostline.relaxation.rigid import durations_us, instants_us
from frostline.simulation import run
from frostline.testing import instances, schedules
from frostline.units import duration_us, instant_us

SIZES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4)
LOCALITIES = ("any", "server", "fewest")


def preemptive_counts(jobs: list[tuple[int, int]]) -> list[int]:
    """Most jobs that any preemptive schedule on a unit-speed machine can complete by time 0, 1, 2, …"""
    horizon = max(release for release, _ in jobs) + sum(size for _, size in jobs)
    reached = {tuple(size for _, size in jobs)}
    most = [0]
    for now in range(horizon):
        step = set(reached)
        for left in reached:
            for i, (release, _) in enumerate(jobs):
                if release <= now and left[i]:
                    step.add((*left[:i], left[i] - 1, *left[i + 1 :]))
        reached = step
        most.append(max(left.count(0) for left in reached))
    return most


@given(SIZES)
def test_srpt_has_completed_the_most_jobs_at_every_instant(jobs: list[tuple[int, int]]) -> None:
    jobs.sort()
    completions = virtual_completions(jobs, gpus=1)
    for now, most in enumerate(preemptive_counts(jobs)):
        assert sum(at <= now for at in completions) == most


@given(SIZES, st.integers(1, 5), st.lists(st.integers(0, 30), max_size=8))
def test_looking_at_the_machine_does_not_change_it(jobs: list[tuple[int, int]], gpus: int, looks: list[int]) -> None:
    jobs.sort()
    machine, seen = VirtualMachine(gpus), {}
    events = sorted([(now, -1) for now in looks] + [(release, i) for i, (release, _) in enumerate(jobs)])
    for now, job in events:
        seen.update((number, at) for at, number in machine.advance(now))
        if job >= 0:
            machine.arrive(now, job, jobs[job][1])
    seen.update((number, at) for at, number in machine.drain())
    assert [seen[i] for i in range(len(jobs))] == virtual_completions(jobs, gpus)


@given(st.data())
def test_kth_virtual_completion_is_below_that_of_every_schedule(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=LOCALITIES))
    schedule = data.draw(schedules(instance))
    gpus = instance.cluster.gpus
    sizes = [(instant_us(job.release_s), job.gpus * duration_us(job.work.duration_s)) for job in instance.jobs]
    virtual = sorted(virtual_completions(sizes, gpus))
    real = sorted(schedule.completion_us.values())
    assert all(v <= r * gpus for v, r in zip(virtual, real, strict=True))


@given(st.data())
def test_bounds_are_below_every_schedule(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=LOCALITIES, works=("fixed", "profiled", "training")))
    total_us = sum(data.draw(schedules(instance)).completion_us.values())
    assert all(lower_bound(instance, name).completion_us <= total_us for name in BOUNDS)


@given(instances(localities=LOCALITIES), st.sampled_from(policy_names()))
def test_bounds_are_below_every_policy(instance: Instance, name: str) -> None:
    total_us = sum(run(instance, make_policy(name)).completion_us.values())
    assert all(lower_bound(instance, bound).completion_us <= total_us for bound in BOUNDS)


def optimum_us(instance: Instance) -> int:
    """Least total completion time on a pool: some order, each job as early as it fits, is optimal."""
    gpus = instance.cluster.gpus
    best: int | None = None
    for order in permutations(instance.jobs):
        busy: list[tuple[int, int, int]] = []  # (start, end, GPUs)
        for job in order:
            release, length = instant_us(job.release_s), duration_us(job.work.duration_s)
            for start in sorted({release, *(end for _, end, _ in busy if end > release)}):
                marks = {start, *(b for b, _, _ in busy if start < b < start + length)}
                if all(sum(g for b, e, g in busy if b <= t < e) + job.gpus <= gpus for t in marks):
                    busy.append((start, start + length, job.gpus))
                    break
        total = sum(end for _, end, _ in busy)
        best = total if best is None else min(best, total)
    return best or 0


@given(instances(pool=True, max_jobs=4))
def test_bounds_are_below_the_optimum(instance: Instance) -> None:
    best = optimum_us(instance)
    assert all(lower_bound(instance, name).completion_us <= best for name in BOUNDS)


@given(instances(pool=True))
def test_pointwise_is_at_least_both_of_its_parts(instance: Instance) -> None:
    value = {name: lower_bound(instance, name).completion_us for name in BOUNDS}
    assert value["pointwise"] >= max(value["trivial"], value["srpt"])
    assert all(isinstance(bound, Fraction) for bound in value.values())


@given(st.data())
def test_order_of_the_jobs_in_the_instance_does_not_matter(data: st.DataObject) -> None:
    instance = data.draw(instances())
    shuffled = instance.replace(jobs=tuple(data.draw(st.permutations(instance.jobs))))
    assert shuffled == instance
    assert Schedule.of(run(instance, make_policy("asrpt-guard")).segments) == Schedule.of(
        run(shuffled, make_policy("asrpt-guard")).segments
    )


SECONDS = st.floats(1e-300, 9e9, exclude_max=True) | st.integers(1, 10**12).map(lambda half_us: half_us / 2e6)


@given(st.lists(SECONDS))
def test_times_of_whole_columns_are_those_of_numbers(times_s: list[float]) -> None:
    column = np.array(times_s, np.float64)
    assert durations_us(column).tolist() == [duration_us(time_s) for time_s in times_s]
    assert instants_us(column).tolist() == [instant_us(time_s) for time_s in times_s]
    assert instants_us(-column).tolist() == [instant_us(-time_s) for time_s in times_s]
