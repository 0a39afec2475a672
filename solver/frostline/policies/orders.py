"""Orders of the waiting tasks; ties go to the earlier (release, id)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from types import MappingProxyType

from frostline.policies.task import Task

__all__ = ["ORDERS", "Order"]

Order = Callable[[Task], int]


def arrival(task: Task) -> int:
    """First come, first served."""
    return task.number


def shortest(task: Task) -> int:
    """Shortest duration first."""
    return task.duration_us


def smallest_area(task: Task) -> int:
    """Least GPU-time first."""
    return task.shape.gpus * task.duration_us


def longest(task: Task) -> int:
    """Longest duration first."""
    return -task.duration_us


def root_area(task: Task) -> int:
    """Least duration × √GPUs first, between shortest and smallest area."""
    return isqrt(task.shape.gpus * task.duration_us * task.duration_us)


ORDERS: Mapping[str, Order] = MappingProxyType(
    {
        "arrival": arrival,
        "shortest": shortest,
        "smallest-area": smallest_area,
        "longest": longest,
        "root-area": root_area,
    }
)
