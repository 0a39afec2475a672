"""The benchmark instances that come with frostline, by name, with what is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.documents import parse_document
from frostline.problem.files import digest, load_instance
from frostline.problem.instance import Instance
from frostline.traces.families import family_instance
from frostline.traces.generate import generate_jobs

__all__ = [
    "FAMILIES",
    "InstanceEntry",
    "KnownValue",
    "instance_entry",
    "instance_names",
    "load_named_instance",
    "made_instance",
    "matching_names",
]

FAMILIES = ("tiny", "small", "medium", "online")
"""Families of instances, the first part of their names."""

_FIRST_JOBS = 1000


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
    recipe : mapping or None
        Arguments of :func:`~frostline.traces.families.family_instance`, for an instance of a family.
    sha256 : str
        Digest of an instance of a family, see :func:`frostline.problem.digest`.
    first_sha256 : str
        The same with its first 1,000 jobs only, of an instance that is made when it is loaded.
    """

    name: str
    description: str
    source: str
    known: tuple[KnownValue, ...]
    file: str | None = None
    generator: MappingProxyType[str, Any] | None = None
    recipe: MappingProxyType[str, Any] | None = None
    sha256: str = ""
    first_sha256: str = ""

    @property
    def family(self) -> str:
        """First part of the name; empty for an instance of its own."""
        return self.name.partition("/")[0] if "/" in self.name else ""


@cache
def _index() -> MappingProxyType[str, InstanceEntry]:
    text = files("frostline.instances").joinpath("index.json").read_text("utf-8")
    _, data = parse_document(text, ["index"], source="frostline/instances/index.json")
    families = {family["name"]: family for family in data["families"]}
    entries = [_entry(families, **entry) for entry in data["instances"]]
    return MappingProxyType({entry.name: entry for entry in entries})


def _entry(
    families: dict[str, dict[str, str]],
    *,
    name: str,
    known: Iterable[dict[str, Any]] = (),
    generator: dict[str, Any] | None = None,
    recipe: dict[str, Any] | None = None,
    **texts: Any,
) -> InstanceEntry:
    if recipe is not None:
        family = families[name.rpartition("-")[0]]
        texts |= {"description": family["description"], "source": family["source"]}
    return InstanceEntry(
        name=name,
        known=tuple(KnownValue(**value) for value in known),
        generator=None if generator is None else MappingProxyType(generator),
        recipe=None if recipe is None else MappingProxyType(recipe),
        **texts,
    )


def instance_names() -> tuple[str, ...]:
    """Names of the instances, in the order of the index.

    Examples
    --------
    >>> instance_names()[:5]
    ('q06', 'q09', 'p14', 'philly-like-5000', 'tiny/pool-01')
    """
    return tuple(_index())


def matching_names(patterns: Iterable[str]) -> tuple[str, ...]:
    """Names that match one of some patterns, in the order of the index; a family stands for all its instances.

    Raises
    ------
    UnknownNameError
        A pattern that matches no name.

    Examples
    --------
    >>> matching_names(["q*", "tiny/pool-0[12]"])
    ('q06', 'q09', 'tiny/pool-01', 'tiny/pool-02')
    """
    names: set[str] = set()
    for pattern in patterns:
        whole = f"{pattern}/*" if pattern in FAMILIES else pattern
        found = {name for name in instance_names() if fnmatchcase(name, whole)}
        if not found:
            raise UnknownNameError("instance or family", pattern, (*FAMILIES, *instance_names()))
        names |= found
    return tuple(name for name in instance_names() if name in names)


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
    InvalidValueError
        It is made from a recipe, and came out otherwise than when it was recorded.

    Examples
    --------
    >>> instance = load_named_instance("q06")
    >>> instance.cluster.gpus, [job.gpus for job in instance.jobs]
    (8, [6, 8, 2])
    """
    entry = instance_entry(name)
    if entry.file is None:
        return _recorded(entry, made_instance(name))
    with as_file(files("frostline.instances").joinpath(entry.file)) as path:
        return load_instance(path)


def made_instance(name: str) -> Instance:
    """Instance made anew from its recipe, whatever is stored of it.

    Raises
    ------
    UnknownNameError
        No such instance.
    InvalidValueError
        It has no recipe.

    Examples
    --------
    >>> made_instance("tiny/pool-01") == load_named_instance("tiny/pool-01")
    True
    """
    entry = instance_entry(name)
    if entry.recipe is not None:
        return family_instance(name, **entry.recipe)
    if entry.generator is None:
        raise InvalidValueError(f"instance {name!r}", "recipe", None, "must be there: it was made by hand")
    return _generated(name, dict(entry.generator))


def _recorded(entry: InstanceEntry, instance: Instance) -> Instance:
    if entry.first_sha256:
        found = digest(instance.replace(jobs=instance.jobs[:_FIRST_JOBS]))
        if found != entry.first_sha256:
            rule = f"must be {entry.first_sha256}: this numpy draws other numbers"
            raise InvalidValueError(f"instance {entry.name!r}", "first_sha256", found, rule)
    return instance


def _generated(name: str, parameters: dict[str, Any]) -> Instance:
    cluster = Cluster.uniform(parameters["servers"], gpus=parameters["gpus_per_server"])
    made = {key: str(value) for key, value in parameters.items()}
    arguments = {key: value for key, value in parameters.items() if key not in ("servers", "gpus_per_server")}
    jobs = generate_jobs(arguments.pop("jobs"), gpus=cluster.gpus, **arguments)
    return Instance(
        cluster=cluster, jobs=jobs, name=name, provenance={"made": "frostline.traces.generate_jobs", **made}
    )
