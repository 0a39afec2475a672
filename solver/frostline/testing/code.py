"""Instances as Python source, short enough to be read and pasted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance

__all__ = ["instance_code"]


def instance_code(instance: Instance) -> str:
    """Python source of an instance; its name and provenance are left out, and so is what is left at its default.

    The names it uses are those of :mod:`frostline.problem`.

    Examples
    --------
    >>> from frostline.problem import Fixed, Job
    >>> job = Job(id="J1", release_s=0, work=Fixed(duration_s=2.5), gpus=4, locality="server")
    >>> print(instance_code(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[job])))
    Instance(
        cluster=Cluster.uniform(2, gpus=4),
        jobs=[
            Job(id='J1', release_s=0, work=Fixed(duration_s=2.5), gpus=4, locality='server'),
        ],
    )
    """
    jobs = "".join(f"\n        {_code(job)}," for job in instance.jobs)
    return (
        f"Instance(\n    cluster={_cluster(instance.cluster)},\n    jobs=[{jobs}{chr(10) + '    ' if jobs else ''}],\n)"
    )


def _cluster(cluster: Cluster) -> str:
    """The shortest way to write a cluster."""
    count, gpus = len(cluster.servers), max(cluster.largest, 1)
    if count and cluster == Cluster.pool(gpus):
        return f"Cluster.pool({gpus})"
    if count and cluster == Cluster.uniform(count, gpus=gpus):
        return f"Cluster.uniform({count}, gpus={gpus})"
    return f"Cluster(servers={_code(cluster.servers)})"


def _code(value: Any) -> str:
    """Python source of a value of the problem."""
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(_arguments(value))})"
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_code(key)}: {_code(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_code, value))}]"
    return repr(value)


def _arguments(value: Any) -> Iterator[str]:
    """Arguments of the constructor of a dataclass that are not left at their default."""
    for field in fields(value):
        held = getattr(value, field.name)
        if field.init and held != _default(field):
            yield f"{field.name}={_code(held)}"


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
