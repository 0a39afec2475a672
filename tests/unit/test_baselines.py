"""Baselines by hand: keys, windows, and what each model says of four jobs that finish out of order."""

from __future__ import annotations

import math

import pytest

from frostline.errors import InvalidValueError
from frostline.prediction import (
    ExponentialAverage,
    Finished,
    GlobalMedian,
    GroupMedian,
    History,
    LastFinished,
    OnlinePredictor,
    ScaledEstimate,
    SizeModel,
    UserEstimate,
    Watcher,
    make_model,
    model_names,
    name_stem,
)
from frostline.prediction.history import Window, evenly, keys_of
from frostline.problem import Fixed, Job, PlacementClass, Profiled

GROUP_MODELS = ["last-finished", "median", "recent-median", "width-median", "ewma", "global-median", "survival"]


def job(job_id: str, release_s: float = 0.0, **fields: object) -> Job:
    values: dict[str, object] = {"work": Fixed(duration_s=1.0), "gpus": 1, "user": "u1", **fields}
    return Job(id=job_id, release_s=release_s, **values)  # type: ignore[arg-type]


def taught(model: SizeModel, sizes: list[float], **fields: object) -> SizeModel:
    model.learn([Finished(job(f"h{i}", **fields), size, float(i)) for i, size in enumerate(sizes)], 1e6)
    return model


def median(model: SizeModel, asked: Job, now_s: float = 1e6) -> float:
    (estimate,) = model.predict([asked], now_s)
    assert estimate is not None
    return estimate.median


# Four jobs of one group. Submitted at 0, 10, 50, 90, they run 100, 20, 30 and 5 s from their submission, so that they
# finish in the order b (30), c (80), d (95), a (100). What was known: nothing; nothing; b; b and c. A fifth one at 100
# sees b, c, d and a, which finishes at the very instant.
FOUR = [("a", 0.0, 100.0), ("b", 10.0, 20.0), ("c", 50.0, 30.0), ("d", 90.0, 5.0)]
SAID = {
    "last-finished": [3600.0, 3600.0, 20.0, 30.0, 100.0],
    "median": [3600.0, 3600.0, 20.0, math.sqrt(600.0), math.sqrt(600.0)],
    "recent-median:jobs=1": [3600.0, 3600.0, 20.0, 30.0, 100.0],
    "global-median": [3600.0, 3600.0, 20.0, math.sqrt(600.0), math.sqrt(600.0)],
    "ewma:alpha=0.5": [3600.0, 3600.0, 20.0, math.sqrt(600.0), math.sqrt(math.sqrt(math.sqrt(600.0) * 5.0) * 100.0)],
    # At 50, half of a and b are not beyond 20. At 90, a has run 90 s and b, c are known: half of them end by 30.
    "survival": [3600.0, 3600.0, 20.0, 30.0, 20.0],
    "user-estimate": [3600.0, 3600.0, 20.0, math.sqrt(600.0), math.sqrt(600.0)],
}


@pytest.mark.parametrize("model", SAID)
def test_jobs_that_finish_out_of_order(model: str) -> None:
    predictor, said = OnlinePredictor(model), []
    ends = sorted((release + size, name, size) for name, release, size in FOUR)
    for name, release, _ in [*FOUR, ("e", 100.0, 1.0)]:
        while ends and ends[0][0] <= release:
            end, over, size = ends.pop(0)
            predictor.finish(over, size, end)
        said += [estimate.median for estimate in predictor.predict([job(name, release)], release)]
        predictor.start(name, release)
    assert said == pytest.approx(SAID[model], rel=1e-5)


def test_keys_go_from_specific_to_general() -> None:
    asked = job("a", user="u", group="g", name="bert-07", gpus=8)
    assert [level for level, *_ in keys_of(asked)] == [
        "user+name+gpus",
        "user+name",
        "user+stem+gpus",
        "user+stem",
        "user+gpus",
        "user",
        "group+gpus",
        "group",
        "gpus",
        "all",
    ]


