"""Placement seen from the servers: how many of them hold which column.

With λ_c servers that hold column c, a placement is Σ λ_c c = K, where for every class of servers and every room no more
columns need more than the next smaller room than there are servers with that room or more. Equal servers vanish: a few
rows are left, whatever the number of servers. The iteration time is that of the slowest column in use, so that "at most
T" means: only columns with f(c) <= T.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frostline.placement.column_space import Columns, ColumnSpace, FrontierSpace, TableSpace, Vector, Worths
from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["Limits", "PatternProblem", "Prices", "ServerGroup", "Threshold"]

_MOST_PARTIAL = 200_000


class TooManyColumnsError(Exception):
    """The worthiest columns are too hard to find on this stage graph."""


class ServerGroup(NamedTuple):
    """Servers of one class with the same free GPUs."""

    kind: int
    room: int
    servers: int


class Threshold(NamedTuple):
    """The servers that hold at least so many replicas of a stage."""

    stage: int
    replicas: int


Limits = Mapping[Threshold, tuple[int, float]]
"""How many servers may reach a threshold, from and to."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What replicas are worth, and what that proves.

    A server earns at most the worth of the worthiest column that it can hold within the time limit. Where all servers
    together earn less than all replicas are worth, no placement keeps the limit. Where the number of servers that
    reach a threshold is limited, reaching it has a worth too: at least 0 with a lower limit, at most 0 with an upper.

    Parameters
    ----------
    limit_ns : int
        Time limit f(c) <= T.
    worth : ndarray of int64, shape (stages,)
        Worth of one replica of each stage.
    extra : mapping of Threshold to int
        Worth of reaching a threshold.
    earned : tuple of int
        Most that a server of each group earns.
    surplus : int
        Worth that has to be placed less what all servers earn; above 0, there is no placement within the limits.
    columns : mapping of int to Columns
        Worthy columns by class.
    """

    limit_ns: int
    worth: Vector
    extra: Mapping[Threshold, int]
    earned: tuple[int, ...]
    surplus: int
    columns: Mapping[int, Columns]


class PatternProblem:
    """Columns that the servers of a request could hold.

    Parameters
    ----------
    request : Request
        The request.
    most_servers : int, optional
        Most servers that may be used.

    Examples
    --------
    >>> from frostline.timing import ContentionTime, StageGraph
    >>> path = StageGraph(replicas=[2, 2], compute_s=[0, 0], edges={(0, 1): 8})
    >>> request = Request(timing=ContentionTime(graph=path, nic_bytes_per_s=1e9), free=(3, 3))
    >>> problem = PatternProblem(request)
    >>> problem.groups
    (ServerGroup(kind=0, room=3, servers=2),)
    >>> prices = problem.price(np.array([1, 1]), 1)  # a server with one replica, or with three, sends for 2 ns
    >>> prices.earned, prices.surplus
    ((0,), 4)
    """

    def __init__(self, request: Request, most_servers: int | None = None) -> None:
        self.counts = np.array(request.counts, np.int64)
        self.sizes = request.sizes
        self.most_servers = most_servers
        self.groups = tuple(_groups(request))
        self.spaces = {kind: self._space(request, kind) for kind in dict.fromkeys(group.kind for group in self.groups)}

    def _space(self, request: Request, kind: int) -> ColumnSpace:
        room = max(group.room for group in self.groups if group.kind == kind)
        server = request.rows[int(np.argmax(request.classes == kind))]
        costs, sizes = request.timing.costs(server), self.sizes.tolist()
        if costs is not None:
            return FrontierSpace(costs, sizes, room)

        def timing(columns: Matrix) -> Matrix:
            return request.timing.columns_ns(columns, server)

        return TableSpace(timing, self.counts.tolist(), sizes, room)

    def price(
        self,
        worth: Vector,
        limit_ns: int,
        extra: Mapping[Threshold, int] | None = None,
        limits: Limits | None = None,
    ) -> Prices | None:
        """What replicas of a given worth prove; None where the worthiest columns are too hard to find."""
        bonus = {threshold: ns for threshold, ns in (extra or {}).items() if ns}
        try:
            columns = self.worthiest(worth, bonus, limit_ns)
        except TooManyColumnsError:
            return None
        earned = tuple(columns[group.kind].most_worth(group.room) for group in self.groups)
        placed = int(worth @ self.counts)
        for threshold, ns in bonus.items():
            low, high = (limits or {})[threshold]
            placed += ns * (low if ns > 0 else int(high))
        return Prices(limit_ns, worth, bonus, earned, placed - self._total(earned), columns)

    def worthiest(self, worth: Vector, extra: Mapping[Threshold, int], limit_ns: int) -> dict[int, Columns]:
        """Worthy columns by class.

        Raises
        ------
        TooManyColumnsError
            They are too hard to find.
        """
        worths = self._worths(worth, extra)
        columns: dict[int, Columns] = {}
        for kind, space in self.spaces.items():
            found = space.worthiest(worths, limit_ns, _MOST_PARTIAL)
            if found is None:
                raise TooManyColumnsError
            columns[kind] = found
        return columns

    def _worths(self, worth: Vector, extra: Mapping[Threshold, int]) -> Worths:
        worths = [ns * np.arange(count + 1) for ns, count in zip(worth, self.counts, strict=True)]
        for (stage, replicas), ns in extra.items():
            worths[stage][replicas:] += ns
        return worths

    def _total(self, earned: tuple[int, ...]) -> int:
        """What all servers earn together, or those that may be used."""
        left = sum(group.servers for group in self.groups) if self.most_servers is None else self.most_servers
        total = 0
        for most, servers in sorted(((e, g.servers) for e, g in zip(earned, self.groups, strict=True)), reverse=True):
            used = min(servers, left)
            total, left = total + most * used, left - used
        return total

    def all(self, limit_ns: int, most: int) -> dict[int, Columns] | None:
        """All columns within a time limit by class; None where they are too many."""
        columns: dict[int, Columns] = {}
        for kind, space in self.spaces.items():
            found = space.all(limit_ns, most)
            if found is None:
                return None
            columns[kind] = found
        return columns


def _groups(request: Request) -> Iterator[ServerGroup]:
    kinds = np.stack([request.classes, request.room], axis=1)
    found, servers = np.unique(kinds, axis=0, return_counts=True)
    for (kind, room), count in zip(found.tolist(), servers.tolist(), strict=True):
        yield ServerGroup(kind, room, count)
