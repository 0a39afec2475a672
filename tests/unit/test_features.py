"""Rows of jobs: honest about time, the same for any order of asking, apart for seconds and iterations."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from frostline.prediction.features import FEATURES, LEVELS, JobFeatures
from frostline.prediction.model import Finished
from frostline.problem.job import Fixed, Job, Profiled


def job(job_id: str, release_s: float = 0.0, **fields: object) -> Job:
    given = {"work": Fixed(duration_s=1.0), "gpus": 2, "user": "ann", "group": "lab", "name": "train-7", **fields}
    return Job(id=job_id, release_s=release_s, **given)


def done(of: Job, size: float, end_s: float) -> Finished:
    return Finished(of, size, end_s)


def column(rows: np.ndarray, name: str) -> list[float]:
    return rows[:, FEATURES.index(name)].tolist()


def near(*values: float) -> object:
    return pytest.approx(values, abs=1e-4)


def logs(*values: float) -> object:
    return near(*map(math.log, values))


def test_names_are_as_many_as_columns_and_differ():
    rows = JobFeatures().encode([job("a")], 0.0).rows
    assert rows.shape == (1, len(FEATURES)) and rows.dtype == np.float32
    assert len(set(FEATURES)) == len(FEATURES)
    assert np.isfinite(rows).all()


def test_no_job_gives_no_row():
    features = JobFeatures()
    assert features.encode([], 0.0).rows.shape == (0, len(FEATURES))
    assert features.learn([]).rows.shape == (0, len(FEATURES))


def test_history_of_finished_jobs_by_level():
    features = JobFeatures()
    known = [job("a"), job("b", name="train-8"), job("c", name="other"), job("d", user="bob", gpus=4)]
    features.encode(known, 0.0)
    features.learn([done(one, size, 10.0 + size) for one, size in zip(known, (10.0, 20.0, 40.0, 80.0), strict=True)])
    rows = features.encode([job("e", 100.0, name="train-9")], 100.0).rows
    sizes = dict(zip(LEVELS, np.exp(rows[0, [FEATURES.index(f"{level}:last") for level in LEVELS]]), strict=True))
    assert {level: round(float(size)) for level, size in sizes.items()} == {
        "user+name+gpus": 20,  # none of this name: as the next coarser level
        "user+stem+gpus": 20,
        "user+stem": 20,
        "user+gpus+model": 40,
        "user": 40,
        "group+gpus+model": 40,
        "group": 80,
        "gpus+model": 40,
        "all": 80,
    }
    assert column(rows, "user+name+gpus:count") == [0.0]
    assert column(rows, "user+stem:count") == logs(3)
    assert column(rows, "user:median") == logs(20)
    assert column(rows, "all:median") == logs(math.sqrt(20 * 40))
    assert column(rows, "all:since_finish") == near(math.log1p(10))


def test_medians_of_few_and_of_many():
    features = JobFeatures()
    for number in range(41):
        one = job(f"{number}", float(number))
        features.encode([one], one.release_s)
        features.learn([done(one, 10.0 if number < 28 else 100.0, number + 0.5)])
    rows = features.encode([job("x", 50.0)], 50.0).rows
    assert column(rows, "user:median") == logs(100)
    assert column(rows, "user:long_median") == logs(10)


def test_a_row_to_learn_from_knows_only_what_was_known_at_submission():
    features = JobFeatures()
    first, second = job("a"), job("b", 1.0)
    features.encode([first], 0.0)
    said = features.encode([second], 1.0).rows
    features.learn([done(first, 50.0, 50.0)])
    learned = features.learn([done(second, 60.0, 61.0)])
    assert np.array_equal(learned.rows, said)
    assert column(learned.rows, "all:count") == [0.0]
    assert learned.jobs == ["b"] and learned.sizes.tolist() == [60.0]


def test_asked_again_a_job_keeps_its_submission_and_has_the_history_of_now():
    features = JobFeatures()
    first, second = job("a"), job("b", 1.0)
    features.encode([first], 0.0)
    before = features.encode([second], 1.0).rows
    features.learn([done(first, 50.0, 50.0)])
    after = features.encode([second], 60.0).rows
    assert column(after, "user:last") == logs(50)
    for name in ("hour", "submitted_together", "since_submission", "user:unfinished", "user:unfinished_age"):
        assert column(before, name) == column(after, name)
    assert np.array_equal(features.learn([done(second, 60.0, 61.0)]).rows, before)


def test_a_history_is_replayed_in_the_order_of_events():
    jobs = [job(f"{i}", float(i // 2), user="ann" if i % 3 else "bob", gpus=1 + i % 2) for i in range(12)]
    ends = {one.id: one.release_s + 1.0 + (7 * i % 5) for i, one in enumerate(jobs)}
    finished = sorted((done(one, ends[one.id], ends[one.id]) for one in jobs), key=lambda one: one.end_s)
    online, rows = JobFeatures(), {}
    for now_s in sorted({*ends.values(), *(one.release_s for one in jobs)}):
        learned = online.learn([one for one in finished if one.end_s == now_s])
        rows |= dict(zip(learned.jobs, learned.rows, strict=True))
        online.encode([one for one in jobs if one.release_s == now_s], now_s)
    at_once = JobFeatures()
    learned = at_once.learn(finished)
    assert learned.jobs == [one.job.id for one in finished] and at_once.late == 0
    for job_id, row in zip(learned.jobs, learned.rows, strict=True):
        assert np.array_equal(row, rows[job_id]), job_id


def test_a_job_released_before_what_is_known_is_late():
    features = JobFeatures()
    features.learn([done(job("a"), 50.0, 50.0)])
    learned = features.learn([done(job("b", 10.0), 70.0, 80.0)])
    assert len(learned.sizes) == 0 and features.late == 1
    assert column(features.encode([job("c", 90.0)], 90.0).rows, "user:last") == logs(70)


@pytest.mark.parametrize("size", [math.nan, 0.0, -1.0, math.inf])
def test_targets_that_are_no_positive_numbers_are_dropped_and_counted(size):
    features = JobFeatures()
    features.encode([job("a")], 0.0)
    assert len(features.learn([done(job("a"), size, 5.0)]).sizes) == 0
    assert features.dropped == 1
    row = features.encode([job("b", 9.0)], 9.0).rows
    assert column(row, "all:count") == [0.0] and column(row, "all:unfinished") == [0.0]


def test_unfinished_jobs_are_counted_until_they_finish_or_are_withdrawn():
    features = JobFeatures()
    features.encode([job("a"), job("b")], 0.0)
    features.encode([job("c", 10.0)], 10.0)
    row = features.encode([job("d", 20.0)], 20.0).rows
    assert column(row, "user:unfinished") == logs(4)
    assert column(row, "user:unfinished_age") == near(math.log1p(20 - 10 / 3))
    features.learn([done(job("a"), 25.0, 25.0)])
    features.withdrawn("b")
    features.withdrawn("unheard of")
    assert column(features.encode([job("e", 30.0)], 30.0).rows, "user:unfinished") == logs(3)


def test_what_is_submitted_together_and_when_before():
    features = JobFeatures()
    features.encode([job("a"), job("b"), job("c", user="bob")], 0.0)
    features.encode([job("d"), job("e", 30.0)], 30.0)
    rows = features.encode([job("f", 30.0), job("g", 100.0), job("h", 100.0), job("i", 100.0, user="eve")], 100.0).rows
    assert column(rows, "submitted_together") == logs(2, 2, 2, 1)
    assert column(rows, "since_submission") == near(*map(math.log1p, (30, 70, 70)), -1.0)


def test_without_a_user_the_group_owns_the_history():
    features = JobFeatures()
    jobs = [job("a", user="", group="x"), job("b", user="", group="y")]
    features.encode(jobs, 0.0)
    features.learn([done(jobs[0], 10.0, 10.0), done(jobs[1], 90.0, 90.0)])
    rows = features.encode([job("c", 100.0, user="", group="x"), job("d", 100.0, user="", group="y")], 100.0).rows
    assert column(rows, "user:last") == logs(10, 90)


def test_seconds_and_iterations_are_never_mixed():
    features = JobFeatures()
    seconds = job("a")
    counted = job("b", work=Profiled(iterations=1, seconds_per_iteration={"one_server": 0.5}))
    features.encode([seconds, counted], 0.0)
    features.learn([done(seconds, 60.0, 60.0), done(counted, 9000.0, 70.0)])
    rows = features.encode([seconds.replace(id="c"), counted.replace(id="d")], 80.0).rows
    for level in LEVELS:
        assert column(rows, f"{level}:last") == logs(60, 9000)
    assert column(rows, "iterations") == [0.0, 1.0]
    assert column(rows, "iteration_s")[1] == pytest.approx(math.log(0.5))


def test_cold_until_a_job_of_the_user_or_the_group_has_finished():
    features = JobFeatures()
    one = job("a", user="ann", group="lab")
    assert features.encode([one], 0.0).cold.tolist() == [True]
    features.learn([done(one, 5.0, 5.0)])
    asked = [
        job("b", user="ann", group="other"),
        job("c", user="new", group="lab"),
        job("d", user="new", group="other"),
        job("e", user="", group=""),
    ]
    assert features.encode(asked, 9.0).cold.tolist() == [False, False, True, True]


def test_neither_size_nor_status_of_a_job_matters():
    rows = [
        JobFeatures().encode([job("a", work=Fixed(duration_s=size), status=status)], 0.0).rows
        for size, status in ((1.0, ""), (1e6, "Failed"))
    ]
    assert np.array_equal(rows[0], rows[1])


def test_the_users_estimate_is_a_column():
    rows = JobFeatures().encode([job("a", estimate_s=100.0), job("b")], 0.0).rows
    asked, absent = column(rows, "estimate")
    assert asked == pytest.approx(math.log(100)) and absent < -20


def test_names_matter_by_their_pieces():
    names = ("resnet-a", "resnet-b", "gpt")
    rows = JobFeatures().encode([job(name, name=name) for name in names], 0.0).rows
    grams = rows[:, [index for index, name in enumerate(FEATURES) if name.startswith("ngrams")]]
    assert np.abs(grams[0] - grams[1]).sum() < np.abs(grams[0] - grams[2]).sum()


def test_more_profiles_than_are_kept(monkeypatch):
    monkeypatch.setattr("frostline.prediction.features._MOST_PROFILES", 8)
    features = JobFeatures()
    for number in range(40):
        one = job(f"{number}", float(number), name=f"name {chr(97 + number % 20)}")
        features.encode([one], one.release_s)
        features.learn([done(one, 10.0 + number % 20, number + 0.5)])
    assert column(features.encode([job("x", 50.0, name="name c")], 50.0).rows, "user+name+gpus:last") == logs(12)


def test_rows_are_the_same_in_every_process():
    code = (
        "from frostline.prediction.features import JobFeatures\nfrom frostline.problem.job import Fixed, Job\n"
        "jobs = [Job(id=str(i), release_s=0, work=Fixed(duration_s=1), gpus=1, user=f'u{i}', name=f'n{i}-é')"
        " for i in range(9)]\n"
        "print(JobFeatures().encode(jobs, 0.0).rows.tobytes().hex())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_state_goes_on_as_the_original_would():
    features = JobFeatures()
    jobs = [job(f"{i}", float(i), user="ann" if i % 2 else "bob", name=f"n{i % 3}") for i in range(30)]
    for one in jobs[:25]:
        features.encode([one], one.release_s)
    features.learn([done(one, 10.0 + i, 25.0 + i) for i, one in enumerate(jobs[:20])])
    again = JobFeatures.from_state(*features.state())
    for each in (features, again):
        each.learn([done(one, 99.0, 50.0) for one in jobs[20:24]])
    rows = [each.encode(jobs[24:], 60.0) for each in (features, again)]
    assert np.array_equal(rows[0].rows, rows[1].rows) and np.array_equal(rows[0].cold, rows[1].cold)


@pytest.mark.parametrize("name", ["past", "asked", "kept_rows", "kept_slots", "recent_slots"])
def test_state_of_another_shape_is_refused(name):
    features = JobFeatures()
    features.encode([job("a"), job("b")], 0.0)
    features.learn([done(job("a"), 5.0, 5.0)])
    plain, arrays = features.state()
    for bad in (arrays[name][:-1], arrays[name] + 1000 if name in ("kept_slots", "recent_slots") else arrays[name][:0]):
        with pytest.raises(ValueError, match=r".+"):
            JobFeatures.from_state(plain, {**arrays, name: bad})
