"""Planned freeze levels by hand: plans, pieces, the live scheduler, guarantees, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing import DebtLaw, LevelPhase, LevelPlan, plan_levels
from frostline.freezing import plan as planning
from frostline.freezing.progress import FreezeTerms
from frostline.policies import IceFrogRigid, PlanningPolicy, make_policy
from frostline.policies.guarantee import check_guarantee, planned_instance
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    Instance,
    Job,
    Placement,
    PlacementClass,
    Profiled,
    Segment,
)
from frostline.relaxation import bound_certificate, lower_bound
from frostline.report import passed, result_summary, result_table
from frostline.report.certificate import certified_text
from frostline.report.simulation import accuracy_text, bound_text, guarantee_text
from frostline.scheduler import Scheduler
from frostline.simulation import choices_made, run, simulate
from frostline.testing import ScriptedPredictor, check_policy
from frostline.timing import Choices, least_of
from frostline.verify import check_bound, check_schedule

ONE, MANY = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
S = 1_000_000


@pytest.fixture(autouse=True)
def flat_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A point of debt for each unit of progress at which everything is frozen, after a warm-up of 0.2."""
    law = DebtLaw(a=1, A=0, c=1, B_0=1)

    def terms_of(work: Elastic, **settings: Any) -> FreezeTerms:
        warm = replace(law, warm_up=max(law.warm_up, work.warm_up))
        budget = work.quality_budget_points
        return FreezeTerms(shares=work.compute_shares, law=warm, quality_budget_points=budget, **settings)

    monkeypatch.setattr(planning, "terms_of", terms_of)


def elastic(budget: float = 0.41, iterations: int = 100, **changes: Any) -> Elastic:
    """Two seconds an iteration, one where all but the head is frozen; on many servers three, and two and a half."""
    table = {"one_server": {1: (2, 1), 4: (2, 1)}, "many_servers": {4: (3, 2.5)}}
    fields: dict[str, Any] = {"widths": (1, 4), "seconds_per_iteration": table, "compute_shares": (0, 1)}
    fields |= {"iterations": iterations, "quality_budget_points": budget, "family": "cnn"}
    return Elastic(**fields | changes)


def job(name: str = "a", release_s: float = 0, gpus: int = 4, budget: float = 0.41, **changes: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=elastic(budget, **changes))


CLUSTER = Cluster.uniform(2, gpus=4)
HERE = Placement([(0, (4,))])


