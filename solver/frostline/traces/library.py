"""The benchmark instances that come with frostline, by name, with what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import Any

from frostline.errors import UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.documents import parse_document
from frostline.problem.files import load_instance
from frostline.problem.instance import Instance
from frostline.traces.generate import generate_jobs

__all__ = ["InstanceEntry", "KnownValue", "instance_entry", "instance_names", "load_named_instance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValue:
    """A value that is known for an instance.

    Parameters
    ----------
    quantity : str
        What is measured, such as ``"total_flow_s"``; the unit is in the name.
    of : str
        Whose value it is: ``"optimum"``, a rule of scheduling, or a bound.
    value : float
        The value.
    provenance : str
        How it was found.
    """

    quantity: str
    of: str
    value: float
    provenance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEntry:
    """What the index tells of an instance.

    Parameters
    ----------
    name : str
        Name, for :func:`load_named_instance`.
    description : str
        What it shows.
    source : str
        Where it comes from.
    known : tuple of KnownValue
        Values that are known.
    file : str or None
        File in ``frostline.instances``; None for an instance of the generator.
    generator : mapping or None
        ``servers``, ``gpus_per_server``, and the arguments of :func:`~frostline.traces.generate.generate_jobs`.
    """

    name: str
    description: str
    source: str
    known: tuple[KnownValue, ...]
    file: str | None = None
    generator: MappingProxyType[str, Any] | None = None


@cache
def _index() -> MappingProxyType[str, InstanceEntry]:
    text = files("frostline.instances").joinpath("index.json").read_text("utf-8")
    _, data = parse_document(text, ["index"], source="frostline/instances/index.json")
    entries = [_entry(**entry) for entry in data["instances"]]
    return MappingProxyType({entry.name: entry for entry in entries})


def _entry(*, known: list[dict[str, Any]], generator: dict[str, Any] | None = None, **texts: Any) -> InstanceEntry:
    parameters = None if generator is None else MappingProxyType(generator)
    return InstanceEntry(known=tuple(KnownValue(**value) for value in known), generator=parameters, **texts)


def instance_names() -> tuple[str, ...]:
    """Names of the instances, in the order of the index.

    Examples
    --------
    >>> instance_names()
    ('q06', 'q09', 'p14', 'philly-like-5000')
    """
    return tuple(_index())


def instance_entry(name: str) -> InstanceEntry:
    """What the index tells of an instance.

    Raises
    ------
    UnknownNameError
        No such instance.

    Examples
    --------
    >>> {value.of: value.value for value in instance_entry("q09").known}["optimum"]
    17.0
    """
    try:
        return _index()[name]
    except KeyError:
        raise UnknownNameError("instance", name, _index()) from None


def load_named_instance(name: str) -> Instance:
    """Instance that comes with frostline.

    Raises
    ------
    UnknownNameError
        No such instance.

    Examples
    --------
    >>> instance = load_named_instance("q06")
    >>> instance.cluster.gpus, [job.gpus for job in instance.jobs]
    (8, [6, 8, 2])
    """
    entry = instance_entry(name)
    if entry.file is not None:
        with as_file(files("frostline.instances").joinpath(entry.file)) as path:
            return load_instance(path)
    return _generated(name, dict(entry.generator or {}))


def _generated(name: str, parameters: dict[str, Any]) -> Instance:
    cluster = Cluster.uniform(parameters["servers"], gpus=parameters["gpus_per_server"])
    made = {key: str(value) for key, value in parameters.items()}
    arguments = {key: value for key, value in parameters.items() if key not in ("servers", "gpus_per_server")}
    jobs = generate_jobs(arguments.pop("jobs"), gpus=cluster.gpus, **arguments)
    return Instance(
        cluster=cluster, jobs=jobs, name=name, provenance={"made": "frostline.traces.generate_jobs", **made}
    )
