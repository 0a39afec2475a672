"""The reference simulator: a heap of completions that drives the live scheduler.

Where sizes are predicted, the instance holds the truth: jobs are blinded before the scheduler sees them, and they end
when the truth says. A job that is evicted keeps the work it has done, in whole iterations where it has some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from time import perf_counter

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.curve import TrainingCurve
from frostline.placement.place import METHODS
from frostline.policies.base import PlanningPolicy, Policy
from frostline.policies.guarantee import GuaranteeReport, check_guarantee
from frostline.policies.registry import make_policy
from frostline.prediction.online import OnlinePredictor
from frostline.problem.instance import Instance
from frostline.problem.outage import Outage
from frostline.problem.refusal import Refusal
from frostline.problem.schedule import Schedule, Segment
from frostline.scheduler.outlook import Predictor
from frostline.scheduler.scheduler import Scheduler
from frostline.simulation.accuracy import AccuracyReport, true_accuracy
from frostline.simulation.compiled import Twin
from frostline.simulation.engines import loops_of, twin_of
from frostline.simulation.metrics import Metrics, measure
from frostline.simulation.outages import NEVER_US, OutageFeed, checked_outages
from frostline.simulation.predictions import PredictionFacts, prediction_facts
from frostline.simulation.replay import Replay
from frostline.simulation.reports import MetricReports, Reporter
from frostline.simulation.truth import Truth
from frostline.units import instant_us

__all__ = ["Progress", "Result", "run", "simulate"]

Progress = Callable[[int, int], None]
"""Called now and then with (jobs finished or refused, jobs in all)."""

_REPORT_EVERY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Outcome of a simulation.

    Parameters
    ----------
    policy : Policy
        The policy that was run.
    schedule : Schedule
        Who ran where, and who was refused.
    metrics : Metrics
        Figures over all finished jobs.
    guarantee : GuaranteeReport or None
        Check of the policy's per-job guarantee; None where it gives none, and where there were outages.
    prediction : PredictionFacts or None
        Figures of the predictions; None where sizes were known.
    accuracy : AccuracyReport or None
        What freezing truly cost; None where nothing was frozen.
    runtime_s : float
        Wall-clock seconds of the simulation alone.
    """

    policy: Policy
    schedule: Schedule
    metrics: Metrics
    guarantee: GuaranteeReport | None
    prediction: PredictionFacts | None = None
    accuracy: AccuracyReport | None = None
    runtime_s: float


def simulate(
    instance: Instance,
    policy: Policy | str,
    *,
    predictor: Predictor | str | None = None,
    placement: str = "local-search",
    on_progress: Progress | None = None,
    curves: Mapping[str, TrainingCurve] | None = None,
    reports: MetricReports | bool = False,
    outages: Iterable[Outage] = (),
    restart_s: float | None = None,
    engine: str = "reference",
) -> Result:
    """Run all jobs of an instance under a policy.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs.
    policy : Policy or str
        A policy or its name with parameters.
    predictor : Predictor or str, optional
        What the scheduler goes by in place of the true sizes: a predictor that has seen nothing yet, or the name of a
        size model. By default sizes are known.
    placement : str
        Placement method for training jobs that no server can hold alone, one of
        :data:`~frostline.placement.place.METHODS`.
    on_progress : callable, optional
        Called now and then with (jobs done, jobs in all); what it raises reaches the caller.
    curves : mapping of str to TrainingCurve, optional
        What freezing truly costs, by name of job or by family, which the scheduler does not know; by default the
        measured ones of :func:`~frostline.simulation.family_curves`.
    reports : MetricReports or bool
        Whether, and how, jobs report the progress of their metric, from which the scheduler may learn what freezing
        costs them. Only elastic policies are told: others have nothing left to decide of a running job.
    outages : iterable of Outage
        When servers are down. A job that holds GPUs of a server that fails loses all its GPUs and the work since its
        last checkpoint, and waits again. Jobs that wait in the end for servers that never come back are the
        ``unfinished`` ones of the schedule.
    restart_s : float, optional
        Seconds that a job takes to be where it was when it runs again after a failure, where the policy tells none.
    engine : str
        ``reference``; ``compiled``, which gives the same schedules for fixed work of known size under the orders with a
        discipline and the forms of A-SRPT, and needs the extra ``fast``; or ``auto``, the latter where it can be and
        there are 10,000 jobs or more.

    Raises
    ------
    UnknownNameError
        An unknown policy, placement method, predictor or engine, or an outage of a server that the cluster does not
        have.
    InvalidValueError
        Outages of one server overlap, or the policy has planned what they would upset; the compiled engine is asked for
        and does not cover the case; or see :class:`~frostline.scheduler.Scheduler`.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> jobs = [Job(id="1", release_s=0, work=Fixed(duration_s=100), gpus=6),
    ...         Job(id="2", release_s=1, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="3", release_s=2, work=Fixed(duration_s=5), gpus=2)]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> [simulate(instance, name).metrics.mean_flow_s * 3 for name in ("fifo", "easy")]
    [322.0, 214.0]

    Four seconds before its end the server fails, and is back 10 s later.

    >>> down = [Outage(server="s0", start_s=318, end_s=328)]
    >>> simulate(instance, "fifo", outages=down).schedule.completion_us["3"]
    115000000
    """
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    down = checked_outages(outages, instance, chosen)
    loops = loops_of(engine, len(instance.jobs))
    begin = perf_counter()
    twin = twin_of(engine, loops, instance, chosen, _beyond_twin(predictor, down, restart_s))
    if twin is not None:
        schedule, beliefs, prediction = _run_twin(twin, instance, chosen, placement, on_progress), None, None
        runtime_s = perf_counter() - begin
    else:
        scheduler = _scheduler(instance, chosen, placement, predictor, restart_s)
        reporting = MetricReports() if reports is True else reports or None
        schedule = _drive(scheduler, instance, on_progress, _truth(scheduler, instance, down), down, reporting, curves)
        runtime_s = perf_counter() - begin
        beliefs, prediction = scheduler.beliefs, prediction_facts(instance, scheduler)
    return Result(
        policy=chosen,
        schedule=schedule,
        metrics=measure(instance, schedule),
        guarantee=check_guarantee(chosen, instance, schedule, beliefs),
        prediction=prediction,
        accuracy=true_accuracy(instance, schedule, curves),
        runtime_s=runtime_s,
    )


