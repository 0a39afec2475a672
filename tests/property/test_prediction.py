"""No model knows the future, and none depends on the order of reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frostline.prediction import (
    Estimate,
    OnlinePredictor,
    SizeModel,
    distortion,
    kaplan_meier,
    make_model,
    surviving_sizes,
)
from frostline.prediction.replay import _events
from frostline.prediction.size import size_of
from frostline.problem import Fixed, Job, PlacementClass, Profiled

MODELS = [
    "last-finished",
    "median",
    "recent-median:jobs=2",
    "width-median",
    "ewma",
    "global-median",
    "user-estimate",
    "scaled-estimate",
    "survival:jobs=3",
    "early-stop",
    "combined",
    "combined:prior_jobs=1:sharpness=5",
]


def _work(kind: bool, size: int) -> Fixed | Profiled:
    if kind:
        return Fixed(duration_s=float(size))
    return Profiled(iterations=size, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})


@st.composite
def traces(draw: st.DrawFn, max_jobs: int = 12) -> list[Job]:
    """Jobs of few users and names, that come in bursts and of both kinds of work."""
    few = st.sampled_from
    return [
        Job(
            id=f"J{i}",
            release_s=float(draw(st.integers(0, 12))),
            work=_work(draw(few([True, True, False])), draw(st.integers(1, 12))),
            gpus=draw(few([1, 2])),
            user=draw(few(["", "u1", "u2"])),
            group=draw(few(["", "g"])),
            name=draw(few(["", "x-1", "x-2", "y"])),
            status=draw(few(["", "Pass", "Killed"])),
            estimate_s=draw(few([None, 5.0, 100.0])),
        )
        for i in range(draw(st.integers(1, max_jobs)))
    ]


def predictions(
    jobs: list[Job],
    model: str | Callable[[], SizeModel],
    order: Callable[[list[int]], list[int]] = list,
    until_s: float = 1e9,
    one_by_one: bool = False,
) -> dict[str, Estimate]:
    """What is said of every job at its submission, reports and questions of an instant coming in a given order."""
    predictor = OnlinePredictor(model if isinstance(model, str) else model())
    said: dict[str, Estimate] = {}
    for now_s, finishing, submitted, starting in _events(jobs, {}, {}):
        if now_s > until_s:
            break
        for i in order(finishing):
            predictor.finish(jobs[i].id, size_of(jobs[i]), now_s, jobs[i].status)
        asked = [jobs[i] for i in order(submitted)]
        for batch in [[job] for job in asked] if one_by_one else [asked]:
            said |= dict(zip((job.id for job in batch), predictor.predict(batch, now_s), strict=True))
        for i in order(starting):
            predictor.start(jobs[i].id, now_s)
            predictor.progress(jobs[i].id, 1, now_s)
    return said


def _end_s(job: Job) -> float:
    return job.release_s + size_of(job)


def _altered(job: Job, size: int) -> Job:
    return job.replace(work=_work(isinstance(job.work, Fixed), size), status="Lost")


def check_no_leak(trace: list[Job], at: int, size: int, model: str | Callable[[], SizeModel]) -> None:
    """At an instant, the sizes and ends of the jobs that have not finished by then do not matter."""
    now_s = trace[at % len(trace)].release_s
    other = [_altered(job, max(size, int(now_s - job.release_s) + 1)) if _end_s(job) > now_s else job for job in trace]
    assert predictions(trace, model, until_s=now_s) == predictions(other, model, until_s=now_s)


@pytest.mark.parametrize("model", MODELS)
@given(trace=traces(), at=st.integers(0, 11), size=st.integers(1, 40))
def test_what_has_not_finished_does_not_matter(model: str, trace: list[Job], at: int, size: int) -> None:
    check_no_leak(trace, at, size, model)


@pytest.mark.parametrize("model", MODELS)
@given(trace=traces(), data=st.data())
def test_the_order_of_reports_does_not_matter(model: str, trace: list[Job], data: st.DataObject) -> None:
    expected = predictions(trace, model)
    assert predictions(trace, model, order=lambda indices: list(reversed(indices))) == expected
    shuffled = data.draw(st.permutations(trace))
    assert predictions(shuffled, model, order=lambda indices: data.draw(st.permutations(indices))) == expected


@pytest.mark.parametrize("model", MODELS)
@given(trace=traces())
def test_a_batch_is_told_what_each_of_its_jobs_would_be(model: str, trace: list[Job]) -> None:
    assert predictions(trace, model, one_by_one=True) == predictions(trace, model)


@pytest.mark.parametrize("model", MODELS)
@given(trace=traces())
def test_an_unfinished_job_may_as_well_not_say_its_size(model: str, trace: list[Job]) -> None:
    predictor, other = OnlinePredictor(model), OnlinePredictor(model)
    hidden = [_altered(job, 1) for job in trace]
    assert predictor.predict(trace, 0.0) == other.predict(hidden, 0.0)


@given(traces(), st.sampled_from(MODELS))
def test_predictions_are_sizes(trace: list[Job], model: str) -> None:
    for job in trace:
        estimate = predictions(trace, model)[job.id]
        assert (1e-6 if isinstance(job.work, Fixed) else 1.0) <= estimate.low <= estimate.median <= estimate.high


def _forest() -> SizeModel:
    pytest.importorskip("sklearn")
    return make_model("forest:n_estimators=3:first_fit=4", seed=1)


@settings(max_examples=6)
@given(trace=traces(max_jobs=24), at=st.integers(0, 23), size=st.integers(1, 40))
def test_the_forest_knows_no_future(trace: list[Job], at: int, size: int) -> None:
    check_no_leak(trace, at, size, _forest)


@settings(max_examples=6)
@given(traces(max_jobs=24))
def test_the_forest_does_not_depend_on_the_order_of_reports(trace: list[Job]) -> None:
    assert predictions(trace, _forest, order=lambda indices: list(reversed(indices))) == predictions(trace, _forest)


@given(traces(), st.sampled_from(MODELS), st.floats(0, 100))
def test_what_is_left_is_positive(trace: list[Job], model: str, done: float) -> None:
    predictor = OnlinePredictor(model)
    predictor.predict(trace, 0.0)
    for job in trace:
        left = predictor.remaining(job.id, done)
        assert left.points[0] > 0.0


SIZES = st.lists(st.integers(1, 20).map(float), max_size=12)


@given(SIZES, SIZES)
def test_survival_curves_fall_and_running_jobs_raise_them(finished: list[float], running: list[float]) -> None:
    curve = kaplan_meier(finished, running)
    shares = [share for _, share in curve]
    assert [size for size, _ in curve] == sorted(set(finished))
    assert all(0.0 <= later <= before <= 1.0 for before, later in zip([1.0, *shares], shares, strict=False))
    further = dict(kaplan_meier(finished, [done + 5.0 for done in running]))
    assert all(further[size] >= share - 1e-12 for size, share in curve)


@given(SIZES, SIZES)
def test_surviving_sizes_are_finished_ones_or_beyond(finished: list[float], running: list[float]) -> None:
    if finished or running:
        sizes = surviving_sizes(finished, running, lambda done: [done + 1.0])
        assert set(sizes.points) <= {*finished, max(running, default=0.0) + 1.0}


@given(st.lists(st.floats(0.01, 100), min_size=1), st.floats(0, 0.49))
def test_distortion_bounds_all_but_a_share(ratios: list[float], share: float) -> None:
    found: Any = distortion(ratios, share)
    assert found.a <= found.b
    assert sum(ratio < found.a for ratio in ratios) <= share * len(ratios) + 1e-6
    assert sum(ratio > found.b for ratio in ratios) <= share * len(ratios) + 1e-6
