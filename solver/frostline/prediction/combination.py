"""Several size models as one: those are followed that were right about the jobs that have finished since."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.prediction.baselines import (
    GlobalMedian,
    GroupMedian,
    GroupModel,
    LastFinished,
    RecentMedian,
    ScaledEstimate,
    UserEstimate,
    WidthMedian,
)
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.history import COLD_LEVELS, History, Key, Window, evenly, keys_of, usable
from frostline.prediction.model import Estimate, Finished, SizeModel
from frostline.prediction.survival import Survival, Watcher
from frostline.problem.job import Job
from frostline.units import as_finite

__all__ = ["Combination"]

Context = tuple[str | int, ...]

_LEAST_RATIOS = 5
_LEAST_UNNAMED = 3


class _Standing:
    """How the members did on the jobs of one context."""

    __slots__ = ("_around", "_evidence", "_losses", "ratios")

    def __init__(self, members: int, window: int) -> None:
        self._losses = [0.0] * members
        self._evidence = [0.0] * members
        self.ratios = Window(window)  # size by what the combination had said
        self._around: tuple[float, ...] | None = None

    def score(self, members: Sequence[int], losses: Sequence[float], ratio: float, decay: float) -> None:
        """A job has finished, and these members had these losses; the others had said nothing."""
        sums, evidence = self._losses, self._evidence
        self.ratios.add(ratio)
        self._around = None
        for i, loss in zip(members, losses, strict=True):
            sums[i] = sums[i] * decay + loss
            evidence[i] = evidence[i] * decay + 1.0

    @property
    def around(self) -> tuple[float, ...]:
        """A few ratios around 1, see :func:`_around_one`."""
        if self._around is None:
            self._around = _around_one(self.ratios.ordered)
        return self._around

    def means(self, prior: Sequence[float | None], prior_jobs: float) -> list[float | None]:
        """Mean losses, what is known of a wider context counting for so many jobs."""
        return [
            (loss + prior_jobs * before) / (seen + prior_jobs)
            if before is not None
            else (loss / seen if seen else None)
            for loss, seen, before in zip(self._losses, self._evidence, prior, strict=True)
        ]


class _Alike:
    """Jobs of one batch that the members which go by the common history cannot tell apart."""

    __slots__ = ("answers", "centres", "contexts", "level", "losses", "window")

    def __init__(
        self,
        centres: list[tuple[float, int]],
        contexts: tuple[Context, Context, Context],
        losses: Sequence[float | None],
        level: str,
        window: Window | None,
    ) -> None:
        self.centres, self.contexts, self.losses = centres, contexts, losses
        self.level, self.window = level, window
        self.answers: dict[tuple[float | None, ...], tuple[Estimate | None, _Said | None]] = {}
        """Estimates, and what is kept of them, by what the other members say."""


class _Said(NamedTuple):
    """What was said of a job when it was first asked about."""

    members: tuple[int, ...]
    logarithms: tuple[float, ...]
    """What the members said, those that said something."""
    combined: float
    contexts: tuple[Context, Context, Context]


class Combination:
    """A weighted median of several models.

    A member's loss on a job that has finished is the absolute logarithm of the ratio between what it said when it was
    first asked about the job and the size the job turned out to have, at most ``most_loss``. Losses are averaged with
    weights that fall by ``decay`` per job, over all jobs, over those of the same level of the hierarchy of keys, and
    over those of the same level, owner and GPUs; each wider average counts as ``prior_jobs`` jobs of the next one. A
    member's weight is exp(-``sharpness`` × (its mean loss - the least one)): the exponentially weighted forecaster of
    N. Cesa-Bianchi, G. Lugosi, *Prediction, Learning, and Games*, Cambridge University Press 2006, section 2.1, with a
    median instead of a mean. A large ``sharpness`` follows the leader.

    The estimate spreads around its median as the ratios between sizes and earlier estimates did in the same context.

    Parameters
    ----------
    members : sequence of SizeModel, optional
        The members; by default last-finished, median, recent-median, width-median, global-median, survival,
        scaled-estimate and user-estimate, of which the first three and survival go by a key without a name once 3 of
        its jobs have finished.
    forest : bool
        Whether a :class:`~frostline.prediction.forest_model.ForestModel` joins the default members.
    sharpness : float
        How strongly the better members are preferred, at least 0.
    decay : float
        Weight of a loss relative to that of the job that finished next, above 0 and at most 1.
    prior_jobs : float
        How many jobs of a context the average of the next wider one is worth, above 0.
    most_loss : float
        Losses above are cut off, so that one wild job does not decide.
    seed : int
        Seed of the forest.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range, or two members have one name.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = Combination()
    >>> model.predict([job], 0.0)
    [None]
    >>> model.learn([Finished(job, 60.0, 60.0)], 60.0)
    >>> model.predict([job.replace(id="b")], 70.0)[0].median
    60.0
    """

    name = "combined"

    def __init__(
        self,
        *,
        members: Sequence[SizeModel] | None = None,
        forest: bool = False,
        sharpness: float = 100.0,
        decay: float = 0.998,
        prior_jobs: float = 30.0,
        most_loss: float = 1.0,
        seed: int = 0,
    ) -> None:
        self._sharpness = as_finite(sharpness, "combination", "sharpness", 0.0)
        self._decay = _positive(decay, "decay", 1.0)
        self._most_loss = _positive(most_loss, "most_loss", 100.0)
        self._prior_jobs = _positive(prior_jobs, "prior_jobs", 1e6)
        self._history = History(min_unnamed=_LEAST_UNNAMED)
        self.members = _default_members(self._history, forest, seed) if members is None else tuple(members)
        names = [member.name for member in self.members]
        if not names or len(set(names)) < len(names):
            raise InvalidValueError("combination", "members", names, "must be at least one, of different names")
        self._watchers = [member for member in self.members if isinstance(member, Watcher)]
        self._sharers = [
            (i, member)
            for i, member in enumerate(self.members)
            if isinstance(member, GroupModel | Survival) and member.history is self._history
        ]
        self._others = [(i, member) for i, member in enumerate(self.members) if (i, member) not in self._sharers]
        taught = [i for i, member in self._sharers if isinstance(member, GroupModel)]
        self._learners = [member for i, member in enumerate(self.members) if i not in taught]
        self._said: dict[str, _Said] = {}
        self._standings: dict[Context, _Standing] = {}
        self._wider: dict[Context, list[float | None]] = {}  # mean losses in wider contexts, until they change

    def declare(self, job_id: str, size: float) -> None:
        """The user says how large a job will be."""
        for member in self.members:
            if hasattr(member, "declare"):
                member.declare(job_id, size)

    def started(self, job: Job, now_s: float) -> None:
        """A job has started."""
        for member in self._watchers:
            member.started(job, now_s)

    def progressed(self, job_id: str, done: float) -> None:
        """A running job has done so much of its size."""
        for member in self._watchers:
            member.progressed(job_id, done)

    def withdrawn(self, job_id: str) -> None:
        """A job will not finish."""
        self._said.pop(job_id, None)
        for member in self.members:
            if hasattr(member, "withdrawn"):
                member.withdrawn(job_id)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        good = usable(finished)
        for done in good:
            said = self._said.pop(done.job.id, None)
            if said is not None:
                self._score(said, done.size)
        self._wider.clear()
        self._history.learn(good)
        for member in self._learners:
            member.learn(finished, now_s)

    def _score(self, said: _Said, size: float) -> None:
        logarithm, most = math.log(size), self._most_loss
        losses = [min(abs(value - logarithm), most) for value in said.logarithms]
        for context in said.contexts:
            standing = self._standings.get(context)
            if standing is None:
                standing = self._standings[context] = _Standing(len(self.members), self._history.window)
            standing.score(said.members, losses, size / said.combined, self._decay)

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        all_keys = [keys_of(job) for job in jobs]
        medians = [_medians(member, jobs, all_keys, now_s) for _, member in self._others]
        by_job = zip(*medians, strict=True) if medians else repeat(())
        best, said = self._history.best, self._said
        groups: dict[tuple[object, ...], _Alike] = {}
        estimates: list[Estimate | None] = []
        for job, keys, others in zip(jobs, all_keys, by_job, strict=False):
            found = best(keys)
            key = (job.gpus, keys[-1][1], job.user or job.group, None if found is None else found[1])
            alike = groups.get(key)
            if alike is None:
                alike = groups[key] = self._alike(job, keys, found, now_s)
            answer = alike.answers.get(others)
            if answer is None:
                answer = alike.answers[others] = self._combine(alike, others)
            estimates.append(answer[0])
            if answer[1] is not None:
                said.setdefault(job.id, answer[1])
        return estimates

    def _alike(self, job: Job, keys: Sequence[Key], found: tuple[Key, Window] | None, now_s: float) -> _Alike:
        """What the members that go by the common history say of a job, and of all like it."""
        level, window = ("none", None) if found is None else (found[0][0], found[1])
        centres: list[tuple[float, int]] = []
        for i, member in self._sharers:
            at = found if member.levels is None else self._history.best(keys[member.levels :])
            if at is not None:
                centres.append((member.centre_at(*at, now_s), i))
        contexts = _contexts(job, keys, level)
        return _Alike(centres, contexts, self._mean_losses(contexts), level, window)

    def _combine(self, alike: _Alike, others: tuple[float | None, ...]) -> tuple[Estimate | None, _Said | None]:
        """The estimate by all members, and what is kept of it to score them."""
        level, contexts = alike.level, alike.contexts
        heard = zip(others, self._others, strict=True)
        ranked = sorted(alike.centres + [(centre, i) for centre, (i, _) in heard if centre is not None])
        if not ranked:
            return None, None
        values, members = zip(*ranked, strict=True)
        centre, member = ranked[_middle(_weights([alike.losses[i] for i in members], self._sharpness))]
        said = _Said(members, tuple(map(math.log, values)), centre, contexts)
        sizes = self._spread(contexts, centre, alike.window)
        source = f"{self.name}: {self.members[member].name}: {level}"
        cold_start = level == "none" or level in COLD_LEVELS
        return Estimate(sizes=sizes, source=source, cold_start=cold_start), said

    def _mean_losses(self, contexts: tuple[Context, Context, Context]) -> Sequence[float | None]:
        """Mean losses of the members, from the widest context to the most specific."""
        narrow, wide, widest = contexts
        means = self._wider.get(wide)
        if means is None:
            nothing: list[float | None] = [None] * len(self.members)
            means = self._wider[wide] = self._means(wide, self._means(widest, nothing))
        return self._means(narrow, means)

    def _means(self, context: Context, prior: list[float | None]) -> list[float | None]:
        standing = self._standings.get(context)
        return prior if standing is None else standing.means(prior, self._prior_jobs)

    def _spread(self, contexts: Sequence[Context], centre: float, window: Window | None) -> SizeDistribution:
        """Sizes around the centre as earlier ratios were, else as the sizes of the key."""
        for context in contexts:
            standing = self._standings.get(context)
            if standing is not None and len(standing.ratios) >= _LEAST_RATIOS:
                return SizeDistribution.scaled(standing.around, centre)
        return SizeDistribution((centre,)) if window is None else window.spread(centre)


def _default_members(history: History, forest: bool, seed: int) -> tuple[SizeModel, ...]:
    members: list[SizeModel] = [
        LastFinished(history=history),
        GroupMedian(history=history),
        RecentMedian(history=history),
        WidthMedian(history=history),
        GlobalMedian(history=history),
        Survival(history=history),
        ScaledEstimate(),
        UserEstimate(),
    ]
    if forest:
        from frostline.prediction.forest_model import ForestModel

        members.append(ForestModel(seed=seed))
    return tuple(members)


def _weights(means: Sequence[float | None], sharpness: float) -> list[float]:
    """Weights of members by their mean losses; equal ones where none of them has been scored."""
    known = [mean for mean in means if mean is not None]
    if not known:
        return [1.0] * len(means)
    best = min(known)
    return [0.0 if mean is None else math.exp(sharpness * (best - mean)) for mean in means]


def _middle(weights: Sequence[float]) -> int:
    """Position of the weighted median: the first with which half of all weight is reached."""
    sums = list(accumulate(weights))
    return bisect_left(sums, 0.5 * sums[-1] * (1.0 - 1e-12))


def _contexts(job: Job, keys: Sequence[Key], level: str) -> tuple[Context, Context, Context]:
    """Whose jobs the members are judged by, the most specific first."""
    unit = keys[-1][1]
    return ((level, unit, job.user or job.group, job.gpus), (level, unit), (unit,))


def _medians(member: SizeModel, jobs: Sequence[Job], keys: Sequence[Sequence[Key]], now_s: float) -> list[float | None]:
    """Medians of a member's estimates of many jobs."""
    centre: Callable[[Job, Sequence[Key], float], float | None] | None = getattr(member, "centre", None)
    if centre is not None:
        return [centre(job, its, now_s) for job, its in zip(jobs, keys, strict=True)]
    return [None if estimate is None else estimate.median for estimate in member.predict(jobs, now_s)]


def _around_one(ratios: Sequence[float]) -> tuple[float, ...]:
    """An odd number of ratios at evenly spaced ranks, the lower half at most 1, the middle 1, the upper at least 1."""
    points = evenly(ratios)
    if len(points) % 2 == 0:
        points = evenly(ratios, len(points) - 1)
    middle, ones = len(points) // 2, bisect_left(points, 1.0)
    low, high = min(ones, middle), max(ones, middle + 1)
    return points[:low] + (1.0,) * (high - low) + points[high:]


def _positive(value: float, field: str, most: float) -> float:
    number = as_finite(value, "combination", field, 0.0, most)
    if number == 0.0:
        raise InvalidValueError("combination", field, value, "must be above 0")
    return number
