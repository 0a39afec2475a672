"""Scheduling by predicted sizes: whatever is predicted, the guarantees hold, and nobody peeks at the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.placement.free_gpus import shape_of
from frostline.placement.saturation import saturation
from frostline.policies import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict, Policy, StartKind, View, make_policy
from frostline.policies.base import Decision
from frostline.policies.disciplines import DISCIPLINES
from frostline.policies.guarantee import Beliefs, Believed, check_guarantee
from frostline.policies.orders import ORDERS
from frostline.prediction.size import size_of, with_size
from frostline.problem import Fixed, Instance, Job, Schedule
from frostline.relaxation import virtual_completions
from frostline.simulation import run, simulate
from frostline.testing import ScriptedPredictor, assert_feasible, instances, predictions
from frostline.timing.duration import fastest_us
from frostline.units import instant_us

LOCALITIES = ("any", "server", "fewest")
KAPPA, TAU = st.sampled_from([0.0, 0.1, 3.0]), st.sampled_from([0.0, 0.1])
PATIENCE = st.sampled_from([0.0, 0.25, 1.0, 4.0])
ORDER = st.sampled_from(sorted(ORDERS))
FORMS = st.one_of(
    st.builds(AsrptStrict, kappa=KAPPA, tau=TAU),
    st.builds(AsrptBudget, share=st.floats(0, 1), order=ORDER, kappa=KAPPA, tau=TAU),
    st.builds(
        AsrptGuard,
        order=ORDER,
        discipline=st.sampled_from(sorted(DISCIPLINES)),
        patience=PATIENCE,
        kappa=KAPPA,
        tau=TAU,
    ),
    st.builds(Asrpt, patience=PATIENCE, headroom=st.floats(0, 1), small=st.floats(0.01, 10), kappa=KAPPA, tau=TAU),
)
BY_DURATION = st.sampled_from(["fifo", "sjf", "smallest-area", "ljf", "easy", "sjf:discipline=backfill"])


@st.composite
def problems(draw: st.DrawFn, max_jobs: int = 9) -> tuple[Instance, ScriptedPredictor]:
    pool = draw(st.booleans())
    instance = draw(
        instances(
            pool=pool,
            max_jobs=max_jobs,
            max_gpus=8 if pool else 4,
            localities=LOCALITIES,
            works=("fixed", "profiled", "training"),
        )
    )
    return instance, draw(predictions(instance))


def fresh(predictor: ScriptedPredictor) -> ScriptedPredictor:
    """The same predictor, that has heard nothing."""
    twin = ScriptedPredictor({}, deflation=predictor.deflation)
    twin._sizes = predictor._sizes
    return twin


def exact(instance: Instance) -> ScriptedPredictor:
    return ScriptedPredictor({job.id: [size_of(job)] for job in instance.jobs})


def whole(job: Job) -> Job:
    """Sizes on the grid of the distributions, so that a prediction can be exact."""
    return with_size(job, math.ceil(size_of(job))).replace(release_s=math.floor(job.release_s))


@given(problems(), FORMS | BY_DURATION.map(make_policy))
def test_schedules_are_valid_whatever_is_predicted(problem: tuple[Instance, ScriptedPredictor], policy: Policy) -> None:
    instance, predictor = problem
    result = simulate(instance, policy, predictor=predictor)
    assert_feasible(instance, result.schedule)
    assert result.metrics.jobs == len(instance.jobs)
    assert result.schedule == run(instance, policy, predictor=fresh(predictor))
    facts = result.prediction
    assert facts is not None
    assert facts.jobs == len(instance.jobs)
    assert 0 <= facts.overruns <= len(instance.jobs)


@given(problems(), FORMS)
def test_guarantee_holds_for_every_job_whatever_is_predicted(
    problem: tuple[Instance, ScriptedPredictor], policy: Policy
) -> None:
    instance, predictor = problem
    result = simulate(instance, policy, predictor=predictor)
    assert result.guarantee is not None
    assert result.guarantee.holds
    assert result.guarantee.parameters["E_measured"] <= max(result.guarantee.parameters["B"] - 1, 0)


class Watched:
    """A policy that keeps an account of what runs out of order, and of what it was told."""

    def __init__(self, policy: AsrptBudget) -> None:
        self.policy = policy
        self.name, self.parameters, self.uses_virtual_machine = policy.name, policy.parameters, True
        self.late_entry, self.priority = policy.late_entry, policy.priority
        self.out_of_order = 0

    def decide(self, view: View) -> Decision:
        held = sum(run.gpus for run in view.running if run.kind)
        on_budget = sum(run.gpus for run in view.running if run.kind is StartKind.ON_BUDGET)
        assert held == view.out_of_order_gpus < max(view.saturation, 1)
        assert on_budget <= view.budget_gpus <= held
        self.out_of_order = max(self.out_of_order, held)
        return self.policy.decide(view)


@given(problems(), st.floats(0, 1), ORDER)
def test_out_of_order_starts_are_counted_while_they_run(
    problem: tuple[Instance, ScriptedPredictor], share: float, order: str
) -> None:
    instance, predictor = problem
    watched = Watched(AsrptBudget(share=share, order=order))
    result = simulate(instance, watched, predictor=predictor)
    assert result.prediction is not None
    assert watched.out_of_order <= result.prediction.most_out_of_order_gpus
    plain = simulate(instance, watched.policy, predictor=fresh(predictor))
    assert plain.schedule.segments == result.schedule.segments


class Facts:
    """What the inequalities speak of, in microseconds from the first release, worked out anew."""

    def __init__(
        self,
        instance: Instance,
        schedule: Schedule,
        predictor: ScriptedPredictor,
        kappa: float,
        longest: Sequence[tuple[int, int]],
    ) -> None:
        cluster, jobs = instance.cluster, instance.jobs
        self.G = cluster.gpus
        self.B = saturation({shape_of(job, cluster) for job in jobs}, cluster)
        origin = instant_us(jobs[0].release_s)
        self.steps = [(at - origin, longest_us) for at, longest_us in longest]
        self.release = [instant_us(job.release_s) - origin for job in jobs]
        self.p = [fastest_us(job, cluster) for job in jobs]
        medians = [with_size(job, predictor._sizes[job.id].median) for job in jobs]
        self.believed = [fastest_us(job, cluster) for job in medians]
        fed = [
            max(math.floor(job.gpus * p / Fraction(predictor.deflation)), 1)
            for job, p in zip(jobs, self.believed, strict=True)
        ]
        self.fed = [Fraction(work, self.G) for work in fed]
        self.a = min(Fraction(work, job.gpus * p) for work, job, p in zip(fed, jobs, self.p, strict=True))
        virtual = virtual_completions(zip(self.release, fed, strict=True), self.G)
        late = [
            0 if isinstance(job.work, Fixed) else int(kappa * p) for job, p in zip(jobs, self.believed, strict=True)
        ]
        self.kappa = 0.0 if all(isinstance(job.work, Fixed) for job in jobs) else kappa
        self.E = [math.ceil(Fraction(at, self.G)) + delay for at, delay in zip(virtual, late, strict=True)]
        starts, ends = schedule.start_us, schedule.completion_us
        self.s = [starts[job.id] - origin for job in jobs]
        self.C = [ends[job.id] - origin for job in jobs]
        self.rho = max(Fraction(c - s, p) for c, s, p in zip(self.C, self.s, self.p, strict=True))

    def longest(self, values: list, time: int):  # type: ignore[no-untyped-def, type-arg]
        return max(value for value, release in zip(values, self.release, strict=True) if release <= time)

    def seen(self, time: int | Fraction) -> int:
        """Longest duration that the policy had seen."""
        return max(longest for at, longest in self.steps if at <= time)


@given(problems(), FORMS)
def test_report_tells_the_least_slack_of_the_inequality_as_printed(
    problem: tuple[Instance, ScriptedPredictor], policy: Policy
) -> None:
    instance, predictor = problem
    assume(instance.jobs)
    with patch("frostline.simulation.engine.check_guarantee", wraps=check_guarantee) as check:
        result = simulate(instance, policy, predictor=predictor)
    longest = check.call_args.args[3].longest
    facts = Facts(instance, result.schedule, predictor, policy.parameters["kappa"], longest)
    for release, believed, s, C in zip(facts.release, facts.believed, facts.s, facts.C, strict=True):
        assert facts.seen(release) >= believed
        assert facts.seen(C) >= C - s
    report = result.guarantee
    assert report is not None
    assert report.parameters["a"] == float(facts.a)
    theta = facts.rho * facts.G / (facts.B - report.parameters["E_measured"])
    if report.form == "budget":
        slacks = [
            (1 + theta / facts.a) * E - theta / facts.a * fed + facts.rho * p - C
            for E, fed, p, C in zip(facts.E, facts.fed, facts.p, facts.C, strict=True)
        ]
    else:
        slacks = guard_slacks(facts, policy, theta)
    assert report.worst_slack_s == float(min(slacks) / 10**6)


def guard_slacks(facts: Facts, policy: Policy, theta: Fraction) -> list[Fraction]:
    queued, slacks = theta / facts.a, []
    for j, (E, fed, s) in enumerate(zip(facts.E, facts.fed, facts.s, strict=True)):
        longest = facts.seen(s)
        latest = E + policy.patience_us(longest)  # type: ignore[attr-defined]
        slack = latest - s + theta * facts.longest(facts.p, s)
        slack += queued * (int(facts.kappa * longest) + 1 + facts.longest(facts.fed, s) - fed)
        if s > latest:
            slack += max(queued - 1, Fraction(0)) * (latest - strict_since(facts, policy, j))
        slacks.append(slack)
    return slacks


def strict_since(facts: Facts, policy: Policy, j: int) -> Fraction:
    """Start of the period up to the start of j in which, at every instant, some unstarted due job has waited Γ."""

    def gamma(time: Fraction) -> int:
        return policy.patience_us(facts.seen(time))  # type: ignore[attr-defined, no-any-return]

    def is_strict(time: Fraction) -> bool:
        return any(E + gamma(time) <= time < s for E, s in zip(facts.E, facts.s, strict=True))

    gammas = {gamma(at) for at, _ in facts.steps}
    marks = {*facts.s, *(at for at, _ in facts.steps), *(E + wait for E in facts.E for wait in gammas)}
    begin = Fraction(facts.s[j])
    for left, right in reversed(list(pairwise(sorted(mark for mark in marks if mark <= facts.s[j])))):
        if not is_strict(Fraction(left + right, 2)):
            break
        begin = Fraction(left)
    return begin


@given(problems(), BY_DURATION.map(make_policy) | st.builds(AsrptStrict, kappa=KAPPA, tau=TAU))
def test_exact_predictions_change_nothing(problem: tuple[Instance, ScriptedPredictor], policy: Policy) -> None:
    instance = problem[0].replace(jobs=tuple(map(whole, problem[0].jobs)))
    result = simulate(instance, policy, predictor=exact(instance))
    assert result.schedule.segments == run(instance, policy).segments
    assert result.prediction is not None
    assert (result.prediction.overruns, result.prediction.repredictions) == (0, 0)


@given(problems(), FORMS)
def test_report_on_exact_predictions_is_the_report_on_known_sizes(
    problem: tuple[Instance, ScriptedPredictor], policy: Policy
) -> None:
    instance = problem[0]
    schedule = run(instance, policy)
    known = check_guarantee(policy, instance, schedule)
    assert known is not None
    sizes = [(job.id, job.gpus, fastest_us(job, instance.cluster)) for job in instance.jobs]
    believed = {job: Believed(gpus * p, p) for job, gpus, p in sizes}
    longest = [(instant_us(job.release_s), p) for job, (_, _, p) in zip(instance.jobs, sizes, strict=True)]
    beliefs = Beliefs(jobs=believed, longest=longest, out_of_order_gpus=known.parameters.get("E", 0))
    report = check_guarantee(policy, instance, schedule, beliefs)
    assert report is not None
    assert (report.worst_slack_s, report.worst_job) == (known.worst_slack_s, known.worst_job)
    measured = {"a": 1.0, "b": 1.0, "D": 1.0, "E_measured": beliefs.out_of_order_gpus}
    assert report.parameters == {**known.parameters, **measured}


@given(problems(), FORMS | BY_DURATION.map(make_policy), st.data())
def test_the_size_of_a_job_is_not_known_before_it_ends(
    problem: tuple[Instance, ScriptedPredictor], policy: Policy, data: st.DataObject
) -> None:
    """With another true size of one job, the schedule is the same until that job ends."""
    instance, predictor = problem
    assume(instance.jobs)
    chosen = data.draw(st.sampled_from(instance.jobs))
    other = with_size(chosen, size_of(chosen) * data.draw(st.sampled_from([0.1, 3.0])))
    changed = instance.replace(jobs=tuple(other if job is chosen else job for job in instance.jobs))
    schedules = [run(instance, policy, predictor=predictor), run(changed, policy, predictor=fresh(predictor))]
    until = min(schedule.completion_us[chosen.id] for schedule in schedules)
    one, two = (
        {
            segment.job: (segment.start_us, segment.placement)
            for segment in schedule.segments
            if segment.start_us < until
        }
        for schedule in schedules
    )
    assert one == two
