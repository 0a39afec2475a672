"""The jobs of an instance column by column, and the lines in which they wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.placement.free_gpus import Shape, shape_of
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Job, Locality
from frostline.problem.refusal import Refusal, never_fits
from frostline.relaxation.rigid import RigidColumns, rigid_columns

__all__ = ["Columns", "columns_of"]

_LOCALITIES = {locality: i for i, locality in enumerate(Locality)}


class Columns(NamedTuple):
    """Jobs that fit the empty cluster, in order of arrival."""

    jobs: RigidColumns
    """Identifiers, releases, durations and GPUs."""
    line: npt.NDArray[np.int64]
    """Number of the shape of each."""
    shapes: tuple[Shape, ...]
    """The shapes there are."""
    refused: tuple[Refusal, ...]
    """Why the others never fit."""


def columns_of(instance: Instance) -> Columns:
    """Columns of the jobs of an instance, whose work is fixed.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=2), gpus=g) for i, g in [("a", 4), ("wide", 9), ("b", 4)]]
    >>> columns = columns_of(Instance(cluster=Cluster.uniform(1), jobs=jobs))
    >>> columns.jobs.ids, columns.line.tolist(), columns.shapes, [refusal.job for refusal in columns.refused]
    (('a', 'b'), [0, 0], (Shape(gpus=4, most_servers=1, pieces=()),), ['wide'])
    """
    cluster, jobs = instance.cluster, instance.jobs
    localities = np.array([_LOCALITIES[job.locality] for job in jobs], np.int64)
    kinds = np.array([job.gpus for job in jobs], np.int64) * len(_LOCALITIES) + localities
    _, examples, kind = np.unique(kinds, return_index=True, return_inverse=True)
    shapes: dict[Shape, int] = {}
    numbers = np.array([_number(jobs[example], cluster, shapes) for example in examples.tolist()], np.int64)
    line = numbers[kind]
    refused = (never_fits(jobs[job], cluster) for job in np.flatnonzero(line < 0).tolist())
    return Columns(
        jobs=rigid_columns(instance),
        line=line[line >= 0],
        shapes=tuple(shapes),
        refused=tuple(refusal for refusal in refused if refusal is not None),
    )


def _number(job: Job, cluster: Cluster, shapes: dict[Shape, int]) -> int:
    """Number of the shape of a job, -1 where it never fits."""
    return -1 if never_fits(job, cluster) is not None else shapes.setdefault(shape_of(job, cluster), len(shapes))
