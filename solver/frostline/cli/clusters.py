"""The cluster that a command line asks for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from frostline.cli.group import UsageError
from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster, gpu_type
from frostline.problem.files import load_cluster
from frostline.units import as_bytes, as_int

__all__ = ["bandwidth", "cluster_of", "free_gpus", "required_cluster", "whole_numbers"]

_UNIFORM = re.compile(r"\s*(\d{1,9})\s*[xX×]\s*(\d{1,9})\s*")
_MOST_GPUS = 10_000_000


def cluster_of(spec: str | None, pool: int | None = None, **attributes: Any) -> Cluster | None:
    """Cluster of ``--cluster`` or ``--pool``; None where neither is given.

    Parameters
    ----------
    spec : str or None
        ``SERVERSxGPUS`` or a cluster file.
    pool : int or None
        GPUs of one pool.
    **attributes
        Further attributes of the servers of ``SERVERSxGPUS``; those that are None count as not given.

    Raises
    ------
    UsageError
        Both are given.
    InvalidValueError
        A value breaks its rule.
    FileError
        The cluster file cannot be read.

    Examples
    --------
    >>> cluster_of("4x8").capacities, cluster_of(None, 32).capacities
    ((8, 8, 8, 8), (32,))
    """
    given = {name: value for name, value in attributes.items() if value is not None}
    if "gpu_type" in given:
        given["gpu_type"] = gpu_type(given["gpu_type"])
    if spec is None:
        return None if pool is None else Cluster.pool(_count(pool, "--pool", "gpus"), **given)
    if pool is not None:
        raise UsageError("give --cluster or --pool, not both")
    uniform = _UNIFORM.fullmatch(spec)
    if uniform is None:
        return _from_file(spec, given)
    servers, gpus = _count(int(uniform[1]), "--cluster", "servers"), _count(int(uniform[2]), "--cluster", "gpus")
    _count(servers * gpus, "--cluster", "gpus in all")
    return Cluster.uniform(servers, gpus, **given)


def _count(value: int, option: str, field: str) -> int:
    """Number of servers or GPUs: at least one, and no more than any cluster has."""
    count = as_int(value, f"option {option}", field, 1)
    if count > _MOST_GPUS:
        raise InvalidValueError(f"option {option}", field, value, f"must be at most {_MOST_GPUS}")
    return count


def required_cluster(spec: str | None, pool: int | None, **attributes: Any) -> Cluster:
    """Cluster of ``--cluster`` or ``--pool``, one of which must be given; see :func:`cluster_of`."""
    cluster = cluster_of(spec, pool, **attributes)
    if cluster is None:
        raise UsageError("give --cluster or --pool")
    return cluster


def _from_file(spec: str, given: dict[str, Any]) -> Cluster:
    if not (spec and Path(spec).exists()) and not spec.endswith((".json", ".json.gz")):
        rule = "must read SERVERSxGPUS, such as 128x8, or name a cluster file"
        raise InvalidValueError("option --cluster", "cluster", spec, rule)
    if given:
        raise UsageError("--gpu-type, --nic and --nvlink cannot go with a cluster file, which gives them by server")
    return load_cluster(spec)


def bandwidth(text: str | None, option: str) -> float | None:
    """Bytes per second of a text such as ``25GB/s``.

    Examples
    --------
    >>> bandwidth("25GB/s", "--nic")
    25000000000.0
    """
    if text is None:
        return None
    if not text.endswith("/s"):
        raise InvalidValueError(f"option {option}", "bandwidth", text, "must have a unit, such as 25GB/s")
    return float(as_bytes(text.removesuffix("/s"), f"option {option}", "bandwidth"))


def free_gpus(text: str | None, cluster: Cluster) -> tuple[int, ...]:
    """Free GPUs of every server; all where nothing was said.

    Examples
    --------
    >>> free_gpus(None, Cluster.uniform(2, gpus=4)), free_gpus("4,1", Cluster.uniform(2, gpus=4))
    ((4, 4), (4, 1))
    """
    room = whole_numbers(text, "--free", 0)
    if room is None:
        return cluster.capacities
    if len(room) != len(cluster.servers):
        rule = f"must have one entry for each of {len(cluster.servers)} servers"
        raise InvalidValueError("option --free", "free", text, rule)
    return room


def whole_numbers(text: str | None, option: str, minimum: int) -> tuple[int, ...] | None:
    """Whole numbers that commas separate.

    Examples
    --------
    >>> whole_numbers("2, 1,4", "--replicas", 1)
    (2, 1, 4)
    """
    if text is None:
        return None
    numbers = []
    for part in text.split(","):
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", part):
            raise InvalidValueError(f"option {option}", "numbers", text, "must be whole numbers with commas between")
        numbers.append(as_int(int(part), f"option {option}", "number", minimum))
    return tuple(numbers)
