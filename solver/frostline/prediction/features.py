"""Jobs as rows of numbers: what is known of a job at its submission, and how earlier jobs like it went.

A row holds what was known when its job was first asked for. It is kept until the job finishes, and is then a row to
learn from: no size enters the row of a job that was submitted before that size was known.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frostline.prediction.history import is_usable, name_stem
from frostline.prediction.model import Finished
from frostline.prediction.name_codes import BUCKETS, code_of, ngrams
from frostline.problem.job import Elastic, Fixed, Job, Profiled, Training, Work
from frostline.problem.order import natural_key
from frostline.units import US_PER_S

__all__ = ["BOUNDED", "FEATURES", "LEVELS", "Encoded", "JobFeatures", "Learned", "State"]

LEVELS = (
    "user+name+gpus",
    "user+stem+gpus",
    "user+stem",
    "user+gpus+model",
    "user",
    "group+gpus+model",
    "group",
    "gpus+model",
    "all",
)
"""Which finished jobs a history is taken from, finest first. A level without one repeats what the next coarser says."""

_NUMBERS = ("gpus", "params", "batch", "iteration_s", "estimate")
_PROFILE = (*_NUMBERS, "iterations", "user", "group", "model", *(f"ngrams{bucket}" for bucket in range(BUCKETS)))
_SUBMISSION = ("hour", "weekday", "submitted_together", "since_submission")
_PAST = ("last", "median", "long_median", "mean", "spread", "count", "since_finish")
_WAITING = ("unfinished", "unfinished_age")

FEATURES: tuple[str, ...] = (
    *_PROFILE,
    *_SUBMISSION,
    *(f"{level}:{what}" for what in _WAITING for level in LEVELS),
    *(f"{level}:{what}" for what in _PAST for level in LEVELS),
)
"""Names of the columns. Sizes, times and counts are natural logarithms, of 1 + x where x may be 0."""

BOUNDED = tuple(range(len(_NUMBERS)))
"""Columns in which a value beyond those learned from means that the forest has to guess."""

_ESTIMATE = FEATURES.index("estimate")
_AT_SUBMISSION = slice(len(_PROFILE), len(_PROFILE) + len(_SUBMISSION) + len(_WAITING) * len(LEVELS))
_HISTORY = slice(_AT_SUBMISSION.stop, len(FEATURES))
_USER, _GROUP = LEVELS.index("user"), LEVELS.index("group")
_NAMED = 3  # levels that go by the name
_ABSENT = -30.0
_NEVER = -(2**62)
_SHORT, _LONG = 25, 10_000
_COUNTED = 20
_RECENCY = 0.2
_MOST_PROFILES = 2**17

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""What an object knows, as plain data for JSON and as arrays."""

Matrix = NDArray[np.float32]
Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


class Encoded(NamedTuple):
    """Jobs as numbers.

    Parameters
    ----------
    rows : ndarray of float32, shape (jobs, features)
        One row a job, columns as in :data:`FEATURES`.
    cold : ndarray of bool, shape (jobs,)
        Whether no job of its user and none of its group has finished.
    """

    rows: Matrix
    cold: NDArray[np.bool_]


class Learned(NamedTuple):
    """Finished jobs to learn from.

    Parameters
    ----------
    rows : ndarray of float32, shape (jobs, features)
        What was known of each at its submission.
    sizes : ndarray of float, shape (jobs,)
        What it turned out to be.
    jobs : list of str
        Their identifiers.
    """

    rows: Matrix
    sizes: Reals
    jobs: list[str]


class _Kind(NamedTuple):
    """What the work of a job tells of its size: nothing in it depends on the size."""

    iterations: bool
    model: str = ""
    params: float = 0.0
    batch: float = 0.0
    iteration_s: float = _ABSENT


_FIXED = _Kind(False)


def _kind(work: Work) -> _Kind:
    if isinstance(work, Training):
        plan = work.plan
        return _Kind(True, plan.network.name, math.log1p(plan.network.params), math.log1p(plan.global_batch))
    if isinstance(work, Profiled):
        return _Kind(True, iteration_s=math.log(min(work.seconds_per_iteration.values())))
    if isinstance(work, Elastic):
        rows = [row for table in work.seconds_per_iteration.values() for row in table.values()]
        return _Kind(True, iteration_s=math.log(min(row[0] for row in rows)))
    return _FIXED