@pytest.mark.parametrize(
    ("fields", "levels"),
    [
        ({"user": ""}, ["gpus", "all"]),
        ({"user": "", "group": "g"}, ["group+gpus", "group", "gpus", "all"]),
        ({"user": "", "name": "n"}, ["name+gpus", "name", "gpus", "all"]),
        (
            {"user": "", "group": "g", "name": "n"},
            ["group+name+gpus", "group+name", "group+gpus", "group", "gpus", "all"],
        ),
        ({"name": "0123"}, ["user+name+gpus", "user+name", "user+gpus", "user", "gpus", "all"]),
    ],
)
def test_empty_fields_are_left_out(fields: dict[str, object], levels: list[str]) -> None:
    assert [level for level, *_ in keys_of(job("a", **fields))] == levels


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("train", "train"),
        ("train_12", "train"),
        ("train-2024-01-31T120000Z", "train"),
        ("train.9f86d081", "train"),
        ("sweep[17]", "sweep"),
        ("job-3fa85f64-5717-4562-b3fc-2c963f66afa6", "job"),
        ("resnet50", "resnet50"),
        ("gpt2", "gpt2"),
        ("run_a100", "run_a100"),
        ("deadbeef", "deadbeef"),
        ("1-2-3", ""),
        ("", ""),
        ("模型-7", "模型"),
        ("\x00\ud800 9", "\x00\ud800"),
    ],
)
def test_name_stem(name: str, stem: str) -> None:
    assert name_stem(name) == stem


def test_name_stem_of_a_long_name_takes_no_time() -> None:
    assert name_stem("1" * 100_000 + "x") == "1" * 100_000 + "x"
    assert name_stem("a" + "-1" * 50_000) == "a"


# Case R01: users u1 and u2 are known, u9 is not.
@pytest.mark.parametrize("model", ["median", "width-median", "global-median", "combined"])
def test_an_unknown_user_gets_the_median_of_all(model: str) -> None:
    predictor = OnlinePredictor(model)
    sizes = [10.0, 20.0, 30.0, 40.0, 1000.0]
    predictor.learn([Finished(job(f"h{i}", user=f"u{i % 2 + 1}"), size, 1.0) for i, size in enumerate(sizes)], 1.0)
    (estimate,) = predictor.predict([job("a", user="u9")], 2.0)
    assert estimate.median == 30.0
    assert estimate.cold_start
    assert predictor.statistics.cold_starts == 1


@pytest.mark.parametrize("model", GROUP_MODELS)
def test_no_history_one_row_and_a_bad_target(model: str) -> None:
    made = make_model(model)
    assert made.predict([job("a")], 0.0) == [None]
    taught(made, [math.nan, 0.0, -5.0, math.inf])
    assert made.predict([job("a")], 1e6) == [None]
    assert median(taught(made, [60.0]), job("a")) == 60.0


@pytest.mark.parametrize("size", [math.nan, 0.0, -5.0, math.inf])
def test_bad_targets_are_counted(size: float) -> None:
    predictor = OnlinePredictor("median")
    predictor.predict([job("a"), job("b")], 0.0)
    predictor.finish("a", size, 1.0)
    predictor.finish("b", 60.0, 1.0)
    (estimate,) = predictor.predict([job("c")], 1.0)
    assert (estimate.median, predictor.statistics.dropped_targets, predictor.statistics.learned) == (60.0, 1, 1)


def test_the_most_specific_key_decides() -> None:
    model = LastFinished()
    taught(model, [500.0], user="u2", gpus=4)
    taught(model, [100.0], name="x")
    taught(model, [200.0], name="y")
    assert median(model, job("a", name="x")) == 100.0
    assert median(model, job("a", name="z")) == 200.0
    assert median(model, job("a", user="u3", gpus=4)) == 500.0
    assert [e.source for e in model.predict([job("a", name="z", gpus=2)], 1e6) if e] == ["last-finished: user"]


def test_keys_count_from_a_number_of_jobs_on() -> None:
    model = LastFinished(min_jobs=2, min_unnamed=3)
    taught(model, [100.0], name="x")
    taught(model, [200.0, 300.0], name="y")
    assert median(model, job("a", name="y")) == 300.0
    assert [e.source for e in model.predict([job("a", name="x")], 1e6) if e] == ["last-finished: user+gpus"]
    few = taught(LastFinished(min_unnamed=3), [100.0, 300.0])
    assert [e.source for e in few.predict([job("a")], 1e6) if e] == ["last-finished: all"]


def test_iterations_and_seconds_are_never_mixed() -> None:
    iterations = Profiled(iterations=1, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})
    for name in GROUP_MODELS:
        model = taught(make_model(name), [60.0])
        assert model.predict([job("a", work=iterations)], 1e6) == [None]


def test_the_spread_is_that_of_the_group_moved_to_the_centre() -> None:
    (estimate,) = taught(LastFinished(), [10.0, 20.0, 40.0]).predict([job("a")], 1e6)
    assert estimate is not None
    assert estimate.sizes.points == (20.0, 40.0, 80.0)
    (many,) = taught(GroupMedian(), [float(size) for size in range(1, 102)]).predict([job("a")], 1e6)
    assert many is not None
    assert (len(many.sizes.points), many.median) == (31, 51.0)


