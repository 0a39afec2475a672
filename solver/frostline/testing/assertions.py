"""Assertions about schedules and bounds, for tests."""

from __future__ import annotations

from fractions import Fraction

from frostline.policies.base import Policy
from frostline.policies.guarantee import Beliefs, check_guarantee
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.units import instant_us
from frostline.verify.schedule import check_schedule

__all__ = ["assert_bound_valid", "assert_feasible", "assert_within_guarantee"]


def assert_feasible(instance: Instance, schedule: Schedule, *, allow_interruptions: bool = False) -> None:
    """Assert that a schedule breaks no rule, by the independent checker.

    Raises
    ------
    AssertionError
        It breaks some; the message lists them all.

    Examples
    --------
    >>> from frostline.problem import Cluster
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=())
    >>> assert_feasible(instance, Schedule(segments=()))
    """
    report = check_schedule(instance, schedule, allow_interruptions=allow_interruptions)
    if not report.valid:
        lines = "\n".join(f"  {fault.kind}: {fault.text}" for fault in report.faults)
        raise AssertionError(f"schedule of policy {schedule.policy!r} is not valid:\n{lines}")


def assert_bound_valid(
    bound_us: int | Fraction, instance: Instance, schedule: Schedule, *, objective: str = "completion"
) -> None:
    """Assert, exactly, that a lower bound is at most what a valid schedule achieves.

    Parameters
    ----------
    bound_us : int or Fraction
        Bound on the sum over the jobs that run, in microseconds.
    instance : Instance
        The problem.
    schedule : Schedule
        A schedule, which is checked first; it may interrupt jobs.
    objective : {"completion", "flow"}
        Sum of completion times, or of completion − release.

    Raises
    ------
    AssertionError
        The schedule is not valid, or beats the bound.

    Examples
    --------
    >>> from frostline.problem import Cluster
    >>> assert_bound_valid(0, Instance(cluster=Cluster.uniform(1), jobs=()), Schedule(segments=()))
    """
    if objective not in ("completion", "flow"):
        raise ValueError(f"objective={objective!r} must be 'completion' or 'flow'")
    assert_feasible(instance, schedule, allow_interruptions=True)
    completion_us = schedule.completion_us
    achieved_us = sum(completion_us.values())
    if objective == "flow":
        achieved_us -= sum(instant_us(job.release_s) for job in instance.jobs if job.id in completion_us)
    if bound_us > achieved_us:
        raise AssertionError(f"bound {bound_us} µs on total {objective} exceeds the {achieved_us} µs of a schedule")


def assert_within_guarantee(
    instance: Instance, schedule: Schedule, policy: Policy, beliefs: Beliefs | None = None
) -> None:
    """Assert, exactly, that the bound that a policy promises holds for every job of a schedule it made.

    Parameters
    ----------
    instance : Instance
        The jobs as they are.
    schedule : Schedule
        What the policy made of them; it is checked first.
    policy : Policy
        The policy, with a method ``promise``.
    beliefs : Beliefs, optional
        What was believed of the jobs, if their sizes were predicted.

    Raises
    ------
    AssertionError
        The schedule is not valid, the policy promises nothing, or a job is later than promised.

    Examples
    --------
    >>> from frostline.policies import make_policy
    >>> from frostline.problem import Cluster
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=())
    >>> assert_within_guarantee(instance, Schedule(segments=()), make_policy("asrpt"))
    """
    assert_feasible(instance, schedule)
    report = check_guarantee(policy, instance, schedule, beliefs)
    if report is None:
        raise AssertionError(f"policy {policy.name!r} promises nothing")
    if not report.holds:
        late_s = f"by {-(report.worst_slack_s or 0.0):.15g} s"
        raise AssertionError(
            f"job {report.worst_job!r} breaks the {report.form} form of policy {policy.name!r} {late_s}"
        )
