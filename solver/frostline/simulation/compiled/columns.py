"""The jobs of an instance column by column, and the lines in which they wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.placement.free_gpus import Shape, shape_of
from frostline.problem.instance import Instance
from frostline.problem.job import Job, Locality
from frostline.problem.refusal import Refusal, never_fits
from frostline.relaxation.rigid import RigidColumns, rigid_columns

__all__ = ["Columns", "columns_of"]


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
    cluster = instance.cluster
    kinds = [(job.gpus, job.locality) for job in instance.jobs]
    examples: dict[tuple[int, Locality], Job] = dict(zip(kinds, instance.jobs, strict=True))
    fitting = {kind: shape_of(job, cluster) for kind, job in examples.items() if never_fits(job, cluster) is None}
    shapes = tuple(dict.fromkeys(fitting.values()))
    numbers = {kind: shapes.index(shape) for kind, shape in fitting.items()}
    refused = []
    if len(fitting) < len(examples):
        refused = [
            never_fits(job, cluster) for job, kind in zip(instance.jobs, kinds, strict=True) if kind not in fitting
        ]
    return Columns(
        jobs=rigid_columns(instance),
        line=np.array([numbers[kind] for kind in kinds if kind in numbers], np.int64),
        shapes=shapes,
        refused=tuple(refusal for refusal in refused if refusal is not None),
    )