class TestPlans:
    def test_the_budget_buys_the_last_part_of_the_run(self) -> None:
        plan = plan_levels(elastic(), 4, ONE)
        assert plan.phases == (LevelPhase(60, 0, 0, 120 * S), LevelPhase(40, 1, 100_000, 40 * S + 100_000))
        assert (plan.duration_us, plan.debt_points) == (160 * S + 100_000, pytest.approx(0.4))
        assert plan.stretches == ((60, 100, 1),)
        assert plan.frozen

    @pytest.mark.parametrize(
        ("budget", "frozen"), [(0.0, 0), (0.03, 0), (0.05, 4), (0.79, 76), (0.81, 80), (1e6, 80)], ids=str
    )
    def test_phases_are_of_one_twentieth_of_what_follows_the_warm_up(self, budget: float, frozen: int) -> None:
        plan = plan_levels(elastic(budget), 4, ONE)
        assert sum(end - start for start, end, _ in plan.stretches) == frozen

    def test_the_later_warm_up_counts(self) -> None:
        assert plan_levels(elastic(1e6, warm_up=0.55), 4, ONE).stretches == ((55, 100, 1),)
        assert plan_levels(elastic(1e6, warm_up=1.0), 4, ONE).frozen is False

    def test_a_change_must_pay(self) -> None:
        assert plan_levels(elastic(), 4, ONE, level_change_us=39_999_999).frozen
        assert not plan_levels(elastic(), 4, ONE, level_change_us=40 * S).frozen

    def test_another_class_has_another_plan(self) -> None:
        assert plan_levels(elastic(), 4, MANY).duration_us == 180 * S + 100 * S + 100_000
        # One GPU was not measured on many servers, where it cannot be either.
        assert plan_levels(elastic(), 1, MANY) == plan_levels(elastic(), 1, ONE)

    def test_little_work_is_planned_too(self) -> None:
        assert plan_levels(elastic(1, iterations=1), 4, ONE).phases == (LevelPhase(1, 0, 0, 2 * S),)
        plan = plan_levels(elastic(1, iterations=2), 4, ONE)
        assert [(phase.iterations, phase.level) for phase in plan.phases] == [(1, 0), (1, 1)]

    def test_iterations_shorter_than_a_microsecond_keep_their_level(self) -> None:
        table = {"one_server": {1: (2e-6, 1e-6, 9e-7)}}
        work = elastic(1e6, 10**9, widths=(1,), seconds_per_iteration=table, compute_shares=(0, 0.5, 1))
        assert {level for _, _, level in plan_levels(work, 1, ONE).stretches} == {1}
        tiny = replace(work, seconds_per_iteration={"one_server": {1: (9e-7, 8e-7, 7e-7)}})
        assert not plan_levels(tiny, 1, ONE).frozen

    def test_less_than_a_microsecond_is_no_gain(self) -> None:
        table = {"one_server": {1: (1.001e-6, 1e-6)}}
        work = elastic(1e6, 5, widths=(1,), seconds_per_iteration=table)
        assert plan_levels(work, 1, ONE, level_change_us=0).phases == (LevelPhase(5, 0, 0, 6),)

    def test_runs_of_decades_are_not_planned(self) -> None:
        assert plan_levels(elastic(1, 499_999_999), 4, ONE).frozen
        assert not plan_levels(elastic(1, 500_000_000), 4, ONE).frozen

    @pytest.mark.parametrize("bad", [{"level_change_us": -1}, {"level_change_us": 0.5}, {"phases": 0}], ids=str)
    def test_bad_numbers_are_refused(self, bad: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="level plan"):
            plan_levels(elastic(), 4, ONE, **bad)

    def test_no_such_width(self) -> None:
        with pytest.raises(InvalidValueError, match="gpus=3 must be one of its widths, 1, 4"):
            plan_levels(elastic(), 3, ONE)

    def test_what_is_left(self) -> None:
        plan = LevelPlan(phases=(LevelPhase(4, 0, 0, 5), LevelPhase(6, 1, 2, 5)), iteration_ns=(1001, 500))
        assert [plan.left_us(done) for done in (0, 1, 3, 4, 5, 9, 10, 11)] == [10, 9, 7, 5, 3, 1, 0, 0]


class TestPolicy:
    def test_the_planned_job_takes_as_long_as_its_plan_in_each_class(self) -> None:
        planned = IceFrogRigid().planned(job(), CLUSTER)
        assert planned.work == Profiled(iterations=1, seconds_per_iteration={ONE: 160.1, MANY: 280.1})
        assert planned.replace(work=Fixed(duration_s=1)) == job().replace(work=Fixed(duration_s=1))
        assert IceFrogRigid().planned(planned, CLUSTER) is planned

    def test_what_cannot_gain_is_left_as_it_is(self) -> None:
        policy = IceFrogRigid()
        rigid = Job(id="r", release_s=0, gpus=1, work=Fixed(duration_s=5))
        table = {"one_server": {1: (2,), 4: (2,)}}
        for left in (job(budget=0), rigid, job(seconds_per_iteration=table, compute_shares=(0,))):
            assert policy.planned(left, CLUSTER) is left
            assert planned_instance(policy, Instance(cluster=CLUSTER, jobs=(left,))).jobs == (left,)

    def test_only_classes_within_reach_count(self) -> None:
        table = {"one_server": {4: (2, 2)}, "many_servers": {4: (3, 1)}}
        spread = job(widths=(4,), seconds_per_iteration=table)
        policy = IceFrogRigid()
        assert policy.planned(spread, CLUSTER) is not spread
        assert policy.planned(spread, Cluster.uniform(1, gpus=4)) is not None
        alone = spread.replace(locality="server")
        assert policy.planned(alone, CLUSTER) is alone

    def test_pieces_of_a_run(self) -> None:
        policy = IceFrogRigid(level_change_s=1)
        pieces = policy.pieces(job(), CLUSTER, Segment("a", 5, 161 * S + 5, HERE))
        assert pieces == (Segment("a", 5, 120 * S + 5, HERE), Segment("a", 120 * S + 5, 161 * S + 5, HERE, 1))
        unplanned = Segment("a", 5, 200 * S + 5, HERE)
        assert policy.pieces(job(budget=0), CLUSTER, unplanned) == (unplanned,)

    @pytest.mark.parametrize("form", ["asrpt", "asrpt-strict", "asrpt-budget", "asrpt-guard"])
    def test_each_form_has_its_parameters(self, form: str) -> None:
        policy, base = make_policy(f"icefrog-rigid:form={form}:kappa=0.5"), make_policy(f"{form}:kappa=0.5")
        assert isinstance(policy, PlanningPolicy)
        own = {"level_change_s": 0.1, "phases": 20}
        assert policy.parameters == {"form": form, **base.parameters, **own}
        assert policy.promise(7) is not None
        assert policy.late_entry == (0.5, 0.1)

    def test_bad_parameters(self) -> None:
        with pytest.raises(UnknownNameError, match="form of policy 'icefrog-rigid'"):
            make_policy("icefrog-rigid:form=sjf")
        with pytest.raises(InvalidValueError, match=r"share=0\.5 must not be given: form 'asrpt' has none"):
            make_policy("icefrog-rigid:share=0.5")
        with pytest.raises(InvalidValueError, match="policy 'icefrog-rigid': patience=-1"):
            make_policy("icefrog-rigid:patience=-1")
        with pytest.raises(InvalidValueError, match="phases=0"):
            make_policy("icefrog-rigid:phases=0")
        with pytest.raises(InvalidValueError, match="level_change_s=-1"):
            make_policy("icefrog-rigid:level_change_s=-1")

    def test_left_of_a_job_that_is_not_planned(self) -> None:
        with pytest.raises(InvalidValueError, match="is not planned"):
            IceFrogRigid().left_us(job(budget=0), CLUSTER, HERE, 0)

    def test_it_conforms(self) -> None:
        report = check_policy("icefrog-rigid", examples=30)
        assert report.passed, str(report)


