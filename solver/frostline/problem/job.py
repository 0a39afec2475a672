"""A job: a training run that holds all its GPUs from start to completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any

from frostline.errors import InvalidValueError
from frostline.problem.elastic import Elastic
from frostline.problem.frozen import FrozenMap
from frostline.problem.placement_class import PlacementClass
from frostline.problem.plan import TrainingPlan
from frostline.units import as_finite, as_int, duration_us

__all__ = ["Elastic", "Fixed", "Job", "Locality", "PlacementClass", "Profiled", "Training", "Work"]


class Locality(StrEnum):
    """Which free GPUs will do for a job."""

    ANY = "any"  # any free GPUs; fewest servers preferred
    SERVER = "server"  # all in one server
    FEWEST = "fewest"  # on no more servers than its GPUs need


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Work of known duration, the same on any GPUs: a job of a trace.

    Parameters
    ----------
    duration_s : float
        Run time in seconds, above 0.
    """

    duration_s: float

    def __post_init__(self) -> None:
        if type(self.duration_s) is not float or not 0.0 < self.duration_s < 9e9:
            duration_s = as_finite(self.duration_s, "work", "duration_s")
            if duration_s <= 0:
                raise InvalidValueError("work", "duration_s", self.duration_s, "must be above 0")
            object.__setattr__(self, "duration_s", duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """Work measured by class of placement.

    Parameters
    ----------
    iterations : int
        Number of iterations, at least 1.
    seconds_per_iteration : mapping of PlacementClass to float
        Measured seconds of one iteration; ``one_server`` is required where the job fits one server.
    """

    iterations: int
    seconds_per_iteration: Mapping[PlacementClass, float] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "iterations", as_int(self.iterations, "work", "iterations", 1))
        table: dict[PlacementClass, float] = {}
        for name, value in self.seconds_per_iteration.items():
            if name not in set(PlacementClass):
                raise InvalidValueError("work", "seconds_per_iteration", name, "is not a placement class")
            seconds = as_finite(value, "work", f"seconds_per_iteration[{name}]")
            if seconds <= 0:
                raise InvalidValueError("work", f"seconds_per_iteration[{name}]", value, "must be above 0")
            table[PlacementClass(name)] = seconds
        if not table:
            raise InvalidValueError("work", "seconds_per_iteration", {}, "must name at least one placement class")
        object.__setattr__(self, "seconds_per_iteration", FrozenMap(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Work given by a training plan: its speed follows from where its replicas are placed.

    Parameters
    ----------
    plan : TrainingPlan
        Network, stages and replicas.
    iterations : int
        Number of iterations, at least 1.
    """

    plan: TrainingPlan
    iterations: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "iterations", as_int(self.iterations, "work", "iterations", 1))


Work = Fixed | Profiled | Elastic | Training
"""What a job has to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job of a user.

    Parameters
    ----------
    id : str
        Identifier, unique in its instance.
    release_s : float
        Release time (submission) in seconds; may be negative.
    work : Fixed, Profiled, Elastic or Training
        What has to be done.
    gpus : int
        GPUs it holds, all at once, at least 1; of elastic work those that it asks for.
    user, group, name, status : str
        What traces tell of it, empty where unknown.
    weight : float
        Weight, above 0.
    locality : Locality
        Which free GPUs will do.
    estimate_s : float or None
        Run time that the user asked for at submission, in seconds, above 0; None where none was given. The job may
        run shorter or longer.
    checkpoint_s : float or None
        Seconds of work, above 0, after which the job saves its state, and again after as many, counted from when a run
        begins to work. Where a server fails it keeps what it has saved; None for nothing of the run.

    Examples
    --------
    >>> Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=4).locality.value
    'any'
    """

    id: str
    release_s: float
    work: Work
    gpus: int
    user: str = ""
    group: str = ""
    name: str = ""
    status: str = ""
    weight: float = 1.0
    locality: Locality = Locality.ANY
    estimate_s: float | None = None
    checkpoint_s: float | None = None

    def __post_init__(self) -> None:
        if type(self.id) is not str or not self.id:
            raise InvalidValueError("job", "id", self.id, "must be a non-empty string")
        if type(self.gpus) is not int or self.gpus < 1:
            object.__setattr__(self, "gpus", as_int(self.gpus, f"job {self.id!r}", "gpus", 1))
        if type(self.release_s) is not float or not -9e9 < self.release_s < 9e9:
            object.__setattr__(self, "release_s", as_finite(self.release_s, f"job {self.id!r}", "release_s", -9e9))
        if self.weight != 1.0:
            weight = as_finite(self.weight, f"job {self.id!r}", "weight")
            if weight <= 0:
                raise InvalidValueError(f"job {self.id!r}", "weight", self.weight, "must be above 0")
            object.__setattr__(self, "weight", weight)
        if not type(self.user) is type(self.group) is type(self.name) is type(self.status) is str:
            _check_texts(self)
        if type(self.locality) is not Locality:
            object.__setattr__(self, "locality", _locality(self.id, self.locality))
        if type(self.work) is not Fixed:
            _check_work(self.id, self.work, self.gpus)
        if self.estimate_s is not None or self.checkpoint_s is not None:
            _check_times(self)

    def __deepcopy__(self, memo: object) -> Job:
        """Itself: nothing of it can be changed."""
        return self

    def saved_us(self, worked_us: int) -> int:
        """Microseconds of the work of a run up to its last checkpoint, once it has worked so long.

        Examples
        --------
        >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=100), gpus=4, checkpoint_s=30)
        >>> [job.saved_us(us) for us in (29_999_999, 30_000_000, 70_000_000)]
        [0, 30000000, 60000000]
        """
        if self.checkpoint_s is None:
            return 0
        return worked_us - worked_us % duration_us(self.checkpoint_s)

    def replace(self, **changes: Any) -> Job:
        """Copy with some fields changed, validated again."""
        return replace(self, **changes)


def _check_texts(job: Job) -> None:
    for field_name in ("user", "group", "name", "status"):
        if not isinstance(getattr(job, field_name), str):
            raise InvalidValueError(f"job {job.id!r}", field_name, getattr(job, field_name), "must be text")


def with_work(job: Job, work: Work, status: str) -> Job:
    """The job with other work that goes with its GPUs, and another status, without a second look at its fields."""
    made = object.__new__(Job)
    for put, value in zip(_PUT, _fields_of(job), strict=True):
        put(made, value)
    _put_work(made, work)
    _put_status(made, status)
    return made


_SLOTS = tuple(entry.name for entry in fields(Job))
_fields_of = attrgetter(*_SLOTS)
_PUT: tuple[Callable[[Job, Any], None], ...] = tuple(getattr(Job, name).__set__ for name in _SLOTS)
_put_work, _put_status = _PUT[_SLOTS.index("work")], _PUT[_SLOTS.index("status")]


def _check_work(job: str, work: object, gpus: int) -> None:
    if not isinstance(work, Work):
        raise InvalidValueError(f"job {job!r}", "work", work, "must be Fixed, Profiled, Elastic or Training")
    if isinstance(work, Training) and work.plan.gpus != gpus:
        rule = f"must equal the {work.plan.gpus} GPUs of its plan"
        raise InvalidValueError(f"job {job!r}", "gpus", gpus, rule)
    if isinstance(work, Elastic) and gpus not in work.widths:
        rule = f"must be one of the widths of its work, {', '.join(map(str, work.widths))}"
        raise InvalidValueError(f"job {job!r}", "gpus", gpus, rule)


def _check_times(job: Job) -> None:
    for name in ("estimate_s", "checkpoint_s"):
        value = getattr(job, name)
        if value is not None:
            number = as_finite(value, f"job {job.id!r}", name)
            if number <= 0:
                raise InvalidValueError(f"job {job.id!r}", name, value, "must be above 0")
            object.__setattr__(job, name, number)


def _locality(job: str, value: object) -> Locality:
    try:
        return Locality(value)  # type: ignore[arg-type]
    except ValueError:
        rule = f"must be one of {', '.join(Locality)}"
        raise InvalidValueError(f"job {job!r}", "locality", value, rule) from None
