"""Curves, pictures and the report of schedules made by hand."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import FileError, InvalidValueError, MissingExtraError, UnknownNameError
from frostline.problem import Cluster, Fixed, Instance, Job, Outage, Placement, Refusal, Schedule, Segment
from frostline.problem.refusal import never_fits
from frostline.relaxation import lower_bound
from frostline.report import (
    PLOT_KINDS,
    Timeline,
    html_report,
    plot_compare,
    plot_flow,
    plot_gantt,
    plot_usage,
    result_summary,
    save_plots,
    save_report,
    schedule_result,
    timeline,
)
from frostline.report.curves import (
    Steps,
    busy_shares,
    capacity_steps,
    down_shares,
    flow_curve,
    flows_s,
    gpu_steps,
    level_shares,
    steps_of,
    waiting_steps,
)
from frostline.report.html import facts, items, section
from frostline.report.lanes import bars
from frostline.report.picture_gantt import readable
from frostline.report.picture_style import line_style, plain_text, shown_text, time_unit
from frostline.report.report_page import bound_lines
from frostline.simulation import simulate
from frostline.verify import check_schedule

DOCS = (Path(__file__).parents[2] / "docs" / "plots.md").read_text("utf-8")
TWO = Cluster.uniform(2, gpus=4)
US = 1_000_000


def job(name: str, release_s: float, gpus: int = 2) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=10))


def piece(name: str, start_s: float, end_s: float, *loads: tuple[int, int], level: int = 0) -> Segment:
    return Segment(name, round(start_s * US), round(end_s * US), Placement.of_loads(loads), level)


def drawn(
    jobs: Iterable[Job], segments: Iterable[Segment], cluster: Cluster = TWO, refused: Iterable[Refusal] = (), **more
) -> Timeline:
    return timeline(Instance(cluster=cluster, jobs=tuple(jobs)), Schedule.of(segments, refused, **more))


@pytest.fixture
def three() -> Timeline:
    """Job a on both servers, b after it, c evicted once; z never fits."""
    jobs = [job("a", 0, 6), job("b", 2, 8), job("c", 4, 2), job("z", 1, 99)]
    segments = [
        piece("a", 0, 10, (0, 4), (1, 2)),
        piece("c", 4, 6, (1, 2)),
        piece("b", 10, 20, (0, 4), (1, 4)),
        piece("c", 20, 28, (0, 2)),
    ]
    refusal = never_fits(jobs[3], TWO)
    assert refusal is not None
    return drawn(jobs, segments, refused=[refusal], policy="fifo")


@pytest.fixture
def frozen() -> Timeline:
    """One job at levels 0, 1 and 3 while a server is down."""
    segments = [
        piece("a", 0, 5, (0, 2)),
        piece("a", 5, 8, (0, 2), level=1),
        piece("a", 8, 12, (0, 2), level=3),
    ]
    return drawn([job("a", 0)], segments, outages=[Outage(server="s1", start_s=3, end_s=6)], policy="icefrog")


def rows_of(*names: str) -> list[dict]:
    row = {"mean_flow_s": 6.0, "median_flow_s": 3.0, "p99_flow_s": 12.0, "bound_mean_flow_s": 3.0}
    return [{**row, "policy": name} for name in names]


def lines_of(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


# -- what is drawn -----------------------------------------------------------------------------------------------


def test_flow_times_and_their_distribution(three):
    assert flows_s(three).tolist() == [10, 18, 24]
    at_s, share = flow_curve(flows_s(three))
    assert at_s.tolist() == [10, 18, 24]
    assert share.tolist() == pytest.approx([1 / 3, 2 / 3, 1])


def test_a_long_distribution_keeps_its_ends_and_its_shape():
    flows = np.sort(np.random.default_rng(1).lognormal(5, 2, 50_000))
    at_s, share = flow_curve(flows, most=500)
    assert at_s.size <= 500
    assert (at_s[0], at_s[-1], share[-1]) == (flows[0], flows[-1], 1)
    exact = np.searchsorted(flows, at_s, "right") / flows.size
    assert share == pytest.approx(exact)
    assert np.diff(share).max() < 0.005


def test_gpus_in_use_and_jobs_waiting(three):
    steps = gpu_steps(three)
    assert steps.at_s.tolist() == [0, 4, 6, 10, 20, 28]
    assert steps.values.tolist() == [6, 8, 6, 8, 2, 0]
    waits = waiting_steps(three)
    assert waits.at_s.tolist() == [0, 2, 4, 6, 10, 20, 28]
    assert waits.values.tolist() == [0, 1, 1, 2, 1, 0, 0]


def test_jobs_that_never_end_wait_for_ever():
    columns = drawn([job("a", 0), job("b", 1)], [piece("a", 0, 5, (0, 2))], unfinished=["a", "b"])
    assert flows_s(columns).size == 0
    assert waiting_steps(columns).values.tolist() == [0, 1, 2]


def test_steps_at_one_instant_count_together_and_means_are_exact():
    steps = steps_of(np.array([5, 0, 5, 7]) * US, np.array([-2, 3, 4, -5]))
    assert (steps.at_s.tolist(), steps.values.tolist()) == ([0, 5, 7], [3, 5, 0])
    assert steps.means(np.array([-1.0, 1.0, 6.0, 9.0])).tolist() == pytest.approx([1.5, 4.0 * 0.8 + 0.2, 5 / 3])
    assert steps.means(np.array([-9.0, -8.0])).tolist() == [0]
    assert steps.between(6, 7).values.tolist() == [5]
    assert Steps(np.array([]), np.array([], np.int64)).means(np.array([0.0, 1.0])).tolist() == [0]


def test_capacity_leaves_out_servers_that_are_down():
    outages = [Outage(server="s0", start_s=-9, end_s=3), Outage(server="s1", start_s=5), Outage(server="x", start_s=0)]
    steps = capacity_steps(TWO, outages, 0.0)
    assert (steps.at_s.tolist(), steps.values.tolist()) == ([0, 3, 5], [4, 8, 4])
    assert capacity_steps(TWO, [Outage(server="s0", start_s=-9, end_s=-3)], 0.0).values.tolist() == [8]


def test_shares_of_servers_by_bins(three, frozen):
    shares = busy_shares(three, np.array([0.0, 7.0, 14.0, 21.0, 28.0]))
    assert shares[0].tolist() == pytest.approx([1, 1, (6 + 0.5) / 7, 0.5])
    assert shares[1].tolist() == pytest.approx([(7 * 0.5 + 1) / 7, (3 * 0.5 + 4) / 7, 6 / 7, 0])
    assert down_shares(frozen, np.array([0.0, 4.0, 8.0, 12.0])).tolist() == [[0, 0, 0], [0.25, 0.5, 0]]
    levels, gpus = level_shares(frozen, np.array([0.0, 6.0, 12.0]))
    assert levels == [0, 1, 3]
    assert gpus.ravel().tolist() == pytest.approx([10 / 6, 0, 2 / 6, 4 / 6, 0, 8 / 6])


def test_lanes_are_never_shared():
    rng = np.random.default_rng(7)
    instance = Instance(
        cluster=Cluster(servers=Cluster.uniform(3, gpus=5).servers),
        jobs=[
            Job(id=str(i), release_s=float(i), gpus=int(rng.integers(1, 12)), work=Fixed(duration_s=float(d)))
            for i, d in enumerate(rng.integers(1, 30, 80))
        ],
    )
    columns = timeline(instance, simulate(instance, "srtf").schedule)
    found = bars(columns)
    held = np.zeros(columns.job.size, np.int64)
    cells = []
    for segment, lane, lanes in found:
        held[segment] += lanes
        cells += [(one, columns.start_us[segment], columns.end_us[segment]) for one in range(lane, lane + lanes)]
    assert held.tolist() == columns.gpus.tolist()
    cells.sort()
    assert all(end <= start for (a, _, end), (b, start, _) in pairwise(cells) if a == b)


def test_a_change_of_level_keeps_the_lanes(frozen):
    assert {(bar.lane, bar.lanes) for bar in bars(frozen)} == {(0, 2)}


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([piece("x", 0, 1, (0, 1))], "job='x' must be a job of the instance"),
        ([piece("a", 5, 5, (0, 1))], "must be two times"),
        ([Segment("a", 0, 10**40, Placement.of_loads([(0, 1)]))], "must be two times"),
        ([piece("a", 0, 5, (2, 1))], "server=2 must be below 2"),
        ([piece("a", 0, 5, (1, 5))], "gpus=5 must be at most 4, the GPUs of server 's1'"),
        ([piece("a", 0, 5, (1, 1), level=-1)], "freeze_level=-1 must be a level"),
        ([piece("b", 0, 5, (1, 1))], "start_us=0 must not lie before the release"),
        ([piece("a", 0, 5, (1, 1)), piece("a", 4, 9, (0, 1))], "must not lie before the end of the segment before it"),
        ([piece("a", 0, 5, (1, 3)), piece("b", 2, 9, (1, 2))], "server 's1' of the schedule: gpus held=5 must be"),
    ],
)
def test_what_cannot_be_drawn_is_named(segments, message):
    with pytest.raises(InvalidValueError, match=re.escape(message)):
        drawn([job("a", 0), job("b", 1)], segments)


def test_span_of_a_schedule(three):
    assert three.span_s == (0, 28)
    assert drawn([], []).span_s == (0, 1)
    assert drawn([job("a", 3)], []).span_s == (3, 3.000001)


# -- pictures ----------------------------------------------------------------------------------------------------


def test_flow_picture(three):
    pytest.importorskip("matplotlib")
    axes = plot_flow({"fifo": three, "none": drawn([], [])}, [5.0, 5.0]).axes[0]
    assert axes.get_xscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("flow time, s", "share of completed jobs")
    lines = lines_of(axes)
    assert list(lines) == ["fifo (mean 17.33 s)", "none (no job completed)", "lower bound of the mean, 5 s"]
    x, y = lines["fifo (mean 17.33 s)"].get_data()
    assert x.tolist() == [10, 10, 18, 24]
    assert y.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    dot = next(line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1)
    assert [float(data[0]) for data in dot.get_data()] == pytest.approx([52 / 3, 1 / 3])


def test_usage_picture(frozen, three):
    pytest.importorskip("matplotlib")
    above, below = plot_usage({"frozen": frozen}).axes
    lines = lines_of(above)
    assert list(lines) == ["GPUs that are up", "frozen"]
    x, y = lines["GPUs that are up"].get_data()
    assert (x.tolist(), y.tolist()) == ([0, 3, 3, 6, 6, 12], [8, 8, 4, 4, 8, 8])
    x, y = lines["frozen"].get_data()
    assert (x[0], x[-1], set(y.tolist())) == (0, 12, {2})
    assert (above.get_ylabel(), below.get_ylabel(), below.get_xlabel()) == ("GPUs in use", "jobs waiting", "time, s")
    both = plot_usage({"frozen": frozen, "three": three}).axes[0]
    assert len([line for line in both.lines if line.get_label() == "GPUs that are up"]) == 2
    assert both.get_xlim() == (0, 28)


def test_compare_picture():
    pytest.importorskip("matplotlib")
    rows = [*rows_of("fifo", "sjf"), {**rows_of("easy")[0], "mean_flow_s": None, "p99_flow_s": None}]
    axes = plot_compare(rows).axes[0]
    lines = lines_of(axes)
    assert list(lines) == ["mean", "median", "p99", "lower bound of the mean"]
    assert [list(map(float, data)) for data in lines["mean"].get_data()] == [[2, 2], [0, 1]]
    assert [list(map(float, data)) for data in lines["median"].get_data()] == [[1, 1, 1], [0, 1, 2]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fifo", "sjf", "easy"]
    unbounded = plot_compare([{**rows[0], "bound_mean_flow_s": None}, rows[1]]).axes[0]
    assert unbounded.get_xlabel() == "flow time, s"
    assert lines_of(unbounded)["mean"].get_xdata().tolist() == [6, 6]


def test_gantt_picture_shows_jobs_levels_and_outages(three, frozen):
    pytest.importorskip("matplotlib")
    axes = plot_gantt(three).axes[0]
    (bars_,) = axes.collections
    assert len(bars_.get_paths()) == 6
    assert bars_.get_paths()[0].vertices[:4].tolist() == [[0, 0], [0, 4], [10, 4], [10, 0]]
    assert sorted(text.get_text() for text in axes.texts) == ["a", "a", "b", "b", "c", "c"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["s0", "s1"]
    assert axes.get_legend() is None
    axes = plot_gantt(frozen, "mine").axes[0]
    assert [one.get_hatch() for one in axes.collections] == [None, "////", "...."]
    (down,) = axes.patches
    assert (down.get_x(), down.get_width(), down.get_y(), down.get_height()) == (3, 3, 4, 4)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["freeze level 0", "freeze level 1", "freeze level 3", "server down"]


def many(servers: int, jobs: int, outages: Iterable[Outage] = ()) -> Timeline:
    """One job after the other on each server, at levels that take turns."""
    listed = [Job(id=str(i), release_s=float(i // servers), gpus=3, work=Fixed(duration_s=1)) for i in range(jobs)]
    segments = [
        piece(one.id, one.release_s, one.release_s + 1, (i % servers, 3), level=i // servers % 2)
        for i, one in enumerate(listed)
    ]
    return drawn(listed, segments, Cluster.uniform(servers, gpus=4), outages=outages)


def test_many_pieces_become_a_heat_map():
    pytest.importorskip("matplotlib")
    columns = many(250, 50_000, [Outage(server="s7", start_s=10, end_s=50)])
    assert not readable(columns)
    figure = plot_gantt(columns)
    heat, *_ = figure.axes
    image, down = heat.images
    assert image.get_array().shape == (84, 400)
    assert np.asarray(image.get_array()) == pytest.approx(0.75)
    alpha = np.asarray(down.get_array())[..., 3]
    assert set(np.flatnonzero(alpha.any(axis=1)).tolist()) == {2}
    assert np.flatnonzero(alpha[2]).tolist() == list(range(20, 100))
    assert heat.get_ylabel() == "servers, 3 a row"
    assert not any(axes.collections and len(axes.collections[0].get_paths()) > 1000 for axes in figure.axes)
    for axes in plot_usage({"x": columns}).axes:
        assert all(len(line.get_xdata()) <= 600 for line in axes.lines)


def test_a_heat_map_of_few_servers_hatches_those_that_are_down():
    pytest.importorskip("matplotlib")
    axes, *_ = plot_gantt(many(3, 900, [Outage(server="s1", start_s=10)])).axes
    (down,) = axes.patches
    assert (down.get_y(), down.get_height(), down.get_hatch()) == (1, 1, "\\\\\\")
    assert len(axes.images) == 1


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_saved_pictures_are_whole_and_the_same_every_time(kind, three, frozen, tmp_path):
    pytest.importorskip("matplotlib")
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    for path in (first, second):
        save_plots(path, {"fifo": three, "frozen": frozen, "many": many(70, 700)}, rows_of("fifo"), list(PLOT_KINDS))
    data = first.read_bytes()
    assert data == second.read_bytes()
    assert data.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind])
    if kind == "png":
        width, height = struct.unpack(">II", data[16:24])
        assert height > width > 900
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["$x", "$a$", "_hidden", "作业\n2", "\udcff\x00", "", "l" * 300, r"\$ $"])
def test_names_of_all_sorts_are_drawn_as_they_are(name, tmp_path):
    pytest.importorskip("matplotlib")
    cluster = Cluster(servers=tuple(server.__class__(id=name or "s", gpus=4) for server in TWO.servers[:1]))
    columns = drawn([job(name or "j", 0)], [piece(name or "j", 0, 9, (0, 2))], cluster, policy=name)
    save_plots(tmp_path / "a.png", {name: columns}, rows_of(name), list(PLOT_KINDS))
    labels = [text.get_text() for text in plot_flow({name: columns}).axes[0].get_legend().get_texts()]
    assert len(labels) == 1


@pytest.mark.parametrize("columns", [drawn([], []), drawn([], [], Cluster(servers=())), drawn([job("a", 5)], [])])
def test_empty_schedules_are_drawn(columns, tmp_path):
    pytest.importorskip("matplotlib")
    save_plots(tmp_path / "a.png", {"none": columns}, [], list(PLOT_KINDS))
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_bad_calls_write_nothing(three, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    with pytest.raises(FileError, match="must end in"):
        save_plots(tmp_path / "a.jpg", {"a": three})
    with pytest.raises(UnknownNameError, match="did you mean 'gantt'"):
        save_plots(tmp_path / "a.png", {"a": three}, kinds=["gant"])
    with pytest.raises(InvalidValueError, match="is named twice"):
        save_plots(tmp_path / "a.png", {"a": three}, kinds=["flow", "flow"])
    with pytest.raises(InvalidValueError, match="at least one"):
        save_plots(tmp_path / "a.png", {"a": three}, kinds=[])
    with pytest.raises(InvalidValueError, match="too many for one picture"):
        save_plots(tmp_path / "a.png", {str(i): three for i in range(400)}, kinds=["gantt"])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"frostline\[plot\]"):
        save_plots(tmp_path / "a.png", {"a": three})
    assert not list(tmp_path.iterdir())


def test_styles_of_lines_differ_in_grey_too():
    styles = [(line_style(i)["color"], str(line_style(i)["linestyle"])) for i in range(28)]
    assert len(set(styles)) == 28
    assert all(styles[i][1] != styles[i + 1][1] for i in range(27))


def test_texts():
    assert plain_text("a\tb\n") == "a b"
    assert shown_text("_a") == " _a"
    assert len(shown_text("x" * 99)) == 40
    assert time_unit(600) == ("min", 60)


# -- the report --------------------------------------------------------------------------------------------------


def test_report_has_the_figures_of_the_table_and_escapes_texts():
    pytest.importorskip("matplotlib")
    jobs = [Job(id=name, release_s=0, work=Fixed(duration_s=3600), gpus=8) for name in ("a", "<b>")]
    instance = Instance(cluster=Cluster.uniform(1), jobs=jobs, name="<i>&co", provenance={"from": "<u>"})
    result = simulate(instance, "asrpt")
    row = result_summary("asrpt", result, lower_bound(instance), check_schedule(instance, result.schedule))
    text = html_report(instance, {"asrpt": timeline(instance, result.schedule)}, [row], sources={"x": "12ab"})
    assert text == html_report(instance, {"asrpt": timeline(instance, result.schedule)}, [row], sources={"x": "12ab"})
    assert "&lt;i&gt;&amp;co on 1x8" in text
    assert "<u>" not in text
    assert '<tr><th scope="row">asrpt</th><td>5,400</td>' in text
    assert "guard guarantee" in text
    assert "no schedule of these 2 jobs has a mean flow time below 5,400 s" in text
    assert "submitted 2 = finished 2 + refused 0" in text
    assert '<th scope="row">SHA-256 of x</th><td>12ab</td>' in text
    assert text.count("<img ") == 4


def test_rows_of_a_schedule_alone_agree_with_those_of_its_simulation():
    instance = Instance(cluster=TWO, jobs=[job("a", 0, 6), job("b", 2, 8), job("z", 1, 99)])
    result = simulate(instance, "fifo")
    bound, report = lower_bound(instance), check_schedule(instance, result.schedule)
    whole = result_summary("fifo", result, bound, report)
    alone = schedule_result("fifo", instance, result.schedule, bound, report, None)
    assert list(alone) == list(whole)
    assert {**alone, "parameters": 0, "runtime_s": 0} == {**whole, "parameters": 0, "runtime_s": 0}


def test_bounds_are_told_for_the_choices_that_they_allow():
    row = {
        "bound_method": "pointwise",
        "bound_choices": "elastic",
        "bound_mean_flow_s": 2,
        "submitted": 2,
        "refused": 0,
    }
    (line,) = bound_lines([row])
    assert "other numbers of GPUs and freezing included" in line
    assert bound_lines([{**row, "bound_mean_flow_s": None}]) == ["lower bound (pointwise): no job can run"]


def test_pieces_of_html_that_are_empty():
    assert (section("a"), section("a", ""), facts([]), items([])) == ("", "", "", "")


def test_reports_are_written_whole(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        save_report(tmp_path / "none" / "a.html", "x")
    save_report(tmp_path / "a.HTML", "é")
    assert (tmp_path / "a.HTML").read_bytes() == "é".encode()


def test_the_docs_name_every_kind():
    assert [kind for kind in PLOT_KINDS if f"`{kind}`" not in DOCS] == []
