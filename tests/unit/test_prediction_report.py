"""Replays of size models as tables, CSV and pictures, and what the docs show of them."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import FileError, InvalidValueError, MissingExtraError
from frostline.prediction import ReplayResult, model_names, replay
from frostline.problem import Fixed, Job, PlacementClass, Profiled
from frostline.report.plot_calibration import plot_calibration, plot_quantiles, save_calibration
from frostline.report.prediction import (
    PREDICTION_COLUMNS,
    calibration_by_size,
    finish_text,
    predictions_csv,
    replay_lines,
    replay_summary,
    replay_table,
    size_unit,
)
from frostline.traces import generate_jobs

DOCS = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text("utf-8")


def job(job_id: str, release_s: float, duration_s: float, **fields) -> Job:
    return Job(
        id=job_id, release_s=release_s, **{"work": Fixed(duration_s=duration_s), "gpus": 1, "user": "ann"} | fields
    )


@pytest.fixture(scope="module")
def many() -> ReplayResult:
    """Replay of enough jobs for their density to be drawn."""
    return replay(generate_jobs(1200, seed=1, gpus=64), ["median"])[0]


@pytest.fixture
def few() -> ReplayResult:
    return replay([job(str(i), 10 * i, 4 + i % 3) for i in range(30)], ["median"])[0]


def test_rows_and_cells_agree(many):
    row = replay_summary("median:window=200", many)
    assert row["model"] == "median:window=200"
    assert sum(row["sources"].values()) == row["jobs"] == 1200
    assert list(row["sources"]) == sorted(row["sources"])
    cells = dict(zip(replay_table([row]).header, replay_table([row]).rows[0], strict=True))
    assert cells["within 2x"] == f"{100 * row['share_within_2x']:.1f} %"
    assert cells["D of 80 %"] == f"{row['distortion']['0.1']['D']:.4g}"
    assert cells["D of all"] == f"{row['distortion']['0']['D']:,.0f}"
    assert float(cells["µs/job"].replace(",", "")) == pytest.approx(1e6 * row["seconds_per_prediction"], rel=0.01)
    assert replay_lines()


def test_without_jobs_there_are_dashes():
    row = replay_summary("median", replay([], ["median"])[0])
    assert set(replay_table([row]).rows[0][1:]) == {"-"}


def test_csv_gives_all_of_it_back():
    work = Profiled(iterations=7, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})
    jobs = [job('a,"1"', 0, 0.1 + 0.2), job("b\nc", 1, 9, work=work)]
    results = dict(zip(("median", "ewma:alpha=0.5"), replay(jobs, ["median", "ewma:alpha=0.5"]), strict=True))
    lines = list(csv.DictReader(io.StringIO(predictions_csv(results, jobs), newline="")))
    assert tuple(lines[0]) == PREDICTION_COLUMNS
    assert [(line["model"], line["job"], line["unit"]) for line in lines] == [
        (model, one.id, unit) for model in results for one, unit in zip(jobs, ("s", "iterations"), strict=True)
    ]
    assert [float(line["actual"]) for line in lines] == [0.1 + 0.2, 7.0] * 2


@pytest.mark.parametrize(("known", "jobs"), [(0, 0), (0, 5), (5, 5), (3, 5)])
def test_finish_text_counts(known, jobs):
    text = finish_text(known, jobs)
    assert ("taken to start at" in text) == (known < jobs or jobs == 0)
    assert f"{jobs}" in text or known == 0


def test_units():
    work = Profiled(iterations=7, seconds_per_iteration={PlacementClass.ONE_SERVER: 1.0})
    jobs = [job("a", 0, 9), job("b", 0, 9, work=work)]
    assert [size_unit(part) for part in (jobs, jobs[:1], jobs[1:], [])] == ["s or iterations", "s", "iterations", "s"]


def test_calibration_by_hand():
    jobs = [job(str(i), 100 * i, duration_s) for i, duration_s in enumerate([10, 10, 10, 10, 10, 20, 5, 10, 10, 10])]
    (result,) = replay(jobs, ["median"])
    middle, shares = calibration_by_size(result)
    assert middle.tolist() == [0.25, 0.75]
    # The smallest predictions are nine of 10; by number the first of them, of which one job was larger.
    assert result.predicted.tolist() == [3600.0, *[10.0] * 9]
    assert shares[1].tolist() == [0.8, 1.0]
    assert np.all(np.diff(shares, axis=0) >= 0)


def test_parts_hold_all_jobs(many):
    middle, shares = calibration_by_size(many)
    assert len(middle) == 10
    below = (many.actual <= many.high).mean()
    assert shares[2].mean() == pytest.approx(below)
    assert calibration_by_size(many, 3)[1].shape == (3, 3)


def test_few_jobs_are_points_and_many_a_density(few, many):
    pytest.importorskip("matplotlib")
    from matplotlib.collections import PolyCollection

    axes = plot_calibration(few, unit="iterations", title="tiny")
    assert not any(isinstance(item, PolyCollection) for item in axes.collections)
    points = axes.lines[0]
    assert np.array_equal(points.get_xdata(), few.actual)
    assert np.array_equal(points.get_ydata(), few.predicted)
    assert axes.get_xlabel() == "actual, iterations"
    assert axes.get_title().startswith("tiny\nmedian |ln ratio| ")
    axes = plot_calibration(many)
    (density,) = [item for item in axes.collections if isinstance(item, PolyCollection)]
    assert density.get_array().sum() == 1200
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_quantiles_are_drawn_beside_their_aims(many):
    pytest.importorskip("matplotlib")
    axes = plot_quantiles(many)
    _, shares = calibration_by_size(many)
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 10]
    assert np.array_equal([line.get_ydata() for line in drawn], shares)
    assert [line.get_ydata()[0] for line in axes.lines if len(line.get_xdata()) == 2] == [0.1, 0.5, 0.9]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["low", "median", "high"]


@pytest.mark.parametrize("count", [1, 2000])
def test_equal_sizes_can_be_drawn(count):
    pytest.importorskip("matplotlib")
    (result,) = replay([job(str(i), 0, 3600) for i in range(count)], ["median"])
    axes = plot_calibration(result)
    assert axes.get_xlim() == (1800, 7200)
    plot_quantiles(result)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_picture_has_the_same_bytes(ending, few, many, tmp_path):
    pytest.importorskip("matplotlib")
    results = {"median": few, "median:window=9": many, "a": few, "b": few, "c": few}
    paths = [tmp_path / f"{name}.{ending}" for name in "xy"]
    for path in paths:
        save_calibration(path, results, unit="s")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if ending == "svg":
        assert paths[0].read_text("utf-8").count("<!-- predicted, s -->") == 5


def test_nothing_to_draw(few, tmp_path):
    pytest.importorskip("matplotlib")
    (none,) = replay([], ["median"])
    for draw in (plot_calibration, plot_quantiles):
        with pytest.raises(InvalidValueError, match="jobs"):
            draw(none)
    with pytest.raises(InvalidValueError, match="models"):
        save_calibration(tmp_path / "p.png", {})
    with pytest.raises(InvalidValueError, match="jobs"):
        save_calibration(tmp_path / "p.png", {"median": few, "none": none})
    with pytest.raises(FileError, match="must end in"):
        save_calibration(tmp_path / "p.gif", {"median": few})
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_asked_for_by_its_extra(few, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (plot_calibration, plot_quantiles):
        with pytest.raises(MissingExtraError, match=r"frostline\[plot\]"):
            draw(few)
    with pytest.raises(MissingExtraError):
        save_calibration(tmp_path / "p.png", {"median": few})


def test_the_docs_name_every_model():
    assert [name for name in model_names() if f"`{name}`" not in DOCS] == []


def test_the_docs_quote_figures_of_their_table():
    """Figures in the text are those of the table of the benchmark."""
    rows = {cells[1].strip(): cells for cells in (line.split("|") for line in DOCS.splitlines()) if len(cells) > 11}
    for trace in ("Eagle", "Philly", "ITP, pooled", "generated, seed 1", "generated, seed 2"):
        errors = [float(cell.split(",")[0]) for cell in rows[trace][3:9]]
        verdict = rows[trace][-2]
        assert ("better" in verdict) == (errors[5] < min(errors[:3])), trace
        assert math.isfinite(sum(errors))
