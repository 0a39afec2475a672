"""Families of benchmark instances, each made to the byte from a recipe of a few numbers.

Times are whole seconds, and every draw is rounded on its own: the last bit of a logarithm, which differs between
machines, does not matter. The streams of random numbers are numpy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Fixed, Job, Locality, PlacementClass, Profiled, Work
from frostline.traces.draws import within
from frostline.traces.generate import generate_jobs
from frostline.traces.recurring import generate_recurring_jobs
from frostline.traces.workload import Ints
from frostline.units import as_int

__all__ = ["SOURCES", "WIDTHS", "WORKS", "family_instance"]

_SUBJECT = "recipe"
_ITERATIONS = 1000
_SHARES = (0.0, 0.375, 0.75)
# Seconds of each level over those of level 0, in quarters: a frozen layer leaves the forward third of its compute.
_QUARTERS = (4, 3, 2)
_MOST_STRETCH = 4
_LOCALITIES = (Locality.ANY, Locality.ANY, Locality.FEWEST, Locality.SERVER)
_MOST_LONGEST = 10**6


def _one(rng: np.random.Generator, jobs: int, most: int) -> Ints:
    return np.ones(jobs, np.int64)


def _narrow(rng: np.random.Generator, jobs: int, most: int) -> Ints:
    return rng.integers(1, max(most // 4, 1) + 1, jobs)


def _powers(rng: np.random.Generator, jobs: int, most: int) -> Ints:
    return np.int64(2) ** rng.integers(0, most.bit_length(), jobs)


def _any(rng: np.random.Generator, jobs: int, most: int) -> Ints:
    return rng.integers(1, most + 1, jobs)


def _wide(rng: np.random.Generator, jobs: int, most: int) -> Ints:
    return np.where(rng.integers(0, 2, jobs) == 0, 1, most)


WIDTHS: Mapping[str, Callable[[np.random.Generator, int, int], Ints]] = MappingProxyType(
    {"unit": _one, "narrow": _narrow, "powers": _powers, "any": _any, "wide": _wide}
)
"""Draws of the GPUs of jobs, from 1 to a most: 1; up to a quarter; powers of two; any; 1 or all."""

SOURCES = ("drawn", "philly", "recurring")
"""Where releases, GPUs and durations come from."""

WORKS = ("fixed", "profiled", "elastic")
"""What jobs are: of one duration; slower on several servers; free to choose GPUs and freeze level."""


def family_instance(
    name: str,
    *,
    jobs: int,
    servers: int,
    gpus_per_server: int,
    seed: int,
    source: Literal["drawn", "philly", "recurring"] = "drawn",
    work: Literal["fixed", "profiled", "elastic"] = "fixed",
    widths: str = "any",
    longest_s: int = 12,
    load: float = 1.0,
    interarrival_cv: float = 2.3,
) -> Instance:
    """Instance of a family; equal arguments give equal bytes.

    One server is a pool. On several, drawn jobs fit one server each, and their localities are drawn: half of them may
    run anywhere, a quarter on the fewest servers, a quarter inside one.

    ``profiled`` and ``elastic`` jobs take a quarter longer on several servers, and part of them a share of work that
    does not get faster with more GPUs. An elastic job may run on up to four times more or fewer GPUs than it asks for,
    in powers of two, or on these alone; it has one, two or three freeze levels, which take 1, 3/4 and 1/2 of the time.
    It may be frozen from the start, and accuracy is no limit.

    Parameters
    ----------
    name : str
        Name of the instance.
    jobs, servers, gpus_per_server, seed : int
        Size, cluster and seed.
    source : {"drawn", "philly", "recurring"}
        ``drawn``: durations of 1 to ``longest_s`` seconds and releases, both uniform, and ``widths``; ``philly``:
        :func:`~frostline.traces.generate.generate_jobs`; ``recurring``:
        :func:`~frostline.traces.recurring.generate_recurring_jobs`.
    work : {"fixed", "profiled", "elastic"}
        What the jobs are.
    widths : str
        Widths of drawn jobs, one of :data:`WIDTHS`.
    longest_s : int
        Longest duration of drawn jobs in seconds.
    load : float
        Offered load, above 0.
    interarrival_cv : float
        Coefficient of variation of the gaps between the releases of jobs that are not drawn.

    Raises
    ------
    InvalidValueError
        A number is out of its range.
    UnknownNameError
        No such source, work or widths.

    Examples
    --------
    >>> made = family_instance("toy", jobs=3, servers=1, gpus_per_server=4, seed=1)
    >>> [(job.release_s, job.gpus, job.work.duration_s) for job in made.jobs]
    [(0.0, 3, 10.0), (1.0, 4, 8.0), (4.0, 1, 3.0)]
    """
    for kind, chosen, known in (("source", source, SOURCES), ("work", work, WORKS), ("widths", widths, WIDTHS)):
        if chosen not in known:
            raise UnknownNameError(kind, str(chosen), known)
    count, total = as_int(jobs, _SUBJECT, "jobs", 1), as_int(servers, _SUBJECT, "servers", 1)
    gpus, root = as_int(gpus_per_server, _SUBJECT, "gpus_per_server", 1), as_int(seed, _SUBJECT, "seed", 0)
    longest, wanted = _longest(longest_s), within("load", load, 1e-3, 1e3)
    cluster = Cluster.pool(gpus) if total == 1 else Cluster.uniform(total, gpus=gpus)
    drawn, chosen_rng = map(np.random.default_rng, np.random.SeedSequence(root).spawn(2))
    if source == "drawn":
        rows = _drawn(drawn, count, cluster, widths, longest, wanted)
    else:
        generate = generate_jobs if source == "philly" else generate_recurring_jobs
        made = generate(count, seed=root, gpus=cluster.gpus, load=wanted, interarrival_cv=interarrival_cv)
        rows = [job.replace(release_s=float(round(job.release_s))) for job in made]
    made_by = {"made": "frostline.traces.families", "source": source, "work": work, "seed": str(root)}
    worked = [_worked(job, work, cluster, chosen_rng) for job in rows]
    return Instance(cluster=cluster, jobs=tuple(worked), name=name, provenance=made_by)


def _longest(value: int) -> int:
    longest = as_int(value, _SUBJECT, "longest_s", 1)
    if longest > _MOST_LONGEST:
        raise InvalidValueError(_SUBJECT, "longest_s", value, f"must be at most {_MOST_LONGEST}")
    return longest


def _drawn(
    rng: np.random.Generator, jobs: int, cluster: Cluster, widths: str, longest_s: int, load: float
) -> list[Job]:
    """Jobs of uniform durations and releases; the first is released at 0."""
    width = WIDTHS[widths](rng, jobs, cluster.largest)
    duration_s = rng.integers(1, longest_s + 1, jobs)
    span_s = round(int(width @ duration_s) / (load * cluster.gpus))
    release_s = rng.integers(0, span_s + 1, jobs)
    place = rng.integers(0, len(_LOCALITIES), jobs)
    rows = sorted(zip(*((release_s - release_s.min()).tolist(), width.tolist(), duration_s.tolist()), strict=True))
    pooled = len(cluster.servers) == 1
    return [
        Job(
            id=str(number),
            release_s=float(release),
            work=Fixed(duration_s=float(duration)),
            gpus=wide,
            locality=Locality.ANY if pooled else _LOCALITIES[place[number - 1]],
        )
        for number, (release, wide, duration) in enumerate(rows, 1)
    ]


def _worked(job: Job, work: str, cluster: Cluster, rng: np.random.Generator) -> Job:
    """A job of fixed work with the kind of work that was asked for; as many numbers are drawn for any job."""
    draws = rng.integers(0, 12, 3).tolist()
    assert isinstance(job.work, Fixed)
    if work == "fixed":
        return job
    whole_s = round(job.work.duration_s)
    if work == "profiled":
        return job.replace(work=_profiled(job, whole_s, cluster))
    return job.replace(work=_elastic(job, whole_s, cluster, *draws))


def _profiled(job: Job, whole_s: int, cluster: Cluster) -> Work:
    where = {}
    if job.gpus <= cluster.largest:
        where[PlacementClass.ONE_SERVER] = whole_s / _ITERATIONS
    if job.gpus > 1 and len(cluster.servers) > 1:
        where[PlacementClass.MANY_SERVERS] = _spread(whole_s) / _ITERATIONS
    return Profiled(iterations=_ITERATIONS, seconds_per_iteration=where)


def _spread(whole_s: int) -> int:
    """Seconds on several servers."""
    return -(-5 * whole_s // 4)


def _elastic(job: Job, whole_s: int, cluster: Cluster, stretch: int, share: int, levels: int) -> Elastic:
    """Elastic work that takes so many seconds on the GPUs the job asks for."""
    most = cluster.largest if job.locality is Locality.SERVER else cluster.gpus
    widths = sorted({job.gpus, *_neighbours(job.gpus, most)}) if stretch % _MOST_STRETCH else [job.gpus]
    quarters = _QUARTERS[: 1 + levels % len(_QUARTERS)]
    times = {width: _seconds(job.gpus, whole_s, width, share % 4) for width in widths}
    table: dict[PlacementClass, dict[int, tuple[float, ...]]] = {}
    one = {width: tuple(_level(t, part) for part in quarters) for width, t in times.items() if width <= cluster.largest}
    many = {width: tuple(_level(_spread(t), part) for part in quarters) for width, t in times.items() if width > 1}
    if one:
        table[PlacementClass.ONE_SERVER] = one
    if many and len(cluster.servers) > 1 and job.locality is not Locality.SERVER:
        table[PlacementClass.MANY_SERVERS] = many
    return Elastic(
        iterations=_ITERATIONS,
        widths=tuple(widths),
        seconds_per_iteration=table,
        compute_shares=_SHARES[: len(quarters)],
        quality_budget_points=100.0,
        warm_up=0.0,
    )


def _neighbours(gpus: int, most: int) -> Iterator[int]:
    """Powers of two within a factor of four of some GPUs."""
    width = 1
    while width <= min(4 * gpus, most):
        if 4 * width >= gpus:
            yield width
        width *= 2


def _seconds(asked: int, whole_s: int, width: int, share: int) -> int:
    """Whole seconds on other GPUs than those asked for; ``share`` twentieths of one GPU's work do not get faster."""
    return -(-whole_s * asked * (20 + share * (width - 1)) // (width * (20 + share * (asked - 1))))


def _level(whole_s: int, quarters: int) -> float:
    """Seconds of an iteration at a freeze level."""
    return -(-whole_s * quarters // 4) / _ITERATIONS
