"""Networks, clusters, instances and schedules as versioned JSON files.

Every file is ``{"format": "frostline/<kind>", "version": 1, …}``, plain or gzipped. Reading is strict: a field that is
unknown, missing, of the wrong type or of a forbidden value is an error that gives its path, such as ``$.jobs[3].gpu``.
Writing is atomic, and the same object always gives the same bytes.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NewType, TypeVar, cast

from frostline.errors import FileError, FrostlineError, InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster, GpuType, Server, gpu_types
from frostline.problem.documents import Document, document_text, read_document, write_text
from frostline.problem.elastic import Elastic
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled, Training, Work
from frostline.problem.json_values import (
    WrongError,
    float_value,
    floats_value,
    int_value,
    ints_value,
    level_times_value,
    list_value,
    network_value,
    object_value,
    placement_value,
    reason_value,
    stages_value,
    text_value,
    texts_value,
    wrong,
)
from frostline.problem.library import network_names, shipped_network
from frostline.problem.network import Network, network_from_dict, network_to_dict
from frostline.problem.outage import Outage
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.problem.refusal import Reason, Refusal
from frostline.problem.schedule import Schedule, Segment
from frostline.units import as_int

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["digest", "load", "load_cluster", "load_instance", "load_network", "load_schedule", "save"]

T = TypeVar("T")
Record = Network | Instance | Schedule | Cluster
"""What a file can hold."""

_List = NewType("_List", list[Any])
_Object = NewType("_Object", dict[str, Any])
_Texts = NewType("_Texts", dict[str, str])
_Named = list[tuple[str, object]]
_Rows = list[tuple[str, list[Any]]]
_FAULTS_SHOWN = 5
_WORKS: dict[str, type[Work]] = {"fixed": Fixed, "profiled": Profiled, "elastic": Elastic, "training": Training}


def load(path: Path | str) -> Record:
    """Network, instance, schedule or cluster of a file, whichever it holds.

    Raises
    ------
    FileError
        The file cannot be read, or something in it is wrong; the message gives the path of the field.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "cluster.json"
    >>> save(Cluster.uniform(2, gpus=4), path)
    >>> load(path).capacities
    (4, 4)
    >>> folder.cleanup()
    """
    kind, data = read_document(path, _READERS)
    return _read(kind, data, path)


def load_network(path: Path | str) -> Network:
    """Network of a ``frostline/network`` file; see :func:`load`."""
    return cast(Network, _read(*read_document(path, ["network"]), path))


def load_cluster(path: Path | str) -> Cluster:
    """Cluster of a ``frostline/cluster`` file; see :func:`load`."""
    return cast(Cluster, _read(*read_document(path, ["cluster"]), path))


def load_instance(path: Path | str) -> Instance:
    """Instance of a ``frostline/instance`` file; see :func:`load`."""
    return cast(Instance, _read(*read_document(path, ["instance"]), path))


def load_schedule(path: Path | str, instance: Instance | None = None) -> Schedule:
    """Schedule of a ``frostline/schedule`` file; see :func:`load`.

    Parameters
    ----------
    path : Path or str
        The file.
    instance : Instance, optional
        The instance that it should be for: a file that names the digest of another one is refused.
    """
    _, data = read_document(path, ["schedule"])
    schedule = cast(Schedule, _read("schedule", data, path))
    made_for = data.get("instance")
    if instance is not None and made_for is not None and made_for["sha256"] != digest(instance):
        raise FileError(path, f"is for the instance {made_for['name']!r}, not for {instance.name!r} as it is now")
    return schedule


def save(record: Record, path: Path | str, *, instance: Instance | None = None) -> None:
    """Write a network, instance, schedule or cluster to ``*.json`` or ``*.json.gz``, all of it or nothing.

    Parameters
    ----------
    record : Network, Instance, Schedule or Cluster
        What to write.
    path : Path or str
        The file; it is replaced if it exists.
    instance : Instance, optional
        With a schedule, the instance that it is for: its name and digest are kept in the file.

    Raises
    ------
    FileError
        The file cannot be written.
    InvalidValueError
        The record holds something that no file can.
    """
    write_text(path, _text(record, instance))


def digest(instance: Instance) -> str:
    """SHA-256 of an instance: that of its file as :func:`save` writes it, uncompressed.

    Examples
    --------
    >>> one, two = (Instance(cluster=Cluster.uniform(n), jobs=()) for n in (1, 2))
    >>> digest(one) == digest(one.replace()), digest(one) == digest(two)
    (True, False)
    """
    return hashlib.sha256(_text(instance).encode()).hexdigest()


# Reading: from a document through cattrs to the problem. A path starts at "$", the document.


@dataclass(frozen=True, kw_only=True)
class _ClusterFile:
    servers: _List
    gpu_types: _List = field(default_factory=lambda: _List([]))


@dataclass(frozen=True, kw_only=True)
class _InstanceFile:
    cluster: _Object
    jobs: _List
    name: str = ""
    provenance: _Texts = field(default_factory=lambda: _Texts({}))
    networks: _Object = field(default_factory=lambda: _Object({}))


@dataclass(frozen=True, kw_only=True)
class _MadeFor:
    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class _ScheduleFile:
    segments: _List
    policy: str = ""
    restart_us: int | None = None
    level_change_us: int = 0
    predictor: str = ""
    refused: _List = field(default_factory=lambda: _List([]))
    outages: _List = field(default_factory=lambda: _List([]))
    unfinished: _List = field(default_factory=lambda: _List([]))
    instance: _MadeFor | None = None


def _read(kind: str, data: Document, path: Path | str) -> Record:
    try:
        return _READERS[kind](data, "$")
    except WrongError as error:
        shown = "; ".join(error.faults[:_FAULTS_SHOWN])
        more = len(error.faults) - _FAULTS_SHOWN
        raise FileError(path, shown + (f"; and {more} more" if more > 0 else "")) from None


def _read_network(data: Document, at: str) -> Network:
    with _path(at):
        return network_from_dict({"format": "frostline/network", "version": 1, **data})


def _read_cluster(data: Document, at: str) -> Cluster:
    head = _structure(data, _ClusterFile, at)
    own = {gpu.name: gpu for gpu in _structure_all(head.gpu_types, GpuType, f"{at}.gpu_types")}
    if len(own) < len(head.gpu_types):
        raise WrongError(f"{at}.gpu_types: names a GPU type twice")
    known = {**gpu_types(), **own}
    rows = [_with_gpu_type(row, known, f"{at}.servers[{i}]") for i, row in enumerate(head.servers)]
    servers = _structure_all(rows, Server, f"{at}.servers")
    with _path(at):
        return Cluster(servers=tuple(servers))


def _with_gpu_type(row: Any, known: Mapping[str, GpuType], at: str) -> Any:
    if not isinstance(row, dict) or "gpu_type" not in row:
        return row
    name = row["gpu_type"]
    if not isinstance(name, str):
        raise WrongError(f"{at}.gpu_type{wrong(name, 'must be the name of a GPU type')}")
    if name not in known:
        raise WrongError(f"{at}.gpu_type: {UnknownNameError('GPU type', name, known)}")
    return {**row, "gpu_type": known[name]}


def _read_instance(data: Document, at: str) -> Instance:
    head = _structure(data, _InstanceFile, at)
    networks = {name: _structure(entry, Network, f"{at}.networks.{name}") for name, entry in head.networks.items()}
    plans: dict[str, TrainingPlan] = {}
    for i, row in enumerate(head.jobs):
        plan = _plan_of(row)
        if plan is not None:
            row["work"]["plan"] = _read_plan(plan, networks, plans, f"{at}.jobs[{i}].work.plan")
    cluster = _read_cluster(head.cluster, f"{at}.cluster")
    jobs = _structure_all(head.jobs, Job, f"{at}.jobs")
    with _path(at):
        return Instance(cluster=cluster, jobs=tuple(jobs), name=head.name, provenance=head.provenance)


def _plan_of(row: Any) -> Document | None:
    work = row.get("work") if isinstance(row, dict) else None
    plan = work.get("plan") if isinstance(work, dict) else None
    return plan if isinstance(plan, dict) else None


def _read_plan(
    data: Document, networks: Mapping[str, Network], plans: dict[str, TrainingPlan], at: str
) -> TrainingPlan:
    """Plan of a job; equal plans become one object, so that what is derived from a plan is derived once."""
    key = repr(data)
    if key not in plans:
        name = data.get("network")
        network = {"network": _named_network(name, networks, f"{at}.network")} if isinstance(name, str) else {}
        plans[key] = _structure({**data, **network}, TrainingPlan, at)
    return plans[key]


def _named_network(name: str, networks: Mapping[str, Network], at: str) -> Network:
    if name in networks:
        return networks[name]
    try:
        return shipped_network(name)
    except UnknownNameError:
        raise WrongError(f"{at}: {UnknownNameError('network', name, [*networks, *network_names()])}") from None


def _read_schedule(data: Document, at: str) -> Schedule:
    head = _structure(data, _ScheduleFile, at)
    segments = _structure_all(head.segments, Segment, f"{at}.segments")
    refused = _structure_all(head.refused, Refusal, f"{at}.refused")
    outages = _structure_all(head.outages, Outage, f"{at}.outages")
    unfinished = [_unfinished(job, f"{at}.unfinished[{i}]") for i, job in enumerate(head.unfinished)]
    with _path(at):
        of_policy = head.policy, head.restart_us, head.predictor, head.level_change_us
        return Schedule.of(segments, refused, *of_policy, outages, unfinished)


def _unfinished(job: object, at: str) -> str:
    with _path(at):
        return text_value(job)


_READERS: dict[str, Callable[[Document, str], Record]] = {
    "cluster": _read_cluster,
    "instance": _read_instance,
    "network": _read_network,
    "schedule": _read_schedule,
}


def _structure(value: object, record: type[T], at: str) -> T:
    with _path(at):
        return _reader().structure(value, record)


def _structure_all(values: Iterable[object], record: type[T], at: str) -> list[T]:
    """Records of a list; all faults of all elements are reported together."""
    structure = _reader().get_structure_hook(record)
    records: list[T] = []
    faults: list[str] = []
    for i, value in enumerate(values):
        try:
            records.append(structure(value, record))
        except Exception as error:
            faults += _explain(error, f"{at}[{i}]")
    if faults:
        raise WrongError(*faults)
    return records


@contextmanager
def _path(at: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise WrongError(*_explain(error, at)) from None


def _explain(error: Exception, at: str) -> Iterator[str]:
    """Faults with their paths, from whatever structuring the record at a path raised."""
    from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError

    if isinstance(error, BaseValidationError):
        for inner in error.exceptions:
            names = [note.name for note in getattr(inner, "__notes__", ()) if hasattr(note, "name")]
            yield from _explain(inner, ".".join([at, *names]))
    elif isinstance(error, ForbiddenExtraKeysError):
        for name in sorted(error.extra_fields):
            near = difflib.get_close_matches(name, _field_names(error.cl), n=1)
            yield f"{at}.{name}: unknown field" + (f"; did you mean {near[0]!r}?" if near else "")
    elif isinstance(error, WrongError):
        yield from (f"{at}{fault}" for fault in error.faults)
    elif isinstance(error, InvalidValueError) and error.subject == "network file":
        yield f"{at}.{error.field}: {error.value!r} {error.rule}"
    elif isinstance(error, FrostlineError):
        yield f"{at}: {error}"
    elif isinstance(error, KeyError):
        yield f"{at}: is missing"
    else:
        raise error


def _field_names(record: Any) -> tuple[str, ...]:
    return getattr(record, "_fields", ()) or tuple(entry.name for entry in fields(record) if entry.init)


@cache
def _reader() -> Converter:
    """Converter that takes JSON values as they are: no text for a number, no truth value, no unknown field."""
    from cattrs import Converter
    from cattrs.cols import is_namedtuple, namedtuple_dict_structure_factory
    from cattrs.gen import make_dict_structure_fn

    reader = Converter(forbid_extra_keys=True)

    def of_dataclass(record: type[Any]) -> Callable[[Any, Any], Any]:
        return _of_object(make_dict_structure_fn(record, reader))

    def of_namedtuple(record: type[Any]) -> Callable[[Any, Any], Any]:
        return _of_object(namedtuple_dict_structure_factory(record, reader, "from_converter", True))

    reader.register_structure_hook_factory(is_dataclass, of_dataclass)
    reader.register_structure_hook_factory(is_namedtuple, of_namedtuple)
    for type_, hook in _VALUES.items():
        if isinstance(type_, type):
            reader.register_structure_hook(type_, hook)
        else:
            reader.register_structure_hook_func(partial(operator.eq, type_), hook)
    reader.register_structure_hook_func(partial(operator.eq, Work), partial(_work_value, reader))
    return reader


def _of_object(structure: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, record: value if type(value) is record else structure(object_value(value), record)


def _work_value(reader: Converter, value: Any, _: object = None) -> Work:
    rest = dict(object_value(value))
    kind = rest.pop("kind", None)
    if kind is None:
        raise WrongError(".kind: is missing")
    if not isinstance(kind, str) or kind not in _WORKS:
        raise WrongError(f".kind: {kind!r} must be one of {', '.join(_WORKS)}")
    return reader.structure(rest, _WORKS[kind])


_VALUES: dict[Any, Callable[[Any, Any], Any]] = {
    _List: list_value,
    _Object: object_value,
    _Texts: texts_value,
    str: text_value,
    int: int_value,
    float: float_value,
    Locality: text_value,  # that it is one of those known is checked by Job
    Mapping[str, float]: object_value,  # the values are checked by GpuType
    Mapping[PlacementClass, float]: object_value,  # names and values are checked by Profiled
    Mapping[PlacementClass, Mapping[int, tuple[float, ...]]]: level_times_value,  # the names are checked by Elastic
    tuple[float, ...]: floats_value,
    Reason: reason_value,
    Network: network_value,
    tuple[range, ...]: stages_value,
    tuple[int, ...]: ints_value,
    Placement: placement_value,
}


# Writing: from the problem through cattrs to JSON values, in the order of the fields.


def _text(record: Record, instance: Instance | None = None) -> str:
    try:
        return document_text(*_members(record, instance))
    except (TypeError, ValueError) as error:
        if isinstance(error, FrostlineError):
            raise
        raise InvalidValueError(type(record).__name__.lower(), "content", str(error), "cannot be written") from None


def _members(record: Record, instance: Instance | None) -> tuple[str, _Named, _Rows]:
    if isinstance(record, Network):
        return _network_members(record)
    if isinstance(record, Cluster):
        return "cluster", [], _cluster_rows(record)
    if isinstance(record, Instance):
        return _instance_members(record)
    if isinstance(record, Schedule):
        return _schedule_members(record, instance)
    raise InvalidValueError("file", "record", record, "must be a Network, Instance, Schedule or Cluster")


def _network_members(network: Network) -> tuple[str, _Named, _Rows]:
    data = _network_object(network)
    rows = [(name, data.pop(name)) for name in ("layers", "edges")]
    return "network", list(data.items()), rows


def _network_object(network: Network) -> Document:
    data = network_to_dict(network)
    return {name: value for name, value in data.items() if name not in ("format", "version")}


def _cluster_rows(cluster: Cluster) -> _Rows:
    types: dict[str, GpuType] = {}
    for server in cluster.servers:
        if types.setdefault(server.gpu_type.name, server.gpu_type) != server.gpu_type:
            raise InvalidValueError("cluster", "gpu_type", server.gpu_type.name, "is the name of two GPU types")
    write = _writer().unstructure
    return [
        ("gpu_types", [write(types[name]) for name in sorted(types)]),
        ("servers", [write(server) for server in cluster.servers]),
    ]


def _instance_members(instance: Instance) -> tuple[str, _Named, _Rows]:
    rows = [_writer().unstructure(job) for job in instance.jobs]
    networks = _Networks()
    for row in rows:
        plan = _plan_of(row)
        if plan is not None:
            plan["network"] = networks.name(plan["network"])
    named: _Named = [
        ("name", instance.name),
        ("provenance", dict(instance.provenance)),
        ("cluster", dict(_cluster_rows(instance.cluster))),
    ]
    if networks.objects:
        named.append(("networks", networks.objects))
    return "instance", named, [("jobs", rows)]


class _Networks:
    """The networks of an instance, each kept once: under its own name, with a number where two share it."""

    def __init__(self) -> None:
        self.objects: dict[str, Document] = {}
        self._names: dict[int, str] = {}

    def name(self, network: Network) -> str:
        if id(network) not in self._names:
            self._names[id(network)] = self._add(network.name, _network_object(network))
        return self._names[id(network)]

    def _add(self, name: str, data: Document) -> str:
        keys = itertools.chain([name], (f"{name}#{k}" for k in itertools.count(2)))
        return next(key for key in keys if self.objects.setdefault(key, data) == data)


def _schedule_members(schedule: Schedule, instance: Instance | None) -> tuple[str, _Named, _Rows]:
    named: _Named = [("policy", _as_text(schedule.policy, "policy"))]
    if schedule.restart_us is not None:
        named.append(("restart_us", schedule.restart_us))
    if schedule.level_change_us:
        named.append(("level_change_us", schedule.level_change_us))
    if schedule.predictor:
        named.append(("predictor", _as_text(schedule.predictor, "predictor")))
    if instance is not None:
        named.append(("instance", {"name": instance.name, "sha256": digest(instance)}))
    write = _writer().unstructure
    rows: _Rows = [("segments", list(map(_segment_object, schedule.segments)))]
    rows.append(("refused", list(map(write, schedule.refused))))
    if schedule.outages:
        rows.append(("outages", list(map(write, schedule.outages))))
    if schedule.unfinished:
        rows.append(("unfinished", [_as_text(job, "unfinished") for job in schedule.unfinished]))
    return "schedule", named, rows


def _as_text(value: str, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError("schedule", name, value, "must be text")
    return value


def _segment_object(segment: Segment) -> Document:
    name = f"segment of job {segment.job!r}"
    data: Document = {
        "job": _as_text(segment.job, "job"),
        "start_us": as_int(segment.start_us, name, "start_us"),
        "end_us": as_int(segment.end_us, name, "end_us"),
        "placement": _placement_object(segment.placement),
    }
    if segment.freeze_level:
        data["freeze_level"] = as_int(segment.freeze_level, name, "freeze_level")
    return data


def _placement_object(placement: Placement) -> object:
    if not placement.gpus_per_replica:
        return placement.columns
    return {"columns": placement.columns, "gpus_per_replica": placement.gpus_per_replica}


@cache
def _writer() -> Converter:
    """Converter to JSON values that leaves out what is optional and has its default value."""
    from cattrs import Converter
    from cattrs.gen import make_dict_unstructure_fn, override

    writer = Converter()
    always = override(omit_if_default=False)
    # Not left out, because another version may have other defaults.
    names = ("nvlink_bytes_per_s", "nic_bytes_per_s", "precision", "utilisation", "warm_up")
    physical = dict.fromkeys(names, always)
    physical["gpu_type"] = override(omit_if_default=False, unstruct_hook=operator.attrgetter("name"))

    def to_object(record: type[Any]) -> Callable[[Any], Document]:
        overrides = {name: physical[name] for name in _field_names(record) if name in physical}
        return make_dict_unstructure_fn(record, writer, True, **overrides)  # type: ignore[arg-type]

    writer.register_unstructure_hook_factory(is_dataclass, to_object)
    writer.register_unstructure_hook(Network, lambda network: network)  # named later, by its instance
    writer.register_unstructure_hook(range, lambda stage: [stage.start, stage.stop])
    for kind, work in _WORKS.items():
        writer.register_unstructure_hook(work, partial(_work_object, kind, to_object(work)))
    return writer


def _work_object(kind: str, write: Callable[[Any], Document], work: Work) -> Document:
    return {"kind": kind, **write(work)}
