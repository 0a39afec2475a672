"""Replays of small traces, scores by hand, and how the models do on public traces."""

from __future__ import annotations

import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frostline.errors import InvalidValueError
from frostline.prediction import Distortion, Finished, OnlinePredictor, replay, score, size_of
from frostline.problem import Fixed, Job, PlacementClass, Profiled
from frostline.traces import generate_jobs, read_trace


def job(job_id: str, release_s: float, duration_s: float, **fields: Any) -> Job:
    values = {"work": Fixed(duration_s=duration_s), "gpus": 1, "user": "u1", **fields}
    return Job(id=job_id, release_s=release_s, **values)


def test_a_job_that_finishes_at_an_instant_is_known_to_those_submitted_then() -> None:
    jobs = [job("b", 10, 5), job("a", 0, 10), job("c", 10, 7)]
    (result,) = replay(jobs, ["last-finished"])
    assert result.jobs == ("a", "b", "c")
    assert result.predicted.tolist() == [3600.0, 10.0, 10.0]
    assert result.actual.tolist() == [10.0, 5.0, 7.0]
    assert result.sources == ("default", "last-finished: user+gpus", "last-finished: user+gpus")
    assert result.cold_start.tolist() == [True, False, False]


def test_a_job_that_waits_finishes_later() -> None:
    jobs = [job("a", 0, 10), job("b", 10, 5)]
    (result,) = replay(jobs, ["last-finished"], start_s={"a": 0.001})
    assert result.predicted.tolist() == [3600.0, 3600.0]


def test_iterations() -> None:
    work = Profiled(iterations=50, seconds_per_iteration={PlacementClass.ONE_SERVER: 0.2})
    jobs = [job("a", 0, 1, work=work), job("b", 9.9, 1, work=work), job("c", 10, 1, work=work)]
    (result,) = replay(jobs, ["median"])
    assert result.predicted.tolist() == [1000.0, 1000.0, 50.0]
    (result,) = replay(jobs, ["median"], duration_s={"a": 9.9})
    assert result.predicted.tolist() == [1000.0, 50.0, 50.0]


def test_models_do_not_see_each_other() -> None:
    jobs = generate_jobs(200, seed=1, gpus=32)
    together = replay(jobs, ["median", "combined"])
    alone = replay(jobs, ["combined"])
    assert together[1].predicted.tolist() == alone[0].predicted.tolist()
    assert [result.model for result in together] == ["median", "combined"]


def test_no_jobs() -> None:
    (result,) = replay([], ["median"])
    assert result.as_dict() == {
        "model": "median",
        "jobs": 0,
        "median_abs_log_ratio": None,
        "share_within_2x": None,
        "coverage": None,
        "cold_start_share": None,
        "distortion": {},
        "seconds_per_prediction": None,
    }


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    replay([job(str(i), i, 1) for i in range(2500)], ["median"], on_progress=lambda *args: told.append(args))
    assert told == [("median", 1000, 2500), ("median", 2000, 2500)]


@pytest.mark.parametrize(
    ("jobs", "options", "rule"),
    [
        ([job("a", 0, 1), job("a", 1, 1)], {}, "id='a' occurs twice"),
        ([job("a", 5, 1)], {"start_s": {"a": 4.0}}, "start_s=4.0 lies before its release"),
        ([job("a", 5, 1)], {"start_s": {"a": math.nan}}, "start_s=nan must be finite"),
        ([job("a", 5, 1)], {"duration_s": {"a": 0.0}}, "duration_s=0.0 must be above 0"),
    ],
)
def test_bad_traces(jobs: list[Job], options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidValueError, match=rule):
        replay(jobs, ["median"], **options)


def test_scores_by_hand() -> None:
    scores = score([10, 10, 40, 10], [10, 20, 10, 10], [5, 5, 5, 11], [10, 20, 50, 12], [True, False, False, False])
    assert scores.median_abs_log_ratio == pytest.approx(math.log(2) / 2)
    assert (scores.jobs, scores.share_within_2x, scores.coverage, scores.cold_start_share) == (4, 0.75, 0.75, 0.25)
    assert scores.distortion[0.0] == Distortion(a=0.5, b=4.0, D=8.0)
    assert scores.as_dict()["distortion"]["0.05"] == {"a": 0.5, "b": 4.0, "D": 8.0}


@pytest.mark.parametrize(
    ("predicted", "actual", "rule"),
    [([1.0], [1.0, 2.0], "shape"), ([0.0], [1.0], "predicted=0.0"), ([1.0], [math.nan], "actual=nan")],
)
def test_bad_scores(predicted: list[float], actual: list[float], rule: str) -> None:
    with pytest.raises(InvalidValueError, match=rule):
        score(predicted, actual)


MODELS = ["last-finished", "median", "global-median", "combined"]


def errors(jobs: Any, models: list[str] = MODELS) -> list[float]:
    return [result.scores.median_abs_log_ratio or 0.0 for result in replay(jobs, models)]


def test_the_combination_wins_on_a_share_of_philly(shared: Path) -> None:
    path = shared / "data" / "traces" / "philly-2017" / "philly.csv.gz"
    trace = read_trace(path, mode="repair", zone="America/Los_Angeles")
    *others, combined = errors(trace.jobs[:8000])
    assert combined < min(others)


@pytest.mark.parametrize(
    ("file", "digest"),
    [
        ("philly-2017/philly.csv.gz", "55ecbef89b737e80"),
        ("itp-2021/cluster04.csv.gz", "3466774076da7bdc"),
    ],
)
def test_predictions_on_public_traces_are_those_once_computed(shared: Path, file: str, digest: str) -> None:
    trace = read_trace(shared / "data" / "traces" / file, mode="repair", limit=4000)
    (result,) = replay(trace.jobs, ["combined"])
    said = [column.tolist() for column in (result.predicted, result.low, result.high, result.cold_start)]
    assert sha256(repr([*said, result.jobs, result.sources]).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("file", ["philly-2017/philly.csv.gz", "itp-2021/cluster04.csv.gz"])
def test_a_batch_of_a_public_trace_is_told_what_each_of_its_jobs_would_be(shared: Path, file: str) -> None:
    jobs = read_trace(shared / "data" / "traces" / file, mode="repair", limit=3000).jobs
    at_once, one_by_one = OnlinePredictor("combined"), OnlinePredictor("combined")
    for predictor in (at_once, one_by_one):
        predictor.learn([Finished(past, size_of(past), 0.0, past.status) for past in jobs[:2000]], 0.0)
    assert at_once.predict(jobs[2000:], 0.0) == [one_by_one.predict([new], 0.0)[0] for new in jobs[2000:]]


@pytest.mark.parametrize("model", ["median", "combined"])
def test_intervals_hold_about_four_of_five_sizes(model: str) -> None:
    (result,) = replay(generate_jobs(4000, seed=5, gpus=256), [model])
    assert result.scores.coverage is not None
    assert (0.7 if model == "combined" else 0.5) < result.scores.coverage < 0.9
    assert np.all(result.low <= result.predicted)
    assert np.all(result.predicted <= result.high)