def run(
    instance: Instance,
    policy: Policy,
    *,
    predictor: Predictor | str | None = None,
    placement: str = "local-search",
    on_progress: Progress | None = None,
    outages: Iterable[Outage] = (),
    restart_s: float | None = None,
    engine: str = "reference",
) -> Schedule:
    """Schedule of an instance under a policy; see :func:`simulate`.

    Events of one instant: completions, failures, recoveries, arrivals, virtual completions, decisions.
    """
    down = checked_outages(outages, instance, policy)
    loops = loops_of(engine, len(instance.jobs))
    twin = twin_of(engine, loops, instance, policy, _beyond_twin(predictor, down, restart_s))
    if twin is not None:
        return _run_twin(twin, instance, policy, placement, on_progress)
    scheduler = _scheduler(instance, policy, placement, predictor, restart_s)
    return _drive(scheduler, instance, on_progress, _truth(scheduler, instance, down), down)


def _beyond_twin(
    predictor: Predictor | str | None, outages: tuple[Outage, ...], restart_s: float | None
) -> Iterator[str]:
    """What is asked for that the compiled twin does not cover."""
    if predictor is not None:
        yield "predicted sizes"
    if outages:
        yield "outages"
    if restart_s is not None:
        yield "a restart"


def _run_twin(twin: Twin, instance: Instance, policy: Policy, placement: str, on_progress: Progress | None) -> Schedule:
    """Schedule by the compiled twin."""
    if placement not in METHODS:
        raise UnknownNameError("placement method", str(placement), METHODS)
    tell, jobs, refused = on_progress or _silent, len(instance.jobs), twin.columns.refused
    twin.run(lambda done: tell(done + len(refused), jobs))
    tell(jobs, jobs)
    return twin.schedule(policy_text(policy))


def _scheduler(
    instance: Instance,
    policy: Policy,
    placement: str,
    predictor: Predictor | str | None,
    restart_s: float | None,
) -> Scheduler:
    chosen = OnlinePredictor(predictor) if isinstance(predictor, str) else predictor
    cluster, jobs = instance.cluster, instance.jobs
    if hasattr(policy, "whole_plan"):
        if restart_s is not None:
            rule = f"must be None: policy {policy.name!r} interrupts nobody"
            raise InvalidValueError("simulation", "restart_s", restart_s, rule)
        return Replay(cluster, policy, expected=jobs, placement=placement, predictor=chosen)
    return Scheduler(cluster, policy, jobs, placement=placement, predictor=chosen, restart_s=restart_s)


