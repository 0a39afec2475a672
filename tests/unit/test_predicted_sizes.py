"""Scheduling by predicted sizes, by hand: who knows what, when, and what happens when a job is not as believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from frostline.errors import InvalidValueError
from frostline.policies import Start, StartKind, View, Wait
from frostline.policies.base import Decision
from frostline.policies.task import Task
from frostline.prediction.distribution import SizeDistribution
from frostline.problem import Cluster, Fixed, Instance, Job, Profiled
from frostline.scheduler import Scheduler
from frostline.simulation import Result, simulate
from frostline.testing import ScriptedPredictor
from frostline.verify import check_schedule


def job(name: str, release_s: float, gpus: int, duration_s: float, **more: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), **more)


def profiled(name: str, release_s: float, gpus: int, iterations: int, one: float = 1.0, many: float = 5.0) -> Job:
    table = {"one_server": one, "many_servers": many}
    return Job(
        id=name, release_s=release_s, gpus=gpus, work=Profiled(iterations=iterations, seconds_per_iteration=table)
    )


def play(
    cluster: Cluster, jobs: Sequence[Job], policy: str, sizes: Mapping[str, Sequence[float]], **more: Any
) -> tuple[Result, ScriptedPredictor]:
    predictor = ScriptedPredictor(sizes, **more)
    instance = Instance(cluster=cluster, jobs=jobs)
    result = simulate(instance, policy, predictor=predictor)
    assert check_schedule(instance, result.schedule).valid
    return result, predictor


def starts(result: Result) -> dict[str, float]:
    return {name: start_us / 1e6 for name, start_us in result.schedule.start_us.items()}


def test_order_follows_the_prediction_and_ends_follow_the_truth() -> None:
    result, _ = play(Cluster.pool(1), [job("A", 0, 1, 100), job("B", 0, 1, 10)], "sjf", {"A": [1], "B": [10]})
    ends = {segment.job: segment.end_s for segment in result.schedule.segments}
    assert ends == {"A": 100.0, "B": 110.0}
    assert result.prediction is not None
    assert (result.prediction.a, result.prediction.b, result.prediction.D) == (0.01, 1.0, 100.0)
    assert result.prediction.overruns == 1


def test_jobs_of_one_instant_are_predicted_in_one_batch_and_blinded() -> None:
    rows = [job("b", 0, 1, 5, status="Failed"), job("a", 0, 1, 7), job("c", 3, 1, 9)]
    _, predictor = play(Cluster.pool(8), rows, "fifo", {name: [1] for name in "abc"}, unknown="c")
    batches = [([(asked.id, asked.status, asked.work) for asked in batch], now_s) for batch, now_s in predictor.asked]
    hidden = Fixed(duration_s=1)
    assert batches == [([("a", "", hidden), ("b", "", hidden)], 0.0), ([("c", "", hidden)], 3.0)]


def test_the_predictor_hears_of_starts_and_of_true_sizes() -> None:
    rows = [job("a", 0, 1, 5, status="Killed"), profiled("b", 0, 1, 3)]
    result, predictor = play(Cluster.pool(1), rows, "fifo", {"a": [1], "b": [1]}, unknown=("b",))
    assert predictor.heard == [
        ("start", "a", 0.0),
        ("finish", "a", 5.0, "Killed", 5.0),
        ("start", "b", 5.0),
        ("finish", "b", 3.0, "", 8.0),
    ]
    assert result.prediction is not None
    assert result.prediction.cold_start_share == 0.5


# Easy backfilling: h waits for a, c may run before it if it surely ends in time.
EASY = [job("a", 0, 3, 10), job("h", 1, 4, 10), job("c", 2, 1, 6)]


@pytest.mark.parametrize(
    ("believed", "start"),
    [
        ({"a": [10], "h": [10], "c": [6]}, 2.0),
        ({"a": [10], "h": [10], "c": [6, 6, 6, 9]}, 20.0),  # it may be too long, though it seldom is
        ({"a": [5, 10, 10, 10], "h": [10], "c": [6]}, 20.0),  # h may start early, though it seldom does
        ({"a": [10], "h": [10], "c": [1]}, 2.0),  # believed short, and long after all
        ({"a": [1], "h": [10], "c": [4]}, 20.0),  # a is to end at 2, has been done by halves since, and h never waits
    ],
)
def test_backfill_takes_a_candidate_at_its_largest_and_running_jobs_at_their_smallest(
    believed: dict[str, list[float]], start: float
) -> None:
    result, _ = play(Cluster.pool(4), EASY, "easy", believed)
    assert starts(result) == {"a": 0.0, "h": 10.0, "c": start}


def test_a_job_that_outlives_its_expected_end_is_predicted_again() -> None:
    """At 4 a is past its expected end of 3: it is believed to take 12, so that c, of 6, may run before h."""
    rows = [job("a", 0, 3, 12), job("h", 1, 4, 10), job("c", 4, 1, 6)]
    result, _ = play(Cluster.pool(4), rows, "easy", {"a": [3, 12, 12], "h": [10], "c": [6]})
    assert starts(result) == {"a": 0.0, "c": 4.0, "h": 12.0}
    assert result.prediction is not None
    assert (result.prediction.repredictions, result.prediction.overruns) == (1, 0)


def test_a_new_belief_moves_a_reservation_before_its_time() -> None:
    """h is reserved at 10, when b ends; at 4 a is believed to end at 12 only, so that c may run until 11."""
    rows = [job("a", 0, 2, 12), job("b", 0, 1, 10), job("h", 1, 4, 10), job("c", 4, 1, 7)]
    result, _ = play(Cluster.pool(4), rows, "easy", {"a": [3, 12, 12], "b": [10], "h": [10], "c": [7]})
    assert starts(result) == {"a": 0.0, "b": 0.0, "c": 4.0, "h": 12.0}


def test_a_job_beyond_all_belief_is_taken_to_be_half_done() -> None:
    """At 4 a has run for 4 and is taken to end at 8, so that d may run before h; at 8 it is taken to end at 16."""
    rows = [job("a", 0, 3, 12), job("h", 1, 4, 10), job("e", 4, 1, 4.5), job("d", 4, 1, 4)]
    result, _ = play(Cluster.pool(4), rows, "easy", {"a": [3], "h": [10], "d": [4], "e": [4.5]})
    assert starts(result) == {"a": 0.0, "d": 4.0, "e": 8.0, "h": 12.5}
    assert result.prediction is not None
    assert result.prediction.overruns == 1


def test_a_job_that_ends_as_expected_is_no_overrun() -> None:
    rows = [job("a", 0, 1, 5), job("b", 5, 1, 5)]
    result, _ = play(Cluster.pool(2), rows, "fifo", {"a": [5], "b": [5]})
    assert result.prediction is not None
    assert (result.prediction.repredictions, result.prediction.overruns) == (0, 0)


def test_overrun_that_only_its_end_shows_is_counted() -> None:
    result, _ = play(Cluster.pool(2), [job("a", 0, 1, 5)], "fifo", {"a": [4]})
    assert result.prediction is not None
    assert (result.prediction.repredictions, result.prediction.overruns) == (0, 1)


def test_a_job_whose_time_depends_on_its_gpus_is_scaled_to_its_offer() -> None:
    """p is offered two servers, 5 s an iteration: 10 s by the median, 15 s at the largest, and h is reserved at 20."""
    rows = [job("x", 0, 7, 20), job("y", 0, 7, 20), job("h", 1, 16, 1), profiled("p", 5, 2, 2)]
    for largest, start in ((3, 5.0), (4, 21.0)):
        sizes = {"x": [20], "y": [20], "h": [1], "p": [2, 2, 2, largest]}
        result, _ = play(Cluster.uniform(2), rows, "easy", sizes)
        assert starts(result)["p"] == start
        assert starts(result)["h"] == 20.0


def test_iterations_beyond_the_longest_run_are_cut_off() -> None:
    result, _ = play(Cluster.pool(1), [profiled("a", 0, 1, 3), job("b", 1, 1, 1)], "sjf", {"a": [1e30], "b": [1e30]})
    assert starts(result) == {"a": 0.0, "b": 3.0}


def test_work_for_the_virtual_machine_is_deflated() -> None:
    # Due when the virtual machine has served 4 · 10 GPU-s, or a fourth of it, at 8 GPUs.
    for deflation, due in ((1.0, 5.0), (4.0, 1.25), (1e9, 1e-6)):
        result, _ = play(Cluster.pool(8), [job("a", 0, 4, 3)], "asrpt-strict", {"a": [10]}, deflation=deflation)
        assert starts(result) == {"a": due}


def test_patience_follows_the_longest_belief() -> None:
    rows = [job("a", 0, 1, 100), job("big", 1, 2, 100), job("s", 1, 1, 1)]
    policy = "asrpt-guard:order=longest:discipline=strict:patience=0.1"
    result, _ = play(Cluster.pool(2), rows, policy, {"a": [200], "big": [200], "s": [1]})
    # s is due at 1.5, and Γ is a tenth of 200.
    assert starts(result)["s"] == 21.5
    assert result.guarantee is not None
    assert result.guarantee.parameters["gamma_s"] == 20.0


# -- out of order ----------------------------------------------------------------------------------------------


class Scripted:
    """A policy that decides by a given function, in order of arrival."""

    name = "scripted"
    parameters: ClassVar[dict[str, object]] = {}
    uses_virtual_machine = False

    def __init__(self, decide: Callable[[View], Decision]) -> None:
        self.decide = decide

    def priority(self, task: Task) -> int:
        return task.number


@pytest.mark.parametrize(("kind", "budget"), [(StartKind.ON_BUDGET, [2, 2]), (StartKind.BACKFILL, [0, 2])])
def test_a_backfill_counts_on_the_budget_once_it_overruns(kind: StartKind, budget: list[int]) -> None:
    seen: list[tuple[int, int]] = []

    def decide(view: View) -> Decision:
        seen.append((view.out_of_order_gpus, view.budget_gpus))
        first = view.waiting.first
        return Wait() if first is None or first.job.id == "z" else Start(first, kind)

    scheduler = Scheduler(Cluster.pool(8), Scripted(decide), predictor=ScriptedPredictor({"a": [5], "z": [1]}))
    scheduler.submit(job("a", 0, 2, 1))
    scheduler.submit(job("z", 1, 1, 1))
    scheduler.advance(0)
    scheduler.advance(1)
    scheduler.advance(5)
    scheduler.finish("a", 9)
    scheduler.advance(9)
    assert seen == [(0, 0), (2, budget[0]), (2, budget[1]), (0, 0)]


def test_uncertain_backfills_leave_a_gpu_to_the_tasks_in_order() -> None:
    # B = 1: h may take the whole pool. A backfill that is sure to end would run, one that is predicted may not.
    rows = [job("a", 0, 3, 8), job("h", 0, 4, 1), job("c", 4, 1, 1)]
    sizes = {"a": [8], "h": [1], "c": [1]}
    known = simulate(Instance(cluster=Cluster.pool(4), jobs=rows), "asrpt-guard:patience=0:order=longest")
    assert starts(known)["c"] == 4.0
    result, _ = play(Cluster.pool(4), rows, "asrpt-guard:patience=0:order=longest", sizes)
    assert starts(result)["c"] == 9.0
    assert result.guarantee is not None
    assert result.guarantee.parameters["E_measured"] == 0


# -- the live scheduler ----------------------------------------------------------------------------------------


def live(sizes: Mapping[str, Sequence[float]], *jobs: Job, gpus: int = 4) -> tuple[Scheduler, ScriptedPredictor]:
    predictor = ScriptedPredictor(sizes)
    scheduler = Scheduler(Cluster.pool(gpus), "easy", predictor=predictor)
    for each in jobs:
        scheduler.submit(each)
    return scheduler, predictor


def test_what_a_job_says_of_its_size_is_not_looked_at_and_a_start_tells_the_median() -> None:
    scheduler, _ = live({"a": [10, 20, 90]}, job("a", 0, 4, 7))
    (start,) = scheduler.advance(0).starts
    assert (start.start_s, start.end_s) == (0.0, 20.0)


def test_finish_without_a_size_takes_the_run_time_of_fixed_work() -> None:
    scheduler, predictor = live({"a": [10], "p": [3]}, job("a", 0, 1, 1), profiled("p", 0, 1, 1))
    scheduler.advance(2)
    with pytest.raises(InvalidValueError, match="job 'p': size=None must tell the iterations that were done"):
        scheduler.finish("p")
    scheduler.finish("a", status="Pass")
    scheduler.finish("p", size=8)
    scheduler.advance(9.5)
    finished = [event for event in predictor.heard if event[0] == "finish"]
    assert finished == [("finish", "a", 7.5, "Pass", 9.5), ("finish", "p", 8, "", 9.5)]


@pytest.mark.parametrize("size", [0, -1.0, float("nan"), "8", True])
def test_a_size_must_be_a_positive_number(size: float) -> None:
    for scheduler in (live({"a": [10]}, job("a", 0, 1, 1))[0], Scheduler(Cluster.pool(1), "fifo")):
        if not scheduler.outlook:
            scheduler.submit(job("a", 0, 1, 1))
        scheduler.advance(0)
        with pytest.raises(InvalidValueError, match="job 'a': size="):
            scheduler.finish("a", size)
        scheduler.finish("a", 3)
        scheduler.advance(1)


def reserved_at(scheduler: Scheduler, now_s: float) -> list[str]:
    return [start.job for start in scheduler.advance(now_s).starts]


@pytest.mark.parametrize(("seconds_per_iteration", "fits"), [(None, 16), (0.5, 8), (2, 32), (0.1, 1.6)])
def test_progress_moves_the_expected_end_exactly_where_the_total_is_known(
    seconds_per_iteration: float | None, fits: float
) -> None:
    """p has done 4 of 20 iterations at 10; h is reserved when it ends, and what fits before may run."""
    for length, started in ((fits, ["c"]), (fits + 1e-6, [])):
        scheduler = Scheduler(Cluster.pool(4), "easy")
        for each in (profiled("p", 0, 3, 20), job("h", 1, 4, 1), job("c", 10, 1, length)):
            scheduler.submit(each)
        assert reserved_at(scheduler, 0) == ["p"]
        scheduler.progress("p", 4, seconds_per_iteration)
        assert reserved_at(scheduler, 10) == started


def test_progress_of_a_predicted_job_uses_the_low_quantile_of_what_is_left() -> None:
    sizes = {"p": [12, 20, 30], "h": [1], "c": [8], "d": [8.1]}
    rows = [profiled("p", 0, 3, 99), job("h", 1, 4, 1), job("d", 10, 1, 1), job("c", 10, 1, 1)]
    scheduler, predictor = live(sizes, *rows)
    assert reserved_at(scheduler, 0) == ["p"]
    scheduler.progress("p", 4)
    assert reserved_at(scheduler, 10) == ["c"]
    scheduler.progress("p", 15, 3.5)
    assert ("progress", "p", 4, 1.0, 10.0) in predictor.heard
    scheduler.advance(11)
    assert predictor.heard[-1] == ("progress", "p", 15, 3.5, 11.0)


def test_progress_that_is_complete_leaves_a_microsecond() -> None:
    scheduler = Scheduler(Cluster.pool(4), "easy")
    for each in (profiled("p", 0, 3, 20), job("h", 1, 4, 1), job("c", 10, 1, 1e-6), job("d", 10, 1, 2e-6)):
        scheduler.submit(each)
    assert reserved_at(scheduler, 0) == ["p"]
    scheduler.progress("p", 20)
    assert reserved_at(scheduler, 10) == ["c"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", 1), "scheduler: progress='nobody' is not a running job"),
        (("a", 1), "job 'a': iterations=1 cannot be told of work without iterations"),
        (("p", -1), "job 'p': iterations=-1 must be at least 0"),
        (("p", 2.5), "job 'p': iterations=2.5 must be a whole number"),
        (("p", 21), "job 'p': iterations=21 must be at most 20"),
        (("p", 1, 0), "job 'p': seconds_per_iteration=0 must be above 0"),
        (("p", 1, "1"), "job 'p': seconds_per_iteration='1' must be a number"),
    ],
)
def test_impossible_progress_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    scheduler = Scheduler(Cluster.pool(4), "easy")
    scheduler.submit(job("a", 0, 1, 10))
    scheduler.submit(profiled("p", 0, 1, 20))
    scheduler.advance(0)
    with pytest.raises(InvalidValueError, match=message):
        scheduler.progress(*arguments)


def test_progress_of_a_job_that_finishes_in_the_same_step_is_dropped() -> None:
    scheduler = Scheduler(Cluster.pool(4), "easy")
    scheduler.submit(profiled("p", 0, 1, 20))
    scheduler.advance(0)
    scheduler.progress("p", 3)
    scheduler.finish("p")
    with pytest.raises(InvalidValueError, match="is not a running job"):
        scheduler.progress("p", 4)
    assert scheduler.advance(1).starts == ()


class Odd(ScriptedPredictor):
    """Answers for one job less than asked."""

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Any]:
        return super().predict(jobs, now_s)[1:]


def test_a_predictor_must_answer_for_every_job() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo", predictor=Odd({"a": [1]}))
    scheduler.submit(job("a", 0, 1, 1))
    with pytest.raises(
        InvalidValueError, match="predictor: predict='0 estimates' must hold one estimate for each of 1"
    ):
        scheduler.advance(0)


@pytest.mark.parametrize("deflation", [0.0, -1.0, float("inf"), float("nan")])
def test_deflation_must_be_a_positive_number(deflation: float) -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo", predictor=ScriptedPredictor({"a": [1]}, deflation=deflation))
    scheduler.submit(job("a", 0, 1, 1))
    with pytest.raises(InvalidValueError, match="predictor: deflation="):
        scheduler.advance(0)


def test_jobs_are_predicted_once_although_the_policy_fails() -> None:
    class Fussy(Scripted):
        broken = True

        def priority(self, task: Task) -> int:
            if self.broken and task.job.id == "b":
                raise ZeroDivisionError("no order")
            return task.number

    policy = Fussy(lambda view: Wait() if view.waiting.first is None else Start(view.waiting.first))
    predictor = ScriptedPredictor({name: [1] for name in "abc"})
    scheduler = Scheduler(Cluster.pool(8), policy, predictor=predictor)
    for name in "abc":
        scheduler.submit(job(name, 0, 1, 10))
    with pytest.raises(ZeroDivisionError):
        scheduler.advance(0)
    policy.broken = False
    assert reserved_at(scheduler, 1) == ["a", "b", "c"]
    assert [len(batch) for batch, _ in predictor.asked] == [3]


def test_jobs_that_finish_together_are_told_in_order_of_arrival() -> None:
    scheduler, predictor = live({"a": [1], "b": [1]}, job("a", 0, 1, 1), job("b", 0, 1, 1))
    scheduler.advance(0)
    for name in ("b", "a"):
        scheduler.finish(name)
    scheduler.advance(2)
    assert [event[1] for event in predictor.heard if event[0] == "finish"] == ["a", "b"]


def test_new_belief_is_never_in_the_past() -> None:
    class Stubborn(ScriptedPredictor):
        def remaining(self, job_id: str, done: float) -> SizeDistribution:
            return SizeDistribution([1e-9])

    rows = [job("a", 0, 3, 9), job("h", 1, 4, 1), job("c", 2, 1, 1)]
    instance = Instance(cluster=Cluster.pool(4), jobs=rows)
    result = simulate(instance, "easy", predictor=Stubborn({"a": [1], "h": [1], "c": [1]}))
    assert starts(result) == {"a": 0.0, "h": 9.0, "c": 10.0}


def test_true_jobs_that_run_too_long_somewhere_are_refused_as_without_predictions() -> None:
    instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=[profiled("w", 0, 2, 10**9, 1, 10)])
    with pytest.raises(InvalidValueError, match="must be at most 9"):
        simulate(instance, "fifo", predictor=ScriptedPredictor({"w": [1]}))
