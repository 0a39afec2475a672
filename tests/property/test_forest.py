"""What holds for any forest: range, order, and independence of the order of asking."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from frostline.prediction.forest import IterationForest
from frostline.prediction.forest_model import ForestModel
from frostline.prediction.model import Finished
from frostline.prediction.size import on_grid
from frostline.problem.job import Fixed, Job

SIZES = st.floats(1e-6, 1e12)
NUMBERS = st.integers(-1000, 1000).map(float)
JOBS = st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "y-1", "y-2"]), st.integers(1, 4), st.integers(0, 9))


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and targets to learn from, and rows to ask about."""
    rows = draw(st.lists(st.tuples(NUMBERS, NUMBERS, SIZES), min_size=1, max_size=12))
    asked = draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6))
    table = np.array(rows)
    return table[:, :2], table[:, 2], np.array(asked)


@given(tables(), st.integers(1, 6), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5).map(sorted))
def test_answers_lie_within_the_targets_and_rise_with_the_quantile(table, trees, quantiles):
    X, y, asked = table
    forest = IterationForest(trees, min_samples_leaf=1, random_state=0).fit(X, y)
    points = forest.predict_points(asked)
    assert points.shape == (len(asked), trees) and np.isin(points, y).all()
    assert (y.min() <= forest.predict(asked)).all() and (forest.predict(asked) <= y.max()).all()
    values = forest.predict_quantiles(asked, quantiles)
    assert (np.diff(values, axis=1) >= 0).all() and np.isin(values, points).all()


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_asked_about_does_not_matter(table, random):
    X, y, asked = table
    forest = IterationForest(3, random_state=0).fit(X, y)
    order = list(range(len(asked)))
    random.shuffle(order)
    assert forest.predict_points(asked[order]).tolist() == forest.predict_points(asked)[order].tolist()


def _jobs(drawn: list[tuple[str, str, int, int]], prefix: str, start_s: float) -> list[Job]:
    return [
        Job(id=f"{prefix}{i}", release_s=start_s + at, work=Fixed(duration_s=1.0), gpus=gpus, user=user, name=name)
        for i, (user, name, gpus, at) in enumerate(drawn)
    ]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(JOBS, SIZES), min_size=4, max_size=15),
    st.lists(JOBS, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_a_model_answers_each_job_alike_in_any_order_and_within_what_it_has_seen(history, drawn, random):
    past = _jobs([each for each, _ in history], "h", 0.0)
    sizes = [size for _, size in history]
    ends = [20.0 + number for number in range(len(past))]
    finished = [Finished(*each) for each in zip(past, sizes, ends, strict=True)]
    asked = _jobs(drawn, "x", 50.0)
    shuffled = list(asked)
    random.shuffle(shuffled)
    answers = []
    for order in (asked, shuffled):
        model = ForestModel(n_estimators=3, min_samples_leaf=1, first_fit=4, growth=9.0)
        model.predict(past, 10.0)
        model.learn(finished, 40.0)
        said = dict(zip((one.id for one in order), model.predict(order, 60.0), strict=True))
        answers.append([said[one.id] for one in asked])
    assert answers[0] == answers[1]
    for estimate in answers[0]:
        assert on_grid(min(sizes)) <= estimate.sizes.points[0] <= estimate.sizes.points[-1] <= on_grid(max(sizes))
        assert estimate.low <= estimate.median <= estimate.high
