"""Survival curves and early stops by hand."""

from __future__ import annotations

import pytest

from frostline.prediction import EarlyStop, Finished, Survival, kaplan_meier, surviving_sizes
from frostline.problem import Fixed, Job, PlacementClass, Profiled

ITERATIONS = Profiled(iterations=1, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})


def job(name: str, **fields: object) -> Job:
    values: dict[str, object] = {"work": Fixed(duration_s=1.0), "gpus": 1, "user": "u1", **fields}
    return Job(id=name, release_s=0, **values)  # type: ignore[arg-type]


def test_the_remission_times_of_freireich() -> None:
    """The classic example: 21 patients on 6-mercaptopurine, Freireich et al., Blood 21, 1963."""
    finished = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    running = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    curve = kaplan_meier(finished, running)
    assert [size for size, _ in curve] == [6, 7, 10, 13, 16, 22, 23]
    published = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert [share for _, share in curve] == pytest.approx(published, abs=5e-4)


def test_without_running_jobs_it_is_the_empirical_distribution() -> None:
    sizes = [3.0, 1.0, 2.0, 2.0]
    assert kaplan_meier(sizes, []) == [(1.0, 0.75), (2.0, pytest.approx(0.25)), (3.0, 0.0)]
    assert surviving_sizes([1.0, 2.0, 3.0], [], lambda _: []).points == (1.0, 2.0, 3.0)


def test_a_running_job_that_has_come_no_way_changes_nothing() -> None:
    assert kaplan_meier([5, 9], [0.0]) == kaplan_meier([5, 9], [])


def test_nothing_is_known_beyond_the_last_running_job() -> None:
    assert kaplan_meier([], [5]) == []
    assert surviving_sizes([], [5.0], lambda done: [2 * done, 3 * done]).points == (10.0,)
    assert surviving_sizes([1.0], [5.0, 5.0, 5.0], lambda _: [7.0, 8.0, 9.0]).points == (1.0, 7.0, 7.0, 8.0, 9.0)


def test_running_jobs_of_the_group_raise_the_estimate() -> None:
    model = Survival()
    for name in "abc":
        model.started(job(name), 0.0)
    model.learn([Finished(job("a"), 10.0, 10.0)], 10.0)
    (before,) = model.predict([job("d")], 10.0)
    (after,) = model.predict([job("d")], 500.0)
    assert before is not None
    assert after is not None
    assert (before.median, after.median) == (20.0, 1000.0)
    model.withdrawn("b")
    model.withdrawn("c")
    (alone,) = model.predict([job("d")], 500.0)
    assert alone is not None
    assert alone.median == 10.0


def test_only_the_last_jobs_to_start_count() -> None:
    model = Survival(jobs=2)
    for name in "abc":
        model.started(job(name), 0.0)
    model.learn([Finished(job(name), size, 9.0) for name, size in (("a", 1000.0), ("b", 10.0), ("c", 20.0))], 9.0)
    (estimate,) = model.predict([job("d")], 9.0)
    assert estimate is not None
    assert estimate.sizes.points[-1] == 20.0


def test_iterations_count_once_they_are_reported() -> None:
    model = Survival()
    for name in "abc":
        model.started(job(name, work=ITERATIONS), 0.0)
    model.learn([Finished(job("a", work=ITERATIONS), 10.0, 10.0)], 10.0)
    asked = job("d", work=ITERATIONS)
    (silent,) = model.predict([asked], 1e6)
    model.progressed("b", 300.0)
    model.progressed("c", 400.0)
    model.progressed("unheard of", 400.0)
    (told,) = model.predict([asked], 1e6)
    assert silent is not None
    assert told is not None
    assert (silent.median, told.median) == (10.0, 800.0)


def test_a_dropped_target_no_longer_runs() -> None:
    model = Survival()
    model.started(job("a"), 0.0)
    model.started(job("b"), 0.0)
    model.learn([Finished(job("b"), 10.0, 10.0), Finished(job("a"), float("nan"), 10.0)], 10.0)
    (estimate,) = model.predict([job("c")], 1000.0)
    assert estimate is not None
    assert estimate.sizes.points == (10.0,)


def early_stop(sizes: list[tuple[float, str]], declared: float = 100.0) -> EarlyStop:
    model = EarlyStop()
    for i, (size, status) in enumerate(sizes):
        model.declare(f"h{i}", declared)
        model.learn([Finished(job(f"h{i}"), size, float(i), status)], float(i))
    return model


def test_early_stops_by_status() -> None:
    model = early_stop([(10.0, "Killed"), (30.0, "Killed"), (20.0, "Failed"), (100.0, "Pass"), (100.0, "Pass")])
    model.declare("a", 1000.0)
    (estimate,) = model.predict([job("a")], 9.0)
    assert estimate is not None
    assert estimate.sizes.points == (100.0, 200.0, 300.0, 1000.0, 1000.0)
    killed = model.shares(job("a"), 9.0, status="Killed")
    assert killed is not None
    assert (killed.points[0], killed.points[-1]) == (0.1, 0.3)
    assert model.shares(job("a"), 9.0, status="Lost") is None


def test_a_job_never_does_more_than_it_declared() -> None:
    model = early_stop([(250.0, "Timeout"), (150.0, "Timeout")])
    (estimate,) = model.predict([job("a", estimate_s=60.0)], 9.0)
    assert estimate is not None
    assert estimate.sizes.points == (60.0, 60.0, 60.0)


def test_a_running_job_has_not_stopped_yet() -> None:
    model = early_stop([(10.0, "Killed")])
    for name in "bc":
        model.declare(name, 100.0)
        model.started(job(name), 1.0)
    model.declare("a", 100.0)
    (estimate,) = model.predict([job("a")], 51.0)
    assert estimate is not None
    assert estimate.sizes.points == (10.0, 100.0, 100.0)
    model.progressed("b", 5.0)
    model.withdrawn("c")
    (estimate,) = model.predict([job("a")], 51.0)
    assert estimate is not None
    assert estimate.median == 10.0


def test_without_history_the_declared_size_stands() -> None:
    (estimate, nothing) = EarlyStop().predict([job("a", estimate_s=60.0), job("b")], 0.0)
    assert estimate is not None
    assert (estimate.median, estimate.cold_start, nothing) == (60.0, True, None)
    assert EarlyStop().shares(job("a"), 0.0) is None