def _drive(
    scheduler: Scheduler,
    instance: Instance,
    on_progress: Progress | None,
    truth: Truth | None,
    outages: tuple[Outage, ...],
    reports: MetricReports | None = None,
    curves: Mapping[str, TrainingCurve] | None = None,
) -> Schedule:
    """Feed a scheduler the jobs of an instance, their reports and completions, and the outages of servers."""
    jobs, tell = instance.jobs, on_progress or _silent
    submit, finish = (scheduler.submit, scheduler.finish) if truth is None else (truth.submit, truth.finish)
    releases = [*(instant_us(job.release_s) for job in jobs), NEVER_US]
    refused: list[Refusal] = []
    segments: list[Segment] = [] if truth is None else truth.segments
    ends: list[tuple[int, int, str]] = [] if truth is None else truth.ends  # (completion, index of the segment, job)
    report_metrics = _reporter(scheduler, instance, truth, reports, curves)
    servers = OutageFeed(scheduler, outages)
    coming = done = 0
    wake_us: int | None = None
    while coming < len(jobs) or ends or servers.goes_on(wake_us):
        now_us = releases[coming]
        now_us = ends[0][0] if ends and ends[0][0] < now_us else now_us
        now_us = wake_us if wake_us is not None and wake_us < now_us else now_us
        now_us = servers.next_us if servers.next_us < now_us else now_us
        while ends and ends[0][0] == now_us:
            finish(heappop(ends)[2])
            done += 1
            if done % _REPORT_EVERY == 0:
                tell(done + len(refused), len(jobs))
        if servers.next_us == now_us:
            servers.report(now_us)
        while releases[coming] == now_us:
            refusal = submit(jobs[coming])
            if refusal is not None:
                refused.append(refusal)
            coming += 1
        report_metrics(now_us)
        starts, wake_us, evictions = scheduler.advance_us(now_us)
        if truth is not None:
            truth.follow(starts, evictions, now_us, scheduler.failed)
            continue
        for start in starts:
            heappush(ends, (start.end_us, len(segments), start.job))
            segments.append(start)
    tell(len(jobs), len(jobs))
    return _schedule(scheduler, segments, refused, outages)


def _schedule(
    scheduler: Scheduler, runs: Iterable[Segment], refused: Iterable[Refusal], outages: tuple[Outage, ...]
) -> Schedule:
    segments = list(runs)
    if isinstance(scheduler.policy, PlanningPolicy):
        segments = [piece for run in segments for piece in _pieces(scheduler, run)]
    return Schedule.of(
        segments,
        refused,
        policy_text(scheduler.policy),
        scheduler.restart_us,
        predictor_text(scheduler),
        scheduler.level_change_us if any(segment.freeze_level for segment in segments) else 0,
        outages,
        scheduler.waiting if outages else (),
    )


def _pieces(scheduler: Scheduler, segment: Segment) -> Iterator[Segment]:
    """Pieces of a run that may have been cut off before its end."""
    for piece in scheduler.pieces(segment):
        if piece.start_us < segment.end_us:
            yield piece if piece.end_us <= segment.end_us else piece._replace(end_us=segment.end_us)


def _silent(done: int, total: int) -> None:
    """Tell nobody of the progress."""


def _report_nothing(now_us: int) -> None:
    """Hand in no reports."""


def _truth(scheduler: Scheduler, instance: Instance, outages: Sequence[Outage]) -> Truth | None:
    """What the scheduler need not know; None where it knows all and nobody is interrupted: what it expects is true."""
    if scheduler.outlook is None and scheduler.restart_us is None and not outages:
        return None
    return Truth(instance, scheduler)


def _reporter(
    scheduler: Scheduler,
    instance: Instance,
    truth: Truth | None,
    reports: MetricReports | None,
    curves: Mapping[str, TrainingCurve] | None,
) -> Callable[[int], None]:
    """Hands in the reports of the jobs that are due at an instant; none where the policy would not look at them."""
    if reports is None or truth is None or not getattr(scheduler.policy, "elastic", False):
        return _report_nothing
    reporter = Reporter(instance, truth, reports, curves)

    def report_metrics(now_us: int) -> None:
        for report in reporter.due(now_us):
            scheduler.report_metric(*report)

    return report_metrics


def predictor_text(scheduler: Scheduler) -> str:
    """Name of the predictor of a scheduler, empty where there is none."""
    if scheduler.outlook is None:
        return ""
    predictor = scheduler.outlook.predictor
    return str(getattr(getattr(predictor, "model", predictor), "name", type(predictor).__name__))


def policy_text(policy: Policy) -> str:
    """Name of a policy with its parameters, as :func:`~frostline.policies.registry.make_policy` reads it."""
    return ":".join([policy.name, *(f"{name}={value}" for name, value in policy.parameters.items())])
