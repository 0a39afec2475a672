"""An instance: a cluster and the jobs it is asked to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster
from frostline.problem.frozen import FrozenMap
from frostline.problem.job import Job
from frostline.problem.order import natural_key
from frostline.units import instant_us

__all__ = ["Instance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A cluster and its jobs, sorted by release time and then by identifier.

    Parameters
    ----------
    cluster : Cluster
        The servers.
    jobs : iterable of Job
        The jobs in any order; identifiers must differ.
    name : str
        Name for reports.
    provenance : mapping of str to str
        Where the data come from.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> jobs = [Job(id=i, release_s=r, work=Fixed(duration_s=5), gpus=1) for i, r in [("b", 2), ("a", 2), ("c", 1)]]
    >>> [job.id for job in Instance(cluster=Cluster.uniform(1), jobs=jobs).jobs]
    ['c', 'a', 'b']
    """

    cluster: Cluster
    jobs: tuple[Job, ...]
    name: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.cluster, Cluster):
            raise InvalidValueError("instance", "cluster", self.cluster, "must be a Cluster")
        jobs = sorted(self.jobs, key=lambda job: (instant_us(job.release_s), natural_key(job.id)))
        if len({job.id for job in jobs}) < len(jobs):
            raise InvalidValueError("instance", "jobs", _twice(jobs), "is the id of two jobs")
        for text in (self.name, *self.provenance, *self.provenance.values()):
            if not isinstance(text, str):
                raise InvalidValueError("instance", "name or provenance", text, "must be text")
        object.__setattr__(self, "jobs", tuple(jobs))
        object.__setattr__(self, "provenance", FrozenMap(dict(self.provenance)))

    def replace(self, **changes: Any) -> Instance:
        """Copy with some fields changed, validated again."""
        return replace(self, **changes)


def _twice(jobs: Iterable[Job]) -> str:
    seen: set[str] = set()
    return next(job.id for job in jobs if job.id in seen or seen.add(job.id))  # type: ignore[func-returns-value]
