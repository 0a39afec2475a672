"""Reallocation at random: GPUs and freeze levels change at will, and still every job runs whole on valid GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frostline.policies import Reallocate, Share, Start, Task, View, Wait
from frostline.policies.base import Decision
from frostline.problem import Elastic, Instance, Schedule, Segment
from frostline.problem.files import load_schedule, save
from frostline.relaxation import lower_bound
from frostline.simulation import choices_made, frozen_stretches, run
from frostline.testing import instances
from frostline.timing.duration import left_after
from frostline.verify import check_schedule


class Restless:
    """Gives waiting and running tasks GPUs and levels by dice, for a hundred rounds; then starts what fits."""

    name = "restless"
    uses_virtual_machine = False
    elastic = True

    def __init__(self, restart_s: float, level_change_s: float, seed: int) -> None:
        self.restart_s, self.level_change_s = restart_s, level_change_s
        self.dice, self.rounds = np.random.default_rng(seed), 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"restart_s": self.restart_s, "level_change_s": self.level_change_s}

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        if self.rounds < 100 and view.reallocated_us != view.now_us:
            self.rounds += 1
            return Reallocate(tuple(self._shares(view)), view.now_us + int(self.dice.integers(1, 4_000_000)))
        for task in view.waiting:
            if view.offer(task) is not None:
                return Start(task)
        return Wait()

    def _shares(self, view: View) -> Iterable[Share]:
        left = view.free.capacity
        held = {run.number: run for run in view.runs.values()}
        left -= sum(run.gpus for run in held.values() if run.start_us == view.now_us)
        tasks = [run.task for run in held.values() if run.start_us < view.now_us] + list(view.waiting)
        for task in tasks:
            gpus, level = self._wish(view, task)
            if gpus > left:
                gpus = 0
            left -= gpus
            yield Share(task, gpus, level)

    def _wish(self, view: View, task: Task) -> tuple[int, int]:
        work = task.job.work
        if not self.dice.integers(0, 4):
            return 0, 0
        if not isinstance(work, Elastic):
            return task.gpus, 0
        may_freeze = work.may_freeze(view.done(task), task.done + work.iterations)
        level = int(self.dice.integers(0, work.levels)) if may_freeze else 0
        return int(self.dice.choice(work.widths)), level


POLICIES = st.builds(
    Restless, st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.0, 0.1, 2.0]), st.integers(0, 10_000)
)
PROBLEMS = instances(max_jobs=6, localities=("any", "server", "fewest"), works=("elastic", "elastic", "fixed"))


@given(PROBLEMS, POLICIES)
def test_every_job_runs_whole_on_a_valid_schedule(instance: Instance, policy: Restless) -> None:
    schedule = run(instance, policy)
    assert check_schedule(instance, schedule).faults == ()
    assert set(schedule.completion_us) | {refusal.job for refusal in schedule.refused} == {j.id for j in instance.jobs}


@given(PROBLEMS, POLICIES, st.data())
def test_a_piece_that_is_longer_or_shorter_is_found(instance: Instance, policy: Restless, data: st.DataObject) -> None:
    schedule = run(instance, policy)
    if not schedule.segments:
        return
    last = {segment.job: i for i, segment in enumerate(schedule.segments)}
    i = data.draw(st.sampled_from(sorted(last.values())))
    by = data.draw(st.sampled_from([-1, 1]))
    spoiled = list(schedule.segments)
    spoiled[i] = spoiled[i]._replace(end_us=spoiled[i].end_us + by)
    other = Schedule.of(spoiled, schedule.refused, "", schedule.restart_us, "", schedule.level_change_us)
    assert not check_schedule(instance, other).valid


@given(PROBLEMS, POLICIES)
def test_the_pieces_of_a_job_do_all_its_iterations(instance: Instance, policy: Restless) -> None:
    schedule = run(instance, policy)
    jobs = {job.id: job for job in instance.jobs}
    last: dict[str, Segment] = {}
    for segment in schedule.segments:
        before = last.get(segment.job)
        pause_us = 0 if before is None else _pause_us(schedule, before, segment)
        ran_us = max(segment.end_us - segment.start_us - pause_us, 0)
        if schedule.completion_us[segment.job] > segment.end_us:
            where, level = segment.placement, segment.freeze_level
            jobs[segment.job] = left_after(jobs[segment.job], instance.cluster, where, ran_us, level)
            work = jobs[segment.job].work
            assert not isinstance(work, Elastic) or work.iterations >= 1
        last[segment.job] = segment


def _pause_us(schedule: Schedule, before: Segment, after: Segment) -> int:
    stays = before.end_us == after.start_us and before.placement == after.placement
    return schedule.level_change_us if stays and before.freeze_level != after.freeze_level else schedule.restart_us or 0


@given(PROBLEMS, st.integers(0, 1000))
def test_a_schedule_with_levels_survives_its_file(tmp_path_factory: Any, instance: Instance, seed: int) -> None:
    schedule = run(instance, Restless(0.5, 0.1, seed))
    path = tmp_path_factory.mktemp("levels") / "schedule.json"
    save(schedule, path)
    assert load_schedule(path) == schedule


@given(PROBLEMS, POLICIES)
def test_no_schedule_is_below_the_bound_over_its_choices(instance: Instance, policy: Restless) -> None:
    schedule = run(instance, policy)
    total = sum(schedule.completion_us.values())
    for method in ("trivial", "srpt", "pointwise"):
        assert lower_bound(instance, method, choices=choices_made(instance, schedule)).completion_us <= total
        assert lower_bound(instance, method, choices="elastic").completion_us <= total


class Noting(Restless):
    """Notes what the view tells of frozen stretches."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.noted: list[tuple[str, int, tuple[tuple[int, int, int], ...]]] = []

    def decide(self, view: View) -> Decision:
        tasks = [*(run.task for run in view.running), *view.waiting]
        self.noted += [(task.job.id, view.done(task), view.frozen(task)) for task in tasks]
        return super().decide(view)


@given(PROBLEMS, POLICIES)
def test_the_scheduler_knows_what_was_frozen(instance: Instance, policy: Restless) -> None:
    noting = Noting(policy.restart_s, policy.level_change_s, int(policy.dice.integers(0, 10_000)))
    stretches = frozen_stretches(instance, run(instance, noting))
    for job, done, frozen in noting.noted:
        so_far = [(start, min(end, done), level) for start, end, level in stretches.get(job, ()) if start < done]
        assert merged(frozen) == merged(so_far)


def merged(stretches: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Stretches at one level that meet as one, without those of no iterations."""
    whole: list[tuple[int, int, int]] = []
    for start, end, level in stretches:
        if whole and whole[-1][1:] == (start, level):
            whole[-1] = (whole[-1][0], end, level)
        elif end > start:
            whole.append((start, end, level))
    return whole
