"""Advice on freeze menus: plans by hand and by property, tables, and pictures."""

from __future__ import annotations

import dataclasses
import sys
from itertools import pairwise

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from frostline.errors import FileError, InvalidValueError, MissingExtraError
from frostline.freezing import DebtLaw, FreezeRow
from frostline.problem import Cluster, Placement
from frostline.report.freeze import (
    FreezeAdvice,
    advice_lines,
    advice_summary,
    freeze_advice,
    freeze_remarks,
    freeze_table,
    level_summary,
)
from frostline.report.plot_freeze import plot_freeze_levels, plot_freeze_plan, save_freeze_plot
from frostline.testing import freeze_menus

LAW = DebtLaw(a=1, A=0, c=1, B_0=4, warm_up=0.2)
"""Freezing a share x costs 4 x points per unit of progress, whenever it is."""


def row(level: int, share: float, time_ms: int, *, fits: bool = True, server: int = 0) -> FreezeRow:
    return FreezeRow(
        level=level,
        frozen_units=2 * level,
        compute_share=share,
        compute_flops=3 * 10**9 - level * 10**9,
        gradient_bytes=1000 - level,
        iteration_ns=time_ms * 10**6,
        memory_bytes=10**9,
        fits=fits,
        placement=Placement([(server, (2,))]),
    )


ROWS = (row(0, 0, 40), row(1, 0.5, 30), row(2, 1, 10))


def advise(rows=ROWS, law=LAW, budget=1.0, progress=0.2, **fields) -> FreezeAdvice:
    values = {"budget_points": budget, "progress": progress, "global_batch": 60} | fields
    return freeze_advice(rows, law, **values)


def test_figures_by_hand():
    advice = advise()
    assert advice.rates_points == (0, 2, 4)
    assert advice.speed_ups == (1, 40 / 30, 4)
    assert advice.samples_per_s == (1500, 2000, 6000)
    # 1 point pays for level 2 in a quarter of the training: 6 of 20 phases of 0.04 after the warm-up.
    assert sum(end - start for start, end, level in advice.phases if level == 2) == pytest.approx(0.24)
    assert advice.plan is not None
    assert advice.plan.debt_points == pytest.approx(0.96 + sum(e - s for s, e, k in advice.phases if k == 1) * 2)
    assert advice.rest_speed_up == pytest.approx(0.04 * 0.8 / advice.plan.time_s)


def test_level_0_costs_nothing_and_gains_nothing():
    first = level_summary(advise(), Cluster.uniform(1))[0]
    assert (first["penalty"], first["speed_up"]) == (0.0, 1.0)


def test_a_level_that_does_not_fit_is_left_out_of_the_plan():
    rows = (ROWS[0], ROWS[1], dataclasses.replace(ROWS[2], fits=False))
    advice = advise(rows, budget=100)
    assert {level for _, _, level in advice.phases} == {1}
    between = advise((ROWS[0], dataclasses.replace(ROWS[1], fits=False), ROWS[2]), budget=100)
    assert between.phases == ((0.2, 1.0, 2),)  # numbered as in the menu, not as among those that fit


def test_without_level_0_there_is_no_plan():
    advice = advise((dataclasses.replace(ROWS[0], fits=False), *ROWS[1:]))
    assert advice_summary(advice) == {"best": None, "plan": None}
    assert (advice.best, advice.phases, advice.rest_speed_up, advice_lines(advice)) == (None, (), None, [])
    assert not any(cells[-1] for cells in freeze_table(advice).rows)
    assert len(freeze_remarks(advice, "cnn")) == 1
    with pytest.raises(InvalidValueError, match="must be a plan"):
        plot_freeze_plan(advice)


def test_the_warm_up_comes_first():
    advice = advise(budget=100, progress=0.1)
    assert advice.rates_points == (0, None, None)
    assert advice.phases == ((0.1, 0.2, 0), (0.2, 1.0, 2))
    assert freeze_remarks(advice, "cnn")[0] == "nothing may be frozen at progress 0.1: the warm-up ends at 0.2"
    never = advise(law=dataclasses.replace(LAW, warm_up=1.0), budget=100, progress=0.5)
    assert (never.phases, never.rest_speed_up) == (((0.5, 1.0, 0),), 1.0)


def test_time_that_is_nothing_is_divided_by_nowhere():
    advice = advise((row(0, 0, 0), row(1, 0.5, 0)))
    assert advice.speed_ups == advice.samples_per_s == (None, None)
    assert advice.rest_speed_up is None
    assert freeze_table(advice).rows[1][4:8] == ("0", "-", "2", "-")


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"rows": ()}, "at least level 0"),
        ({"progress": 1.0}, "below 1"),
        ({"progress": -0.1}, "at least 0"),
        ({"budget": -1.0}, "quality_budget_points"),
        ({"rows": ROWS[1:]}, "must start with 0"),
    ],
)
def test_bad_values(values, rule):
    with pytest.raises(InvalidValueError, match=rule):
        advise(**values)


