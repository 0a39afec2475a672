"""What is remembered of finished jobs: their sizes by key, from specific to general, each in a bounded window."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from frostline.errors import InvalidValueError
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.model import Finished
from frostline.prediction.size import on_grid
from frostline.problem.job import Fixed, Job
from frostline.units import as_finite, as_int

__all__ = [
    "COLD_LEVELS",
    "MOST_POINTS",
    "History",
    "Key",
    "Window",
    "evenly",
    "is_usable",
    "keys_of",
    "median_of",
    "name_stem",
    "usable",
]

Key = tuple[str, str, *tuple[str | int, ...]]
"""Level such as ``"user+name+gpus"``, unit of the sizes (``"s"`` or ``"iterations"``, never mixed), then the fields."""

MOST_POINTS = 31
"""Most points of a distribution that is made from a window; odd, so that its median is the window's."""

COLD_LEVELS = frozenset({"gpus", "all"})
"""Levels that tell nothing of a job's user, group or name."""

_LARGEST = 1e15
_NAMED = ("name+gpus", "name", "stem+gpus", "stem")
_USER_LEVELS = tuple(f"user+{level}" for level in _NAMED)
_GROUP_LEVELS = tuple(f"group+{level}" for level in _NAMED)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_LENGTH = 36
_LONGEST_WORD = 64  # longer ones are not looked into
_WORD = re.compile(r"[^\s._:/#=+,()\[\]-]+")
_CHANGING = re.compile(r"[0-9]+[tT]?[0-9]*[zZ]?|(?=[a-f]*[0-9])[0-9a-f]{6,}")


@lru_cache(maxsize=65536)
def name_stem(name: str) -> str:
    """A job's name without the words at its end that change from run to run: numbers, dates, hashes, indices.

    A number that is part of a word stays, because it tells models apart.

    Examples
    --------
    >>> [name_stem(name) for name in ("train_bert-2021-03-04_17", "gpt2 (3)", "ray.3fa85f64", "12")]
    ['train_bert', 'gpt2', 'ray', '']
    """
    return _stem_of(name)


def _stem_of(name: str) -> str:
    text = _UUID.sub("0", name) if len(name) >= _UUID_LENGTH else name
    words, start = _WORD.findall(text), len(text)
    while words:
        word = words.pop()
        start = text.rindex(word, 0, start)
        if word.isalpha() or len(word) > _LONGEST_WORD or not _CHANGING.fullmatch(word):
            return text[: start + len(word)]
    return ""


def keys_of(job: Job) -> tuple[Key, ...]:
    """Keys of a job, the most specific first; levels whose fields are empty are left out.

    Names are those of the job's user, or of its group where the user is unknown.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1", name="bert-07")
    >>> [level for level, *_ in keys_of(job)]
    ['user+name+gpus', 'user+name', 'user+stem+gpus', 'user+stem', 'user+gpus', 'user', 'gpus', 'all']
    """
    return _keys("s" if isinstance(job.work, Fixed) else "iterations", job.user, job.group, job.name, job.gpus)


@lru_cache(maxsize=65536)
def _keys(unit: str, user: str, group: str, name: str, gpus: int) -> tuple[Key, ...]:
    keys = _unnamed_keys(unit, user, group, gpus)
    if not name:
        return keys
    owner, levels = (user, _USER_LEVELS) if user else (group, _GROUP_LEVELS) if group else ("", _NAMED)
    named: tuple[Key, ...] = ((levels[0], unit, owner, name, gpus), (levels[1], unit, owner, name))
    stem = _stem_of(name)
    if stem and stem != name:
        return named + _stem_keys(unit, owner, levels, stem, gpus) + keys
    return named + keys


@lru_cache(maxsize=65536)
def _unnamed_keys(unit: str, user: str, group: str, gpus: int) -> tuple[Key, ...]:
    """Keys without a name in them; the same objects for all jobs that share them."""
    keys: list[Key] = []
    if user:
        keys += (("user+gpus", unit, user, gpus), ("user", unit, user))
    if group:
        keys += (("group+gpus", unit, group, gpus), ("group", unit, group))
    keys += (("gpus", unit, gpus), ("all", unit))
    return tuple(keys)


@lru_cache(maxsize=65536)
def _stem_keys(unit: str, owner: str, levels: tuple[str, ...], stem: str, gpus: int) -> tuple[Key, ...]:
    """Keys with the stem of a name in them; the same objects for all jobs that share them."""
    return (levels[2], unit, owner, stem, gpus), (levels[3], unit, owner, stem)


def is_usable(done: Finished) -> bool:
    """Whether the size of a finished job is positive and finite."""
    return 0.0 < done.size <= _LARGEST


def usable(finished: Sequence[Finished]) -> list[Finished]:
    """Those whose size is positive and finite; the rest teaches nothing.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8)
    >>> [done.size for done in usable([Finished(job, size, 9.0) for size in (math.nan, 0.0, 60.0, math.inf)])]
    [60.0]
    """
    return [done for done in finished if 0.0 < done.size <= _LARGEST]


def evenly(ordered: Sequence[float], most: int = MOST_POINTS) -> tuple[float, ...]:
    """At most so many values at evenly spaced ranks, the middle among them.

    Examples
    --------
    >>> evenly([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 3)
    (2.0, 4.0, 6.0)
    """
    count = len(ordered)
    if count <= most:
        return tuple(ordered)
    return tuple([ordered[rank] for rank in _ranks(count, most)])


