"""What freezing truly cost the jobs of a schedule: their frozen stretches, replayed exactly, on curves of the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frostline.freezing.belief import spent_points, terms_of
from frostline.freezing.curve import TrainingCurve, training_curve
from frostline.problem.frozen import FrozenMap
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.problem.outage import Downtimes
from frostline.problem.schedule import Schedule, Segment
from frostline.scheduler.progress import clipped
from frostline.timing.lost_work import WorkLeft
from frostline.units import as_finite, instant_us, seconds

__all__ = [
    "CURVE_OF_FAMILY",
    "AccuracyReport",
    "FamilyAccuracy",
    "JobAccuracy",
    "curve_of",
    "family_curves",
    "frozen_stretches",
    "history_of",
    "true_accuracy",
]

CURVE_OF_FAMILY: Mapping[str, str] = FrozenMap(
    {
        "cnn": "cnn-digits",
        "fine-tuning": "vit-fine-tuning",
        "mlp": "mlp-mnist",
        "transformer": "transformer-digits",
        "unknown": "transformer-digits",
    }
)
"""Measured curve that stands for a family of networks; for the unknown the costliest."""

Stretch = tuple[int, int, int]
"""Stretch of training with frozen layers: iterations done at its start and end, and the level."""

_ENOUGH = 1e-9  # points above a budget that are but the last bits of a sum


def family_curves(factor: float = 1.0) -> dict[str, TrainingCurve]:
    """Curves of the truth by family, for families that a scheduler misjudges by a factor.

    Parameters
    ----------
    factor : float
        What freezing costs, over what was measured.

    Examples
    --------
    >>> phases = [(0.4, 1, 1)]
    >>> [round(family_curves(factor)["mlp"].debt_points(phases), 3) for factor in (1, 2)]
    [0.689, 1.378]
    """
    factor = as_finite(factor, "family curves", "factor", 0.0, 1e6)
    curves = {family: training_curve(name) for family, name in CURVE_OF_FAMILY.items()}
    return curves if factor == 1.0 else {family: curve.misjudged(factor) for family, curve in curves.items()}


def curve_of(job: Job, curves: Mapping[str, TrainingCurve] | None = None) -> TrainingCurve:
    """Curve of the truth of a job of elastic work: that of its name, else of its family, else of unknown families.

    Parameters
    ----------
    job : Job
        The job.
    curves : mapping of str to TrainingCurve, optional
        Curves by name of job or by family; those that are not there are taken from :func:`family_curves`.
    """
    family = job.work.family if isinstance(job.work, Elastic) else "unknown"
    for known in (curves or {}, family_curves()):
        for name in (job.name, family):
            if name in known:
                return known[name]
    return (curves or {}).get("unknown") or family_curves()["unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccuracy:
    """What freezing cost one job that was frozen at some time, in percentage points of final accuracy.

    Parameters
    ----------
    job, family : str
        The job, and the family of its network.
    lost_points : float
        What it truly lost, in expectation, by its curve.
    believed_points : float
        What it is believed to have lost by the law of its family.
    budget_points : float
        What it allowed.
    flow_s : float
        Its flow time in seconds.
    """

    job: str
    family: str
    lost_points: float
    believed_points: float
    budget_points: float
    flow_s: float

    @property
    def overspent_points(self) -> float:
        """By how much it truly lost more than it allowed, at least 0."""
        over = self.lost_points - self.budget_points
        return over if over > _ENOUGH else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyAccuracy:
    """Figures of the frozen jobs of one family; see :class:`AccuracyReport`.

    Parameters
    ----------
    family : str
        The family.
    jobs : int
        Its jobs of elastic work that ran.
    frozen : int
        Of those, the ones that were frozen at some time.
    mean_flow_s : float
        Mean flow time over its jobs.
    mean_lost_points, max_lost_points, mean_believed_points, over_budget_share
        Over the frozen ones; 0 without any.
    """

    family: str
    jobs: int
    frozen: int
    mean_flow_s: float
    mean_lost_points: float
    max_lost_points: float
    mean_believed_points: float
    over_budget_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyReport:
    """What freezing truly cost, over all jobs that were frozen at some time.

    Parameters
    ----------
    jobs : tuple of JobAccuracy
        Those jobs, in the order of the instance, at least one.
    families : tuple of FamilyAccuracy
        Figures by family of network, sorted by name.
    """

    jobs: tuple[JobAccuracy, ...]
    families: tuple[FamilyAccuracy, ...]

    @property
    def mean_points(self) -> float:
        """Mean of what the frozen jobs truly lost."""
        return _mean(job.lost_points for job in self.jobs)

    @property
    def max_points(self) -> float:
        """Most that a job truly lost."""
        return max(job.lost_points for job in self.jobs)

    @property
    def over_budget_share(self) -> float:
        """Share of the frozen jobs that truly lost more than they allowed."""
        return _mean(job.overspent_points > 0 for job in self.jobs)

    def quantile_points(self, percent: int) -> float:
        """Quantile of nearest rank of what the frozen jobs truly lost."""
        ordered = sorted(job.lost_points for job in self.jobs)
        return ordered[max(-(len(ordered) * percent // -100), 1) - 1]

    def as_dict(self) -> dict[str, Any]:
        """All figures by name, in percentage points and seconds, without those of single jobs."""
        return {
            "jobs": sum(family.jobs for family in self.families),
            "frozen": len(self.jobs),
            "mean_lost_points": self.mean_points,
            "median_lost_points": self.quantile_points(50),
            "p90_lost_points": self.quantile_points(90),
            "max_lost_points": self.max_points,
            "mean_believed_points": _mean(job.believed_points for job in self.jobs),
            "over_budget_share": self.over_budget_share,
            "mean_overspent_points": _mean(job.overspent_points for job in self.jobs),
            "max_overspent_points": max(job.overspent_points for job in self.jobs),
            "families": [
                {name: getattr(family, name) for name in FamilyAccuracy.__dataclass_fields__}
                for family in self.families
            ],
        }


def true_accuracy(
    instance: Instance, schedule: Schedule, curves: Mapping[str, TrainingCurve] | None = None
) -> AccuracyReport | None:
    """What freezing truly cost the jobs of a valid schedule; None where nothing was frozen.

    Jobs that never end are left out.

    Parameters
    ----------
    instance : Instance
        The jobs as submitted.
    schedule : Schedule
        What became of them.
    curves : mapping of str to TrainingCurve, optional
        Curves of the truth by name of job or by family; see :func:`curve_of`.

    Examples
    --------
    >>> from frostline.problem import Cluster, Placement
    >>> work = Elastic(iterations=10, widths=[1], seconds_per_iteration={"one_server": {1: (2, 1)}},
    ...                compute_shares=[0, 1], family="mlp", quality_budget_points=0.5)
    >>> instance = Instance(cluster=Cluster.pool(1), jobs=[Job(id="a", release_s=0, gpus=1, work=work)])
    >>> gang = Placement([(0, (1,))])
    >>> segments = [Segment("a", 0, 8_000_000, gang), Segment("a", 8_000_000, 14_000_000, gang, 1)]
    >>> report = true_accuracy(instance, Schedule(segments=segments))
    >>> frozen_stretches(instance, Schedule(segments=segments)), round(report.mean_points, 3), report.over_budget_share
    ({'a': ((4, 10, 1),)}, 0.689, 1.0)
    """
    stretches = frozen_stretches(instance, schedule)
    if not stretches:
        return None
    completion_us = schedule.completion_us
    ran = [job for job in instance.jobs if isinstance(job.work, Elastic) and job.id in completion_us]
    flow_s = {job.id: seconds(completion_us[job.id] - instant_us(job.release_s)) for job in ran}
    frozen = [_judged(job, stretches[job.id], curves, flow_s[job.id]) for job in ran if job.id in stretches]
    if not frozen:  # those that were never end
        return None
    return AccuracyReport(jobs=tuple(frozen), families=tuple(_by_family(ran, frozen, flow_s)))


def frozen_stretches(instance: Instance, schedule: Schedule) -> dict[str, tuple[Stretch, ...]]:
    """Frozen stretches of every job of a valid schedule that was frozen at some time.

    They are iterations done at the start and at the end, and the level. Pieces are replayed as the checker of schedules
    does it: each keeps the whole iterations that it has done.
    """
    frozen = {segment.job for segment in schedule.segments if segment.freeze_level}
    downtimes = Downtimes(schedule.outages, instance.cluster)
    pieces: dict[str, list[Segment]] = {job.id: [] for job in instance.jobs if job.id in frozen}
    for segment in schedule.segments:
        if segment.job in pieces:
            pieces[segment.job].append(segment)
    jobs = {job.id: job for job in instance.jobs}
    replayed = ((job, tuple(_replayed(jobs[job], instance, schedule, pieces[job], downtimes))) for job in pieces)
    return {job: stretches for job, stretches in replayed if stretches}


def _replayed(
    job: Job, instance: Instance, schedule: Schedule, pieces: Sequence[Segment], downtimes: Downtimes
) -> list[Stretch]:
    """Frozen stretches of one job."""
    total, done, work = _iterations(job), 0, WorkLeft(job, instance.cluster, downtimes)
    found: list[Stretch] = []
    for before, piece, after in zip([None, *pieces], pieces, [*pieces[1:], None], strict=False):
        if after is None and job.id not in schedule.unfinished:
            return [*found, *_stretch(done, total, piece)]
        work.end(piece, schedule.pause_us(before, piece), after)
        begun, done = done, total - _iterations(work.left)
        found = clipped([*found, *_stretch(begun, done, piece)], done)
    return found


def _stretch(done: int, ends_at: int, piece: Segment) -> list[Stretch]:
    """What a piece has frozen, if anything."""
    return [(done, ends_at, piece.freeze_level)] if piece.freeze_level and ends_at > done else []


def _iterations(job: Job) -> int:
    assert isinstance(job.work, Elastic)
    return job.work.iterations


def history_of(work: Elastic, stretches: Iterable[Stretch]) -> list[tuple[float, float, float]]:
    """Frozen stretches as phases of progress, each with the share of the compute that was frozen."""
    return [
        (start / work.iterations, end / work.iterations, work.compute_shares[level]) for start, end, level in stretches
    ]


def _judged(
    job: Job, stretches: Sequence[Stretch], curves: Mapping[str, TrainingCurve] | None, flow_s: float
) -> JobAccuracy:
    work = job.work
    assert isinstance(work, Elastic)
    return JobAccuracy(
        job=job.id,
        family=work.family,
        lost_points=curve_of(job, curves).debt_points(history_of(work, stretches)),
        believed_points=spent_points(work.iterations, stretches, terms_of(work)),
        budget_points=work.quality_budget_points,
        flow_s=flow_s,
    )


def _by_family(
    ran: Sequence[Job], frozen: Sequence[JobAccuracy], flow_s: Mapping[str, float]
) -> Iterator[FamilyAccuracy]:
    families: dict[str, list[Job]] = {}
    for job in ran:
        assert isinstance(job.work, Elastic)
        families.setdefault(job.work.family, []).append(job)
    for family, jobs in sorted(families.items()):
        members = [member for member in frozen if member.family == family]
        yield FamilyAccuracy(
            family=family,
            jobs=len(jobs),
            frozen=len(members),
            mean_flow_s=_mean(flow_s[job.id] for job in jobs),
            mean_lost_points=_mean(member.lost_points for member in members),
            max_lost_points=max((member.lost_points for member in members), default=0.0),
            mean_believed_points=_mean(member.believed_points for member in members),
            over_budget_share=_mean(member.overspent_points > 0 for member in members),
        )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else 0.0
