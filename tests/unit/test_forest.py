"""The forest as an estimator, and as a model of job sizes."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from frostline.errors import InvalidValueError
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.forest import IterationForest
from frostline.prediction.forest_model import ForestModel
from frostline.prediction.model import Finished, SizeModel
from frostline.prediction.replay import replay
from frostline.prediction.size import on_grid
from frostline.problem.job import Fixed, Job, Profiled

SMALL = {"n_estimators": 8, "min_samples_leaf": 2, "first_fit": 10, "max_features": 0.5}


def data(rows: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 4)).astype(np.float32)
    return X, np.exp(3.0 + X[:, 0] + 0.1 * random.normal(size=rows))


def job(job_id: str, release_s: float, **fields: object) -> Job:
    return Job(id=job_id, release_s=release_s, **{"work": Fixed(duration_s=1.0), "gpus": 1, "user": "ann", **fields})


def taught(sizes: list[float], **parameters: object) -> ForestModel:
    """A model that has seen jobs of these sizes one after the other."""
    model = ForestModel(**{**SMALL, **parameters})
    for number, size in enumerate(sizes):
        one = job(f"{number}", float(number), gpus=1 + number % 4)
        model.predict([one], one.release_s)
        model.learn([Finished(one, size, number + 0.5)], number + 0.5)
    return model


@parametrize_with_checks([IterationForest(n_estimators=10, random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_predictions_are_the_same_bits_for_any_number_of_workers():
    X, y = data(2000)
    forests = [IterationForest(64, n_jobs=workers, random_state=3).fit(X, y) for workers in (1, 2)]
    many = np.tile(X, (2, 1))
    assert len(many) * 64 > 2**17  # enough for the workers to be used
    points = [forest.predict_points(many) for forest in forests]
    assert points[0].tobytes() == points[1].tobytes()
    assert forests[0].predict(many).tobytes() == forests[1].predict(many).tobytes()


def test_single_rows_are_answered_as_in_a_batch():
    X, y = data()
    forest = IterationForest(20, random_state=0).fit(X, y)
    batch = forest.predict_points(X[:20])
    assert all(np.array_equal(forest.predict_points(X[i : i + 1])[0], batch[i]) for i in range(20))


def test_points_are_targets_and_the_median_lies_between_the_middle_two():
    X, y = data()
    forest = IterationForest(20, random_state=0).fit(X, y)
    points = forest.predict_points(X)
    assert np.isin(points, y).all() and (np.diff(points, axis=1) >= 0).all()
    middle = forest.predict(X)
    assert (points[:, 9] <= middle).all() and (middle <= points[:, 10]).all()
    assert forest.predict_quantiles(X, [0.0, 0.5, 0.51, 1.0]).tolist() == points[:, [0, 9, 10, 19]].tolist()


def test_answers_are_drawn_from_all_parts_of_a_leaf():
    y = np.arange(1.0, 201.0)
    forest = IterationForest(50, min_samples_leaf=200, random_state=0).fit(np.zeros((200, 1)), y)
    assert forest.predict_points([[0.0]])[0].tolist() == [3.0 + 4.0 * i for i in range(50)]


def test_quantiles_cover_what_they_promise():
    X, y = data(3000)
    fresh, sizes = data(2000, seed=1)
    forest = IterationForest(100, min_samples_leaf=20, max_features=1.0, random_state=0).fit(X, y)
    low, high = forest.predict_quantiles(fresh, [0.1, 0.9]).T
    assert 0.7 < np.mean((low <= sizes) & (sizes <= high)) < 0.95
    assert np.median(np.abs(np.log(forest.predict(fresh) / sizes))) < 0.15


def test_beyond_the_learned_range_the_largest_target_is_the_limit():
    X = np.linspace(1.0, 100.0, 200)[:, None]
    forest = IterationForest(20, random_state=0).fit(X, 10.0 * X[:, 0])
    assert 900.0 < forest.predict([[500.0]])[0] <= 1000.0
    assert forest.target_range_ == (10.0, 1000.0)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_targets_must_be_positive(bad):
    with pytest.raises(InvalidValueError, match="must be positive"):
        IterationForest(4).fit([[1.0], [2.0]], [1.0, bad])


def test_no_row_and_a_target_that_is_no_number_are_refused_by_name():
    with pytest.raises(ValueError, match="0 sample"):
        IterationForest(4).fit(np.empty((0, 1)), [])
    with pytest.raises(ValueError, match="NaN"):
        IterationForest(4).fit([[1.0], [2.0]], [1.0, math.nan])


def test_one_row_is_its_own_answer():
    forest = IterationForest(4, max_samples=100, random_state=0).fit([[1.0]], [7.0])
    assert forest.predict([[5.0]]).tolist() == [7.0]


def test_quantiles_are_from_0_to_1():
    forest = IterationForest(4, random_state=0).fit([[1.0], [2.0]], [7.0, 8.0])
    with pytest.raises(InvalidValueError, match=r"quantiles=1\.5"):
        forest.predict_quantiles([[1.0]], [0.5, 1.5])


def test_importances_name_the_column_that_matters():
    X, y = data()
    forest = IterationForest(10, random_state=0).fit(X, y)
    assert int(np.argmax(forest.feature_importances_)) == 0
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    assert IterationForest(4).fit(np.zeros((9, 2)), np.ones(9)).feature_importances_.tolist() == [0.0, 0.0]


def test_rows_of_a_matrix_become_distributions():
    rows = np.exp(np.random.default_rng(0).uniform(-14, 34, size=(200, 7)))
    made = SizeDistribution.of_rows(rows)
    for one, row in zip(made, rows, strict=True):
        assert all(point == on_grid(point) for point in one.points)
        assert one.points == pytest.approx(SizeDistribution(row).points, rel=1.1e-5)
    assert SizeDistribution.of_rows(np.array([[1e-6, 999999.7, 1e15]]))[0].points == (1e-6, 1e6, 1e15)


@pytest.mark.parametrize("rows", [[[1.0, math.nan]], [[0.0, 1.0]], [[math.inf, 1.0]], [[]]])
def test_rows_that_are_no_sizes_are_refused(rows):
    with pytest.raises(InvalidValueError, match="must be positive"):
        SizeDistribution.of_rows(np.array(rows))


def test_it_is_a_size_model_that_brings_scikit_learn_only_when_it_fits():
    assert isinstance(ForestModel(), SizeModel)
    code = (
        "import sys\nimport frostline.prediction.forest_model, frostline.prediction.persistence\n"
        "assert not {'sklearn', 'skops'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_to_say_before_the_first_fit():
    model = ForestModel(**SMALL)
    model.learn([], 0.0)
    assert model.predict([], 0.0) == []
    assert model.predict([job("a", 0.0), job("b", 0.0)], 0.0) == [None, None]
    assert model.fits == 0 and taught([5.0] * 9).fits == 0 and taught([5.0] * 10).fits == 1


def test_unseen_users_and_groups_are_answered_as_cold_starts():
    model = taught([10.0, 20.0, 30.0, 40.0, 1000.0] * 4, min_samples_leaf=20)
    old, new = model.predict([job("x", 50.0), job("y", 50.0, user="u9", group="nowhere")], 50.0)
    assert (old.cold_start, new.cold_start) == (False, True)
    assert new.median == 30.0 and new.source == "forest"


def test_predictions_stay_within_the_sizes_learned():
    model = taught([100.0 * (1 + i % 10) for i in range(40)])
    big = model.predict([job("x", 60.0, gpus=20, user="new")], 60.0)[0]
    assert big.outside_range
    assert all(100.0 <= point <= 1000.0 for point in big.sizes.points)
    assert not model.predict([job("y", 60.0, gpus=3)], 60.0)[0].outside_range


def test_seconds_tell_nothing_of_iterations():
    model = taught([50.0] * 20)
    counted = job("x", 30.0, work=Profiled(iterations=1, seconds_per_iteration={"one_server": 0.1}))
    seconds = model.predict([counted, job("y", 30.0)], 30.0)
    assert seconds[0] is None and seconds[1].median == 50.0
    model.learn([Finished(counted, 7000.0, 31.0)], 31.0)
    assert model.predict([counted.replace(id="z")], 32.0)[0].sizes.points == (7000.0,) * SMALL["n_estimators"]


def test_bad_targets_are_dropped_and_counted():
    model = taught([math.nan if i % 2 else 40.0 for i in range(20)])
    assert model.dropped == 10 and model.fits == 1
    assert model.predict([job("x", 60.0)], 60.0)[0].median == 40.0


def test_fitted_when_the_rows_have_grown_or_time_has_passed():
    assert taught([5.0] * 40, growth=2.0).fits == 3  # after 10, 20 and 40
    assert taught([5.0] * 40, growth=2.0, refit_s=0.0).fits == 31
    assert taught([5.0] * 40, growth=1.5, window=20).fits == 4  # after 10, 15, 23, 33: 10 new of 20
    assert taught([5.0] * 40, growth=2.0, refit_s=5.0).fits == 7  # every fifth from the tenth on


def test_only_the_latest_rows_are_learned_from():
    model = taught([10.0] * 30 + [500.0] * 30, window=20)
    assert model.predict([job("x", 90.0)], 90.0)[0].sizes.points == (500.0,) * SMALL["n_estimators"]


def test_same_seed_same_model_and_workers_do_not_matter():
    sizes = np.exp(np.random.default_rng(0).normal(5.0, 1.0, 40)).tolist()
    asked = [job(f"x{i}", 60.0, gpus=1 + i % 4, user=f"u{i % 3}") for i in range(12)]
    first = taught(sizes, n_jobs=1).predict(asked, 60.0)
    assert first == taught(sizes, n_jobs=2).predict(asked, 60.0)
    assert first != taught(sizes, seed=1).predict(asked, 60.0)


def test_batches_are_answered_as_single_jobs():
    sizes = np.exp(np.random.default_rng(0).normal(5.0, 1.0, 40)).tolist()
    asked = [job(f"x{i}", 60.0 + i, gpus=1 + i % 4, user=f"u{i}") for i in range(12)]
    model = taught(sizes)
    model.predict(asked, 80.0)  # from now on all are known to have been submitted
    together = model.predict(asked, 80.0)
    assert together == [model.predict([one], 80.0)[0] for one in asked]


def test_a_withdrawn_job_is_forgotten():
    model = taught([5.0] * 20)
    model.predict([job("x", 30.0)], 30.0)
    model.withdrawn("x")
    model.learn([Finished(job("x", 30.0), 9.0, 31.0)], 31.0)
    assert model.late == 0  # a history of its own: released after all that is known
    model.learn([Finished(job("y", 1.0), 9.0, 32.0)], 32.0)
    assert model.late == 1


def test_a_forest_finds_what_no_history_tells():
    """Sizes go with the user's estimate, and those of a user have nothing in common."""
    random = np.random.default_rng(0)
    jobs, sizes = [], random.uniform(3.0, 9.0, 900)
    for number, log in enumerate(sizes.tolist()):
        estimate_s = math.exp(log + 0.7 + 0.1 * random.normal())
        work = Fixed(duration_s=math.exp(log))
        jobs.append(job(f"{number}", 200.0 * number, work=work, user=f"u{number % 9}", estimate_s=estimate_s))
    forest, median = replay(jobs, [ForestModel(n_estimators=30, growth=1.5), "median"])
    assert np.median(np.abs(np.log(forest.predicted / forest.actual))[300:]) < 0.3
    assert np.median(np.abs(np.log(median.predicted / median.actual))[300:]) > 0.8


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("seed", -1),
        ("n_estimators", 0),
        ("min_samples_leaf", 0),
        ("max_features", 0.0),
        ("max_features", 1.5),
        ("max_samples", 0),
        ("n_jobs", 0),
        ("first_fit", 1),
        ("growth", 1.0),
        ("refit_s", -1.0),
        ("refit_s", math.nan),
        ("window", 1),
    ],
)
def test_bad_parameters_are_named(parameter, value):
    with pytest.raises(InvalidValueError, match=f"forest: {parameter}="):
        ForestModel(**{parameter: value})