class TestSchedules:
    def test_by_hand(self) -> None:
        jobs = [job(), job("b", gpus=1, budget=0), Job(id="c", release_s=10, gpus=4, work=Fixed(duration_s=5))]
        instance = Instance(cluster=Cluster.uniform(1, gpus=5), jobs=jobs)
        schedule = run(instance, IceFrogRigid())
        found = [(s.job, s.start_s, s.end_s, s.freeze_level) for s in schedule.segments if s.job != "c"]
        assert found == [("a", 0.0, 120.0, 0), ("b", 0.0, 200.0, 0), ("a", 120.0, 160.1, 1)]
        assert schedule.start_us["c"] == 160_100_000
        assert (schedule.evictions, schedule.level_changes, schedule.level_change_us) == (0, 1, 100_000)
        assert check_schedule(instance, schedule).faults == ()

    def test_on_many_servers(self) -> None:
        instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=[job()])
        schedule = run(instance, IceFrogRigid())
        assert check_schedule(instance, schedule).faults == ()
        assert [(s.end_us - s.start_us, s.freeze_level) for s in schedule.segments] == [
            (180 * S, 0),
            (100 * S + 100_000, 1),
        ]

    def test_a_job_that_never_fits_is_refused(self) -> None:
        instance = Instance(cluster=Cluster.pool(2), jobs=[job()])
        schedule = run(instance, IceFrogRigid())
        assert [refusal.job for refusal in schedule.refused] == ["a"]
        assert check_schedule(instance, schedule).faults == ()

    def test_guarantee_against_the_unfrozen_optimum(self) -> None:
        """T7: the guarantee of the planned jobs, whose virtual flow is no larger."""
        instance = Instance(cluster=Cluster.pool(4), jobs=[job(), job("b"), job("c", budget=0)])
        policy = IceFrogRigid(form="asrpt-strict")
        schedule = run(instance, policy)
        report = check_guarantee(policy, instance, schedule)
        assert report is not None
        assert report.holds
        planned = check_guarantee(make_policy("asrpt-strict"), planned_instance(policy, instance), schedule)
        assert planned is not None
        assert report.worst_slack_s == planned.worst_slack_s
        # 160.1 + 2 · 160.1 + 200 after 320.2, over 200 + 400 + 600.
        assert report.parameters["virtual_share"] == pytest.approx((160.1 + 320.2 + 520.2) / 1200)
        unplanned = Instance(cluster=Cluster.pool(4), jobs=[job(budget=0)])
        report = check_guarantee(policy, unplanned, run(unplanned, policy))
        assert report is not None
        assert "virtual_share" not in report.parameters

    def test_longer_planned_jobs_would_break_the_promise(self) -> None:
        class Slower(IceFrogRigid):
            __slots__ = ()

            def planned(self, job: Job, cluster: Cluster) -> Job:
                return job.replace(work=Profiled(iterations=1, seconds_per_iteration={ONE: 300.0}))

        instance = Instance(cluster=Cluster.uniform(1, gpus=4), jobs=[job()])
        policy = Slower(form="asrpt-strict")
        schedule = run(planned_instance(policy, instance), make_policy("asrpt-strict"))
        report = check_guarantee(policy, instance, schedule)
        assert report is not None
        assert report.parameters["virtual_share"] == 1.5
        assert not report.holds

    def test_known_sizes_only(self) -> None:
        with pytest.raises(InvalidValueError, match="policy 'icefrog-rigid' must know the sizes"):
            Scheduler(CLUSTER, IceFrogRigid(), predictor=ScriptedPredictor({}))


