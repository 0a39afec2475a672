"""The combination follows those that were right, and spreads as its own errors did."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from frostline.errors import InvalidValueError
from frostline.prediction import Combination, Estimate, Finished, SizeDistribution, make_model
from frostline.problem import Fixed, Job


def job(job_id: str, **fields: object) -> Job:
    values: dict[str, object] = {"work": Fixed(duration_s=1.0), "gpus": 1, "user": "u1", **fields}
    return Job(id=job_id, release_s=0, **values)  # type: ignore[arg-type]


class Constant:
    """Says the same of every job, or nothing."""

    def __init__(self, name: str, size: float | None) -> None:
        self.name = name
        self.size = size

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        pass

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        if self.size is None:
            return [None] * len(jobs)
        return [Estimate(sizes=SizeDistribution((self.size,)), source=self.name, cold_start=False)] * len(jobs)


def run(model: Combination, sizes: Sequence[float], **fields: object) -> list[float]:
    """Jobs one after the other: each is asked about when the one before has finished."""
    said = []
    for i, size in enumerate(sizes):
        asked = job(f"{fields}{i}", **fields)
        (estimate,) = model.predict([asked], float(i))
        assert estimate is not None
        said.append(estimate.median)
        model.learn([Finished(asked, size, i + 1.0)], i + 1.0)
    return said


def test_the_leader_is_followed() -> None:
    model = Combination(members=[Constant("low", 10.0), Constant("middle", 100.0), Constant("high", 1000.0)])
    assert run(model, [1000.0, 1000.0]) == [100.0, 1000.0]


def test_leaders_change_as_old_errors_fade() -> None:
    said = run(
        Combination(members=[Constant("low", 10.0), Constant("high", 1000.0)], decay=0.5), [10.0] * 9 + [1e3] * 4
    )
    assert said == [10.0] * 10 + [1000.0] * 3


def test_ties_go_to_the_lower_half_of_the_weights() -> None:
    assert run(Combination(members=[Constant("low", 10.0), Constant("high", 1000.0)]), [100.0, 100.0]) == [10.0, 10.0]


def test_equal_weights_take_the_median() -> None:
    members = [Constant("a", 30.0), Constant("b", 10.0), Constant("c", None), Constant("d", 20.0)]
    assert run(Combination(members=members, sharpness=0), [10.0] * 3) == [20.0] * 3


def test_each_owner_has_its_own_leader() -> None:
    model = Combination(members=[Constant("low", 10.0), Constant("high", 1000.0)], prior_jobs=1)
    for _ in range(10):
        run(model, [10.0], user="short")
        run(model, [1000.0], user="long")
    assert run(model, [10.0], user="short") == [10.0]
    assert run(model, [1000.0], user="long") == [1000.0]


def test_losses_are_of_what_was_said_first() -> None:
    low, high = Constant("low", 10.0), Constant("high", 1000.0)
    model = Combination(members=[low, high])
    asked = job("a")
    model.predict([asked], 0.0)
    low.size, high.size = 1000.0, 10.0
    model.predict([asked], 1.0)
    model.learn([Finished(asked, 1000.0, 2.0)], 2.0)
    (estimate,) = model.predict([job("b")], 3.0)
    assert estimate is not None
    assert estimate.source == "combined: high: all"


def test_a_wild_job_does_not_decide() -> None:
    members = [Constant("low", 10.0), Constant("high", 50.0)]
    assert run(Combination(members=members), [10.0, 10.0, 1e9, 10.0])[-1] == 10.0
    assert run(Combination(members=members, most_loss=100.0), [10.0, 50.0, 1e9, 10.0])[-1] == 50.0


def test_who_says_nothing_is_neither_followed_nor_blamed() -> None:
    silent = Constant("silent", None)
    model = Combination(members=[silent, Constant("wrong", 1000.0)])
    assert run(model, [10.0] * 5) == [1000.0] * 5
    assert Combination(members=[silent]).predict([job("a")], 0.0) == [None]


def test_the_spread_is_that_of_the_ratios_so_far() -> None:
    model = Combination(members=[Constant("ten", 10.0)])
    run(model, [5.0, 20.0, 10.0, 40.0, 2.0])
    (estimate,) = model.predict([job("a")], 9.0)
    assert estimate is not None
    assert estimate.sizes.points == (2.0, 5.0, 10.0, 20.0, 40.0)
    run(model, [40.0] * 9, user="u1")
    (estimate,) = model.predict([job("b")], 9.0)
    assert estimate is not None
    assert (estimate.median, estimate.high) == (10.0, 40.0)


def test_a_withdrawn_job_is_not_scored() -> None:
    model = Combination(members=[Constant("low", 10.0), Constant("high", 1000.0)])
    asked = job("a")
    model.predict([asked], 0.0)
    model.withdrawn("a")
    model.learn([Finished(asked, 1000.0, 2.0)], 2.0)
    (estimate,) = model.predict([job("b")], 3.0)
    assert estimate is not None
    assert estimate.median == 10.0


def test_user_estimates_are_scaled_once_jobs_have_finished() -> None:
    model = Combination()
    first = job("a", estimate_s=1000.0)
    (estimate,) = model.predict([first], 0.0)
    assert estimate is not None
    assert (estimate.median, estimate.source, estimate.cold_start) == (1000.0, "combined: user-estimate: none", True)
    said = run(
        Combination(members=[make_model("scaled-estimate"), make_model("user-estimate")]), [100.0] * 9, estimate_s=1e3
    )
    assert said[0] == 1000.0
    assert said[-1] == 100.0


def test_declared_iterations_reach_the_members() -> None:
    model = Combination()
    model.declare("a", 70.0)
    (estimate,) = model.predict([job("a")], 0.0)
    assert estimate is not None
    assert estimate.median == 70.0
    model.withdrawn("a")
    assert model.predict([job("a")], 0.0) == [None]


def test_running_jobs_reach_the_members() -> None:
    model = Combination(members=[make_model("survival")])
    for name in "abc":
        model.started(job(name), 0.0)
    model.learn([Finished(job("a"), 10.0, 10.0)], 10.0)
    model.progressed("b", 200.0)
    model.progressed("c", 300.0)
    (estimate,) = model.predict([job("d")], 11.0)
    assert estimate is not None
    assert estimate.median == 600.0


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"members": []}, "members"),
        ({"members": [Constant("a", 1.0), Constant("a", 2.0)]}, "members"),
        ({"decay": 0.0}, "decay"),
        ({"decay": 1.1}, "decay"),
        ({"sharpness": -1.0}, "sharpness"),
        ({"sharpness": float("nan")}, "sharpness"),
        ({"most_loss": 0.0}, "most_loss"),
        ({"prior_jobs": 0}, "prior_jobs"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValueError, match=field):
        Combination(**parameters)  # type: ignore[arg-type]
