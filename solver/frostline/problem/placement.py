"""Where a job's replicas are: the servers × stages matrix, kept by its non-zero rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.units import as_int

__all__ = ["Placement"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Replicas of each stage on each server; only servers that hold some are kept.

    Parameters
    ----------
    columns : iterable of (int, sequence of int)
        For each used server, its index in the cluster and its column: replicas of each stage. All columns are equally
        long. A rigid job without a stage graph has one stage.
    gpus_per_replica : sequence of int, optional
        GPUs that one replica of each stage fills; 1 by default.

    Examples
    --------
    >>> placement = Placement([(3, (2, 1)), (0, (0, 4))])
    >>> placement.gpus, placement.servers, placement.loads
    (7, (0, 3), ((0, 4), (3, 3)))
    >>> placement.matrix(4).tolist()
    [[0, 4], [0, 0], [0, 0], [2, 1]]
    """

    columns: tuple[tuple[int, tuple[int, ...]], ...]
    loads: tuple[tuple[int, int], ...]
    gpus_per_replica: tuple[int, ...] = ()
    """GPUs that one replica of each stage fills; empty where all fill 1."""

    def __init__(
        self, columns: Iterable[tuple[int, Sequence[int]]], gpus_per_replica: Sequence[int] | None = None
    ) -> None:
        rows = sorted((as_int(m, "placement", "server", 0), _column(column)) for m, column in columns)
        used = tuple((m, column) for m, column in rows if any(column))
        if len({m for m, _ in rows}) < len(rows):
            raise InvalidValueError("placement", "server", [m for m, _ in rows], "names a server twice")
        if len({len(column) for _, column in rows}) > 1:
            raise InvalidValueError("placement", "columns", rows, "must all have one entry per stage")
        object.__setattr__(self, "columns", used)
        sizes = _sizes(gpus_per_replica or (), len(rows[0][1]) if rows else 0)
        object.__setattr__(self, "loads", tuple((m, _load(column, sizes)) for m, column in used))
        object.__setattr__(self, "gpus_per_replica", sizes)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Placement:
        """Placement of a servers × stages integer matrix."""
        return cls((m, row) for m, row in enumerate(np.asarray(matrix).tolist()))

    @classmethod
    def of_loads(cls, loads: Sequence[tuple[int, int]]) -> Placement:
        """Placement of a job with a single stage: (server, GPUs) pairs in the order of servers."""
        return _single(loads[0]) if len(loads) == 1 else _rigid(tuple(loads))

    @property
    def servers(self) -> tuple[int, ...]:
        """Indices of the servers that hold replicas, ascending."""
        return tuple(m for m, _ in self.columns)

    @property
    def gpus(self) -> int:
        """GPUs held on all servers together."""
        return sum(count for _, count in self.loads)

    @property
    def stages(self) -> int:
        """Number of stages, 0 for the empty placement."""
        return len(self.columns[0][1]) if self.columns else 0

    def matrix(self, servers: int) -> npt.NDArray[np.int64]:
        """Dense matrix, shape (servers, stages)."""
        dense = np.zeros((servers, self.stages), np.int64)
        for m, column in self.columns:
            dense[m] = column
        return dense


def _sizes(gpus_per_replica: Sequence[int], stages: int) -> tuple[int, ...]:
    """GPUs per replica, or nothing where all replicas fill one GPU."""
    sizes = tuple(as_int(gpus, "placement", "gpus_per_replica", 1) for gpus in gpus_per_replica)
    if sizes and stages and len(sizes) != stages:
        raise InvalidValueError(
            "placement", "gpus_per_replica", sizes, f"must have one entry for each of {stages} stages"
        )
    return sizes if any(gpus > 1 for gpus in sizes) else ()


def _load(column: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    return sum(column) if not sizes else sum(count * gpus for count, gpus in zip(column, sizes, strict=True))


def _column(column: Sequence[int]) -> tuple[int, ...]:
    if type(column) is tuple and all(type(count) is int and count >= 0 for count in column):
        return column
    return tuple(as_int(count, "placement", "replicas", 0) for count in column)


def _rigid(loads: tuple[tuple[int, int], ...]) -> Placement:
    return Placement((m, (count,)) for m, count in loads)


@lru_cache(maxsize=1 << 16)
def _single(load: tuple[int, int]) -> Placement:
    return _rigid((load,))
