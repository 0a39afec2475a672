"""The predictor as a scheduler sees it: always an answer, no future, no negative size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.prediction import Distortion, Estimate, Finished, OnlinePredictor, SizeDistribution
from frostline.problem import Fixed, Job, PlacementClass, Profiled

ITERATIONS = Profiled(iterations=5, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})


def job(job_id: str, **fields: object) -> Job:
    values: dict[str, object] = {"work": Fixed(duration_s=1.0), "gpus": 1, "user": "u1", **fields}
    return Job(id=job_id, release_s=0, **values)  # type: ignore[arg-type]


class Model:
    """Answers what it is told to, and notes what it sees."""

    name = "told"

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.asked: list[list[Job]] = []
        self.learned: list[str] = []

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        self.learned += [done.job.id for done in finished]

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        self.asked.append(list(jobs))
        return [*self.answers]


class Points:
    """A distribution of anything."""

    def __init__(self, *points: float) -> None:
        self.points = points


def estimate(*points: float) -> Estimate:
    return Estimate(sizes=SizeDistribution(points), source="test", cold_start=False)


def unchecked(*points: float) -> Estimate:
    return Estimate(sizes=Points(*points), source="test", cold_start=False)  # type: ignore[arg-type]


def finished(predictor: OnlinePredictor, *sizes: float, **fields: object) -> None:
    predictor.learn([Finished(job(f"h{i}", **fields), size, 0.0) for i, size in enumerate(sizes)], 0.0)


def test_there_is_always_an_answer() -> None:
    predictor = OnlinePredictor("user-estimate", default_s=100.0, default_iterations=7.0)
    asked = [job("a"), job("b", work=ITERATIONS), job("c", estimate_s=50.0)]
    answers = predictor.predict(asked, 0.0)
    assert [(one.median, one.source, one.cold_start) for one in answers] == [
        (100.0, "default", True),
        (7.0, "default", True),
        (50.0, "user-estimate: declared", False),
    ]
    predictor.finish("a", 33.0, 1.0)
    answers = predictor.predict([job("d"), job("e", work=ITERATIONS)], 1.0)
    assert [(one.median, one.source) for one in answers] == [(33.0, "global-median: all"), (7.0, "default")]
    assert (predictor.statistics.predictions, predictor.statistics.fallbacks, predictor.statistics.cold_starts) == (
        5,
        4,
        4,
    )


def test_a_declared_size_comes_before_the_default() -> None:
    predictor = OnlinePredictor("median")
    predictor.declare("a", 12.0)
    assert predictor.predict([job("a", work=ITERATIONS), job("b", estimate_s=9.0)], 0.0)[0].median == 12.0
    with pytest.raises(InvalidValueError, match="declared size"):
        predictor.declare("b", 0)


def test_models_see_neither_size_nor_end() -> None:
    model = Model(None)
    OnlinePredictor(model).predict([job("a", work=Fixed(duration_s=77.0), status="Killed")], 0.0)
    assert model.asked == [[job("a")]]


def test_an_answer_is_kept_until_something_is_learned() -> None:
    model = Model(estimate(10.0))
    predictor = OnlinePredictor(model)
    predictor.predict([job("a")], 0.0)
    predictor.predict([job("b")], 0.0)
    predictor.start("a", 0.0)
    predictor.predict([job("b")], 1.0)
    assert len(model.asked) == 2
    predictor.finish("a", 20.0, 2.0)
    predictor.predict([job("b")], 2.0)
    assert len(model.asked) == 3


def test_jobs_are_asked_about_at_once_and_each_once() -> None:
    model = Model(estimate(10.0), estimate(20.0))
    predictor = OnlinePredictor(model)
    answers = predictor.predict([job("a"), job("b"), job("a")], 0.0)
    assert [one.median for one in answers] == [10.0, 20.0, 10.0]
    assert [[one.id for one in asked] for asked in model.asked] == [["a", "b"]]


# Case R07.
@pytest.mark.parametrize("point", [0.0, -3.0, math.nan, math.inf, -math.inf])
def test_a_size_that_is_none_is_refused(point: float) -> None:
    predictor = OnlinePredictor(Model(unchecked(5.0, point, 7.0)))
    with pytest.raises(InvalidValueError, match="model 'told', job 'a': size="):
        predictor.predict([job("a")], 0.0)


@pytest.mark.parametrize("answers", [[], [None, None], [5.0], ["5"], [SizeDistribution([5.0])]])
def test_what_is_no_estimate_is_refused(answers: list[object]) -> None:
    with pytest.raises(InvalidValueError, match="model 'told'"):
        OnlinePredictor(Model(*answers)).predict([job("a")], 0.0)


def test_sizes_are_clamped() -> None:
    predictor = OnlinePredictor(Model(estimate(0.25, 3.0)))
    (iterations,) = predictor.predict([job("a", work=ITERATIONS)], 0.0)
    assert (iterations.sizes.points, iterations.outside_range) == ((1.0, 3.0), True)
    (seconds,) = predictor.predict([job("b")], 0.0)
    assert (seconds.sizes.points, seconds.outside_range) == ((0.25, 3.0), False)
    (tiny,) = OnlinePredictor(Model(estimate(1e-9, 1e300))).predict([job("a")], 0.0)
    assert tiny.sizes.points == (1e-6, 8.9e9)


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "a" * 10_000, "🦀-7", "'; --", "%s{}", "١٢٣"])
def test_odd_strings(text: str) -> None:
    predictor = OnlinePredictor()
    fields: dict[str, Any] = {"user": text, "group": text, "name": text}
    finished(predictor, 5.0, **fields)
    assert predictor.predict([job(f"a{text}", **fields)], 1.0)[0].median == 5.0


def test_the_future_is_refused() -> None:
    predictor = OnlinePredictor("median")
    with pytest.raises(InvalidValueError, match=r"end_s=5\.0 lies after the present 4\.0"):
        predictor.learn([Finished(job("a"), 1.0, 5.0)], 4.0)
    predictor.predict([job("b")], 4.0)
    for call in (
        lambda: predictor.predict([job("c")], 3.0),
        lambda: predictor.start("b", 3.0),
        lambda: predictor.finish("b", 1.0, 3.0),
        lambda: predictor.progress("b", 1, 3.0),
        lambda: predictor.learn([], 3.0),
    ):
        with pytest.raises(InvalidValueError, match=r"now_s=3\.0 lies before the present 4\.0"):
            call()
    with pytest.raises(InvalidValueError, match="now_s"):
        predictor.predict([job("c")], math.nan)


def test_unknown_jobs_are_refused() -> None:
    predictor = OnlinePredictor("median")
    predictor.predict([job("a")], 0.0)
    predictor.finish("a", 1.0, 0.0)
    for call in (
        lambda: predictor.start("a", 1.0),
        lambda: predictor.finish("a", 1.0, 1.0),
        lambda: predictor.progress("x", 1, 1.0),
        lambda: predictor.withdraw("x"),
        lambda: predictor.remaining("x"),
    ):
        with pytest.raises(InvalidValueError, match="is no job that was asked about"):
            call()


def test_jobs_of_one_instant_are_learned_in_order() -> None:
    model = Model()
    predictor = OnlinePredictor(model)
    reports = [("job10", 5.0), ("job9", 5.0), ("z", 4.0)]
    predictor.learn([Finished(job(name), 1.0, end) for name, end in reports], 5.0)
    predictor.learn([Finished(job("early").replace(release_s=-1.0), 1.0, 5.0)], 5.0)
    predictor.predict([], 5.0)
    assert model.learned == ["z", "early", "job9", "job10"]


def test_a_withdrawn_job_teaches_nothing() -> None:
    predictor = OnlinePredictor()
    predictor.predict([job("a"), job("b")], 0.0)
    predictor.start("a", 0.0)
    predictor.withdraw("a")
    predictor.finish("b", 10.0, 10.0)
    (answer,) = predictor.predict([job("c")], 100.0)
    assert (answer.median, predictor.statistics.learned) == (10.0, 1)


def test_what_is_left_of_a_job() -> None:
    predictor = OnlinePredictor("median")
    finished(predictor, 10.0, 20.0, 30.0)
    predictor.predict([job("a")], 0.0)
    assert predictor.remaining("a").points == (10.0, 20.0, 30.0)
    assert predictor.remaining("a", 10.0).points == (10.0, 20.0)
    assert predictor.remaining("a", 29.0).points == (1.0,)
    assert predictor.remaining("a", 50.0).points == (50.0,)
    with pytest.raises(InvalidValueError, match="done"):
        predictor.remaining("a", -1.0)


def test_a_job_that_outlives_its_group_is_one_of_the_large_ones() -> None:
    predictor = OnlinePredictor("median")
    finished(predictor, 100.0, 200.0, 300.0, 400.0, 500.0, user="other")
    predictor.learn([Finished(job("a"), 10.0, 0.0)], 0.0)
    predictor.predict([job("b")], 1.0)
    assert predictor.remaining("b", 50.0).points == (50.0, 150.0, 250.0, 350.0, 450.0)
    assert predictor.remaining("b", 150.0).points == (150.0,)


def test_a_reported_total_is_exact() -> None:
    predictor = OnlinePredictor("median")
    predictor.predict([job("a", work=ITERATIONS), job("b")], 0.0)
    predictor.progress("a", 30, 1.0, total=100)
    assert predictor.remaining("a").points == (70.0,)
    assert predictor.remaining("a", 99.5).points == (0.5,)
    assert predictor.remaining("a", 100.0).points == (900.0,)
    predictor.progress("b", 30, 1.0, 2.0, total=100)
    assert predictor.remaining("b").points == (140.0,)
    predictor.progress("b", 40, 2.0)
    assert predictor.remaining("b").points == (140.0,)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [((-1, 1.0), "iterations"), ((math.nan, 1.0), "iterations"), ((1, 1.0, 0.0), "seconds_per_iteration")],
)
def test_bad_progress(arguments: tuple[float, ...], field: str) -> None:
    predictor = OnlinePredictor("median")
    predictor.predict([job("a")], 0.0)
    with pytest.raises(InvalidValueError, match=field):
        predictor.progress("a", *arguments)
    with pytest.raises(InvalidValueError, match="total"):
        predictor.progress("a", 1, 1.0, total=0)


def test_progress_reaches_the_model_whenever_the_start_was_told() -> None:
    predictor = OnlinePredictor("survival")
    predictor.predict([job(name, work=ITERATIONS) for name in "abc"], 0.0)
    for name in "cba":
        predictor.start(name, 0.0)
        predictor.start(name, 0.0)
    predictor.progress("b", 300, 5.0)
    predictor.progress("c", 400, 5.0)
    predictor.finish("a", 10.0, 5.0)
    assert predictor.predict([job("d", work=ITERATIONS)], 5.0)[0].median == 800.0


def test_distortion_and_deflation() -> None:
    predictor = OnlinePredictor(Model(estimate(100.0)))
    assert (predictor.deflation, predictor.distortion()) == (1.0, None)
    for i, size in enumerate([10.0, 50.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 200.0]):
        predictor.predict([job(str(i))], float(i))
        predictor.finish(str(i), size, float(i))
    predictor.predict([job("last")], 10.0)
    assert predictor.distortion(0.0) == Distortion(a=0.5, b=10.0, D=20.0)
    assert predictor.distortion(0.1) == Distortion(a=1.0, b=2.0, D=2.0)
    assert predictor.deflation == 2.0
    with pytest.raises(InvalidValueError, match="share"):
        predictor.distortion(0.5)


def test_the_first_answer_is_what_is_measured() -> None:
    model = Model(estimate(100.0))
    predictor = OnlinePredictor(model, window=1)
    predictor.predict([job("a")], 0.0)
    predictor.learn([Finished(job("h"), 5.0, 1.0)], 1.0)
    model.answers = (estimate(7.0),)
    assert predictor.predict([job("a")], 1.0)[0].median == 7.0
    predictor.finish("a", 10.0, 2.0)
    predictor.predict([job("b")], 2.0)
    assert predictor.distortion(0.0) == Distortion(a=10.0, b=10.0, D=1.0)


def test_the_seed_is_handed_on() -> None:
    with pytest.raises(UnknownNameError, match="unknown model 'nothing'"):
        OnlinePredictor("nothing")
    assert OnlinePredictor("ewma:alpha=0.5", seed=7).model.name == "ewma"


@pytest.mark.parametrize(
    "parameters", [{"window": 0}, {"default_s": 0.0}, {"default_iterations": 0.5}, {"default_s": math.nan}]
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(parameters))):
        OnlinePredictor("median", **parameters)
