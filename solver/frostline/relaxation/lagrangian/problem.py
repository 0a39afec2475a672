"""What the price bound knows of an instance: releases, weights and options of the jobs, in whole ticks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from frostline.errors import InvalidValueError
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.problem.placement_class import PlacementClass
from frostline.problem.refusal import never_fits
from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.rigid import rigid_columns
from frostline.timing.duration import fastest_us
from frostline.units import as_int, instant_us

__all__ = ["Option", "PriceProblem", "price_problem"]

Option = tuple[int, int, int]
"""GPUs, duration and penalty of one way to run a job; penalties are in the unit of weighted completion times."""

_MOST_WEIGHT = 10**6
_MOST_TICKS = 2**42
_NS_PER_US = 1000


@dataclass(frozen=True, kw_only=True)
class PriceProblem:
    """Jobs with a choice of options on a pool of GPUs, in ticks.

    Releases and durations are those in microseconds over the tick, rounded down: that only lowers the optimum, and
    where the tick divides them all, as it does by default, it changes nothing.

    Parameters
    ----------
    gpus : int
        GPUs of the pool.
    tick_us : int
        Microseconds of a tick.
    ids : tuple of str
        Names of the jobs.
    release, weight : array of int64, shape (n,)
        Release in ticks; weight, at least 1.
    first : array of int64, shape (n + 1,)
        The options of job j are ``first[j]`` to ``first[j + 1] - 1``.
    width, duration, penalty : array of int64, shape (m,)
        GPUs of an option, from 1 to ``gpus``, its duration in ticks, and what choosing it costs in ticks.
    choices : str
        Where the options come from: ``asked`` for the GPUs that each job asks for, ``elastic`` for all widths and
        levels of elastic work, ``given`` for any others.
    weight_unit : Fraction
        Weight of a job whose ``weight`` is 1.
    apart : bool
        Whether every option is a kind of its own, which may have its own prices; otherwise every width is.

    Examples
    --------
    >>> problem = PriceProblem.of_rows(4, [(0, [(2, 10, 0), (4, 6, 3)]), (5, [(1, 10, 0)])])
    >>> problem.jobs, problem.width.tolist(), problem.first.tolist()
    (2, [2, 4, 1], [0, 2, 3])
    """

    gpus: int
    tick_us: int
    ids: tuple[str, ...]
    release: Ints = field(repr=False)
    weight: Ints = field(repr=False)
    first: Ints = field(repr=False)
    width: Ints = field(repr=False)
    duration: Ints = field(repr=False)
    penalty: Ints = field(repr=False)
    choices: str = "given"
    weight_unit: Fraction = Fraction(1)
    apart: bool = False

    def __post_init__(self) -> None:
        for name, least in (("gpus", 1), ("tick_us", 1)):
            object.__setattr__(self, name, as_int(getattr(self, name), "price problem", name, least))
        if len(self.width) and not 1 <= int(self.width.min()) <= int(self.width.max()) <= self.gpus:
            raise InvalidValueError("price problem", "width", int(self.width.max()), f"must be 1 to {self.gpus}")
        for name, least in (("weight", 1), ("duration", 0), ("penalty", 0)):
            values = getattr(self, name)
            if len(values) and int(values.min()) < least:
                raise InvalidValueError("price problem", name, int(values.min()), f"must be at least {least}")
        if len(self.release) and int(np.diff(self.first).min()) < 1:
            job = self.ids[int(np.diff(self.first).argmin())]
            raise InvalidValueError(f"job {job!r}", "options", 0, "must be at least one that fits")

    @classmethod
    def of_rows(
        cls, gpus: int, rows: Iterable[tuple[int, Sequence[Option]]], weights: Sequence[int] = (), tick_us: int = 1
    ) -> PriceProblem:
        """Problem of (release, options) rows in ticks; jobs are named ``0``, ``1``, … and weigh 1 by default."""
        listed = list(rows)
        options = [option for _, choices in listed for option in choices]
        columns = np.array(options, np.int64).reshape(-1, 3).T
        counts = [len(choices) for _, choices in listed]
        return cls(
            gpus=gpus,
            tick_us=tick_us,
            ids=tuple(map(str, range(len(listed)))),
            release=np.array([release for release, _ in listed], np.int64),
            weight=np.array(list(weights) or [1] * len(listed), np.int64),
            first=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            width=columns[0].copy(),
            duration=columns[1].copy(),
            penalty=columns[2].copy(),
        )

    def by_option(self) -> PriceProblem:
        """The same with every option as a kind of its own."""
        return self if self.apart else replace(self, apart=True)

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.release)

    @cached_property
    def origin(self) -> int:
        """Least release in ticks."""
        return int(self.release.min()) if self.jobs else 0

    @cached_property
    def kinds(self) -> Ints:
        """Width of each kind: the widths there are, ascending, or those of all options."""
        widths: Ints = self.width if self.apart else np.unique(self.width)
        return widths

    @cached_property
    def kind(self) -> Ints:
        """Kind of each option."""
        places: Ints = np.arange(len(self.width)) if self.apart else np.searchsorted(self.kinds, self.width)
        return places

    @cached_property
    def many(self) -> Ints:
        """How many jobs have an option of each kind, at most as many as fit side by side."""
        job = np.repeat(np.arange(self.jobs), np.diff(self.first))
        pairs = np.unique(self.kind * max(self.jobs, 1) + job) // max(self.jobs, 1)
        counts = np.bincount(pairs, minlength=len(self.kinds))
        most: Ints = np.minimum(counts, self.gpus // self.kinds)
        return most

    @cached_property
    def reach(self) -> int:
        """Most GPUs that jobs can hold at once: the largest sum of their widths within ``gpus``."""
        sums = 1
        for width, count in zip(self.kinds.tolist(), self.many.tolist(), strict=True):
            step = 1
            while count:
                step = min(step, count)
                sums |= sums << (width * step)
                sums &= (1 << (self.gpus + 1)) - 1
                count -= step
                step *= 2
        return sums.bit_length() - 1

    @cached_property
    def least_work(self) -> Ints:
        """GPU-ticks of each job, the least over its options."""
        work: Ints = np.minimum.reduceat(self.width * self.duration, self.first[:-1]) if self.jobs else self.release
        return work

    @property
    def total_release(self) -> int:
        """Weighted sum of the releases, in ticks."""
        return sum(r * w for r, w in zip(self.release.tolist(), self.weight.tolist(), strict=True))

    @property
    def document(self) -> dict[str, Any]:
        """The problem as plain JSON values, column by column."""
        rigid, plain = self.jobs == len(self.width), not self.penalty.any()
        return {
            "gpus": self.gpus,
            "tick_us": self.tick_us,
            "choices": self.choices,
            "weight_unit": [*self.weight_unit.as_integer_ratio()],
            "ids": list(self.ids),
            "release": self.release.tolist(),
            "weight": None if (self.weight == 1).all() else self.weight.tolist(),
            "options": None if rigid else np.diff(self.first).tolist(),
            "width": self.width.tolist(),
            "duration": self.duration.tolist(),
            "penalty": None if plain else self.penalty.tolist(),
        }


def price_problem(
    instance: Instance,
    *,
    weighted: bool = False,
    elastic: bool = False,
    options: Mapping[str, Sequence[Option]] | None = None,
) -> PriceProblem:
    """Problem of an instance, without the jobs that never fit.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs. How its servers divide the GPUs is left out, which only lowers the optimum.
    weighted : bool
        Whether the weights of the jobs count; otherwise each counts once.
    elastic : bool
        Whether elastic work may choose one of its widths and freeze levels, for its whole run; otherwise it runs on
        the GPUs that it asks for, at level 0.
    options : mapping of str to sequence of (int, int, int), optional
        Options of some jobs by id: GPUs, duration in microseconds, and penalty in microseconds of weighted completion.

    Raises
    ------
    InvalidValueError
        Weights have no common unit in which they are whole numbers of at most a million, or an option does not fit.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=5), gpus=2, weight=w) for i, w in [("a", 1), ("b", 1.5)]]
    >>> problem = price_problem(Instance(cluster=Cluster.pool(4), jobs=jobs), weighted=True)
    >>> problem.tick_us, problem.weight.tolist(), problem.weight_unit
    (5000000, [2, 3], Fraction(1, 2))
    """
    if elastic or options or weighted:
        return _with_options(instance, weighted, elastic, options or {})
    columns = rigid_columns(instance)
    release, duration, width = columns.release_us, columns.duration_us, columns.gpus
    tick = _tick(release, duration, 1)
    return PriceProblem(
        gpus=instance.cluster.gpus,
        tick_us=tick,
        ids=columns.ids,
        release=release // tick,
        weight=np.ones(len(release), np.int64),
        first=np.arange(len(release) + 1),
        width=width,
        duration=duration // tick,
        penalty=np.zeros(len(release), np.int64),
        choices="asked",
    )


def _with_options(
    instance: Instance, weighted: bool, elastic: bool, options: Mapping[str, Sequence[Option]]
) -> PriceProblem:
    jobs = [job for job in instance.jobs if never_fits(job, instance.cluster) is None or job.id in options]
    rows = [list(options[job.id]) if job.id in options else job_options(job, instance, elastic=elastic) for job in jobs]
    weight, unit = _weights(jobs) if weighted else ([1] * len(jobs), Fraction(1))
    release = np.array([instant_us(job.release_s) for job in jobs], np.int64)
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    width, duration, penalty = np.array([option for row in rows for option in row], np.int64).reshape(-1, 3).T
    tick = _tick(release, np.concatenate([duration, penalty]), max(weight, default=1))
    return PriceProblem(
        gpus=instance.cluster.gpus,
        tick_us=tick,
        ids=tuple(job.id for job in jobs),
        release=release // tick,
        weight=np.array(weight, np.int64),
        first=first,
        width=width.copy(),
        duration=duration // tick,
        penalty=penalty * unit.denominator // tick,
        choices="given" if options else "elastic" if elastic else "asked",
        weight_unit=unit,
    )


def job_options(job: Job, instance: Instance, *, elastic: bool) -> list[Option]:
    """Widths that the cluster has, and durations in microseconds of a job: those it asks for, or all it may choose.

    Of freeze levels only the last one counts: it takes no longer than the others on the same GPUs.
    """
    work = job.work
    if not elastic or not isinstance(work, Elastic):
        return [(job.gpus, fastest_us(job, instance.cluster), 0)]
    options = []
    for width in work.widths:
        if width <= instance.cluster.gpus:
            seconds = min(Fraction(repr(work.seconds(width, where, work.levels - 1))) for where in PlacementClass)
            ns = -(-seconds * 10**9 // 1)
            options.append((width, max(-(-work.iterations * ns // _NS_PER_US), 1), 0))
    return options


def _weights(jobs: Sequence[Job]) -> tuple[list[int], Fraction]:
    """Whole weights, and the weight that they are multiples of."""
    exact = [Fraction(repr(job.weight)) for job in jobs]
    unit = lcm(*(weight.denominator for weight in exact)) if exact else 1
    whole = [int(weight * unit) for weight in exact]
    if whole and max(whole) > _MOST_WEIGHT:
        job = jobs[whole.index(max(whole))]
        rule = f"must be at most {_MOST_WEIGHT} times the unit of all weights, 1/{unit}"
        raise InvalidValueError(f"job {job.id!r}", "weight", job.weight, rule)
    return whole, Fraction(1, unit)


def _tick(release: Ints, duration: Ints, weight: int) -> int:
    """Greatest common divisor of all times, doubled until weighted times are small enough to be added up."""
    if not len(release):
        return 1
    tick = max(int(np.gcd(np.gcd.reduce(release), np.gcd.reduce(duration))), 1)
    span = int(release.max() - release.min()) + int(duration.max()) * 2
    while span * weight // tick > _MOST_TICKS * 4:
        tick *= 2
    return tick
