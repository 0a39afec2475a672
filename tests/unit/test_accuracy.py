"""What freezing truly costs: replayed histories, curves of the truth, and the reports of metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from frostline.errors import InvalidValueError
from frostline.freezing import ExponentialLoss, TrainingCurve, debt_prior, training_curve
from frostline.policies import IceFrogRigid, Reallocate, Share, Task, View, Wait
from frostline.policies.base import Decision
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job, Placement, Schedule, Segment
from frostline.simulation import (
    CURVE_OF_FAMILY,
    AccuracyReport,
    JobAccuracy,
    MetricReports,
    curve_of,
    family_curves,
    frozen_stretches,
    simulate,
    true_accuracy,
)

S = 1_000_000
ONE, TWO = Placement([(0, (1,))]), Placement([(0, (2,))])
LINEAR = TrainingCurve(name="linear", surface=ExponentialLoss(a=1, A=0, c=1, B_0=2))


def elastic(iterations: int = 10, **changes: Any) -> Elastic:
    table = {"one_server": {1: (1.0, 0.5, 0.25), 2: (0.5, 0.25, 0.125)}}
    fields: dict[str, Any] = {"seconds_per_iteration": table, "compute_shares": (0, 0.5, 1), "widths": (1, 2)}
    fields |= {"family": "mlp", "quality_budget_points": 0.5}
    return Elastic(iterations=iterations, **fields | changes)


def job(name: str = "a", kind: str = "", **changes: Any) -> Job:
    return Job(id=name, release_s=0, gpus=1, name=kind, work=elastic(**changes))


class TestReplay:
    def test_levels_restarts_and_lost_iterations(self) -> None:
        """Half an iteration is lost at the eviction, and half a second at each change."""
        instance = Instance(cluster=Cluster.pool(2), jobs=[job()])
        segments = [
            Segment("a", 0, 3_500_000, ONE),  # 3 iterations
            Segment("a", 3_500_000, 5_250_000, ONE, 1),  # 2 more, after half a second
            Segment("a", 9 * S, 10_600_000, TWO, 1),  # a second of restart, 2 more of a quarter of a second
            Segment("a", 10_600_000, 11_475_000, TWO, 2),  # the last 3
        ]
        schedule = Schedule(segments=segments, restart_us=S, level_change_us=500_000)
        assert frozen_stretches(instance, schedule) == {"a": ((3, 5, 1), (5, 7, 1), (7, 10, 2))}
        report = true_accuracy(instance, schedule, {"mlp": LINEAR})
        assert report is not None
        assert report.mean_points == pytest.approx(2 * (0.5 * 0.4 + 0.3))
        assert report.jobs[0].flow_s == 11.475

    def test_a_piece_without_a_whole_iteration_costs_nothing(self) -> None:
        instance = Instance(cluster=Cluster.pool(1), jobs=[job()])
        segments = [
            Segment("a", 0, 3 * S, ONE),
            Segment("a", 3 * S, 3_400_000, ONE, 1),
            Segment("a", 3_400_000, 10_400_000, ONE),
        ]
        schedule = Schedule(segments=segments)
        assert frozen_stretches(instance, schedule) == {}
        assert true_accuracy(instance, schedule) is None

    def test_nothing_frozen(self) -> None:
        rigid = Job(id="r", release_s=0, gpus=1, work=Fixed(duration_s=3))
        instance = Instance(cluster=Cluster.pool(2), jobs=[job(), rigid])
        result = simulate(instance, "fifo")
        assert result.accuracy is None
        assert true_accuracy(instance, result.schedule) is None


class TestCurves:
    def test_by_name_then_family_then_default(self) -> None:
        other = LINEAR.misjudged(3)
        curves = {"bert": LINEAR, "mlp": other}
        assert curve_of(job(kind="bert"), curves) is LINEAR
        assert curve_of(job(), curves) is other
        assert curve_of(job(family="cnn"), curves) is training_curve("cnn-digits")
        assert curve_of(job(family="gru")) is training_curve(CURVE_OF_FAMILY["unknown"])
        assert curve_of(job(family="gru"), {"unknown": LINEAR}) is LINEAR
        assert curve_of(Job(id="r", release_s=0, gpus=1, work=Fixed(duration_s=1))) is curve_of(job(family="unknown"))

    def test_misjudged_families(self) -> None:
        phases = [(0.3, 0.9, 0.7)]
        for family, curve in family_curves(2).items():
            assert curve.debt_points(phases) == 2 * training_curve(CURVE_OF_FAMILY[family]).debt_points(phases)
        with pytest.raises(InvalidValueError, match="family curves: factor"):
            family_curves(-1)

    def test_each_family_has_a_prior(self) -> None:
        for family in CURVE_OF_FAMILY:
            assert debt_prior(family) is not None


def judged(name: str, lost: float, budget: float = 0.5) -> JobAccuracy:
    return JobAccuracy(job=name, family="mlp", lost_points=lost, believed_points=0.25, budget_points=budget, flow_s=1.0)


class TestReport:
    def test_figures_by_hand(self) -> None:
        lost = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        report = AccuracyReport(jobs=tuple(judged(str(i), points) for i, points in enumerate(lost)), families=())
        assert report.mean_points == pytest.approx(0.55)
        assert [report.quantile_points(p) for p in (1, 50, 90, 91, 100)] == [0.1, 0.5, 0.9, 1.0, 1.0]
        assert report.over_budget_share == 0.5
        figures = report.as_dict()
        assert figures["max_overspent_points"] == 0.5
        assert figures["mean_overspent_points"] == pytest.approx(0.15)
        assert (figures["frozen"], figures["max_lost_points"]) == (10, 1.0)

    def test_the_last_bits_of_a_sum_are_not_over_budget(self) -> None:
        assert judged("a", 0.5 + 1e-12).overspent_points == 0
        assert judged("a", 0.5 + 1e-6).overspent_points == pytest.approx(1e-6)

    def test_families_of_a_simulation(self) -> None:
        fields = {"quality_budget_points": 0.5, "iterations": 1000}
        jobs = [job("a", **fields), job("b", family="cnn", **fields), job("c", family="cnn", iterations=50)]
        jobs.append(job("d", family="fine-tuning", iterations=20, quality_budget_points=0))
        instance = Instance(cluster=Cluster.pool(8), jobs=jobs)
        right = simulate(instance, "icefrog-rigid").accuracy
        wrong = simulate(instance, "icefrog-rigid", curves=family_curves(4)).accuracy
        assert right is not None
        assert wrong is not None
        assert [(f.family, f.jobs, f.frozen) for f in right.families] == [
            ("cnn", 2, 2),
            ("fine-tuning", 1, 0),
            ("mlp", 1, 1),
        ]
        assert right.families[1].mean_flow_s == 20
        assert right.families[1].mean_lost_points == right.families[1].over_budget_share == 0
        assert right.over_budget_share == 0
        assert wrong.mean_points == pytest.approx(4 * right.mean_points)
        for one, other in zip(right.jobs, wrong.jobs, strict=True):
            assert 0.4 < one.believed_points == other.believed_points <= 0.5 + 1e-9


class TestReports:
    class Asking:
        """Runs every job alone at level 0 up to the middle, then at the last one, and notes the scales it sees."""

        name, uses_virtual_machine, elastic = "asking", False, True
        restart_s, level_change_s = 0.0, 0.0
        parameters: Mapping[str, Any] = {}

        def __init__(self) -> None:
            self.scales: list[float] = []

        def priority(self, task: Task) -> int:
            return task.number

        def decide(self, view: View) -> Decision:
            shares = [Share(task, 1) for task in view.waiting]
            for run in view.running:
                self.scales.append(view.scale(run.task).value)
                if run.offer is not None and not run.offer.level and view.done(run.task) >= 50:
                    shares.append(Share(run.task, 1, 2))
            later = view.now_us + 5 * S
            return Reallocate(tuple(shares), later) if shares else Wait(later if view.running else None)

    def scales(self, reports: MetricReports | bool, curve: TrainingCurve | None = None) -> list[float]:
        asking = self.Asking()
        instance = Instance(cluster=Cluster.pool(1), jobs=[job(iterations=100)])
        simulate(instance, asking, curves=None if curve is None else {"mlp": curve}, reports=reports)
        return asking.scales

    def believed(self) -> TrainingCurve:
        law = debt_prior("mlp")
        return TrainingCurve(name="as believed", surface=ExponentialLoss(a=law.a, A=law.A, c=law.c, B_0=law.B_0))

    def test_without_reports_the_scale_stays(self) -> None:
        assert set(self.scales(False)) == {1.0}

    def test_a_right_belief_is_left_alone(self) -> None:
        scales = self.scales(MetricReports(noise_points=0), self.believed())
        assert scales == pytest.approx([1.0] * len(scales))

    @pytest.mark.parametrize(("factor", "sign"), [(4, -1), (0.25, 1)])
    def test_a_wrong_belief_shows(self, factor: float, sign: int) -> None:
        scales = self.scales(MetricReports(noise_points=0), self.believed().misjudged(factor))
        assert scales[1] == 1  # nothing was frozen yet
        assert math.copysign(1, scales[-1] - 1) == sign
        assert abs(scales[-1] - 1) > 0.02

    def test_noise_has_a_seed(self) -> None:
        first, again = self.scales(True), self.scales(MetricReports())
        assert first == again
        assert first != self.scales(MetricReports(seed=1))

    def test_who_has_nothing_to_decide_is_not_told(self) -> None:
        instance = Instance(cluster=Cluster.pool(1), jobs=[job(iterations=100)])
        assert simulate(instance, IceFrogRigid(), reports=True).schedule == simulate(instance, IceFrogRigid()).schedule

    @pytest.mark.parametrize("bad", [{"gain_points": 0}, {"rate": 0}, {"every": 2}, {"noise_points": -1}, {"seed": -1}])
    def test_bad_parameters(self, bad: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="metric reports"):
            MetricReports(**bad)

    def test_gains_add_up(self) -> None:
        reports = MetricReports(gain_points=40)
        parts = [reports.gained_points(i / 10, (i + 1) / 10) for i in range(10)]
        assert sum(parts) == pytest.approx(40)
        assert parts == sorted(parts, reverse=True)