class TestLive:
    def start(self, *jobs: Job, policy: str = "icefrog-rigid") -> tuple[Scheduler, Segment]:
        scheduler = Scheduler(Cluster.uniform(1, gpus=4), policy)
        for submitted in jobs:
            scheduler.submit(submitted)
        decision = scheduler.advance(0)
        return scheduler, decision.starts[0]

    def test_a_start_tells_its_pieces(self) -> None:
        scheduler, start = self.start(job())
        assert (start.end_s, start.freeze_level) == (160.1, 0)
        assert [(p.start_s, p.end_s, p.freeze_level) for p in scheduler.pieces(start)] == [(0, 120, 0), (120, 160.1, 1)]
        assert scheduler.level_change_us == 100_000
        scheduler.finish("a")
        assert scheduler.advance(160.1).starts == ()

    def test_others_run_in_one_piece(self) -> None:
        for policy in ("icefrog-rigid", "fifo"):
            scheduler, start = self.start(job(budget=0), policy=policy)
            assert scheduler.pieces(start) == (start,)

    def expected_end_s(self, scheduler: Scheduler) -> float:
        return scheduler._state.running[0].end_us / S

    def test_progress_is_in_iterations_of_the_job_as_submitted(self) -> None:
        scheduler, _ = self.start(job())
        scheduler.progress("a", 50)
        scheduler.advance(110)  # ten seconds late: ten more iterations at level 0, the change, forty at level 1
        assert self.expected_end_s(scheduler) == pytest.approx(110 + 20 + 40.1)
        scheduler.progress("a", 70)
        scheduler.advance(140)
        assert self.expected_end_s(scheduler) == pytest.approx(140 + 30)
        scheduler.progress("a", 80, seconds_per_iteration=3)
        scheduler.advance(155)
        assert self.expected_end_s(scheduler) == pytest.approx(155 + 60)
        scheduler.progress("a", 100)
        scheduler.advance(156)
        assert self.expected_end_s(scheduler) == pytest.approx(156, abs=1e-5)
        with pytest.raises(InvalidValueError, match="iterations=101 must be at most 100"):
            scheduler.progress("a", 101)

    def test_metric_reports_scale_what_freezing_costs(self) -> None:
        scheduler, _ = self.start(job())
        task = scheduler._state.runs["a"].task
        assert scheduler._state.scale(task).value == 1
        scheduler.report_metric("a", realised=1, expected=2)
        assert scheduler._state.scale(task).debt_factor == pytest.approx(1 / 0.85)
        scheduler.report_metric("a", realised=1, expected=0)  # where nothing was expected, nothing is learnt
        assert scheduler._state.scale(task).value == pytest.approx(0.85)
        with pytest.raises(InvalidValueError, match="report_metric='b' is not a running job"):
            scheduler.report_metric("b", 1, 1)
        with pytest.raises(InvalidValueError, match="realised"):
            scheduler.report_metric("a", float("nan"), 1)
        scheduler.finish("a")
        with pytest.raises(InvalidValueError, match="is not a running job"):
            scheduler.report_metric("a", 1, 1)
        scheduler.advance(200)
        assert scheduler._state.scale(task).value == 1


