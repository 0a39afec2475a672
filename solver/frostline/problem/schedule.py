"""A schedule: which job held which GPUs, from when to when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.problem.outage import Outage, in_order
from frostline.problem.placement import Placement
from frostline.problem.refusal import Refusal
from frostline.units import as_int, seconds

__all__ = ["Schedule", "Segment", "goes_on"]


class Segment(NamedTuple):
    """A stretch of time in which a job held its GPUs without a break.

    Parameters
    ----------
    job : str
        Identifier of the job.
    start_us, end_us : int
        From when to when, in microseconds; the GPUs are free again at ``end_us``.
    placement : Placement
        The GPUs it held.
    freeze_level : int
        Freeze level at which it trained.

    Examples
    --------
    >>> Segment("a", 0, 1_500_000, Placement([(0, (4,))])).end_s
    1.5
    """

    job: str
    start_us: int
    end_us: int
    placement: Placement
    freeze_level: int = 0

    @property
    def start_s(self) -> float:
        """Start in seconds."""
        return seconds(self.start_us)

    @property
    def end_s(self) -> float:
        """End in seconds."""
        return seconds(self.end_us)


def goes_on(before: Segment, after: Segment) -> bool:
    """Whether a job goes on without a break on the same GPUs at another freeze level: it was not interrupted.

    Examples
    --------
    >>> gang = Placement([(0, (2,))])
    >>> [goes_on(Segment("a", 0, 4, gang), after) for after in (Segment("a", 4, 6, gang, 1), Segment("a", 4, 6, gang))]
    [True, False]
    """
    same_gpus = after.start_us == before.end_us and after.placement == before.placement
    return same_gpus and after.freeze_level != before.freeze_level


def _job(identifier: object) -> str:
    if not isinstance(identifier, str):
        raise InvalidValueError("schedule", "unfinished", identifier, "must be the identifier of a job")
    return identifier


_ORDER = itemgetter(Segment._fields.index("start_us"), Segment._fields.index("end_us"), Segment._fields.index("job"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Segments in order of start, and the jobs that were refused.

    Parameters
    ----------
    segments : iterable of Segment
        What ran; sorted by (start, end, job).
    refused : iterable of Refusal
        Jobs that can never fit.
    policy : str
        Name of the policy that made it, with its parameters.
    restart_us : int or None
        Microseconds by which a job runs longer each time it takes GPUs again after an eviction or a failure; None where
        no job may be evicted, and a failure costs no more than the work that is lost.
    level_change_us : int
        Microseconds by which a job runs longer where it goes on at another freeze level on the same GPUs.
    predictor : str
        Name of the predictor whose sizes it was made by, empty where the true sizes were known.
    outages : iterable of Outage
        When servers were down; sorted by start. A job that held GPUs of a server when it failed lost them all at once,
        and all work since its last checkpoint.
    unfinished : iterable of str
        Jobs that wait for ever, because servers never come back; they have no completion.

    Examples
    --------
    >>> gang = Placement([(0, (2,))])
    >>> schedule = Schedule(segments=[Segment("b", 5, 9, gang), Segment("a", 0, 4, gang)])
    >>> schedule.completion_us, schedule.gpu_us
    ({'a': 4, 'b': 9}, 16)
    """

    segments: tuple[Segment, ...]
    refused: tuple[Refusal, ...] = ()
    policy: str = ""
    restart_us: int | None = None
    predictor: str = ""
    level_change_us: int = 0
    outages: tuple[Outage, ...] = ()
    unfinished: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        order = sorted(self.segments, key=_ORDER)
        object.__setattr__(self, "segments", tuple(order))
        object.__setattr__(self, "refused", tuple(self.refused))
        if self.restart_us is not None:
            object.__setattr__(self, "restart_us", as_int(self.restart_us, "schedule", "restart_us", 0))
        change_us = as_int(self.level_change_us, "schedule", "level_change_us", 0)
        object.__setattr__(self, "level_change_us", change_us)
        object.__setattr__(self, "outages", in_order(self.outages))
        object.__setattr__(self, "unfinished", tuple(map(_job, self.unfinished)))

    @property
    def start_us(self) -> dict[str, int]:
        """First start of every job that ran, in microseconds."""
        return {segment.job: segment.start_us for segment in reversed(self.segments)}

    @property
    def completion_us(self) -> dict[str, int]:
        """Completion time of every job that ran to its end, in microseconds."""
        completion: dict[str, int] = {}
        for segment in self.segments:
            completion[segment.job] = max(segment.end_us, completion.get(segment.job, segment.end_us))
        for job in self.unfinished:
            completion.pop(job, None)
        return completion

    @property
    def gpu_us(self) -> int:
        """GPU-microseconds held."""
        return sum((segment.end_us - segment.start_us) * segment.placement.gpus for segment in self.segments)

    @property
    def evictions(self) -> int:
        """How often a job lost its GPUs before it was complete, to others or because a server failed."""
        completed = {segment.job for segment in self.segments}.difference(self.unfinished)
        return len(self.segments) - len(completed) - self.level_changes

    def pause_us(self, before: Segment | None, after: Segment) -> int:
        """Microseconds at the start of a piece of a job in which it does nothing, after the piece before it, if any."""
        if before is None:
            return 0
        return self.level_change_us if goes_on(before, after) else self.restart_us or 0

    @property
    def level_changes(self) -> int:
        """How often a job went on at another freeze level on the same GPUs."""
        if not any(segment.freeze_level for segment in self.segments):
            return 0
        last: dict[str, Segment] = {}
        changes = 0
        for segment in self.segments:
            before = last.get(segment.job)
            changes += before is not None and goes_on(before, segment)
            last[segment.job] = segment
        return changes

    @classmethod
    def of(
        cls,
        segments: Iterable[Segment],
        refused: Iterable[Refusal] = (),
        policy: str = "",
        restart_us: int | None = None,
        predictor: str = "",
        level_change_us: int = 0,
        outages: Iterable[Outage] = (),
        unfinished: Iterable[str] = (),
    ) -> Schedule:
        """Schedule of any iterables."""
        return cls(
            segments=tuple(segments),
            refused=tuple(refused),
            policy=policy,
            restart_us=restart_us,
            predictor=predictor,
            level_change_us=level_change_us,
            outages=tuple(outages),
            unfinished=tuple(unfinished),
        )
