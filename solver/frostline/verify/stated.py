"""The problem that a bound certificate of an instance must state, derived without what made the certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from frostline.certify import BoundFaultKind, BoundReport, CertificateFault, check_certificate
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.problem.placement_class import PlacementClass
from frostline.problem.refusal import never_fits
from frostline.timing.duration import elastic_iteration_ns, fastest_us
from frostline.units import instant_us

__all__ = ["check_bound", "stated_problem"]


def check_bound(instance: Instance, certificate: Mapping[str, Any]) -> BoundReport:
    """Check a bound certificate, and that it is about an instance.

    Parameters
    ----------
    instance : Instance
        The instance.
    certificate : mapping
        The document, as read from JSON.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed
    >>> from frostline.relaxation import bound_certificate, lower_bound
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=10), gpus=3) for i in "abc"]
    >>> instance = Instance(cluster=Cluster.pool(4), jobs=jobs)
    >>> certificate = bound_certificate(instance, lower_bound(instance, "best"))
    >>> check_bound(instance, certificate).proved
    'no schedule without interruptions has a total completion time below 60 s'
    >>> other = instance.replace(jobs=(*instance.jobs, jobs[0].replace(id="d")))
    >>> [fault.text for fault in check_bound(other, certificate).faults]
    ["job 'd' is left out of it"]
    """
    report = check_certificate(certificate)
    if report.problem is None:
        return report
    differences = tuple(_differences(report.problem, stated_problem(instance, report.problem)))
    if not differences:
        return report
    return replace(report, faults=(*report.faults, *differences), proved="", bound_us=None)


def stated_problem(instance: Instance, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of an instance, in the tick, the unit of weights and the choices that a certificate states.

    Times are rounded down to ticks. Jobs that never fit are left out. Options that come from
    elsewhere, ``choices="given"``, cannot be derived: such a certificate differs from every instance.

    Parameters
    ----------
    instance : Instance
        The instance.
    stated : mapping
        The problem of a certificate that :func:`~frostline.certify.check_certificate` finds well formed.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed
    >>> jobs = [Job(id="a", release_s=1, work=Fixed(duration_s=2.5), gpus=3)]
    >>> stated = {"tick_us": 10**6, "choices": "asked", "weight_unit": [1, 1], "weight": None}
    >>> stated_problem(Instance(cluster=Cluster.pool(4), jobs=jobs), stated)["duration"]
    [2]
    """
    tick, elastic, weight = stated["tick_us"], stated["choices"] == "elastic", stated["weight"]
    jobs = [job for job in instance.jobs if never_fits(job, instance.cluster) is None]
    rows = [_options(job, instance, elastic) for job in jobs]
    counts = [len(row) for row in rows]
    if weight != "last":
        plain = weight is None and stated["weight_unit"] == [1, 1]
        weights = [1 if plain else _units(job, Fraction(*stated["weight_unit"])) for job in jobs]
        weight = None if set(weights) <= {1} else weights
    return {
        "gpus": instance.cluster.gpus,
        "tick_us": tick,
        "choices": "elastic" if elastic else "asked",
        "weight_unit": stated["weight_unit"],
        "ids": [job.id for job in jobs],
        "release": [instant_us(job.release_s) // tick for job in jobs],
        "weight": weight,
        "options": None if set(counts) <= {1} else counts,
        "width": [width for row in rows for width, _ in row],
        "duration": [length // tick for row in rows for _, length in row],
        "penalty": None,
    }


def _differences(stated: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[CertificateFault]:
    """How the problem of a certificate differs from the one it must be about."""
    there = set(stated["ids"])
    missing = [job for job in given["ids"] if job not in there]
    if missing:
        whom = f"job {missing[0]!r} is" if len(missing) == 1 else f"job {missing[0]!r} and {len(missing) - 1} more are"
        yield CertificateFault(BoundFaultKind.OTHER_PROBLEM, f"{whom} left out of it", missing[0])
        return
    for name, value in given.items():
        if stated[name] == value:
            continue
        job, text = None, f"it has another {name} than the problem given"
        if type(value) is type(stated[name]) is list and len(value) == len(stated[name]) == len(given["ids"]):
            j = next(j for j, (one, two) in enumerate(zip(stated[name], value, strict=True)) if one != two)
            job = given["ids"][j]
            text = f"job {job!r} has {name} {stated[name][j]!r} in it, not {value[j]!r}"
        yield CertificateFault(BoundFaultKind.OTHER_PROBLEM, text, job)


def _units(job: Job, unit: Fraction) -> int:
    """Weight of a job in units; 0, which no certificate may state, where that is not whole."""
    weight = Fraction(repr(job.weight)) / unit
    return weight.numerator if weight.denominator == 1 else 0


def _options(job: Job, instance: Instance, elastic: bool) -> list[tuple[int, int]]:
    """GPUs and shortest duration in microseconds of every way to run a job on one number of GPUs, at one level."""
    work = job.work
    if not elastic or not isinstance(work, Elastic):
        return [(job.gpus, fastest_us(job, instance.cluster))]
    options = []
    for width in (width for width in work.widths if width <= instance.cluster.gpus):
        ns = min(elastic_iteration_ns(work, width, where, work.levels - 1) for where in PlacementClass)
        options.append((width, max(-(-work.iterations * ns // 1000), 1)))
    return options
