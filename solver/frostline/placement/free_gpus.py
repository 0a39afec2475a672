"""Free GPUs of a cluster: what fits, and best fit.

Servers are kept by their number of free GPUs, as bit sets, so that the best fit of a job is found without looking
at every server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Locality
from frostline.problem.pieces import Pieces, pieces_hold, pieces_of, servers_needed

__all__ = ["FreeGpus", "Loads", "Shape", "empty_servers", "shape_of"]

Loads = tuple[tuple[int, int], ...]
"""GPUs by server: (server index, GPUs) pairs in the order of servers."""


class Shape(NamedTuple):
    """What a job asks of the free GPUs: how many, on at most how many servers, and in which pieces."""

    gpus: int
    most_servers: int
    pieces: Pieces = ()


def shape_of(job: Job, cluster: Cluster, gpus: int | None = None) -> Shape:
    """Shape of a job under its locality; with ``gpus``, that of elastic work on so many GPUs.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=12, locality="fewest")
    >>> shape_of(job, Cluster.uniform(4))
    Shape(gpus=12, most_servers=2, pieces=())
    """
    if gpus is not None:
        most = {Locality.ANY: max(1, len(cluster.servers)), Locality.SERVER: 1}.get(job.locality)
        return Shape(gpus, cluster.servers_needed(gpus) if most is None else most)
    if job.locality is Locality.ANY:
        return Shape(job.gpus, max(1, len(cluster.servers)), pieces_of(job))
    if job.locality is Locality.SERVER:
        return Shape(job.gpus, 1)
    return Shape(job.gpus, servers_needed(job, cluster), pieces_of(job))


class FreeGpus:
    """Free GPUs by server; :meth:`take` and :meth:`give`, :meth:`close` and :meth:`open` are the only changes.

    A server may be closed: what is free there, or given back, counts as if it were not there until it is open again.

    Parameters
    ----------
    capacities : sequence of int
        GPUs of each server; all are free at first.

    Examples
    --------
    >>> free = FreeGpus([8, 8])
    >>> free.take(((0, 5),))
    >>> free.best_fit(Shape(3, 2)), free.best_fit(Shape(4, 2)), free.best_fit(Shape(10, 2)), free.best_fit(Shape(9, 1))
    (((0, 3),), ((1, 4),), ((0, 2), (1, 8)), None)
    """

    __slots__ = (
        "_capacities",
        "_emptied",
        "_levels",
        "_servers_at",
        "_withheld",
        "by_server",
        "capacity",
        "closed",
        "total",
    )

    def __init__(self, capacities: Sequence[int]) -> None:
        self._capacities, self.by_server = capacities, list(capacities)
        self.total = self.capacity = sum(capacities)
        self.closed = 0  # bit m: server m is closed
        self._withheld: dict[int, int] = {}  # GPUs that are free on closed servers
        self._emptied: FreeGpus | None = None  # as if nothing ran on the open servers, once that was asked for
        self._servers_at = [0] * (max(capacities, default=0) + 1)  # bit m of entry f: server m has f GPUs free
        for server, count in enumerate(capacities):
            self._servers_at[count] |= 1 << server
        self._levels = 0  # bit f: some server has f GPUs free
        for level, servers in enumerate(self._servers_at):
            if servers:
                self._levels |= 1 << level

    def copy(self) -> FreeGpus:
        """Independent copy."""
        twin = FreeGpus.__new__(FreeGpus)
        twin.by_server = self.by_server.copy()
        twin.total, twin.capacity = self.total, self.capacity
        twin._servers_at = self._servers_at.copy()
        twin._levels = self._levels
        twin._capacities, twin._emptied = self._capacities, self._emptied
        twin.closed, twin._withheld = self.closed, self._withheld.copy() if self.closed else {}
        return twin

    def only(self, servers: Iterable[int]) -> FreeGpus:
        """Free GPUs of some servers, as if the others had none."""
        counts = [0] * len(self.by_server)
        for server in servers:
            counts[server] = self.by_server[server]
        return FreeGpus(counts)

    def _move(self, server: int, level: int) -> None:
        bit = 1 << server
        before = self.by_server[server]
        self.by_server[server] = level
        rest = self._servers_at[before] & ~bit
        self._servers_at[before] = rest
        if not rest:
            self._levels &= ~(1 << before)
        self._servers_at[level] |= bit
        self._levels |= 1 << level

    def take(self, loads: Loads) -> None:
        """Take GPUs that are free; the caller has checked that they are."""
        if self.closed:
            loads = self._withhold(loads, -1)
        for server, gpus in loads:
            self._move(server, self.by_server[server] - gpus)
            self.total -= gpus

    def give(self, loads: Loads) -> None:
        """Give back GPUs that were taken."""
        if self.closed:
            loads = self._withhold(loads, 1)
        for server, gpus in loads:
            self._move(server, self.by_server[server] + gpus)
            self.total += gpus

    def _withhold(self, loads: Loads, sign: int) -> Loads:
        """Count what is given back to closed servers, or taken there; the rest of the loads."""
        closed = self.closed
        for server, gpus in loads:
            if closed >> server & 1:
                self._withheld[server] += sign * gpus
        return tuple(load for load in loads if not closed >> load[0] & 1)

    def close(self, server: int, gpus: int) -> None:
        """Close an open server of so many GPUs.

        Examples
        --------
        >>> free = FreeGpus([8, 8])
        >>> free.take(((0, 5),))
        >>> free.close(0, 8)
        >>> free.give(((0, 5),))
        >>> free.total, free.capacity, free.best_fit(Shape(9, 2))
        (8, 8, None)
        >>> free.open(0, 8)
        >>> free.by_server, free.capacity
        ([8, 8], 16)
        """
        withheld = self.by_server[server]
        self.take(((server, withheld),))
        self.capacity -= gpus
        self.closed |= 1 << server
        self._emptied = None
        self._withheld[server] = withheld

    def open(self, server: int, gpus: int) -> None:
        """Open a closed server of so many GPUs again."""
        self.closed &= ~(1 << server)
        self._emptied = None
        self.capacity += gpus
        self.give(((server, self._withheld.pop(server)),))

    def open_gpus(self, loads: Loads) -> int:
        """GPUs of some loads on open servers."""
        return sum(gpus for server, gpus in loads if not self.closed >> server & 1)

    def could_hold(self, shape: Shape) -> bool:
        """Whether the open servers hold a job of this shape, that the whole cluster holds, if nothing runs on them.

        Examples
        --------
        >>> free = FreeGpus([8, 4])
        >>> free.take(((0, 3), (1, 4)))
        >>> free.close(0, 8)
        >>> free.could_hold(Shape(4, 1)), free.could_hold(Shape(5, 2))
        (True, False)
        """
        if not self.closed:
            return True
        if self._emptied is None:
            self._emptied = empty_servers(self._capacities, self.closed)
        return self._emptied.fits(shape)

    @property
    def largest(self) -> int:
        """Most GPUs free in one server."""
        return max(self._levels.bit_length() - 1, 0)

    def fits(self, shape: Shape) -> bool:
        """Whether the free GPUs hold a job of this shape now."""
        gpus, most_servers, pieces = shape
        if gpus > self.total:
            return False
        if self._levels >> gpus:
            return True
        if pieces:
            return most_servers > 1 and pieces_hold(list(islice(self._largest_first(), most_servers)), pieces)
        if most_servers >= len(self.by_server):
            return True
        return most_servers > 1 and self._largest_sum(most_servers) >= gpus

    def _largest_first(self) -> Iterator[int]:
        """Free GPUs of the servers that have some, most first."""
        for level in range(self._levels.bit_length() - 1, 0, -1):
            for _ in range(self._servers_at[level].bit_count()):
                yield level

    def _largest_sum(self, servers: int) -> int:
        """GPUs free in the so many servers with most of them."""
        held, level = 0, self._levels.bit_length() - 1
        while servers and level > 0:
            count = min(servers, self._servers_at[level].bit_count())
            held += count * level
            servers -= count
            level -= 1
        return held

    def best_fit(self, shape: Shape) -> Loads | None:
        """GPUs for a job of this shape, or None: fewest servers, then the tightest hole, then the lowest server.

        A job that no server can hold alone takes the servers with most free GPUs whole, and the tightest hole for
        the rest; which replicas of several GPUs go where is not settled by that.
        """
        gpus = shape.gpus
        server = self.tightest(gpus)
        if server is not None:
            return ((server, gpus),)
        return tuple(sorted(self._spread(gpus))) if self.fits(shape) else None

    def tightest(self, gpus: int) -> int | None:
        """Lowest server among those with the fewest, but at least so many, free GPUs; None where no server has them."""
        holes = self._levels >> gpus
        if not holes:
            return None
        servers = self._servers_at[gpus + (holes & -holes).bit_length() - 1]
        return (servers & -servers).bit_length() - 1

    def _spread(self, gpus: int) -> Iterable[tuple[int, int]]:
        taken = 0
        for level in range(self._levels.bit_length() - 1, 0, -1):
            servers = self._servers_at[level]
            while servers and gpus > level:
                server = (servers & -servers).bit_length() - 1
                servers &= servers - 1
                taken |= 1 << server
                gpus -= level
                yield server, level
            if servers:
                break
        level = gpus
        while not self._servers_at[level] & ~taken:
            level += 1
        rest = self._servers_at[level] & ~taken
        yield (rest & -rest).bit_length() - 1, gpus


def empty_servers(capacities: Sequence[int], closed: int) -> FreeGpus:
    """Free GPUs of servers of such capacities on which nothing runs, closed ones, as bits, as if they had no GPUs.

    Examples
    --------
    >>> empty_servers([8, 4, 2], 0b101).by_server
    [0, 4, 0]
    """
    return FreeGpus([0 if closed >> m & 1 else gpus for m, gpus in enumerate(capacities)])
