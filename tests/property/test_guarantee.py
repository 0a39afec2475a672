"""The per-job inequalities of A-SRPT, exactly as printed, over pools and over servers.

Jobs last whole seconds and G divides 10⁶, so that virtual completions are whole microseconds and no rounding hides
in the inequalities.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.placement.free_gpus import shape_of
from frostline.placement.saturation import saturation
from frostline.policies import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict, Policy
from frostline.policies.disciplines import DISCIPLINES
from frostline.policies.guarantee import check_guarantee
from frostline.policies.orders import ORDERS
from frostline.problem import Fixed, Instance, Job, Profiled, Schedule, Segment
from frostline.relaxation import virtual_completions
from frostline.simulation import run
from frostline.testing import instances
from frostline.timing.duration import fastest_us
from frostline.units import instant_us

LOCALITIES = ("any", "server", "fewest")


def whole(job: Job) -> Job:
    work = Fixed(duration_s=math.ceil(job.work.duration_s)) if isinstance(job.work, Fixed) else job.work
    return job.replace(release_s=math.floor(job.release_s), work=work)


@st.composite
def problems(draw: st.DrawFn) -> Instance:
    pool = draw(st.booleans())
    instance = draw(
        instances(pool=pool, max_jobs=9, max_gpus=8 if pool else 4, localities=LOCALITIES, works=("fixed", "profiled"))
    )
    assume(instance.jobs and 10**6 % instance.cluster.gpus == 0)
    return instance.replace(jobs=tuple(whole(job) for job in instance.jobs))


class Facts:
    """Everything the inequalities speak of, in microseconds from the first release, as exact numbers."""

    def __init__(self, instance: Instance, schedule: Schedule, kappa: float) -> None:
        self.G = instance.cluster.gpus
        self.B = saturation({shape_of(job, instance.cluster) for job in instance.jobs}, instance.cluster)
        origin = instant_us(instance.jobs[0].release_s)
        self.release = [instant_us(job.release_s) - origin for job in instance.jobs]
        self.p = [fastest_us(job, instance.cluster) for job in instance.jobs]
        g = [job.gpus for job in instance.jobs]
        self.w = [Fraction(gj * pj, self.G) for gj, pj in zip(g, self.p, strict=True)]
        sizes = [(r, gj * pj) for r, gj, pj in zip(self.release, g, self.p, strict=True)]
        self.CV = [Fraction(at, self.G) for at in virtual_completions(sizes, self.G)]
        starts, ends = schedule.start_us, schedule.completion_us
        self.s = [starts[job.id] - origin for job in instance.jobs]
        self.C = [ends[job.id] - origin for job in instance.jobs]
        self.rho = max(Fraction(c - s, p) for c, s, p in zip(self.C, self.s, self.p, strict=True))
        profiled = [isinstance(job.work, Profiled) for job in instance.jobs]
        # Profiled durations need not divide, so their virtual completions are due up to a microsecond later.
        self.tick = 1 if any(profiled) else 0
        late = [int(kappa * p) * late for p, late in zip(self.p, profiled, strict=True)]
        self.E = [math.ceil(CV) + delay for CV, delay in zip(self.CV, late, strict=True)]
        self.kappa = kappa if any(profiled) else 0

    def longest(self, values: list, time: int):  # type: ignore[no-untyped-def, type-arg]
        return max(value for value, release in zip(values, self.release, strict=True) if release <= time)


KAPPA, TAU = st.sampled_from([0.0, 0.1, 3.0]), st.sampled_from([0.0, 0.1])


def assert_reported(policy: Policy, instance: Instance, schedule: Schedule, slacks_us: list[Fraction]) -> None:
    """The report tells the least slack, to the last digit of a float, and its job."""
    report = check_guarantee(policy, instance, schedule)
    assert report is not None
    assert report.worst_slack_s == float(min(slacks_us) / 10**6)
    worst = [job.id for job, slack in zip(instance.jobs, slacks_us, strict=True) if slack == min(slacks_us)]
    assert report.worst_job in worst


@given(problems(), KAPPA, TAU)
def test_strict_list(instance: Instance, kappa: float, tau: float) -> None:
    """[T1](a): C ≤ (1 + θ) E − θ w + ρ p with θ = ρG/B and E = C^V, or κp later ([T6])."""
    policy = AsrptStrict(kappa=kappa, tau=tau)
    schedule = run(instance, policy)
    facts = Facts(instance, schedule, kappa)
    slacks = budget_slacks(facts, facts.rho * facts.G / facts.B)
    assert min(slacks) >= 0
    assert_reported(policy, instance, schedule, slacks)


def budget_slacks(facts: Facts, theta: Fraction) -> list[Fraction]:
    return [
        (1 + theta) * E - theta * w + facts.rho * p - C
        for E, w, p, C in zip(facts.E, facts.w, facts.p, facts.C, strict=True)
    ]


@given(problems(), st.sampled_from(sorted(ORDERS)), st.fractions(0, 1), KAPPA, TAU)
def test_budget_and_backfill(instance: Instance, order: str, share: Fraction, kappa: float, tau: float) -> None:
    """[T2]: the same with θ = ρG/(B − E), for every E < B and any priority among the candidates."""
    policy = AsrptBudget(share=float(share), order=order, kappa=kappa, tau=tau)
    schedule = run(instance, policy)
    facts = Facts(instance, schedule, kappa)
    budget = policy.budget(facts.B)
    assert 0 <= budget < facts.B
    slacks = budget_slacks(facts, facts.rho * facts.G / (facts.B - budget))
    assert min(slacks) >= 0
    assert_reported(policy, instance, schedule, slacks)


PATIENCE = st.sampled_from([0.0, 0.25, 1.0, 4.0])
GUARDED = st.one_of(
    st.builds(
        AsrptGuard,
        order=st.sampled_from(sorted(ORDERS)),
        discipline=st.sampled_from(sorted(DISCIPLINES)),
        patience=PATIENCE,
        kappa=KAPPA,
        tau=TAU,
    ),
    st.builds(Asrpt, patience=PATIENCE, headroom=st.floats(0, 1), small=st.floats(0.01, 10), kappa=KAPPA, tau=TAU),
)


@given(problems(), GUARDED)
def test_guard(instance: Instance, policy: Asrpt | AsrptGuard) -> None:
    """[T3]: s ≤ E + Γ + (θ−1)⁺ (E + Γ − U) + θ (p_max + w_max − w), whatever runs outside strict periods.

    Where jobs are up to κp late, those of a strict period may stem from κp_max before it.
    """
    schedule = run(instance, policy)
    facts = Facts(instance, schedule, policy.kappa)
    slacks = guard_slacks(facts, policy, facts.tick)
    assert min(slacks) >= 0
    assert_reported(policy, instance, schedule, guard_slacks(facts, policy, 1))


def guard_slacks(facts: Facts, policy: Asrpt | AsrptGuard, tick: int) -> list[Fraction]:
    theta = facts.rho * facts.G / facts.B
    slacks = []
    for j, (E, w, s) in enumerate(zip(facts.E, facts.w, facts.s, strict=True)):
        p_max, w_max = facts.longest(facts.p, s), facts.longest(facts.w, s)
        latest = E + policy.patience_us(p_max)
        slack = latest - s + theta * (p_max + int(facts.kappa * p_max) + tick + w_max - w)
        if s > latest:
            slack += max(theta - 1, Fraction(0)) * (latest - strict_since(facts, policy, j))
        slacks.append(slack)
    return slacks


def strict_since(facts: Facts, policy: Asrpt | AsrptGuard, j: int) -> Fraction:
    """Start of the period up to the start of j in which, at every instant, some unstarted due job has waited Γ."""
    due = facts.E

    def is_strict(time: Fraction) -> bool:
        gamma = policy.patience_us(facts.longest(facts.p, time))
        return any(E + gamma <= time < s for E, s in zip(due, facts.s, strict=True))

    gammas = {policy.patience_us(facts.longest(facts.p, release)) for release in facts.release}
    marks = {*facts.release, *facts.s, *(E + gamma for E in due for gamma in gammas)}
    marks = sorted(mark for mark in marks if mark <= facts.s[j])
    begin = Fraction(facts.s[j])
    for left, right in reversed(list(pairwise(marks))):
        if not is_strict(Fraction(left + right, 2)):
            break
        begin = Fraction(left)
    return begin


POLICIES = st.one_of(
    st.builds(AsrptStrict, kappa=KAPPA, tau=TAU),
    st.builds(AsrptBudget, share=st.floats(0, 1), order=st.sampled_from(sorted(ORDERS)), kappa=KAPPA, tau=TAU),
    GUARDED,
)


@given(instances(max_jobs=9, localities=LOCALITIES, works=("fixed", "profiled", "training")), POLICIES)
def test_report_holds_on_any_times_and_any_work(instance: Instance, policy: Policy) -> None:
    report = check_guarantee(policy, instance, run(instance, policy))
    assert report is not None
    assert report.holds
    assert (report.worst_slack_s is None) == (not instance.jobs)


@given(problems(), POLICIES)
def test_report_sees_a_job_that_is_held_back(instance: Instance, policy: Policy) -> None:
    schedule = run(instance, policy)
    last = schedule.segments[-1]
    late = 10**12
    held = Segment(last.job, last.start_us + late, last.end_us + late, last.placement)
    report = check_guarantee(policy, instance, Schedule.of([*schedule.segments[:-1], held]))
    assert report is not None
    assert not report.holds
    assert report.worst_job == last.job
