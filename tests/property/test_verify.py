"""The checker accepts every valid schedule, and finds whatever is done to one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.problem import Instance, Locality, Placement, Reason, Refusal, Schedule, Segment
from frostline.testing import assert_feasible, instances, schedules
from frostline.units import instant_us
from frostline.verify import Fault, FaultKind, check_schedule

ALL_WORKS = ("fixed", "profiled", "training")


@given(st.data())
def test_every_list_schedule_is_valid(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=tuple(Locality), works=ALL_WORKS, impossible=True))
    assert_feasible(instance, data.draw(schedules(instance)))


@given(st.data())
def test_over_capacity_is_what_a_count_of_every_instant_says(data: st.DataObject) -> None:
    instance = data.draw(instances(max_jobs=5))
    schedule = data.draw(schedules(instance))
    moved = [
        segment._replace(start_us=start, end_us=start + segment.end_us - segment.start_us)
        for segment in schedule.segments
        for start in [data.draw(st.integers(0, 20)) * 1_000_000]
    ]
    faults = _of_kind(check_schedule(instance, Schedule(segments=tuple(moved))).faults, FaultKind.OVER_CAPACITY)
    assert {fault.server for fault in faults} == _full_servers(instance, moved)


def _full_servers(instance: Instance, segments: list[Segment]) -> set[str]:
    return {
        server.id
        for m, server in enumerate(instance.cluster.servers)
        for at in segments
        if sum(dict(s.placement.loads).get(m, 0) for s in segments if s.start_us <= at.start_us < s.end_us)
        > server.gpus
    }


def _of_kind(faults: tuple[Fault, ...], kind: FaultKind) -> list[Fault]:
    return [fault for fault in faults if fault.kind is kind]


def _changed(schedule: Schedule, index: int, *pieces: Segment) -> Schedule:
    kept = [segment for i, segment in enumerate(schedule.segments) if i != index]
    return Schedule(segments=(*kept, *pieces), refused=schedule.refused)


def _before_release(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    release_us = {job.id: instant_us(job.release_s) for job in instance.jobs}[segment.job]
    shift = segment.start_us - release_us + 1
    return _changed(schedule, index, segment._replace(start_us=segment.start_us - shift, end_us=segment.end_us - shift))


def _one_gpu_more(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    (m, column), *others = segment.placement.columns
    more = Placement([(m, (column[0] + 1, *column[1:])), *others])
    return _changed(schedule, index, segment._replace(placement=more))


def _other_stage(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    (m, column), *others = segment.placement.columns
    assume(len(column) > 1)
    giver = next(stage for stage, count in enumerate(column) if count)
    taker = (giver + 1) % len(column)
    moved = [count - (stage == giver) + (stage == taker) for stage, count in enumerate(column)]
    return _changed(schedule, index, segment._replace(placement=Placement([(m, moved), *others])))


def _no_such_server(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    column = [sum(counts) for counts in zip(*(column for _, column in segment.placement.columns), strict=True)]
    elsewhere = Placement([(len(instance.cluster.servers) + index, column)])
    return _changed(schedule, index, segment._replace(placement=elsewhere))


def _too_long(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    return _changed(schedule, index, segment._replace(end_us=segment.end_us + 1))


def _no_length(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    return _changed(schedule, index, segment._replace(end_us=segment.start_us))


def _fraction_of_microsecond(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    return _changed(schedule, index, segment._replace(start_us=segment.start_us + 0.5))  # type: ignore[arg-type]


def _dropped(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    return _changed(schedule, index)


def _renamed(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    return _changed(schedule, index, schedule.segments[index]._replace(job="nobody"))


def _split(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    middle = (segment.start_us + segment.end_us) // 2
    return _changed(schedule, index, segment._replace(end_us=middle), segment._replace(start_us=middle))


def _twice(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    segment = schedule.segments[index]
    return _changed(schedule, index, segment, segment)


def _frozen(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    return _changed(schedule, index, schedule.segments[index]._replace(freeze_level=1))


def _refused_and_ran(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    return Schedule(segments=schedule.segments, refused=(*schedule.refused, _refusal(schedule.segments[index].job)))


def _refused_instead(instance: Instance, schedule: Schedule, index: int) -> Schedule:
    changed = _changed(schedule, index)
    return Schedule(segments=changed.segments, refused=(*schedule.refused, _refusal(schedule.segments[index].job)))


def _refusal(job: str) -> Refusal:
    return Refusal(job=job, need_gpus=1, largest_offer_gpus=0, reason=Reason.CLUSTER_TOO_SMALL)


Mutation = Callable[[Instance, Schedule, int], Schedule]
MUTATIONS: list[tuple[Mutation, FaultKind, bool]] = [
    (_before_release, FaultKind.STARTS_BEFORE_RELEASE, True),
    (_one_gpu_more, FaultKind.WRONG_GPUS, True),
    (_other_stage, FaultKind.WRONG_GPUS, True),
    (_no_such_server, FaultKind.UNKNOWN_SERVER, True),
    (_too_long, FaultKind.WRONG_DURATION, True),
    (_no_length, FaultKind.BAD_INTERVAL, True),
    (_fraction_of_microsecond, FaultKind.BAD_INTERVAL, True),
    (_dropped, FaultKind.MISSING_JOB, True),
    (_renamed, FaultKind.MISSING_JOB, True),
    (_renamed, FaultKind.UNKNOWN_JOB, False),
    (_split, FaultKind.INTERRUPTED, True),
    (_twice, FaultKind.DOUBLE_BOOKING, True),
    (_frozen, FaultKind.WRONG_LEVEL, True),
    (_refused_and_ran, FaultKind.REFUSED_BUT_RAN, True),
    (_refused_instead, FaultKind.REFUSED_BUT_FITS, True),
]


@pytest.mark.parametrize(("mutate", "kind", "names_job"), MUTATIONS)
@given(data=st.data())
def test_every_planted_fault_is_found(data: st.DataObject, mutate: Mutation, kind: FaultKind, names_job: bool) -> None:
    works = ("training",) if mutate is _other_stage else ALL_WORKS
    instance = data.draw(instances(max_jobs=4, works=works))
    schedule = data.draw(schedules(instance))
    assume(schedule.segments)
    index = data.draw(st.integers(0, len(schedule.segments) - 1))
    job = schedule.segments[index].job if names_job else "nobody"
    faults = _of_kind(check_schedule(instance, mutate(instance, schedule, index)).faults, kind)
    assert [fault.job for fault in faults] == [job]
    assert repr(job) in faults[0].text


@given(st.data())
def test_a_job_beyond_its_locality_is_found(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=(Locality.ANY,), max_jobs=3))
    schedule = data.draw(schedules(instance))
    spread = {s.job: len(s.placement.loads) for s in schedule.segments}
    locality = data.draw(st.sampled_from([Locality.SERVER, Locality.FEWEST]))
    strict = instance.replace(jobs=tuple(job.replace(locality=locality) for job in instance.jobs))
    allowed = {
        job.id: 1 if locality is Locality.SERVER else instance.cluster.servers_needed(job.gpus) for job in instance.jobs
    }
    faults = _of_kind(check_schedule(strict, schedule).faults, FaultKind.LOCALITY)
    assert {fault.job for fault in faults} == {job for job, servers in spread.items() if servers > allowed[job]}


@given(st.data())
def test_interrupted_jobs_must_run_for_as_long_as_they_take(data: st.DataObject) -> None:
    instance = data.draw(instances(max_jobs=4))
    schedule = data.draw(schedules(instance))
    assume(schedule.segments and schedule.segments[0].end_us - schedule.segments[0].start_us >= 4)
    job = schedule.segments[0].job
    split = _split(instance, schedule, 0)
    assert_feasible(instance, split, allow_interruptions=True)
    last = max(i for i, segment in enumerate(split.segments) if segment.job == job)
    short = _changed(split, last, split.segments[last]._replace(end_us=split.segments[last].end_us - 1))
    (fault,) = check_schedule(instance, short, allow_interruptions=True).faults
    assert (fault.kind, fault.job) == (FaultKind.WRONG_DURATION, job)
