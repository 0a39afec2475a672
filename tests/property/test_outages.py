"""Outages at random: whatever fails, nobody runs on a server that is down, and every job runs whole in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from frostline.placement.free_gpus import FreeGpus, Shape
from frostline.policies import make_policy
from frostline.prediction import OnlinePredictor
from frostline.problem import Elastic, Instance, Outage, Schedule
from frostline.problem.files import load_schedule, save
from frostline.problem.outage import Downtimes
from frostline.simulation import frozen_stretches, run, simulate
from frostline.testing import assert_feasible, checkpointed, instances, outages
from frostline.verify import check_schedule

LOCALITIES = ("any", "server", "fewest")
RIGID = ("fixed", "profiled", "training")
ONE_BY_ONE = ("fifo", "easy", "sjf:discipline=backfill", "ljf", "smallest-area:discipline=strict")
GUIDED = ("asrpt", "asrpt-strict", "asrpt-budget", "asrpt-guard", "asrpt:patience=0.1", "asrpt-guard:patience=0")
PREEMPTIVE = (
    "las:thresholds=5/20:restart_s=1:starvation=2",
    "las:restart_s=0",
    "gittins:thresholds=5/20:restart_s=1:least_finished=1",
    "las-fair:round_s=7:restart_s=1",
    "srtf:restart_s=0.5",
    "srtf",
    "serverfilling-srpt:restart_s=0.5",
)
PLAYING = ("icefrog:restart_s=1", "icefrog:round_s=7:restart_s=0", "pollux:round_s=5:restart_s=2", "sia:restart_s=0.5")
PLANNED = ("icefrog-rigid", "icefrog-rigid:form=asrpt-strict", "icefrog-rigid:form=asrpt-budget")
LEARNING = ("median", "combined")

rigid = st.sampled_from([*ONE_BY_ONE, *GUIDED, *PREEMPTIVE])
Case = tuple[Instance, tuple[Outage, ...]]


@st.composite
def cases(draw: st.DrawFn, *works: str, saving: bool = True, for_good: bool = False, max_jobs: int = 7) -> Case:
    """An instance with outages."""
    instance = draw(instances(max_jobs=max_jobs, localities=LOCALITIES, works=works, impossible=True))
    if saving:
        instance = draw(checkpointed(instance))
    return instance, draw(outages(instance.cluster, for_good=for_good))


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["take", "give", "shut", "copy"]), st.integers(1, 5))),
)
def test_closed_servers_are_as_if_they_had_no_gpus(capacities: list[int], steps: list[tuple[int, str, int]]) -> None:
    free, counts, shut = FreeGpus(capacities), list(capacities), set[int]()
    for at, step, gpus in steps:
        m = at % len(capacities)
        if step == "take" and counts[m] >= gpus:
            counts[m] -= gpus
            free.take(((m, gpus),))
        elif step == "give" and counts[m] + gpus <= capacities[m]:
            counts[m] += gpus
            free.give(((m, gpus),))
        elif step == "shut":
            (free.open if m in shut else free.close)(m, capacities[m])
            shut ^= {m}
        elif step == "copy":
            free = free.copy()
        seen = [0 if m in shut else count for m, count in enumerate(counts)]
        plain = FreeGpus(seen)
        assert (free.by_server, free.total, free.largest) == (seen, sum(seen), plain.largest)
        assert free.capacity == sum(gpus for m, gpus in enumerate(capacities) if m not in shut)
        for shape in (Shape(gpus, 1), Shape(gpus + 2, 2), Shape(gpus + 2, len(capacities))):
            assert free.best_fit(shape) == plain.best_fit(shape)


def check(instance: Instance, schedule: Schedule, down: Sequence[Outage]) -> None:
    """The schedule is valid, nobody waits for ever, and no job ever holds a part of its GPUs."""
    assert_feasible(instance, schedule)
    assert set(schedule.outages) == set(down)
    assert schedule.unfinished == ()
    ran = set(schedule.completion_us)
    assert ran | {refusal.job for refusal in schedule.refused} == {job.id for job in instance.jobs}
    gpus = {job.id: set(job.work.widths) if isinstance(job.work, Elastic) else {job.gpus} for job in instance.jobs}
    assert all(segment.placement.gpus in gpus[segment.job] for segment in schedule.segments)


@given(cases(*RIGID), rigid, st.sampled_from([None, 0.0, 2.5]))
def test_every_job_runs_whole_on_servers_that_are_up(case: Case, policy: str, restart_s: float | None) -> None:
    instance, down = case
    stated = None if policy in PREEMPTIVE else restart_s
    result = simulate(instance, policy, outages=down, restart_s=stated)
    check(instance, result.schedule, down)
    assert not down or result.guarantee is None
    assert result.schedule == simulate(instance, policy, outages=down, restart_s=stated).schedule


@given(cases("elastic", "elastic", "fixed"), st.sampled_from(PLAYING))
def test_elastic_jobs_run_whole_on_servers_that_are_up(case: Case, policy: str) -> None:
    instance, down = case
    schedule = run(instance, make_policy(policy), outages=down)
    check(instance, schedule, down)
    for job, stretches in frozen_stretches(instance, schedule).items():
        total = next(one.work.iterations for one in instance.jobs if one.id == job and isinstance(one.work, Elastic))
        ends = [0, *(end for _, end, _ in stretches)]
        assert all(before <= start < end <= total for before, (start, end, _) in zip(ends, stretches, strict=False))


@given(cases("elastic", "fixed", saving=False), st.sampled_from(PLANNED), st.sampled_from([None, 0.5]))
def test_planned_jobs_begin_anew(case: Case, policy: str, restart_s: float | None) -> None:
    instance, down = case
    check(instance, run(instance, make_policy(policy), outages=down, restart_s=restart_s), down)


@given(cases(*RIGID, max_jobs=5), rigid, st.sampled_from(LEARNING), st.sampled_from([None, 1.5]))
def test_jobs_of_predicted_sizes_run_whole(case: Case, policy: str, model: str, restart_s: float | None) -> None:
    instance, down = case
    stated, predictor = None if policy in PREEMPTIVE else restart_s, OnlinePredictor(model)
    check(instance, run(instance, make_policy(policy), predictor=predictor, outages=down, restart_s=stated), down)


@given(cases("fixed", "profiled", "elastic", for_good=True), rigid | st.sampled_from(PLAYING))
def test_where_servers_never_come_back_the_simulation_ends_all_the_same(case: Case, policy: str) -> None:
    instance, down = case
    result = simulate(instance, policy, outages=down)
    schedule = result.schedule
    assert_feasible(instance, schedule)
    assert result.metrics.unfinished == len(schedule.unfinished)
    ended = {*schedule.completion_us, *(refusal.job for refusal in schedule.refused)}
    assert ended | set(schedule.unfinished) == {job.id for job in instance.jobs}
    assert ended.isdisjoint(schedule.unfinished)
    assert not schedule.unfinished or any(outage.end_s is None for outage in down)


@given(cases(*RIGID), rigid)
def test_the_same_bytes_each_time_and_through_a_file(tmp_path_factory, case: Case, policy: str) -> None:  # type: ignore[no-untyped-def]
    instance, down = case
    schedule = run(instance, make_policy(policy), outages=down)
    folder = tmp_path_factory.mktemp("outages")
    save(schedule, folder / "one.json")
    save(run(instance, make_policy(policy), outages=down[::-1]), folder / "two.json")
    assert (folder / "one.json").read_bytes() == (folder / "two.json").read_bytes()
    assert load_schedule(folder / "one.json") == schedule


@given(cases(*RIGID, "elastic"), st.sampled_from([*ONE_BY_ONE, *GUIDED, *PREEMPTIVE, *PLAYING]))
def test_an_outage_after_the_end_changes_nothing(case: Case, policy: str) -> None:
    instance, _ = case
    plain = run(instance, make_policy(policy))
    late = [Outage(server=instance.cluster.servers[0].id, start_s=1e6)]
    assert run(instance, make_policy(policy), outages=late).segments == plain.segments


@given(cases(*RIGID), rigid, st.data())
def test_a_piece_of_another_length_is_found(case: Case, policy: str, data: st.DataObject) -> None:
    """The last piece of a job is exactly as long as what its checkpoints have left."""
    instance, down = case
    schedule = run(instance, make_policy(policy), outages=down)
    last = {segment.job: i for i, segment in enumerate(schedule.segments)}
    if not last:
        return
    i = data.draw(st.sampled_from(sorted(last.values())))
    by_us = data.draw(st.sampled_from([-1, 1, 30]))
    segments = list(schedule.segments)
    segments[i] = segments[i]._replace(end_us=segments[i].end_us + by_us)
    if segments[i].start_us < segments[i].end_us:
        other = Schedule.of(segments, schedule.refused, restart_us=schedule.restart_us, outages=down)
        assert check_schedule(instance, other).faults


@given(cases("fixed"), st.sampled_from(ONE_BY_ONE))
def test_useful_time_adds_up_to_the_work_and_what_was_lost(case: Case, policy: str) -> None:
    """Worked out from the segments alone: work kept is a multiple of the checkpoints, but in the last piece."""
    instance, down = case
    schedule = run(instance, make_policy(policy), outages=down)
    downtimes = Downtimes(down, instance.cluster)
    lengths: dict[str, list[int]] = defaultdict(list)
    for segment in schedule.segments:
        lengths[segment.job].append(segment.end_us - segment.start_us)
        ended = schedule.completion_us[segment.job] == segment.end_us
        assert ended or downtimes.fails(segment.placement.servers, segment.end_us)
    for job in instance.jobs:
        *cut, last = lengths.get(job.id, [0])
        if last:
            every_us = None if job.checkpoint_s is None else round(job.checkpoint_s * 1e6)
            kept = sum(length - length % every_us for length in cut) if every_us else 0
            assert kept + last == round(job.work.duration_s * 1e6)  # type: ignore[union-attr]