class _Profile(NamedTuple):
    """What jobs have in common that differ in nothing but their submission."""

    user: str
    group: str
    name: str
    gpus: int
    kind: _Kind

    def named_keys(self) -> tuple[tuple[Any, ...], ...]:
        """Keys of its history at the levels that go by its name. Seconds and iterations are never mixed."""
        user, group, name, gpus, kind = self
        root, model, unit = name_stem(name), kind.model, int(kind.iterations)
        who = ("user", user) if user else ("group", group)
        return (0, unit, who, name, gpus, model), (1, unit, who, root, gpus, model), (2, unit, who, root, model)

    def unnamed_keys(self) -> list[tuple[Any, ...]]:
        """Keys of its history at the other levels."""
        user, group, _, gpus, kind = self
        model = kind.model
        who = ("user", user) if user else ("group", group)
        fields: tuple[tuple[Any, ...], ...] = (
            (who, gpus, model), (who,), (group, gpus, model), (group,), (gpus, model), (),
        )  # fmt: skip
        return [(level, int(kind.iterations), *key) for level, key in enumerate(fields, start=_NAMED)]

    def unnamed_columns(self) -> list[float]:
        """The columns that follow from all but its name; the user's estimate, which does not, is left out as 0."""
        kind = self.kind
        numbers = [math.log(self.gpus), kind.params, kind.batch, kind.iteration_s, 0.0, float(kind.iterations)]
        return [*numbers, code_of(self.user), code_of(self.group), code_of(kind.model)]


class _Shared(NamedTuple):
    """What profiles have in common that differ in nothing but their names."""

    slots: list[int]
    """At the levels that do not go by the name, and at the end the submitter's."""
    columns: list[float]


class _Table:
    """A matrix that grows by rows."""

    __slots__ = ("_rows", "_start", "count")

    def __init__(self, start: Sequence[float], dtype: type[Any]) -> None:
        self._start = np.array(start, dtype=dtype)
        self._rows = np.tile(self._start, (64, 1))
        self.count = 0

    @property
    def rows(self) -> NDArray[Any]:
        return self._rows[: self.count]

    def fill(self, rows: NDArray[Any]) -> None:
        """Take these rows instead of all others."""
        self._rows, self.count = np.concatenate([rows.astype(self._start.dtype), self._start[None]]), len(rows)

    def lengthen(self, count: int) -> None:
        """Have so many rows at least; new ones are starting ones."""
        have = len(self._rows)
        if count > have:
            self._rows = np.concatenate([self._rows, np.tile(self._start, (max(count - have, have), 1))])
        self.count = max(self.count, count)

    def extend(self, values: Sequence[float]) -> None:
        """Take in the rows that these values make up."""
        first = self.count
        self.lengthen(first + len(values) // len(self._start))
        self.rows[first:] = np.array(values, dtype=self._start.dtype).reshape(-1, len(self._start))


class _Recent:
    """The latest values, and medians of a few and of many of them."""

    __slots__ = ("few", "latest", "many")

    def __init__(self, latest: Sequence[float] = ()) -> None:
        self.latest = list(latest)  # somewhat more than the many, so that none has to be moved for each that comes
        self.many, self.few = sorted(self.latest), sorted(self.latest[-_SHORT:])

    def add(self, value: float) -> tuple[float, float]:
        """Medians of the few and of the many, this value included."""
        latest = self.latest
        if len(latest) >= _SHORT:
            _drop(self.few, latest[-_SHORT])
        if len(latest) >= _LONG:
            _drop(self.many, latest[-_LONG])
        if len(latest) == 2 * _LONG:
            del latest[:_LONG]
        latest.append(value)
        insort(self.few, value)
        insort(self.many, value)
        return _median(self.few), _median(self.many)


def _drop(ordered: list[float], value: float) -> None:
    del ordered[bisect_left(ordered, value)]


def _median(ordered: list[float]) -> float:
    middle, odd = divmod(len(ordered), 2)
    return ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) / 2.0


