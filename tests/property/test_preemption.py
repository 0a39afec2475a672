"""Eviction: no work is lost, no GPU is booked twice, nobody is evicted in vain, least attained service is blind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frostline.policies import (
    Gittins,
    Las,
    LasFair,
    Policy,
    Preempt,
    ServerFillingSrpt,
    Srtf,
    Start,
    Task,
    View,
    Wait,
    fewest_victims,
)
from frostline.policies.base import Decision
from frostline.policies.service_queues import service_queues
from frostline.problem import Cluster, Fixed, Instance, Schedule, Segment
from frostline.relaxation import virtual_completions
from frostline.scheduler import Scheduler
from frostline.simulation import run, simulate
from frostline.testing import assert_feasible, instances, predictions
from frostline.units import duration_us, instant_us

LOCALITIES = ("any", "server", "fewest")
WORKS = ("fixed", "profiled", "training")
RESTART = st.sampled_from([0.0, 0.5, 3.0, 30.0]) | st.floats(0, 5)
MOST = st.sampled_from([0, 1, 3, 100])
LAS = st.builds(
    Las,
    thresholds=st.lists(st.integers(1, 60), min_size=1, max_size=3, unique=True).map(sorted),
    starvation=st.sampled_from([0.0, 0.5, 2.0]),
    restart_s=RESTART,
    most_evictions=MOST,
)
GITTINS = st.builds(
    Gittins,
    thresholds=st.lists(st.integers(1, 60), min_size=1, max_size=3, unique=True).map(sorted),
    starvation=st.sampled_from([0.0, 0.5, 2.0]),
    restart_s=RESTART,
    most_evictions=MOST,
    least_finished=st.integers(1, 3),
)
SRTF = st.builds(Srtf, restart_s=RESTART, most_evictions=MOST)
LAS_FAIR = st.builds(LasFair, round_s=st.sampled_from([4.0, 10.0, 360.0]), restart_s=st.sampled_from([0.0, 0.5, 3.0]))
SERVER_FILLING = st.builds(ServerFillingSrpt, restart_s=RESTART, most_evictions=MOST)


class Restless:
    """Starts what fits, and else evicts by a script whoever it can for the first task: legal, and of no sense."""

    name = "restless"
    uses_virtual_machine = False

    def __init__(self, restart_s: float, seed: int) -> None:
        self.restart_s, self.seed, self.asked = restart_s, seed, 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"restart_s": self.restart_s}

    def priority(self, task: Task) -> int:
        return (task.number * self.seed) % 7

    def decide(self, view: View) -> Decision:
        self.asked += 1
        first = view.waiting.first
        if first is None:
            return Wait()
        if view.free.fits(first.shape):
            return Start(first)
        runs = [run for run in view.running if run.start_us < view.now_us]
        turn = (self.seed + self.asked) % (len(runs) + 2)
        victims = (
            fewest_victims(view, first, runs[turn:] + runs[:turn]) if self.asked % 3 and self.asked < 200 else None
        )
        return Preempt(first, victims) if victims else Wait()


POLICIES = st.one_of(LAS, GITTINS, SRTF, SERVER_FILLING, LAS_FAIR, st.builds(Restless, RESTART, st.integers(0, 1000)))
PROBLEMS = instances(max_jobs=8, localities=LOCALITIES, works=WORKS)


def pieces(schedule: Schedule) -> dict[str, list[Segment]]:
    found: dict[str, list[Segment]] = defaultdict(list)
    for segment in schedule.segments:
        found[segment.job].append(segment)
    return found


@given(PROBLEMS, POLICIES)
def test_every_job_runs_whole_on_a_valid_schedule(instance: Instance, policy: Policy) -> None:
    result = simulate(instance, policy)
    assert_feasible(instance, result.schedule)
    assert result.metrics.jobs == len(instance.jobs)
    assert result.schedule.restart_us == duration_us(policy.parameters["restart_s"])
    assert result.metrics.evictions == len(result.schedule.segments) - len(instance.jobs)


@given(instances(max_jobs=8, localities=LOCALITIES), POLICIES)
def test_useful_time_adds_up_to_the_work(instance: Instance, policy: Policy) -> None:
    """Of each piece but the first a restart is lost, or all of it where it is shorter."""
    schedule = run(instance, policy)
    restart_us, by_job = schedule.restart_us, pieces(schedule)
    assert restart_us is not None
    for job in instance.jobs:
        assert isinstance(job.work, Fixed)
        lengths = [segment.end_us - segment.start_us for segment in by_job[job.id]]
        useful = lengths[0] + sum(max(length - restart_us, 0) for length in lengths[1:])
        assert useful == duration_us(job.work.duration_s)
        assert lengths[-1] > (restart_us if len(lengths) > 1 else 0)


@given(PROBLEMS, POLICIES)
def test_evictions_make_room_for_a_newcomer_of_that_instant(instance: Instance, policy: Policy) -> None:
    schedule = run(instance, policy)
    for job, segments in pieces(schedule).items():
        for one, two in pairwise(segments):
            assert one.start_us < one.end_us <= two.start_us
            newcomers = [segment for segment in schedule.segments if segment.start_us == one.end_us]
            assert {segment.job for segment in newcomers} - {job}
            released = {server for server, _ in one.placement.loads}
            assert any(released & {server for server, _ in new.placement.loads} for new in newcomers if new.job != job)


@given(PROBLEMS, POLICIES.filter(lambda policy: not isinstance(policy, Restless)))
def test_running_twice_gives_the_same_schedule(instance: Instance, policy: Policy) -> None:
    assert run(instance, policy) == run(instance, policy)


def plainly(view: View, policy: Las, first: int) -> tuple[list[list[Task]], int | None]:
    """Who may be evicted below each queue, worked out from nothing else, and when to look again."""
    limits_us = [duration_us(float(limit)) for limit in str(policy.thresholds).split("/")]
    lower, times_us = [], [] if view.next_renewal_us is None else [view.next_renewal_us]
    for one in view.running:
        past, held_us = one.task.past, one.held_us(view.now_us)
        queue = sum(limit_us <= held_us for limit_us in limits_us)
        if one.start_us < view.now_us and (0 if past is None else past.evictions) < policy.most_evictions:
            begun_us = one.start_us if past is None else past.first_start_us
            lower.append((-queue, -begun_us, -one.number, one.task))
        times_us += [view.now_us - (held_us - limit) // one.gpus for limit in limits_us[max(first, queue) :][:1]]
    below = [[task for minus, *_, task in sorted(lower) if minus < -queue] for queue in range(len(limits_us) + 1)]
    return below, min(times_us, default=None)


class Recounted(Las):
    """Least attained service whose every look at the running tasks is compared with one that remembers nothing."""

    def decide(self, view: View) -> Decision:
        decision = super().decide(view)
        heads = sorted(line.head for line in view.waiting.lines if line)
        if isinstance(decision, (Preempt, Wait)) and heads:
            below, next_us = plainly(view, self, heads[0][0][0])
            queues = service_queues(view, self._limits_us, self.most_evictions)
            lower = [range(len(below) - 1, queue, -1) for queue in range(len(below))]
            assert [[run.task for run in queues.members(each)] for each in lower] == below
            assert [queues.gpus_in(each) for each in lower] == [sum(task.gpus for task in tasks) for tasks in below]
            assert isinstance(decision, Preempt) or decision.until_us == next_us
        return decision


@given(PROBLEMS, LAS)
def test_what_is_kept_of_the_running_tasks_is_what_the_view_tells(instance: Instance, policy: Las) -> None:
    recounted = Recounted(**policy.parameters)
    assert run(instance, recounted).segments == run(instance, policy).segments


class Watched:
    """A policy whose every eviction is looked at."""

    def __init__(self, policy: Las | Srtf) -> None:
        self.policy = policy
        self.name, self.parameters, self.uses_virtual_machine = policy.name, policy.parameters, False
        self.restart_s, self.priority = policy.restart_s, policy.priority
        if isinstance(policy, Las):
            self.renewal_us = policy.renewal_us
            self.learns_service = isinstance(policy, Gittins)

    def decide(self, view: View) -> Decision:
        decision = self.policy.decide(view)
        if isinstance(decision, Preempt):
            self.look(view, decision)
        return decision

    def look(self, view: View, decision: Preempt) -> None:
        shape, free = decision.task.shape, view.free.copy()
        assert not free.fits(shape)
        victims = [one for one in view.running if one.task in decision.victims]
        for victim in victims:
            free.give(victim.loads)
        assert free.fits(shape)
        for victim in victims:
            free.take(victim.loads)
            assert not free.fits(shape)
            free.give(victim.loads)
            past = victim.task.past
            assert (0 if past is None else past.evictions) < self.policy.most_evictions
            assert victim.start_us < view.now_us
            if isinstance(self.policy, Srtf):
                assert victim.left_us(view.now_us) > self.policy.priority(decision.task)
            else:
                held_s = victim.held_us(view.now_us) / 1e6
                queue = sum(limit <= held_s for limit in map(float, str(self.policy.thresholds).split("/")))
                assert queue in self.policy.order(view).lower(decision.task.priority[0], decision.task)


@given(PROBLEMS, LAS | GITTINS | SRTF)
def test_victims_rank_below_the_newcomer_and_none_could_be_spared(instance: Instance, policy: Las | Srtf) -> None:
    schedule = run(instance, Watched(policy))
    assert schedule.segments == run(instance, policy).segments
    for segments in pieces(schedule).values():
        assert len(segments) - 1 <= policy.most_evictions


@given(PROBLEMS, LAS | GITTINS | SRTF | SERVER_FILLING | LAS_FAIR, st.lists(st.integers(0, 40), max_size=6))
def test_with_nothing_new_nothing_changes(instance: Instance, policy: Las | Srtf, looks: list[int]) -> None:
    """Deciding again at once, or at any time before something happens or the scheduler asks to be woken."""
    scheduler = Scheduler(instance.cluster, policy, expected=instance.jobs)
    for job in instance.jobs:
        scheduler.submit(job)
    now_s = max((job.release_s for job in instance.jobs), default=0.0)
    decision = scheduler.advance(now_s)
    for step in sorted(looks):
        assert not scheduler.decide().starts
        assert not scheduler.decide().evictions
        if decision.wake_s is not None and now_s + step >= decision.wake_s:
            break
        later = scheduler.advance(now_s + step)
        assert not later.starts
        assert not later.evictions


@given(st.data(), PROBLEMS, LAS | GITTINS | LAS_FAIR)
def test_attained_service_does_not_look_at_what_is_believed(
    data: st.DataObject, instance: Instance, policy: Las
) -> None:
    told = run(instance, policy, predictor=data.draw(predictions(instance)))
    assert told.segments == run(instance, policy).segments


@given(st.data(), PROBLEMS, SRTF | SERVER_FILLING)
def test_predicted_sizes_and_evictions_go_together(data: st.DataObject, instance: Instance, policy: Srtf) -> None:
    result = simulate(instance, policy, predictor=data.draw(predictions(instance)))
    assert_feasible(instance, result.schedule)
    assert result.metrics.jobs == len(instance.jobs)


@given(instances(pool=True, max_gpus=1, max_jobs=7), st.sampled_from([Srtf, ServerFillingSrpt]))
def test_shortest_remaining_first_on_one_gpu_is_the_virtual_machine(instance: Instance, policy: type[Srtf]) -> None:
    """Without restarts, on one GPU, the completions are those of preemptive SRPT: no order has a smaller total."""
    work = [duration_us(job.work.duration_s) for job in instance.jobs if isinstance(job.work, Fixed)]
    releases = [instant_us(job.release_s) for job in instance.jobs]
    ends = run(instance, policy(restart_s=0, most_evictions=1000)).completion_us
    assert sum(ends.values()) == sum(virtual_completions(zip(releases, work, strict=True), 1))


@given(instances(pool=True, max_gpus=8, max_jobs=8), st.sampled_from([1, 2, 4, 8]), st.data())
def test_server_filling_leaves_no_gpu_idle_where_widths_are_powers_of_2(
    instance: Instance, gpus: int, data: st.DataObject
) -> None:
    """As long as the tasks that are there ask for all GPUs, all of them are held."""
    widths = st.sampled_from([width for width in (1, 2, 4, 8) if width <= gpus])
    jobs = [job.replace(gpus=data.draw(widths)) for job in instance.jobs]
    schedule = run(instance.replace(cluster=Cluster.pool(gpus), jobs=jobs), ServerFillingSrpt(restart_s=0))
    ends = schedule.completion_us
    for at_us in {edge for segment in schedule.segments for edge in (segment.start_us, segment.end_us)}:
        wanted = sum(job.gpus for job in jobs if instant_us(job.release_s) <= at_us < ends[job.id])
        held = sum(s.placement.gpus for s in schedule.segments if s.start_us <= at_us < s.end_us)
        assert held == gpus or wanted < gpus