def test_the_table_marks_the_best_level_once():
    advice = advise(budget=100)
    table = freeze_table(advice)
    assert [cells[-1] for cells in table.rows] == ["", "", "*"]
    cells = dict(zip(table.header, table.rows[2], strict=True))
    assert (cells["iteration ms"], cells["speed-up"], cells["debt rate"]) == ("10", "4", "4")
    assert (cells["GFLOP/sample"], cells["samples/s"], cells["memory"]) == ("1", "6,000", "1 GB")
    assert advice_lines(advice) == [
        "best at progress 0.2: level 2",
        "plan: level 2 to the end",
        "debt 3.2 of 100 points; the rest is 4 times as fast as without freezing; no plan within the budget is faster",
    ]


def test_moves_are_told():
    moved = advise((ROWS[0], row(1, 0.5, 30, server=1), row(2, 1, 10, server=1)))
    assert freeze_remarks(moved, "cnn")[-1] == "placed anew at level 1; what a move costs is not counted"
    assert "placed anew" not in freeze_remarks(advise(), "cnn")[-1]


@settings(max_examples=40)
@given(freeze_menus(), st.floats(0, 5), st.floats(0, 0.99))
def test_the_plan_of_any_menu_keeps_to_budget_and_memory(rows, budget, progress):
    advice = advise(rows, budget=budget, progress=progress)
    assert (advice.plan is None) == (not rows[0].fits)
    assert advice.rates_points[0] == 0.0
    assert advice.speed_ups[0] in (1.0, None)
    if advice.plan is None:
        return
    assert advice.plan.debt_points <= budget + 1e-9
    assert all(rows[level].fits for _, _, level in advice.phases)
    assert all(start >= LAW.warm_up - 1e-9 for start, _, level in advice.phases if level)
    assert all(end == start for (_, end, _), (start, _, _) in pairwise(advice.phases))
    if progress <= LAW.warm_up:  # whole phases only, of equal times
        assert all(later > level for (_, _, level), (_, _, later) in pairwise(advice.phases))
    assert advice.rest_speed_up is None or advice.rest_speed_up >= 1 - 1e-9


@given(freeze_menus(max_gpus=3, max_servers=2))
@settings(max_examples=40)
def test_drawn_menus(rows):
    assert [r.level for r in rows] == list(range(len(rows)))
    assert (rows[0].frozen_units, rows[0].debt) == (0, 0.0)
    assert all(r.placement.gpus <= 3 and max(r.placement.servers) < 2 for r in rows)
    for fewer, more in pairwise(rows):
        assert fewer.frozen_units < more.frozen_units
        assert more.iteration_ns <= fewer.iteration_ns
        assert fewer.debt <= more.debt


def test_what_menus_can_be_drawn():
    drawn = settings(max_examples=1000, database=None, derandomize=True, phases=[Phase.generate])
    find(freeze_menus(), lambda rows: len(rows) == 1, settings=drawn)
    find(freeze_menus(), lambda rows: len(rows) > 3, settings=drawn)
    find(freeze_menus(), lambda rows: not rows[0].fits and rows[-1].fits, settings=drawn)
    find(freeze_menus(), lambda rows: rows[0].fits and rows[-1].iteration_ns < rows[0].iteration_ns, settings=drawn)
    find(freeze_menus(), lambda rows: rows[0].gradient_bytes > rows[-1].gradient_bytes, settings=drawn)


def test_the_plot_has_a_bar_for_every_level():
    colors = pytest.importorskip("matplotlib.colors")
    rows = (ROWS[0], ROWS[1], dataclasses.replace(ROWS[2], fits=False))
    axes = plot_freeze_levels(advise(rows, budget=100), title="job")
    assert [bar.get_height() for bar in axes.patches] == [40, 30, 10]
    assert [bar.get_hatch() for bar in axes.patches] == [None, None, "///"]
    shown = [colors.to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert shown[1] == colors.to_hex("tab:green") and shown[0] == shown[2] == colors.to_hex("tab:blue")
    assert [label.get_text() for label in axes.texts] == ["×1", "×1.333", "×4"]
    (rates,) = axes.figure.axes[1].lines
    assert list(rates.get_ydata()) == [0, 2, 4]
    assert axes.get_title() == "job"
    early = plot_freeze_levels(advise(progress=0.1))
    assert len(early.figure.axes) == 1


def test_the_plot_of_the_plan_has_its_steps():
    pytest.importorskip("matplotlib")
    advice = advise(budget=100, progress=0.1)
    axes = plot_freeze_plan(advice)
    (steps,) = [patch for patch in axes.patches if type(patch).__name__ == "StepPatch"]
    values, edges, _ = steps.get_data()
    assert advice.plan is not None
    assert (tuple(values), tuple(edges)) == (advice.plan.levels, advice.plan.boundaries)


def test_plots_are_written_whole_or_not_at_all(tmp_path):
    pytest.importorskip("matplotlib")
    save_freeze_plot(tmp_path / "a.svg", advise(), title="job on 2 GPUs")
    assert "<svg" in (tmp_path / "a.svg").read_text("utf-8")
    save_freeze_plot(tmp_path / "b.png", advise((dataclasses.replace(ROWS[0], fits=False), *ROWS[1:])))
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileError, match="must end in"):
        save_freeze_plot(tmp_path / "c.bmp", advise())
    assert not (tmp_path / "c.bmp").exists()


def test_a_missing_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plot"):
        save_freeze_plot(tmp_path / "a.svg", advise())
    with pytest.raises(MissingExtraError, match="plot"):
        plot_freeze_levels(advise())
