"""What a schedule achieves, over all jobs that ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.simulation.outages import losses
from frostline.timing.options import Choices
from frostline.units import US_PER_S, instant_us

__all__ = ["Metrics", "choices_made", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Figures of a schedule. Flow time is completion − release; with no finished job the figures are None.

    Parameters
    ----------
    submitted, jobs, refused, unfinished : int
        Jobs of the instance = finished jobs + refused jobs + unfinished jobs.
    mean_flow_s, median_flow_s, p99_flow_s, max_flow_s, mean_wait_s : float or None
        Flow and waiting times over the finished jobs.
    total_completion_s : float
        Sum of completion times.
    makespan_s : float or None
        Last completion − first release of a job that ran.
    utilisation : float or None
        GPU-time held over GPUs × makespan; None where some jobs never end.
    gpu_hours : float
        GPU-hours held.
    evictions : int
        How often a job lost its GPUs before it was complete, to others or because a server failed.
    level_changes : int
        How often a job went on at another freeze level on the same GPUs.
    failed_runs : int
        How often because a server failed.
    lost_gpu_hours : float
        GPU-hours of work that failures have cost: what was done since the last checkpoint.
    """

    submitted: int
    jobs: int
    refused: int
    unfinished: int
    mean_flow_s: float | None
    median_flow_s: float | None
    p99_flow_s: float | None
    max_flow_s: float | None
    mean_wait_s: float | None
    total_completion_s: float
    makespan_s: float | None
    utilisation: float | None
    gpu_hours: float
    evictions: int
    level_changes: int = 0
    failed_runs: int = 0
    lost_gpu_hours: float = 0.0

    def as_dict(self) -> dict[str, float | int | None]:
        """All figures by name."""
        return asdict(self)


def measure(instance: Instance, schedule: Schedule) -> Metrics:
    """Metrics of a schedule of an instance.

    Notes
    -----
    Means are exact sums of microseconds divided once; quantiles are of nearest rank.

    Examples
    --------
    A job of 8 GPUs from 0 to 10 s and one of 4 from 5 to 20 s on 16 GPUs.

    >>> from frostline.problem import Cluster, Fixed, Job, Placement, Segment
    >>> jobs = [Job(id="1", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="2", release_s=0, work=Fixed(duration_s=15), gpus=4)]
    >>> instance = Instance(cluster=Cluster.uniform(2), jobs=jobs)
    >>> schedule = Schedule(segments=[Segment("1", 0, 10_000_000, Placement([(0, (8,))])),
    ...                               Segment("2", 5_000_000, 20_000_000, Placement([(1, (4,))]))])
    >>> metrics = measure(instance, schedule)
    >>> metrics.mean_flow_s, metrics.mean_wait_s, metrics.utilisation
    (15.0, 2.5, 0.4375)
    """
    start_us, completion_us = schedule.start_us, schedule.completion_us
    release_us = {job.id: instant_us(job.release_s) for job in instance.jobs if job.id in completion_us}
    flows = sorted(completion_us[job] - release for job, release in release_us.items())
    waits = sum(start_us[job] - release for job, release in release_us.items())
    makespan_us = max(completion_us.values()) - min(release_us.values()) if flows else None
    capacity = instance.cluster.gpus * makespan_us if makespan_us and not schedule.unfinished else None
    lost = losses(instance, schedule)
    return Metrics(
        submitted=len(instance.jobs),
        jobs=len(flows),
        refused=len(schedule.refused),
        unfinished=len(instance.jobs) - len(flows) - len(schedule.refused),
        mean_flow_s=sum(flows) / len(flows) / US_PER_S if flows else None,
        median_flow_s=_quantile_s(flows, 50),
        p99_flow_s=_quantile_s(flows, 99),
        max_flow_s=_quantile_s(flows, 100),
        mean_wait_s=waits / len(flows) / US_PER_S if flows else None,
        total_completion_s=sum(completion_us.values()) / US_PER_S,
        makespan_s=None if makespan_us is None else makespan_us / US_PER_S,
        utilisation=schedule.gpu_us / capacity if capacity else None,
        gpu_hours=schedule.gpu_us / US_PER_S / 3600,
        evictions=schedule.evictions,
        level_changes=schedule.level_changes,
        failed_runs=lost.runs,
        lost_gpu_hours=lost.gpu_us / US_PER_S / 3600,
    )


def choices_made(instance: Instance, schedule: Schedule) -> Choices:
    """What elastic work has chosen in a schedule: other GPUs than it asks for, freeze levels, or nothing.

    Lower bounds hold for schedules that choose no more than they allow for.

    Examples
    --------
    >>> from frostline.problem import Cluster, Elastic, Job, Placement, Segment
    >>> table = {"one_server": {1: (2, 1), 2: (1, 0.5)}}
    >>> work = Elastic(iterations=2, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1], warm_up=0)
    >>> instance = Instance(cluster=Cluster.pool(2), jobs=[Job(id="a", release_s=0, gpus=1, work=work)])
    >>> for end_us, gpus, level in [(4_000_000, 1, 0), (2_000_000, 1, 1), (1_000_000, 2, 1)]:
    ...     segment = Segment("a", 0, end_us, Placement([(0, (gpus,))]), level)
    ...     print(choices_made(instance, Schedule(segments=[segment])))
    asked
    levels
    elastic
    """
    asked = {job.id: job.gpus for job in instance.jobs}
    if any(segment.placement.gpus != asked.get(segment.job) for segment in schedule.segments):
        return Choices.ELASTIC
    return Choices.LEVELS if any(segment.freeze_level for segment in schedule.segments) else Choices.ASKED


def _quantile_s(ordered_us: Sequence[int], percent: int) -> float | None:
    """Quantile of nearest rank; the median of an even number is the mean of the middle two."""
    if not ordered_us:
        return None
    count = len(ordered_us)
    rank = -(count * percent // -100)
    if percent == 50 and count % 2 == 0:
        return (ordered_us[rank - 1] + ordered_us[rank]) / 2 / US_PER_S
    return ordered_us[rank - 1] / US_PER_S
