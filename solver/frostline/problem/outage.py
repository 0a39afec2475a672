"""When servers are down, and whom that cuts off."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.order import natural_key
from frostline.units import as_finite, instant_us

__all__ = ["Downtimes", "Outage", "check_servers", "in_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A stretch of time in which a server is down: it fails at the start and is back at the end.

    Parameters
    ----------
    server : str
        Identifier of the server.
    start_s : float
        When it fails, in seconds; may be negative.
    end_s : float or None
        When it is back, at least a microsecond later; None where it never comes back.

    Raises
    ------
    InvalidValueError
        A time is no number or out of range, or the end does not lie after the start.

    Examples
    --------
    >>> Outage(server="s0", start_s=50, end_s=80).end_us
    80000000
    >>> Outage(server="s0", start_s=50, end_s=50)
    Traceback (most recent call last):
    ...
    frostline.errors.InvalidValueError: outage of server 's0': end_s=50 must lie after start_s=50.0
    """

    server: str
    start_s: float
    end_s: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.server, str) or not self.server:
            raise InvalidValueError("outage", "server", self.server, "must be a non-empty string")
        subject = f"outage of server {self.server!r}"
        object.__setattr__(self, "start_s", as_finite(self.start_s, subject, "start_s", -9e9))
        if self.end_s is not None:
            end_s = as_finite(self.end_s, subject, "end_s", -9e9)
            if instant_us(end_s) <= self.start_us:
                raise InvalidValueError(subject, "end_s", self.end_s, f"must lie after start_s={self.start_s}")
            object.__setattr__(self, "end_s", end_s)

    @property
    def start_us(self) -> int:
        """When the server fails, in microseconds."""
        return instant_us(self.start_s)

    @property
    def end_us(self) -> int | None:
        """When it is back, in microseconds; None for never."""
        return None if self.end_s is None else instant_us(self.end_s)


def in_order(outages: Iterable[Outage]) -> tuple[Outage, ...]:
    """Outages by start and server; those of one server may meet, but not overlap.

    Raises
    ------
    InvalidValueError
        One is no outage, or two of one server overlap.

    Examples
    --------
    >>> [outage.start_s for outage in in_order([Outage(server="a", start_s=t, end_s=t + 1) for t in (5, 2)])]
    [2.0, 5.0]
    """
    listed = list(outages)
    for outage in listed:
        if not isinstance(outage, Outage):
            raise InvalidValueError("outages", "outage", outage, "must be an Outage")
    listed.sort(key=lambda outage: (natural_key(outage.server), outage.start_us))
    for before, after in pairwise(listed):
        end_us = before.end_us
        if before.server == after.server and (end_us is None or after.start_us < end_us):
            until = "never ends" if before.end_s is None else f"lasts until {before.end_s} s"
            rule = f"must not lie before the end of the one from {before.start_s} s, which {until}"
            raise InvalidValueError(f"outage of server {after.server!r}", "start_s", after.start_s, rule)
    return tuple(sorted(listed, key=lambda outage: (outage.start_us, natural_key(outage.server))))


def check_servers(outages: Iterable[Outage], cluster: Cluster) -> None:
    """Refuse outages of servers that a cluster does not have.

    Raises
    ------
    UnknownNameError
        There is no such server.
    """
    known = {server.id for server in cluster.servers}
    for outage in outages:
        if outage.server not in known:
            raise UnknownNameError("server", outage.server, known)


class Downtimes:
    """When the servers of a cluster are down; outages of servers that it does not have are passed over.

    Parameters
    ----------
    outages : iterable of Outage
        Outages as :func:`in_order` gives them.
    cluster : Cluster
        The servers.

    Examples
    --------
    >>> downtimes = Downtimes([Outage(server="s1", start_s=5, end_s=8)], Cluster.uniform(2))
    >>> downtimes.fails([0, 1], 5_000_000), downtimes.fails([1], 6_000_000)
    (True, False)
    >>> downtimes.first_down([0, 1], 0, 5_000_000), downtimes.first_down([0, 1], 7_000_000, 9_000_000)
    (None, 1)
    """

    __slots__ = ("_ends", "_failures", "_starts")

    def __init__(self, outages: Iterable[Outage], cluster: Cluster) -> None:
        number = {server.id: m for m, server in enumerate(cluster.servers)}
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[float]] = {}
        for outage in outages:
            if outage.server in number:
                m, end_us = number[outage.server], outage.end_us
                self._starts.setdefault(m, []).append(outage.start_us)
                self._ends.setdefault(m, []).append(inf if end_us is None else end_us)
        self._failures = {(m, start_us) for m, starts in self._starts.items() for start_us in starts}

    def fails(self, servers: Iterable[int], at_us: int) -> bool:
        """Whether one of some servers, by their indices, fails at an instant."""
        return any((m, at_us) in self._failures for m in servers)

    def first_down(self, servers: Iterable[int], start_us: int, end_us: int) -> int | None:
        """The first of some servers that is down at some time from a start to just before an end; None if none is."""
        return next((m for m in servers if m in self._starts and self._down(m, start_us, end_us)), None)

    def _down(self, server: int, start_us: int, end_us: int) -> bool:
        last = bisect_right(self._starts[server], end_us - 1) - 1
        return last >= 0 and self._ends[server][last] > start_us