class _Past:
    """How the finished jobs of each slot went; a slot is one key of one level."""

    LAST, MEDIAN, LONG, MEAN, SPREAD, COUNT, END_S = range(len(_PAST))

    def __init__(self) -> None:
        self.table = _Table([0.0] * len(_PAST), np.float64)
        self.recent: dict[int, _Recent] = {}

    def learn(self, slots: Integers, size: float, end_s: float) -> None:
        """A job of these slots has finished."""
        value = math.log(size)
        old = self.table.rows[slots]
        count = old[:, self.COUNT] + 1.0
        share = np.maximum(1.0 / count, _RECENCY)
        new = np.empty_like(old)
        new[:, self.LAST] = value
        new[:, [self.MEDIAN, self.LONG]] = [self._recent(slot).add(value) for slot in slots.tolist()]
        new[:, self.MEAN] = old[:, self.MEAN] + share * (value - old[:, self.MEAN])
        error = np.where(count > 1.0, np.abs(value - old[:, self.MEDIAN]), 0.0)
        new[:, self.SPREAD] = old[:, self.SPREAD] + share * (error - old[:, self.SPREAD])
        new[:, self.COUNT] = count
        new[:, self.END_S] = end_s
        self.table.rows[slots] = new

    def _recent(self, slot: int) -> _Recent:
        recent = self.recent.get(slot)
        if recent is None:
            recent = self.recent[slot] = _Recent()
        return recent

    def block(self, slots: Integers, now_s: float) -> Reals:
        """Columns of rows whose slots these are, level by level within each of :data:`_PAST`."""
        seen = self.table.rows[slots]
        seen[:, :, self.END_S] = np.log1p(np.maximum(now_s - seen[:, :, self.END_S], 0.0))
        empty = seen[:, :, self.COUNT] == 0.0
        seen[:, :, self.COUNT] = np.log1p(np.minimum(seen[:, :, self.COUNT], _COUNTED))
        seen[empty[:, -1], -1] = 0.0
        for level in range(len(LEVELS) - 2, -1, -1):
            none = empty[:, level]
            seen[none, level] = seen[none, level + 1]
            seen[none, level, self.COUNT] = 0.0
        return seen.transpose(0, 2, 1).reshape(len(slots), -1)


