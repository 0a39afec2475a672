"""Running tasks by service: what is kept follows the view, whatever happened since the last look."""

from __future__ import annotations

from typing import Any

from frostline.placement.free_gpus import Shape
from frostline.policies.service_queues import ServiceQueues
from frostline.policies.task import Past, Running, Task
from frostline.problem import Fixed, Job


def task(number: int, gpus: int = 1, **past: Any) -> Task:
    job = Job(id=f"{number}", release_s=0, work=Fixed(duration_s=1000), gpus=gpus)
    made = Task(job=job, release_us=0, shape=Shape(gpus, 1), duration_us=1000, number=number)
    if past:
        made.past = Past(**{"evicted_us": 0, "evictions": 1, "done": 0, **past})
    return made


def running(*runs: Running) -> dict[str, Running]:
    return {run.task.job.id: run for run in runs}


def run_of(one: Task, start_us: int) -> Running:
    return Running(start_us + 1000, one.number, one, ((0, one.gpus),), one.gpus, start_us=start_us)


def lower(queues: ServiceQueues, queue: int) -> range:
    return range(len(queues.limits_us), queue, -1)


def below(queues: ServiceQueues, queue: int) -> list[str]:
    return [run.task.job.id for run in queues.members(lower(queues, queue))]


def gpus_below(queues: ServiceQueues, queue: int) -> int:
    return queues.gpus_in(lower(queues, queue))


def next_move_us(queues: ServiceQueues, queue: int) -> int | None:
    return queues.next_move_us(range(queue, len(queues.limits_us)))


def test_queues_by_hand() -> None:
    """Limits of 10 and 30 GPU-µs. a holds 1 GPU from 0 on, b 4 from 5 on: they reach them at 10 and 30, at 8 and 13."""
    queues = ServiceQueues((10, 30), 3)
    runs = running(run_of(task(0), 0), run_of(task(1, 4), 5))
    queues.update(runs, 5)
    assert (below(queues, 0), gpus_below(queues, 0), next_move_us(queues, 0)) == ([], 0, 8)
    queues.update(runs, 8)
    assert (below(queues, 0), gpus_below(queues, 0), next_move_us(queues, 0)) == (["1"], 4, 10)
    assert (below(queues, 1), gpus_below(queues, 1), next_move_us(queues, 1)) == ([], 0, 13)
    queues.update(runs, 20)
    assert (below(queues, 0), gpus_below(queues, 0), next_move_us(queues, 0)) == (["1", "0"], 5, 30)
    assert (below(queues, 1), gpus_below(queues, 1)) == (["1"], 4)
    del runs["1"]
    queues.update(runs, 30)
    assert (below(queues, 0), below(queues, 1), next_move_us(queues, 0)) == (["0"], ["0"], None)


def test_who_has_started_last_goes_first_within_a_queue() -> None:
    queues = ServiceQueues((10,), 3)
    again = task(2, first_start_us=1, held_us=50)
    queues.update(running(run_of(task(0), 0), run_of(task(1), 3), run_of(again, 20)), 21)
    assert below(queues, 0) == ["1", "2", "0"]


def test_nobody_is_evicted_at_the_instant_of_its_start_or_too_often() -> None:
    queues = ServiceQueues((10,), 3)
    fresh, worn = task(0, first_start_us=0, held_us=50), task(1, first_start_us=0, held_us=50, evictions=3)
    runs = running(run_of(worn, 90), run_of(fresh, 100))
    queues.update(runs, 100)
    assert below(queues, 0) == []
    queues.update(runs, 101)
    assert below(queues, 0) == ["0"]


def test_one_that_was_evicted_and_started_again_since_counts_once() -> None:
    queues = ServiceQueues((10, 30), 3)
    one = task(0)
    queues.update(running(run_of(one, 0), run_of(task(1), 0)), 20)
    one.past = Past(first_start_us=0, evicted_us=20, evictions=1, held_us=20, done=20)
    runs = running(run_of(task(1), 0), run_of(one, 20))
    queues.update(runs, 20)
    assert (below(queues, 0), gpus_below(queues, 0), next_move_us(queues, 1)) == (["1"], 1, 30)
    queues.update(runs, 21)
    assert (below(queues, 0), gpus_below(queues, 0)) == (["1", "0"], 2)


def test_instants_may_be_negative() -> None:
    queues = ServiceQueues((10,), 3)
    runs = running(run_of(task(0, first_start_us=-90, held_us=50), -40))
    queues.update(runs, -40)
    assert below(queues, 0) == []
    queues.update(runs, -39)
    assert below(queues, 0) == ["0"]


def test_an_earlier_instant_starts_afresh() -> None:
    queues = ServiceQueues((10,), 3)
    runs = running(run_of(task(0), 0))
    queues.update(runs, 50)
    queues.update(runs, 5)
    assert (below(queues, 0), next_move_us(queues, 0)) == ([], 10)


def test_runs_that_are_over_are_forgotten() -> None:
    queues = ServiceQueues((10**9,), 3)
    for number in range(1000):
        queues.update(running(run_of(task(number), number)), number)
    assert len(queues._moves[0]) < 100