def test_a_window_forgets() -> None:
    window = Window(3)
    for size in (1.0, 5.0, 5.0, 2.0, 9.0):
        window.add(size, 0.5)
    assert (window.ordered, window.last, window.latest(2), len(window)) == ([2.0, 5.0, 9.0], 9.0, [9.0, 2.0], 3)
    assert (window.beyond(4.0), window.beyond(9.0)) == ([5.0, 9.0], [18.0])
    assert median(taught(GroupMedian(window=3), [1.0, 5.0, 5.0, 2.0, 9.0]), job("a", user="u1")) == 5.0


def test_keys_are_forgotten_the_oldest_first() -> None:
    history = History(most_keys=16)
    history.learn([Finished(job(str(i), user=f"u{i}"), 1.0 + i, 0.0) for i in range(20)])
    assert history.best(keys_of(job("a", user="u0")))[0][0] == "gpus"  # type: ignore[index]
    assert history.best(keys_of(job("a", user="u19")))[0][0] == "user+gpus"  # type: ignore[index]


@pytest.mark.parametrize("count", [1, 2, 30, 31, 32, 33, 62, 63, 200])
def test_even_ranks_are_symmetric(count: int) -> None:
    ordered = [float(i) for i in range(count)]
    chosen = evenly(ordered)
    assert len(chosen) == min(count, 31)
    if count % 2:
        assert chosen[len(chosen) // 2] == ordered[count // 2] or count < 31
    assert list(chosen) == sorted(set(chosen))


def test_user_estimates() -> None:
    asked = job("a", estimate_s=7200.0)
    model = UserEstimate()
    assert median(model, asked) == 7200.0
    assert model.predict([job("b")], 0.0) == [None]
    model.declare("b", 50.0)
    assert median(model, job("b")) == 50.0
    model.learn([Finished(job("b"), 40.0, 1.0)], 1.0)
    assert model.predict([job("b")], 2.0) == [None]


def test_scaled_estimates() -> None:
    model = ScaledEstimate()
    assert model.predict([job("a", estimate_s=100.0)], 0.0) == [None]
    taught(model, [50.0, 20.0, 10.0], estimate_s=100.0)
    assert median(model, job("a", estimate_s=1000.0)) == 200.0
    assert model.predict([job("a")], 1e6) == [None]


def test_averages_are_of_logarithms() -> None:
    assert median(taught(ExponentialAverage(alpha=0.25), [16.0, 1.0]), job("a")) == pytest.approx(8.0)
    assert median(taught(ExponentialAverage(alpha=1), [16.0, 1.0]), job("a")) == 1.0


def test_the_global_median_ignores_keys() -> None:
    model = taught(GlobalMedian(), [10.0, 20.0, 30.0])
    assert median(model, job("a", user="nobody", gpus=99)) == 20.0


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ExponentialAverage(alpha=0), "alpha"),
        (lambda: ExponentialAverage(alpha=1.5), "alpha"),
        (lambda: GroupMedian(window=0), "window"),
        (lambda: LastFinished(min_jobs=0), "min_jobs"),
        (lambda: LastFinished(min_unnamed=0), "min_unnamed"),
        (lambda: History(most_keys=1), "most_keys"),
        (lambda: make_model("recent-median:jobs=0"), "jobs"),
        (lambda: make_model("survival:jobs=0"), "jobs"),
        (lambda: make_model("median:window"), "parameter"),
        (lambda: make_model("median:window=3:window=4"), "window"),
    ],
)
def test_bad_parameters(make: object, field: str) -> None:
    with pytest.raises(InvalidValueError, match=field):
        make()  # type: ignore[operator]


def test_unknown_names() -> None:
    with pytest.raises(LookupError, match="did you mean 'median'"):
        make_model("medain")
    with pytest.raises(LookupError, match="parameter of model 'median' 'histori'"):
        make_model("median:histori=3")


@pytest.mark.parametrize("name", [name for name in model_names() if name != "forest"])
def test_every_model_has_its_name(name: str) -> None:
    model = make_model(name)
    assert model.name == name
    assert isinstance(model, SizeModel)
    assert isinstance(model, Watcher) == (name in {"survival", "early-stop", "combined"})


def test_importing_the_package_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import sys, frostline.prediction; sys.exit(bool({'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
