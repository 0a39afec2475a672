"""The jobs that a command line asks for: of a trace, of an instance file or of a shipped instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from frostline.cli.clusters import cluster_of
from frostline.cli.group import UsageError
from frostline.errors import FileError, UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.files import load_instance
from frostline.problem.frozen import FrozenMap
from frostline.problem.instance import Instance
from frostline.problem.job import Job, Locality
from frostline.report.workload import trace_summary
from frostline.traces import ReadReport, read_trace, rescale_load, take
from frostline.traces.formats import format_of_file
from frostline.traces.library import FAMILIES, instance_names, load_named_instance

__all__ = [
    "CSV_ENDINGS",
    "JSON_ENDINGS",
    "Reading",
    "Workload",
    "as_locality",
    "is_trace_file",
    "read_instance",
    "read_workload",
    "shipped_instance",
]

JSON_ENDINGS = (".json", ".json.gz")
CSV_ENDINGS = (".csv", ".csv.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How jobs are read and changed; None stands for what was not asked for.

    Parameters
    ----------
    format, time_unit, zone, duplicates, fractions : str or None
        Of a trace; see :func:`~frostline.traces.reader.read_trace`.
    mode : {"strict", "repair"} or None
        Whether a trace with bad rows is refused or repaired.
    locality : str or None
        Locality of all jobs.
    jobs : int or None
        Number of jobs to take, from the first.
    load : float or None
        Offered load to rescale to.
    """

    format: str | None = None
    mode: Literal["strict", "repair"] | None = None
    time_unit: str | None = None
    zone: str | None = None
    duplicates: str | None = None
    fractions: str | None = None
    locality: str | None = None
    jobs: int | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs as they were asked for, the cluster if there is one, and the account of the reading.

    Parameters
    ----------
    name : str
        Name for reports.
    jobs : tuple of Job
        The jobs.
    cluster : Cluster or None
        The one asked for, else that of the instance.
    provenance : mapping of str to str
        Where the jobs come from.
    report : ReadReport or None
        What became of the rows of a trace.
    start_s : mapping of str to float
        When jobs started, as far as a trace tells; nothing is told at another load than that of the trace.
    """

    name: str
    jobs: tuple[Job, ...]
    cluster: Cluster | None
    provenance: Mapping[str, str]
    report: ReadReport | None = None
    start_s: Mapping[str, float] = field(default_factory=lambda: FrozenMap({}))

    @property
    def summary(self) -> dict[str, Any]:
        """Summary of the jobs as plain JSON values."""
        return trace_summary(self.jobs, self.cluster, self.report)

    def instance(self) -> Instance:
        """The instance; an error without a cluster."""
        if self.cluster is None:
            raise UsageError("give --cluster or --pool, which a trace does not hold")
        return Instance(cluster=self.cluster, jobs=self.jobs, name=self.name, provenance=self.provenance)


def read_workload(source: str, cluster: str | None, pool: int | None, reading: Reading) -> Workload:
    """Workload of a trace file, an instance file or the name of a shipped instance.

    Raises
    ------
    FrostlineError
        Something of it cannot be read, or an option does not go with it.
    """
    wanted = cluster_of(cluster, pool)
    instance = _instance(source)
    if instance is None:
        workload = _trace(source, wanted, reading)
    else:
        _refuse_trace_options(source, reading)
        jobs = _located(instance.jobs, reading.locality)
        chosen = wanted or instance.cluster
        workload = Workload(name=instance.name, jobs=jobs, cluster=chosen, provenance=instance.provenance)
    return _changed(workload, reading)


def read_instance(source: str, cluster: str | None, pool: int | None, reading: Reading) -> tuple[Workload, Instance]:
    """Workload and instance; see :func:`read_workload`."""
    workload = read_workload(source, cluster, pool, reading)
    return workload, workload.instance()


def shipped_instance(source: str) -> Instance | None:
    """The shipped instance of a name; None for a file, and for other names."""
    exists = bool(source) and Path(source).exists()
    return load_named_instance(source) if not exists and source in instance_names() else None


def _instance(source: str) -> Instance | None:
    """Instance of a file or of a name; None for a trace."""
    if (shipped := shipped_instance(source)) is not None:
        return shipped
    if source and Path(source).exists():
        return None if is_trace_file(source) else load_instance(source)
    of_family = source.partition("/")[0] in FAMILIES
    if source.endswith((*JSON_ENDINGS, *CSV_ENDINGS)) or (Path(source).name != source and not of_family):
        raise FileError(source, "no such file or folder")
    raise UnknownNameError("trace file or instance", source, instance_names())


def is_trace_file(path: str) -> bool:
    """Whether a file that exists is to be read as a trace: all but our own JSON documents are."""
    return not path.endswith(JSON_ENDINGS) or format_of_file(path) is not None


def _trace(source: str, cluster: Cluster | None, reading: Reading) -> Workload:
    locality = reading.locality or Locality.ANY
    trace = read_trace(
        source,
        format=reading.format or "auto",
        mode=reading.mode or "strict",
        time_unit=cast(Literal["s", "ms", "min"] | None, reading.time_unit),
        locality=locality,
        zone=reading.zone,
        duplicates=cast(Literal["keep", "drop"], reading.duplicates or "keep"),
        fractions=cast(Literal["ceil_total", "ceil_per_instance"], reading.fractions or "ceil_total"),
    )
    file = Path(source).name
    provenance = {"trace": file, "format": trace.report.format, "mode": trace.report.mode}
    name = file.removesuffix(".gz").removesuffix(".csv").removesuffix(".json")
    return Workload(
        name=name,
        jobs=trace.jobs,
        cluster=cluster,
        provenance=provenance,
        report=trace.report,
        start_s=trace.start_s,
    )


def _refuse_trace_options(source: str, reading: Reading) -> None:
    mode = {"mode": f"--{reading.mode}"}
    for name in ("format", "mode", "time_unit", "zone", "duplicates", "fractions"):
        if getattr(reading, name) is not None:
            option = mode.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{option} is for traces; {source} is an instance")


def _located(jobs: Sequence[Job], locality: str | None) -> tuple[Job, ...]:
    return tuple(jobs) if locality is None else tuple(job.replace(locality=locality) for job in jobs)


def _changed(workload: Workload, reading: Reading) -> Workload:
    """Workload with only the first jobs, or at another load; what was changed is added to its provenance."""
    jobs, provenance, start_s = workload.jobs, dict(workload.provenance), workload.start_s
    if reading.jobs is not None:
        jobs = take(jobs, reading.jobs)
        start_s = FrozenMap({job.id: start_s[job.id] for job in jobs if job.id in start_s})
        provenance["jobs"] = f"first {len(jobs)}"
    if reading.load is not None:
        if workload.cluster is None:
            raise UsageError("--load needs --cluster or --pool")
        jobs = rescale_load(jobs, workload.cluster.gpus, reading.load)
        start_s = FrozenMap({})
        provenance["load"] = f"{reading.load:g} of {workload.cluster.gpus} GPUs"
    if jobs is workload.jobs:
        return workload
    return replace(workload, jobs=jobs, provenance=provenance, start_s=start_s)


def as_locality(name: str | None) -> Locality:
    """Locality of a name, ``any`` for None.

    Raises
    ------
    UnknownNameError
        No such locality.

    Examples
    --------
    >>> as_locality("server").value
    'server'
    """
    if name is not None and name not in set(Locality):
        raise UnknownNameError("locality", name, Locality)
    return Locality.ANY if name is None else Locality(name)