@lru_cache(maxsize=1024)
def _ranks(count: int, most: int) -> tuple[int, ...]:
    """Evenly spaced ranks of so many values."""
    return tuple((2 * i + 1) * count // (2 * most) for i in range(most))


def median_of(ordered: Sequence[float]) -> float:
    """Median of ascending sizes; the geometric mean of the middle two where their number is even.

    Examples
    --------
    >>> median_of([1.0, 4.0, 9.0, 20.0])
    6.0
    """
    middle, odd = divmod(len(ordered), 2)
    return ordered[middle] if odd else math.sqrt(ordered[middle - 1]) * math.sqrt(ordered[middle])


class Window:
    """Sizes of the last jobs of one key to finish.

    Parameters
    ----------
    most : int
        How many are kept.

    Examples
    --------
    >>> window = Window(4)
    >>> for size in (5.0, 10.0, 20.0, 30.0, 1000.0):
    ...     window.add(size, alpha=0.5)
    >>> window.last, window.median, window.ordered
    (1000.0, 24.494..., [10.0, 20.0, 30.0, 1000.0])
    """

    __slots__ = ("_most", "_recent", "log_average", "ordered")

    def __init__(self, most: int) -> None:
        self._most = most
        self._recent: deque[float] = deque()
        self.ordered: list[float] = []
        self.log_average = math.nan

    def add(self, size: float, alpha: float | None = None) -> None:
        """A job has finished; with ``alpha``, the logarithm of its size enters the running average with that weight."""
        recent, ordered = self._recent, self.ordered
        if alpha is not None:
            logarithm = math.log(size)
            self.log_average = logarithm if not recent else self.log_average + alpha * (logarithm - self.log_average)
        recent.append(size)
        insort(ordered, size)
        if len(recent) > self._most:
            del ordered[bisect_left(ordered, recent.popleft())]

    def __len__(self) -> int:
        return len(self._recent)

    @property
    def last(self) -> float:
        """Size of the last one."""
        return self._recent[-1]

    @property
    def median(self) -> float:
        """Median of the sizes."""
        return median_of(self.ordered)

    def latest(self, count: int) -> list[float]:
        """The last so many, the latest first."""
        return list(islice(reversed(self._recent), count))

    def spread(self, centre: float) -> SizeDistribution:
        """The sizes, at most ``MOST_POINTS`` of them, moved by one factor so that their median is ``centre``."""
        points = evenly(self.ordered)
        factor = centre / (self.median if len(points) == len(self) else points[len(points) // 2])
        return SizeDistribution.scaled(points, factor)

    def beyond(self, done: float) -> list[float]:
        """Sizes above ``done``, ascending; twice ``done`` where there is none, as if the job were half done."""
        above = self.ordered[bisect_right(self.ordered, done) :]
        return above or [2.0 * done]


class History:
    """Windows of all keys of the jobs that have finished.

    Parameters
    ----------
    window : int
        Sizes kept per key.
    window_all : int
        Sizes kept of all jobs together.
    most_keys : int
        Keys kept; those whose last job finished longest ago are forgotten.
    alpha : float, optional
        Weight of the newest job in the running averages, above 0 and at most 1; without it none are kept.
    min_jobs, min_unnamed : int
        A key with a name in it, and one without, counts once so many of its jobs have finished; ``"all"`` counts with
        one.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> history = History()
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1", name="bert-07")
    >>> history.learn([Finished(job, 60.0, 60.0)])
    >>> key, window = history.best(keys_of(job.replace(id="b", name="bert-08")))
    >>> key[0], window.last
    ('user+stem+gpus', 60.0)
    """

    def __init__(
        self,
        *,
        window: int = 200,
        window_all: int = 10_000,
        most_keys: int = 200_000,
        alpha: float | None = None,
        min_jobs: int = 1,
        min_unnamed: int = 1,
    ) -> None:
        self.window = as_int(window, "history", "window", 1)
        self.window_all = as_int(window_all, "history", "window_all", 1)
        self.most_keys = as_int(most_keys, "history", "most_keys", 16)
        self.min_jobs = as_int(min_jobs, "history", "min_jobs", 1)
        self.min_unnamed = as_int(min_unnamed, "history", "min_unnamed", 1)
        self._enough = max(self.min_jobs, self.min_unnamed)  # for a key of any level
        self.alpha = None if alpha is None else as_finite(alpha, "history", "alpha", 0.0, 1.0)
        if self.alpha == 0.0:
            raise InvalidValueError("history", "alpha", alpha, "must be above 0")
        self.dropped = 0
        """Finished jobs that taught nothing, because their size was no positive number."""
        self._windows: dict[Key, Window] = {}

    def learn(self, finished: Sequence[Finished]) -> None:
        """Jobs that have finished, in the order in which they did."""
        good = usable(finished)
        self.dropped += len(finished) - len(good)
        for done in good:
            size = on_grid(done.size)
            for key in keys_of(done.job):
                self._at(key).add(size, self.alpha)

    def _at(self, key: Key) -> Window:
        """Window of a key, which becomes the youngest of all."""
        windows = self._windows
        window = windows.pop(key, None)
        if window is None:
            window = Window(self.window if key[0] != "all" else self.window_all)
            if len(windows) >= self.most_keys:
                del windows[next(iter(windows))]
        windows[key] = window
        return window

    def get(self, key: Key) -> Window | None:
        """Window of a key, if any of its jobs has finished."""
        return self._windows.get(key)

    def _counts(self, level: str, jobs: int) -> bool:
        """Whether so many finished jobs are enough at a level."""
        if level == "all":
            return True
        return jobs >= (self.min_jobs if level.endswith(_NAMED) else self.min_unnamed)

    def best(self, keys: Sequence[Key]) -> tuple[Key, Window] | None:
        """First key that counts, and its window."""
        windows, enough = self._windows, self._enough
        for key in keys:
            window = windows.get(key)
            if window is not None and (len(window.ordered) >= enough or self._counts(key[0], len(window.ordered))):
                return key, window
        return None
