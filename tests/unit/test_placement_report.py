"""Drawings of a placement: as text, and as a picture."""

from __future__ import annotations

import math
import struct
import sys
from fractions import Fraction

import pytest

from frostline.errors import FileError, MissingExtraError
from frostline.placement.place import place
from frostline.problem import Cluster, Placement
from frostline.report.placement_drawing import gpu_cells, placement_drawing, servers_to_draw
from frostline.report.plot_placement import plot_placement, save_plot, server_traffic
from frostline.report.stage_traffic import stage_letters, stage_traffic, traffic_lines, traffic_summary
from frostline.timing.iteration_time import cut_bytes
from frostline.timing.stage_graph import StageGraph

GRAPH = StageGraph(
    replicas=[3, 2, 1],
    compute_s=[0.1, 0.1, 0.1],
    gradient_bytes=[900, 100, 7],
    edges={(0, 1): 600, (1, 2): 50, (0, 2): 11},
)
PLACEMENT = Placement([(0, (2, 0, 1)), (1, (1, 1, 0)), (3, (0, 1, 0))])
CLUSTER = Cluster.uniform(4, gpus=4)
FREE = (4, 2, 3, 1)


def test_what_crosses_adds_up_to_the_cut():
    found = stage_traffic(GRAPH, PLACEMENT)
    assert math.ceil(sum(item.cut for item in found)) == cut_bytes(GRAPH, PLACEMENT)
    assert math.ceil(sum(server_traffic(GRAPH, PLACEMENT).values())) == cut_bytes(GRAPH, PLACEMENT)
    assert all(0 <= item.cut <= item.total for item in found)


def test_traffic_by_hand():
    found = {item.stages: (item.total, item.cut) for item in stage_traffic(GRAPH, PLACEMENT)}
    assert found == {
        (0, 1): (600, 600 * Fraction(5, 6)),  # one of six pairs is on server 1
        (0, 2): (11, 11 * Fraction(1, 3)),
        (1, 2): (50, 50),
        (0,): (3600, 2400),  # three links of 1,200 bytes, of which two join servers
        (1,): (200, 200),
    }
    assert traffic_summary(GRAPH, PLACEMENT)[1] == {"stages": [0, 2], "bytes": 11, "cut_bytes": 4}
    assert "A ── B   600 B per iteration, 500 B (83.3 %) between servers" in traffic_lines(GRAPH, PLACEMENT)


def test_the_drawing_shows_every_gpu_once():
    lines = placement_drawing(PLACEMENT, CLUSTER, FREE)
    assert lines[1] == "│ A A C · │  │ A B # # │  │ · · · # │  │ B # # # │"
    assert lines[-1].startswith("A stage 0, B stage 1, C stage 2")
    for server in range(4):
        cells = gpu_cells(PLACEMENT, CLUSTER, FREE, server)
        assert sum(max(gpus, 1) for _, gpus in cells) == 4


def test_boxes_stay_within_the_width():
    wide = Cluster.uniform(9, gpus=8)
    placement = Placement([(m, (1,) * 9) for m in range(8)])
    lines = placement_drawing(placement, Cluster.uniform(9, gpus=16), [16] * 9, width=60)
    assert max(map(len, lines)) <= 60
    assert sum(line.count("┌") for line in lines) == 9
    assert len(placement_drawing(Placement([(0, (1,))]), wide, [8] * 9, width=1)) >= 27


def test_large_servers_are_counted():
    lines = placement_drawing(Placement([(0, (20, 5))]), Cluster.uniform(1, gpus=64), [40])
    assert lines[1] == "│ A×20 B×5 ·×15 #×24 │"


def test_only_used_servers_of_many_are_drawn():
    cluster = Cluster.uniform(100)
    placement = Placement([(7, (2,)), (70, (3,))])
    assert servers_to_draw(placement, cluster) == (7, 70)
    assert "98 servers that hold none are not drawn" in placement_drawing(placement, cluster, [8] * 100)[-1]


def test_letters_do_not_run_out():
    letters = stage_letters(800)
    assert len(set(letters)) == 800
    assert letters[26] == "AA"
    assert letters[702] == "AAA"


def result():
    return place(GRAPH, FREE, cluster=CLUSTER, method="heavy-edge")


def test_plot_has_axes_and_a_patch_for_every_gpu():
    pytest.importorskip("matplotlib")
    axes = plot_placement(result(), GRAPH, CLUSTER, FREE)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("GPU", "server")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["s0", "s1", "s2", "s3"]
    assert "between servers" in axes.get_title()
    rectangles = [patch for patch in axes.patches if hasattr(patch, "get_width") and hasattr(patch, "get_x")]
    assert len(rectangles) == 16
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[:5] == ["stage 0", "stage 1", "stage 2", "free", "busy"]


def test_plot_takes_axes_and_many_stages():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    graph = StageGraph(replicas=[1] * 12, compute_s=[0.1] * 12)
    placed = place(graph, [8, 8], method="heavy-edge")
    assert plot_placement(placed, graph, Cluster.uniform(2), ax=axes) is axes


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_saved_pictures_are_whole_and_the_same_every_time(kind, tmp_path):
    pytest.importorskip("matplotlib")
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    for path in (first, second):
        save_plot(path, result(), GRAPH, CLUSTER, FREE)
    data = first.read_bytes()
    assert data == second.read_bytes()
    assert data.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind])
    if kind == "png":
        width, height = struct.unpack(">II", data[16:24])
        assert width > 300 < height
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a.{kind}", f"b.{kind}"]


def test_bad_endings_and_folders_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(FileError, match="must end in"):
        save_plot(tmp_path / "a.jpg", result(), GRAPH, CLUSTER)
    with pytest.raises(FileError, match="cannot be written"):
        save_plot(tmp_path / "none" / "a.png", result(), GRAPH, CLUSTER)


def test_a_missing_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"frostline\[plot\]"):
        save_plot(tmp_path / "a.png", result(), GRAPH, CLUSTER)
    assert not list(tmp_path.iterdir())