class _Asked:
    """Which jobs were asked for: how many of each slot have not finished, and when each submitter last came."""

    UNFINISHED, RELEASES_S, NEWEST_US, TOGETHER, BEFORE_US = range(5)

    def __init__(self) -> None:
        self.table = _Table([0, 0, _NEVER, 0, _NEVER], np.int64)

    def block(self, slots: Integers, now_s: float) -> Reals:
        """Columns of rows whose slots these are: unfinished jobs and their mean age, by level."""
        seen = self.table.rows[slots]
        count = seen[:, :, self.UNFINISHED].astype(np.float64)
        mean = seen[:, :, self.RELEASES_S] / np.maximum(count, 1.0)
        age = np.where(count > 0.0, np.log1p(np.maximum(now_s - mean, 0.0)), -1.0)
        return np.concatenate([np.log1p(count), age], axis=1)

    def submit(self, slots: Integers, releases_us: Integers, submitters: Integers) -> Reals:
        """Take in jobs; columns of rows: jobs submitted together, and the time since those before."""
        order = np.lexsort((releases_us, submitters))
        who, when = submitters[order], releases_us[order]
        first = np.flatnonzero(np.r_[True, (who[1:] != who[:-1]) | (when[1:] != when[:-1])])
        group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(order)]))
        count, before = self._groups(who[first], when[first], np.diff(np.r_[first, len(order)]))
        gap = np.where(before > _NEVER, np.log1p(np.maximum(when[first] - before, 0) / 1e6), -1.0)
        columns = np.empty((len(order), 2))
        columns[order] = np.stack([np.log(count), gap], axis=1)[group]
        flat = slots.ravel()
        np.add.at(self.table.rows[:, self.UNFINISHED], flat, 1)
        np.add.at(self.table.rows[:, self.RELEASES_S], flat, np.repeat(releases_us // 1_000_000, len(LEVELS)))
        return columns

    def _groups(self, who: Integers, when: Integers, size: Integers) -> tuple[Integers, Integers]:
        """Jobs of each (submitter, instant), and the instant before; both are kept for the submitter's latest."""
        known = self.table.rows[who]
        again = known[:, self.NEWEST_US] == when
        count = size + np.where(again, known[:, self.TOGETHER], 0)
        before = np.where(again, known[:, self.BEFORE_US], known[:, self.NEWEST_US])
        follows = np.r_[False, who[1:] == who[:-1]]
        before[follows] = when[np.flatnonzero(follows) - 1]
        latest = np.r_[who[1:] != who[:-1], True] & (when >= known[:, self.NEWEST_US])
        self.table.rows[who[latest], self.NEWEST_US] = when[latest]
        self.table.rows[who[latest], self.TOGETHER] = count[latest]
        self.table.rows[who[latest], self.BEFORE_US] = before[latest]
        return count, before

    def finish(self, slots: Integers, release_us: int) -> None:
        """A job of these slots is not waited for any more."""
        self.table.rows[slots, self.UNFINISHED] -= 1
        self.table.rows[slots, self.RELEASES_S] -= release_us // 1_000_000


class _Kept(NamedTuple):
    """A job asked for that has not finished."""

    row: Matrix
    slots: Integers
    release_us: int


class JobFeatures:
    """Rows of jobs, from what is known at their submission and from the jobs that have finished by then.

    A job is taken as submitted when it is first asked for. Asked for again, it keeps what was known of its
    submission, and its history is that of now.

    Attributes
    ----------
    late, dropped : int
        Finished jobs that could not be learned from: released before what was known already and never asked for, so
        that their row cannot be told; or of a size that is no positive number.

    Examples
    --------
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=1), gpus=2, user="ann", name=f"train-{i}") for i in "12"]
    >>> features = JobFeatures()
    >>> features.encode(jobs, 0.0).cold.tolist()
    [True, True]
    >>> learned = features.learn([Finished(jobs[0], 600.0, 600.0)])
    >>> learned.sizes.tolist(), learned.rows.shape == (1, len(FEATURES))
    ([600.0], True)
    >>> row = features.encode(jobs[1:], 700.0).rows[0]
    >>> round(float(np.exp(row[FEATURES.index("user+stem+gpus:last")])), 2)
    600.0
    """

    def __init__(self) -> None:
        self.late = self.dropped = 0
        self._clock_s = -math.inf
        self._profiles: dict[tuple[Any, ...], int] = {}
        self._rows = _Table([0.0] * len(_PROFILE), np.float32)
        self._slots = _Table([0] * (len(LEVELS) + 1), np.int64)
        self._slot_of: dict[tuple[Any, ...], int] = {}
        self._shared: dict[tuple[Any, ...], _Shared] = {}
        self._past, self._asked = _Past(), _Asked()
        self._kept: dict[str, _Kept] = {}

    def encode(self, jobs: Sequence[Job], now_s: float) -> Encoded:
        """Rows of jobs as of now.

        Parameters
        ----------
        jobs : sequence of Job
            The jobs, in any order: it does not matter to the row of any of them.
        now_s : float
            Now; no job finished later may have been learned.

        Returns
        -------
        Encoded
            One row a job.
        """
        if not jobs:
            return Encoded(np.empty((0, len(FEATURES)), np.float32), np.empty(0, np.bool_))
        profiles = self._profiles_of(jobs)
        all_slots = self._slots.rows[profiles]
        slots = all_slots[:, :-1]
        rows = np.empty((len(jobs), len(FEATURES)), np.float32)
        rows[:, : len(_PROFILE)] = self._rows.rows[profiles]
        rows[:, _ESTIMATE] = [_estimate(job) for job in jobs]
        rows[:, _HISTORY] = self._past.block(slots, now_s)
        self._at_submission(rows, jobs, all_slots, now_s)
        counts = self._past.table.rows[:, _Past.COUNT]
        known = (counts[slots[:, _USER]] > 0) & (self._rows.rows[profiles, _PROFILE.index("user")] > 0)
        known |= (counts[slots[:, _GROUP]] > 0) & (self._rows.rows[profiles, _PROFILE.index("group")] > 0)
        return Encoded(rows, ~known)

    def learn(self, finished: Sequence[Finished]) -> Learned:
        """Take in finished jobs, in order of their end.

        Jobs never asked for, a history from before, are taken as asked for at their release, in the order of events;
        one released before what is known already is counted as ``late`` and gives no row.

        Parameters
        ----------
        finished : sequence of Finished
            Jobs finished since the last call.

        Returns
        -------
        Learned
            Rows and sizes of those that can be learned from.
        """
        unasked = [job.job for job in finished if job.job.id not in self._kept and job.job.release_s >= self._clock_s]
        waiting = deque(sorted(unasked, key=lambda job: (job.release_s, natural_key(job.id))))
        rows, sizes, jobs = [], [], []
        for job in finished:
            while waiting and waiting[0].release_s < job.end_s:
                together = [waiting.popleft()]
                while waiting and waiting[0].release_s == together[0].release_s:
                    together.append(waiting.popleft())
                self.encode(together, together[0].release_s)
            row = self._finish(job)
            if row is not None:
                rows.append(row)
                sizes.append(float(job.size))
                jobs.append(job.job.id)
            self._clock_s = max(self._clock_s, job.end_s)
        return Learned(np.array(rows, np.float32).reshape(-1, len(FEATURES)), np.array(sizes, np.float64), jobs)

    def withdrawn(self, job_id: str) -> _Kept | None:
        """Forget a job that was asked for; what was kept of it, if anything."""
        kept = self._kept.pop(job_id, None)
        if kept is not None:
            self._asked.finish(kept.slots, kept.release_us)
        return kept

    def _finish(self, job: Finished) -> Matrix | None:
        """Row of a finished job, unless it cannot be learned from."""
        kept = self.withdrawn(job.job.id)
        if not is_usable(job):
            self.dropped += 1
            return None
        slots = self._slots.rows[self._profiles_of([job.job])[0], :-1] if kept is None else kept.slots
        self._past.learn(slots, job.size, job.end_s)
        self.late += kept is None
        return None if kept is None else kept.row

    def state(self) -> State:
        """All that is known, for :meth:`from_state`."""
        kept = list(self._kept.values())
        recent = self._past.recent
        plain = {
            "late": self.late,
            "dropped": self.dropped,
            "clock_s": None if self._clock_s == -math.inf else self._clock_s,
            "keys": list(self._slot_of),
            "kept": list(self._kept),
        }
        arrays = {
            "past": self._past.table.rows,
            "asked": self._asked.table.rows,
            "recent_slots": np.array(list(recent), np.int64),
            "recent_counts": np.array([len(one.many) for one in recent.values()], np.int64),
            "recent": np.array([value for one in recent.values() for value in one.latest[-_LONG:]], np.float64),
            "kept_rows": np.array([one.row for one in kept], np.float32).reshape(-1, len(FEATURES)),
            "kept_slots": np.array([one.slots for one in kept], np.int64).reshape(-1, len(LEVELS)),
            "kept_releases_us": np.array([one.release_us for one in kept], np.int64),
        }
        return plain, arrays

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> JobFeatures:
        """The same again, from what :meth:`state` gave.

        Raises
        ------
        ValueError, KeyError, TypeError
            The data are of another shape.
        """
        self = cls()
        self.late, self.dropped = int(plain["late"]), int(plain["dropped"])
        self._clock_s = -math.inf if plain["clock_s"] is None else float(plain["clock_s"])
        self._slot_of = {_tuples(key): slot for slot, key in enumerate(plain["keys"])}
        slots = len(self._slot_of)
        for table, name in ((self._past.table, "past"), (self._asked.table, "asked")):
            table.fill(_shaped(arrays[name], (slots, table.rows.shape[1])))
        counts = arrays["recent_counts"]
        ends = np.cumsum(counts)
        if len(counts) and not 0 <= arrays["recent_slots"].min() <= arrays["recent_slots"].max() < slots:
            raise ValueError("recent_slots points beyond the keys")
        for slot, end, count in zip(arrays["recent_slots"].tolist(), ends.tolist(), counts.tolist(), strict=True):
            self._past.recent[slot] = _Recent(arrays["recent"][end - count : end].tolist())
        kept = len(plain["kept"])
        rows = _shaped(arrays["kept_rows"], (kept, len(FEATURES))).astype(np.float32)
        kept_slots = _shaped(arrays["kept_slots"], (kept, len(LEVELS)))
        if kept and not 0 <= kept_slots.min() <= kept_slots.max() < slots:
            raise ValueError("kept_slots points beyond the keys")
        releases_us = arrays["kept_releases_us"].tolist()
        for job_id, row, row_slots, release_us in zip(plain["kept"], rows, kept_slots, releases_us, strict=True):
            self._kept[job_id] = _Kept(row, row_slots, release_us)
        return self

    def _profiles_of(self, jobs: Sequence[Job]) -> Integers:
        if len(self._profiles) > _MOST_PROFILES:
            self._profiles.clear()
            self._rows.count = self._slots.count = 0
        profiles, found = self._profiles, []
        new: dict[tuple[Any, ...], int] = {}
        rows: list[float] = []
        slots: list[int] = []
        for job in jobs:
            work = job.work
            key = (job.user, job.group, job.name, job.gpus, None if type(work) is Fixed else _kind(work))
            position = profiles.get(key)
            if position is None:
                position = new.get(key)
            if position is None:
                position = new[key] = self._rows.count + len(new)
                profile = _Profile(*key[:4], _kind(work))
                slots += self._slots_at(profile.named_keys())
                shared = self._shared_by(profile)
                slots += shared.slots
                rows += shared.columns
                rows += ngrams(profile.name)
            found.append(position)
        if new:
            self._rows.extend(rows)
            self._slots.extend(slots)
            profiles.update(new)
            for table in (self._asked.table, self._past.table):
                table.lengthen(len(self._slot_of))
        return np.array(found, dtype=np.int64)

    def _shared_by(self, profile: _Profile) -> _Shared:
        """What a profile, whose other slots there are, has in common with others."""
        user, group, _, gpus, kind = profile
        alike = (user, group, gpus, kind)
        shared = self._shared.get(alike)
        if shared is None:
            slots = self._slots_at(profile.unnamed_keys())
            submitter = slots[(_USER if user else _GROUP) - _NAMED]
            shared = self._shared[alike] = _Shared([*slots, submitter], profile.unnamed_columns())
        return shared

    def _slots_at(self, keys: Iterable[tuple[Any, ...]]) -> list[int]:
        """Slots of keys, new ones where they have none; the tables are lengthened for them later."""
        slot_of = self._slot_of
        return [slot_of.setdefault(key, len(slot_of)) for key in keys]

    def _at_submission(self, rows: Matrix, jobs: Sequence[Job], all_slots: Integers, now_s: float) -> None:
        """Fill in what is known at submission, and keep the rows of jobs not asked for before."""
        new: dict[str, int] = {}
        for position, job in enumerate(jobs):
            kept = self._kept.get(job.id)
            if kept is not None:
                rows[position, _AT_SUBMISSION] = kept.row[_AT_SUBMISSION]
            else:
                new.setdefault(job.id, position)
        if not new:
            return
        at = np.fromiter(new.values(), np.int64, len(new))
        slots, releases_s = all_slots[at, :-1], np.array([jobs[position].release_s for position in new.values()])
        releases_us = np.rint(releases_s * US_PER_S).astype(np.int64)
        clock = np.stack([releases_s / 3600.0 % 24.0, releases_s // 86400.0 % 7.0], axis=1)
        unfinished = self._asked.block(slots, now_s)
        together = self._asked.submit(slots, releases_us, all_slots[at, -1])
        rows[at, _AT_SUBMISSION] = np.concatenate([clock, together, unfinished], axis=1)
        for job_id, row, row_slots, release_us in zip(new, rows[at], slots, releases_us.tolist(), strict=True):
            self._kept[job_id] = _Kept(row, row_slots, release_us)


def _estimate(job: Job) -> float:
    return _ABSENT if job.estimate_s is None else math.log(job.estimate_s)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if array.shape != shape:
        raise ValueError(f"an array is of shape {array.shape} and not {shape}")
    return array
