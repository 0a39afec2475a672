"""Bandwidths of servers, grouped into classes of equals."""

from __future__ import annotations

from collections.abc import Sequence

from frostline.errors import InvalidValueError
from frostline.units import as_finite

__all__ = ["ServerClasses", "bandwidth", "check_total", "to_ns"]

_MAX_BANDWIDTH = 1e18
# Beyond 2^53 ns, 104 days for one iteration, floats of seconds no longer tell nanoseconds apart.
_MAX_NS = 1 << 53


def bandwidth(value: object, field: str) -> float:
    """Bandwidth in bytes per second, checked."""
    return as_finite(value, "iteration time", field, 1.0, _MAX_BANDWIDTH)


def to_ns(time_s: float) -> int:
    """Nanosecond nearest to a time in seconds."""
    return round(time_s * 1e9)


def check_total(worst_ns: int) -> None:
    """Refuse stage graphs whose worst placement takes longer than integers of nanoseconds allow."""
    if worst_ns > _MAX_NS:
        raise InvalidValueError("stage graph", "worst iteration_ns", worst_ns, f"must be at most {_MAX_NS}")


class ServerClasses:
    """Classes of servers with equal bandwidth, fastest first.

    Parameters
    ----------
    values : float or sequence of float
        Bandwidth of all servers, or of each.
    field : str
        Name of the bandwidth for messages.

    Examples
    --------
    >>> classes = ServerClasses([10e9, 25e9, 10e9], "nic_bytes_per_s")
    >>> classes.distinct, [classes.of(server) for server in range(3)]
    ((25000000000.0, 10000000000.0), [1, 0, 1])
    """

    __slots__ = ("_index", "distinct", "values")

    def __init__(self, values: float | Sequence[float], field: str) -> None:
        self._index: tuple[int, ...] | None = None
        if not isinstance(values, Sequence):
            self.values: float | tuple[float, ...] = bandwidth(values, field)
            self.distinct: tuple[float, ...] = (self.values,)
            return
        by_server = tuple(bandwidth(value, f"{field}[{m}]") for m, value in enumerate(values))
        self.values = by_server
        self.distinct = tuple(sorted(set(by_server), reverse=True))
        self._index = tuple(self.distinct.index(value) for value in by_server)

    def of(self, server: int) -> int:
        """Class of a server."""
        if self._index is None:
            return 0
        if not 0 <= server < len(self._index):
            raise InvalidValueError("iteration time", "server", server, f"must be below {len(self._index)}")
        return self._index[server]
