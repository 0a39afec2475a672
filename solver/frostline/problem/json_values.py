"""Values of JSON taken as they are: no text for a number, no truth value, no list of another shape.

Each function turns what a file holds into what the problem needs, or says what is wrong with it. The second argument
is there because these are structure hooks of cattrs; it is not used.
"""

from __future__ import annotations

import math
from typing import Any

from frostline.errors import FrostlineError, InvalidValueError
from frostline.problem.network import Network, network_from_dict
from frostline.problem.placement import Placement
from frostline.problem.refusal import Reason
from frostline.units import as_finite, as_int

__all__ = [
    "WrongError",
    "float_value",
    "floats_value",
    "int_value",
    "ints_value",
    "level_times_value",
    "list_value",
    "network_value",
    "object_value",
    "placement_value",
    "reason_value",
    "stages_value",
    "text_value",
    "texts_value",
    "wrong",
]


class WrongError(FrostlineError):
    """Faults in a document, each with its path; where it is raised inside a record, the path starts at the record."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def wrong(value: object, rule: str) -> WrongError:
    """Fault of a value that breaks a rule; long values are cut."""
    shown = repr(value)
    return WrongError(f": {shown if len(shown) <= 60 else shown[:57] + '...'} {rule}")


def object_value(value: Any, _: object = None) -> Any:
    """Object, as it is."""
    if type(value) is not dict:
        raise wrong(value, "must be an object")
    return value


def list_value(value: Any, _: object = None) -> Any:
    """List, as it is."""
    if type(value) is not list:
        raise wrong(value, "must be a list")
    return value


def text_value(value: Any, _: object = None) -> str:
    """Text."""
    if type(value) is not str:
        raise wrong(value, "must be text")
    return value


def texts_value(value: Any, _: object = None) -> dict[str, str]:
    """Object whose values are text."""
    return {name: text_value(text) for name, text in object_value(value).items()}


def int_value(value: Any, _: object = None) -> int:
    """Whole number; 8.0 is one."""
    try:
        return as_int(value, "", "")
    except InvalidValueError as error:
        raise wrong(value, error.rule) from None


def float_value(value: Any, _: object = None) -> float:
    """Finite number."""
    if type(value) is float and math.isfinite(value):
        return value
    try:
        return as_finite(value, "", "", maximum=math.inf)
    except InvalidValueError as error:
        raise wrong(value, error.rule) from None


def floats_value(value: Any, _: object = None) -> tuple[float, ...]:
    """List of finite numbers."""
    return tuple(map(float_value, list_value(value)))


def level_times_value(value: Any, _: object = None) -> dict[str, dict[int, list[float]]]:
    """Seconds by class of placement, width and freeze level; a width is the name of a field, such as ``"8"``."""
    return {
        where: {_width(name, where): _row(row, f".{where}.{name}") for name, row in _fields(rows, f".{where}")}
        for where, rows in object_value(value).items()
    }


def _fields(value: Any, at: str) -> Any:
    if type(value) is not dict:
        raise WrongError(f"{at}{wrong(value, 'must be an object')}")
    return value.items()


def _width(name: str, where: str) -> int:
    if not (name.isascii() and name.isdigit() and len(name) < 10) or name.startswith("0"):
        raise WrongError(f".{where}.{name}: must be a number of GPUs")
    return int(name)


def _row(value: Any, at: str) -> list[float]:
    if type(value) is not list:
        raise WrongError(f"{at}{wrong(value, 'must be a list')}")
    row = []
    for level, seconds in enumerate(value):
        try:
            row.append(float_value(seconds))
        except WrongError as error:
            raise WrongError(*(f"{at}[{level}]{fault}" for fault in error.faults)) from None
    return row


def reason_value(value: Any, _: object = None) -> Reason:
    """Reason of a refusal."""
    if not isinstance(value, str) or value not in set(Reason):
        raise wrong(value, f"must be one of {', '.join(Reason)}")
    return Reason(value)


def network_value(value: Any, _: object = None) -> Network:
    """Network by value; one that was found by its name already is passed on."""
    if isinstance(value, Network):
        return value
    if type(value) is not dict:
        raise wrong(value, "must be a network or the name of one")
    return network_from_dict({"format": "frostline/network", "version": 1, **value})


def stages_value(value: Any, _: object = None) -> tuple[range, ...]:
    """Ranges of layers, each ``[first, after the last]``."""
    stages = list_value(value)
    for stage in stages:
        if type(stage) is not list or len(stage) != 2:
            raise wrong(stage, "must be [first layer, layer after the last]")
    return tuple(range(int_value(first), int_value(stop)) for first, stop in stages)


def ints_value(value: Any, _: object = None) -> tuple[int, ...]:
    """List of whole numbers."""
    return tuple(map(int_value, list_value(value)))


def placement_value(value: Any, _: object = None) -> Placement:
    """Placement as its used servers, each ``[server, [replicas of each stage]]``.

    Where replicas fill several GPUs it is an object of those ``columns`` and of ``gpus_per_replica``.
    """
    if type(value) is dict:
        if set(value) != {"columns", "gpus_per_replica"}:
            raise wrong(value, "must have columns and gpus_per_replica, and nothing else")
        return _placement(value["columns"], ints_value(value["gpus_per_replica"]))
    return _placement(value, ())


def _placement(value: Any, gpus_per_replica: tuple[int, ...]) -> Placement:
    rows = list_value(value)
    for row in rows:
        if type(row) is not list or len(row) != 2 or type(row[1]) is not list:
            raise wrong(row, "must be [server, [replicas of each stage]]")
    if len(rows) == 1 and len(rows[0][1]) == 1 and not gpus_per_replica:
        server, (count,) = rows[0]
        if type(server) is int and type(count) is int and server >= 0 < count:
            return Placement.of_loads([(server, count)])  # a shared object: most jobs are on one server
    return Placement(rows, gpus_per_replica)
