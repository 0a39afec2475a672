"""Simpler instances than a given one, for counterexamples that can be read at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import gcd

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Fixed, Job, Locality, Profiled

__all__ = ["simplicity", "smallest"]


_LOCALITIES = (Locality.ANY, Locality.SERVER, Locality.FEWEST)


def smallest(instance: Instance, holds: Callable[[Instance], bool]) -> Instance:
    """An instance for which a condition holds that no single step makes simpler.

    Steps take away a job, a server or a GPU, turn work into ``Fixed``, times into whole seconds and a locality into
    ``any``, make widths and times smaller, one or all of them, and number the jobs.

    Parameters
    ----------
    instance : Instance
        One for which it holds.
    holds : callable
        The condition.

    Examples
    --------
    >>> from frostline.testing.code import instance_code
    >>> jobs = [Job(id=f"J{i}", release_s=i, work=Fixed(duration_s=9.5), gpus=3, locality="server") for i in range(4)]
    >>> big = Instance(cluster=Cluster.uniform(3, gpus=4), jobs=jobs)
    >>> print(instance_code(smallest(big, lambda drawn: sum(job.gpus for job in drawn.jobs) > drawn.cluster.gpus)))
    Instance(
        cluster=Cluster.uniform(1, gpus=1),
        jobs=[
            Job(id='J1', release_s=0, work=Fixed(duration_s=1), gpus=2),
        ],
    )
    """
    while True:
        size = simplicity(instance)
        better = (one for one in _simpler(instance) if simplicity(one) < size and holds(one))
        found = next(better, None)
        if found is None:
            return instance
        instance = found


def simplicity(instance: Instance) -> tuple[float, ...]:
    """What counts as simple, the first first."""
    cluster, jobs = instance.cluster, instance.jobs
    return (
        len(jobs),
        len(cluster.servers),
        cluster.gpus,
        sum(not isinstance(job.work, Fixed) for job in jobs),
        sum(len(job.work.widths) + job.work.levels for job in jobs if isinstance(job.work, Elastic)),
        sum(_LOCALITIES.index(job.locality) for job in jobs),
        sum(not time_s.is_integer() for job in jobs for time_s in (job.release_s, _length(job))),
        sum(job.gpus for job in jobs),
        sum(map(_length, jobs)),
        sum(job.release_s for job in jobs),
        sum(job.id != f"J{number}" for number, job in enumerate(jobs, start=1)),
    )


def _length(job: Job) -> float:
    """Seconds of fixed work, iterations of other work."""
    if isinstance(job.work, Fixed):
        return job.work.duration_s
    return float(job.work.iterations) if isinstance(job.work, Profiled | Elastic) else 0.0


def _simpler(instance: Instance) -> Iterator[Instance]:
    """Instances that are one step away, most of them simpler."""
    jobs = instance.jobs
    for left_out in reversed(jobs):
        yield instance.replace(jobs=[job for job in jobs if job is not left_out])
    earliest_s = min((job.release_s for job in jobs), default=0.0)
    yield instance.replace(jobs=[job.replace(release_s=job.release_s - earliest_s) for job in jobs])
    yield instance.replace(jobs=[job.replace(id=f"J{number}") for number, job in enumerate(jobs, start=1)])
    yield from _scaled(instance)
    for cluster in _clusters(instance.cluster):
        yield instance.replace(cluster=cluster)
        yield Instance(cluster=cluster, jobs=tuple(_clipped(job, cluster) for job in jobs))
    if len(instance.cluster.servers) == 1 and instance.cluster.gpus > 1:
        yield from _narrower(instance)
    for changed in reversed(jobs):
        for other in _jobs(changed):
            yield instance.replace(jobs=[other if job is changed else job for job in jobs])


def _scaled(instance: Instance) -> Iterator[Instance]:
    """All times divided by what divides them all."""
    times_s = [time_s for job in instance.jobs for time_s in (job.release_s, _length(job))]
    if all(time_s.is_integer() for time_s in times_s) and (common := gcd(*map(int, times_s))) > 1:
        jobs = [
            _lasting(job.replace(release_s=job.release_s / common), int(_length(job)) // common)
            for job in instance.jobs
        ]
        yield instance.replace(jobs=jobs)


def _clusters(cluster: Cluster) -> Iterator[Cluster]:
    for gpus in range(1, cluster.gpus + 1):
        yield Cluster.uniform(1, gpus=gpus)
    yield Cluster.uniform(2, gpus=1)
    yield Cluster.uniform(2, gpus=2)
    servers = cluster.servers
    for m, server in enumerate(servers):
        if len(servers) > 1:
            yield Cluster(servers=(*servers[:m], *servers[m + 1 :]))
        if server.gpus > 1:
            yield Cluster(servers=(*servers[:m], replace(server, gpus=server.gpus - 1), *servers[m + 1 :]))


def _narrower(instance: Instance) -> Iterator[Instance]:
    """One GPU less, and one job a GPU narrower: where the one that waits must fit the cluster all the same."""
    cluster = Cluster.uniform(1, gpus=instance.cluster.gpus - 1)
    for changed in instance.jobs:
        if changed.gpus > 1:
            narrow = _on(changed, changed.gpus - 1)
            yield Instance(
                cluster=cluster,
                jobs=tuple(_clipped(narrow if job is changed else job, cluster) for job in instance.jobs),
            )


def _clipped(job: Job, cluster: Cluster) -> Job:
    """The job, no wider than a cluster."""
    return _on(job, min(job.gpus, cluster.gpus))


def _on(job: Job, most: int) -> Job:
    """The job on so many GPUs; elastic work on its largest width up to that, and as it is where it has none."""
    if isinstance(job.work, Elastic):
        return job.replace(gpus=max((width for width in job.work.widths if width <= most), default=job.gpus))
    return job.replace(gpus=most)


def _jobs(job: Job) -> Iterator[Job]:
    for length in _numbers(_length(job), 1):
        yield job.replace(work=Fixed(duration_s=length))
        if not isinstance(job.work, Fixed):
            yield _lasting(job, int(length))
    if isinstance(job.work, Elastic):
        yield from (job.replace(work=work) for work in _plainer(job.work, job.gpus))
    for locality in _LOCALITIES:
        yield job.replace(locality=locality)
    for release_s in _numbers(job.release_s, 0):
        yield job.replace(release_s=release_s)
    for gpus in {1, max(job.gpus - 1, 1)}:
        yield _on(job, gpus)


def _lasting(job: Job, length: int) -> Job:
    """The job with fixed work of so many seconds, or other work of so many iterations."""
    if isinstance(job.work, Fixed):
        return job.replace(work=Fixed(duration_s=length))
    if isinstance(job.work, Profiled | Elastic):
        return job.replace(work=replace(job.work, iterations=length))
    return job


def _plainer(work: Elastic, asked: int) -> Iterator[Elastic]:
    """One width or one level less."""
    table = work.seconds_per_iteration
    for left_out in (width for width in work.widths if width != asked):
        kept = {c: {w: row for w, row in rows.items() if w != left_out} for c, rows in table.items()}
        widths = tuple(width for width in work.widths if width != left_out)
        yield replace(work, widths=widths, seconds_per_iteration=kept)
    if work.levels > 1:
        lower = {c: {w: row[:-1] for w, row in rows.items()} for c, rows in table.items()}
        yield replace(work, compute_shares=work.compute_shares[:-1], seconds_per_iteration=lower)


def _numbers(value: float, least: int) -> Iterator[float]:
    """Whole numbers to try in the place of a number, the simplest first."""
    whole = int(value)
    yield from sorted(
        {max(number, least) for number in (whole, *(whole - (whole >> k) for k in range(whole.bit_length())))}
    )
