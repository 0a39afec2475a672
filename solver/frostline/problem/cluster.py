"""The cluster: servers of whole GPUs, joined by a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.frozen import FrozenMap
from frostline.units import as_finite, as_int

__all__ = ["Cluster", "GpuType", "Server", "gpu_type", "gpu_types"]

_ANY_BANDWIDTH = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    """A kind of GPU.

    Parameters
    ----------
    name : str
        Name, such as ``"A100-SXM-80"``.
    peak_flops : mapping of str to float
        Dense peak FLOPs per second by precision (``fp32``, ``tf32``, ``fp16``, ``bf16``).
    memory_bytes : int or None
        Memory of one GPU in bytes; None where it is unknown, which is not the same as none.

    Examples
    --------
    >>> GpuType(name="tiny", peak_flops={"fp32": 1e12}, memory_bytes=2**30).peak("fp32")
    1000000000000.0
    """

    name: str
    peak_flops: Mapping[str, float] = field(hash=False)
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        subject = f"GPU type {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise InvalidValueError("GPU type", "name", self.name, "must be a non-empty string")
        peaks = {
            precision: as_finite(flops, subject, f"peak_flops[{precision}]", 1.0, _ANY_BANDWIDTH)
            for precision, flops in self.peak_flops.items()
        }
        object.__setattr__(self, "peak_flops", FrozenMap(peaks))
        if self.memory_bytes is not None:
            object.__setattr__(self, "memory_bytes", as_int(self.memory_bytes, subject, "memory_bytes", 1))

    def peak(self, precision: str) -> float:
        """Peak FLOPs per second in a precision; an unknown precision is an error that names the known ones."""
        try:
            return self.peak_flops[precision]
        except KeyError:
            raise UnknownNameError(f"precision of GPU type {self.name!r}", precision, self.peak_flops) from None


@cache
def gpu_types() -> Mapping[str, GpuType]:
    """Catalogue of GPU types by name; ``problem/gpu_types.json`` holds the figures and their sources."""
    data = json.loads(files("frostline.problem").joinpath("gpu_types.json").read_text("utf-8"))
    entries = {
        entry["name"]: GpuType(name=entry["name"], peak_flops=entry["peak_flops"], memory_bytes=entry["memory_bytes"])
        for entry in data["gpu_types"]
    }
    return FrozenMap(entries)


def gpu_type(name: str) -> GpuType:
    """GPU type of the catalogue.

    Examples
    --------
    >>> gpu_type("V100-SXM2-16").peak("fp16")
    125000000000000.0
    """
    try:
        return gpu_types()[name]
    except KeyError:
        raise UnknownNameError("GPU type", name, gpu_types()) from None


def _default_gpu() -> GpuType:
    return gpu_type("A100-SXM-80")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server with whole GPUs and one full-duplex network card.

    Parameters
    ----------
    id : str
        Identifier, unique in its cluster.
    gpus : int
        Number of GPUs, at least 1.
    gpu_type : GpuType
        Kind of all its GPUs.
    nvlink_bytes_per_s : float
        Bandwidth between two of its GPUs, one way.
    nic_bytes_per_s : float
        Bandwidth of its network card, one way.
    rack : str or None
        Rack, where known.

    Examples
    --------
    >>> Server(id="s0", gpus=8).gpus
    8
    """

    id: str
    gpus: int
    gpu_type: GpuType = field(default_factory=_default_gpu)
    nvlink_bytes_per_s: float = 300e9
    nic_bytes_per_s: float = 25e9
    rack: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InvalidValueError("server", "id", self.id, "must be a non-empty string")
        subject = f"server {self.id!r}"
        object.__setattr__(self, "gpus", as_int(self.gpus, subject, "gpus", 1))
        for name in ("nvlink_bytes_per_s", "nic_bytes_per_s"):
            bandwidth = as_finite(getattr(self, name), subject, name, 1.0, _ANY_BANDWIDTH)
            object.__setattr__(self, name, bandwidth)
        if self.rack is not None and not isinstance(self.rack, str):
            raise InvalidValueError(subject, "rack", self.rack, "must be text or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Servers in a fixed order; a server's index is its position.

    Parameters
    ----------
    servers : sequence of Server
        The servers; identifiers must differ. An empty cluster is legal and fits no job.

    Examples
    --------
    >>> cluster = Cluster.uniform(4, gpus=8)
    >>> cluster.gpus, cluster.capacities
    (32, (8, 8, 8, 8))
    """

    servers: tuple[Server, ...]
    capacities: tuple[int, ...] = field(init=False, repr=False, compare=False)
    gpus: int = field(init=False, repr=False, compare=False)
    gpu_types: tuple[GpuType, ...] = field(init=False, repr=False, compare=False)
    """Types of the GPUs in the order of the servers."""
    largest: int = field(init=False, repr=False, compare=False)
    """GPUs of the largest server, 0 in an empty cluster."""

    def __post_init__(self) -> None:
        servers = tuple(self.servers)
        seen: set[str] = set()
        for server in servers:
            if server.id in seen:
                raise InvalidValueError("cluster", "servers", server.id, "is the id of two servers")
            seen.add(server.id)
        object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "capacities", tuple(server.gpus for server in servers))
        object.__setattr__(self, "gpus", sum(self.capacities))
        object.__setattr__(self, "largest", max(self.capacities, default=0))
        object.__setattr__(self, "gpu_types", tuple(dict.fromkeys(server.gpu_type for server in servers)))

    def __deepcopy__(self, memo: object) -> Cluster:
        """Itself: nothing of it can be changed."""
        return self

    @classmethod
    def uniform(cls, servers: int, gpus: int = 8, **attributes: Any) -> Cluster:
        """Equal servers ``s0``, ``s1``, …; further attributes go to every :class:`Server`."""
        count = as_int(servers, "cluster", "servers", 0)
        return cls(servers=tuple(Server(id=f"s{i}", gpus=gpus, **attributes) for i in range(count)))

    @classmethod
    def pool(cls, gpus: int, **attributes: Any) -> Cluster:
        """One pool in which any free GPUs will do: a single server that holds them all."""
        return cls(servers=(Server(id="pool", gpus=gpus, **attributes),))

    def servers_needed(self, gpus: int) -> int:
        """Fewest servers that hold so many GPUs together; one more than there are servers if none do.

        Examples
        --------
        >>> Cluster.uniform(4, gpus=8).servers_needed(17)
        3
        """
        held = 0
        for count, capacity in enumerate(sorted(self.capacities, reverse=True), start=1):
            held += capacity
            if held >= gpus:
                return count
        return len(self.servers) + 1

    def replace(self, **changes: Any) -> Cluster:
        """Copy with some fields changed, validated again."""
        return replace(self, **changes)