class TestBounds:
    instance = Instance(cluster=CLUSTER, jobs=[job(gpus=1, budget=1e6)])

    def test_the_least_over_choices(self) -> None:
        (only,) = self.instance.jobs
        # 20 iterations at level 0, 80 at level 1; four GPUs are no faster here.
        assert least_of(only, CLUSTER, Choices.ASKED) == (200 * S, 200 * S)
        assert least_of(only, CLUSTER, Choices.LEVELS) == (120 * S, 120 * S)
        assert least_of(only.replace(gpus=4), CLUSTER, Choices.LEVELS) == (120 * S, 480 * S)
        assert least_of(only.replace(gpus=4), CLUSTER) == (120 * S, 120 * S)
        fixed = Job(id="f", release_s=0, gpus=2, work=Fixed(duration_s=3))
        assert least_of(fixed, CLUSTER) == (3 * S, 6 * S)

    def test_widths_that_the_cluster_does_not_have(self) -> None:
        table = {"one_server": {1: (2,), 8: (0.1,)}, "many_servers": {8: (0.2,)}}
        wide = job(gpus=1, widths=(1, 8), seconds_per_iteration=table, compute_shares=(0,))
        assert least_of(wide, CLUSTER) == (20 * S, 160 * S)
        assert least_of(wide.replace(locality="server"), CLUSTER) == (200 * S, 200 * S)
        assert least_of(wide, Cluster.pool(7)) == (200 * S, 200 * S)

    def test_methods_by_choice(self) -> None:
        for choices, least in (("asked", 200), ("levels", 120), ("elastic", 120)):
            assert lower_bound(self.instance, choices=choices).total_completion_s == least
        assert lower_bound(self.instance, "mean_busy", choices="levels").total_completion_s == 67.5
        for choices, method in (("levels", "best"), ("elastic", "mean_busy"), ("elastic", "one-shot")):
            with pytest.raises(InvalidValueError, match=f"method='{method}' must be trivial or srpt or"):
                lower_bound(self.instance, method, choices=choices)
        with pytest.raises(UnknownNameError, match="'any'"):
            lower_bound(self.instance, choices="any")
        with pytest.raises(InvalidValueError, match="choices='levels' leaves no certificate"):
            bound_certificate(self.instance, lower_bound(self.instance, choices="levels"))

    def test_a_frozen_schedule_is_not_held_against_the_unfrozen_bound(self) -> None:
        result = simulate(self.instance, "icefrog-rigid")
        assert choices_made(self.instance, result.schedule) is Choices.LEVELS
        assert result.metrics.mean_flow_s == 120.1
        bound = lower_bound(self.instance, choices=choices_made(self.instance, result.schedule))
        row = result_summary("icefrog-rigid", result, bound, check_schedule(self.instance, result.schedule))
        assert (row["flow_over_bound"], row["bound_choices"]) == (120.1 / 120, "levels")
        assert passed(row)
        assert "on the GPUs asked for, freezing included," in bound_text(bound, elastic=True)
        certificate = bound_certificate(self.instance, lower_bound(self.instance))
        told = certified_text(self.instance, result.schedule, check_bound(self.instance, certificate))
        assert "says nothing of schedules that freeze layers" in told


def test_the_report_of_frozen_jobs() -> None:
    instance = Instance(cluster=CLUSTER, jobs=[job(), job("b", budget=0)])
    rows = []
    for name in ("asrpt", "icefrog-rigid"):
        result = simulate(instance, name)
        bound = lower_bound(instance, choices=choices_made(instance, result.schedule))
        rows.append(result_summary(name, result, bound, check_schedule(instance, result.schedule)))
    plain, frozen = rows
    assert "accuracy" not in plain
    assert (frozen["accuracy"]["frozen"], frozen["accuracy"]["jobs"], frozen["level_changes"]) == (1, 2, 1)
    assert accuracy_text(plain) is None
    text = accuracy_text(frozen)
    assert text is not None
    assert text.startswith("icefrog-rigid: froze 1 of 2 jobs, which lost ")
    table = result_table(rows).text().splitlines()
    assert "level changes  lost, mean  lost, max  over budget" in table[0]
    assert "level changes" not in result_table([plain]).text()
    told = guarantee_text(frozen)
    assert told is not None
    assert "planned / unfrozen virtual flow = 0.8" in told
