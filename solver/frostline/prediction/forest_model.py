"""Job sizes from a random forest that is refitted as jobs finish."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frostline.errors import InvalidValueError
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.features import BOUNDED, FEATURES, JobFeatures, Learned, State
from frostline.prediction.model import Estimate, Finished
from frostline.prediction.size import on_grid
from frostline.problem.job import Job
from frostline.units import as_finite, as_int

if TYPE_CHECKING:
    from frostline.prediction.forest import IterationForest

__all__ = ["ForestModel"]

_ANCHORS = [
    FEATURES.index(column)
    for column in ("user+name+gpus:median", "user+name+gpus:long_median", "user+name+gpus:last", "all:long_median")
]
_TRUST = np.array([0.0, 0.5, 1.0])
_MOST_LOSS = 2.0
_KNOWN = [FEATURES.index("user+stem:count"), FEATURES.index("user:count")]
_ITERATIONS = FEATURES.index("iterations")
_KEPT = ("anchor_losses", "trust_losses", "anchor", "bounds", "range")

Matrix = NDArray[np.float32]
Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


class _Said(NamedTuple):
    """What was said of a job: the class of its history, its anchor and the forest's ratio, as logarithms."""

    known: int
    anchor: float
    ratio: float


class ForestModel:
    """Sizes from a forest over what is known of a job at its submission (:class:`JobFeatures`).

    The forest learns by how much a job differs from an *anchor*, one of the medians of the jobs like it or the last of
    them. Which one, and how far the forest's correction of it is believed (not, half or all), is what would have
    erred least so far on the jobs that have finished, each judged by what was known at its submission: errors are
    absolute logarithms of predicted over actual, at most 2 each, summed separately for jobs whose name is known, whose
    user is, and others. So bursts of equal jobs, by which a forest is misled, cost little.

    It is fitted when ``first_fit`` jobs have finished, and again whenever the rows to learn from have grown by
    ``growth``, or as many have been replaced, or ``refit_s`` have passed. Predictions never leave the range
    of the sizes learned from.

    Parameters
    ----------
    seed : int
        Seed; the k-th fit draws from ``SeedSequence(seed, spawn_key=(k,))``.
    n_estimators, min_samples_leaf, max_features, max_samples, n_jobs
        As in :class:`~frostline.prediction.forest.IterationForest`.
    first_fit : int
        Finished jobs before the first fit, at least 2.
    growth : float
        Growth of the number of rows after which to fit again, above 1.
    refit_s : float
        Seconds after which to fit again if any job has finished since.
    window : int
        Rows learned from at most: those of the jobs that finished last.

    Attributes
    ----------
    fits : int
        How often the forest was fitted.
    forest : IterationForest or None
        The last forest.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> model = ForestModel(n_estimators=10, first_fit=20, min_samples_leaf=2)
    >>> jobs = [Job(id=f"{i}", release_s=i, work=Fixed(duration_s=1), gpus=1 + i % 2, user="ann") for i in range(41)]
    >>> for job in jobs[:40]:
    ...     said = model.predict([job], job.release_s)
    ...     model.learn([Finished(job, 100.0 * job.gpus, job.release_s + 0.5)], job.release_s + 0.5)
    >>> model.predict(jobs[40:], 40.0)[0].median, model.fits
    (100.0, 4)
    """

    name = "forest"

    def __init__(
        self,
        *,
        seed: int = 0,
        n_estimators: int = 64,
        min_samples_leaf: int = 5,
        max_features: float = 0.33,
        max_samples: int = 4096,
        n_jobs: int = 1,
        first_fit: int = 50,
        growth: float = 1.25,
        refit_s: float = 604_800.0,
        window: int = 50_000,
    ) -> None:
        self.seed = as_int(seed, "forest", "seed", 0)
        self.first_fit = as_int(first_fit, "forest", "first_fit", 2)
        self.window = as_int(window, "forest", "window", 2)
        self.growth = as_finite(growth, "forest", "growth", 1.0)
        self.refit_s = math.inf if refit_s == math.inf else as_finite(refit_s, "forest", "refit_s", 0.0)
        if self.growth == 1.0:
            raise InvalidValueError("forest", "growth", growth, "must be above 1")
        max_features = as_finite(max_features, "forest", "max_features", 0.0, 1.0)
        if max_features == 0.0:
            raise InvalidValueError("forest", "max_features", max_features, "must be above 0")
        if n_jobs != -1:
            n_jobs = as_int(n_jobs, "forest", "n_jobs", 1)
        self._parameters: dict[str, Any] = {
            "n_estimators": as_int(n_estimators, "forest", "n_estimators", 1),
            "min_samples_leaf": as_int(min_samples_leaf, "forest", "min_samples_leaf", 1),
            "max_features": max_features,
            "max_samples": as_int(max_samples, "forest", "max_samples", 1),
            "n_jobs": n_jobs,
        }
        self.features = JobFeatures()
        self.forest: IterationForest | None = None
        self.fits = 0
        self._count = self._fitted_count = 0
        self._fitted_s = -math.inf
        self._rows: deque[Matrix] = deque(maxlen=self.window)
        self._sizes: deque[float] = deque(maxlen=self.window)
        self._said: dict[str, _Said] = {}
        self._anchor_losses = np.zeros((len(_KNOWN) + 1, len(_ANCHORS)))
        self._trust_losses = np.zeros((len(_KNOWN) + 1, len(_TRUST)))
        self._anchor = np.zeros(len(_KNOWN) + 1, np.int64)
        self._bounds = np.zeros((2, len(BOUNDED)), np.float32)
        self._range = np.array([[math.inf, math.inf], [0.0, 0.0]])  # least and largest, of seconds and of iterations

    @property
    def dropped(self) -> int:
        """Finished jobs whose size was no positive number."""
        return self.features.dropped

    @property
    def late(self) -> int:
        """Finished jobs that gave no row, because what was known at their submission cannot be told any more."""
        return self.features.late

    def withdrawn(self, job_id: str) -> None:
        """A job will not finish."""
        self.features.withdrawn(job_id)
        self._said.pop(job_id, None)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        learned = self.features.learn(finished)
        if len(learned.sizes):
            self._judge(learned)
            self._rows.extend(learned.rows)
            self._sizes.extend(learned.sizes.tolist())
            self._count += len(learned.sizes)
        if self._due(now_s):
            self._fit(now_s)

    def _due(self, now_s: float) -> bool:
        new = self._count - self._fitted_count
        if self._count < self.first_fit or new == 0:
            return False
        most = (self.growth - 1.0) * min(self._fitted_count, self.window)
        return new >= most or now_s - self._fitted_s >= self.refit_s

    def _judge(self, learned: Learned) -> None:
        """Losses of anchors and of the forest on jobs that have finished, and the range of sizes."""
        logs = np.log(learned.sizes)
        classes = _classes(learned.rows)
        losses = np.minimum(np.abs(learned.rows[:, _ANCHORS] - logs[:, None]), _MOST_LOSS)
        np.add.at(self._anchor_losses, classes, losses)
        for job_id, log in zip(learned.jobs, logs.tolist(), strict=True):
            said = self._said.pop(job_id, None)
            if said is not None:
                errors = np.abs(said.anchor + _TRUST * said.ratio - log)
                self._trust_losses[said.known] += np.minimum(errors, _MOST_LOSS)
        for unit in (0, 1):
            sizes = learned.sizes[learned.rows[:, _ITERATIONS] == unit]
            if len(sizes):
                self._range[0, unit] = min(self._range[0, unit], on_grid(float(sizes.min())))
                self._range[1, unit] = max(self._range[1, unit], on_grid(float(sizes.max())))

    def _fit(self, now_s: float) -> None:
        from frostline.prediction.forest import IterationForest

        rows, sizes = np.array(self._rows), np.array(self._sizes)
        self._anchor = np.argmin(self._anchor_losses, axis=1)
        ratios = np.exp(np.log(sizes) - self._anchors(rows, _classes(rows)))
        seed = np.random.SeedSequence(self.seed, spawn_key=(self.fits,)).generate_state(1)[0]
        self.forest = IterationForest(**self._parameters, random_state=int(seed)).fit(rows, ratios)
        columns = rows[:, BOUNDED]
        self._bounds = np.array([columns.min(axis=0), columns.max(axis=0)])
        self.fits, self._fitted_count, self._fitted_s = self.fits + 1, self._count, now_s

    def _anchors(self, rows: Matrix, classes: Integers) -> Reals:
        """Logarithm of each row's anchor."""
        columns = np.array(_ANCHORS)[self._anchor[classes]]
        anchors: Reals = rows[np.arange(len(rows)), columns].astype(np.float64)
        return anchors

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`.

        None before the first fit, and for a job counted in iterations, or in seconds, while no such job has finished.
        """
        rows, cold = self.features.encode(jobs, now_s)
        if self.forest is None or not jobs:
            return [None] * len(jobs)
        classes = _classes(rows)
        anchors = self._anchors(rows, classes)
        ratios = np.log(self.forest.predict_points(rows))
        middle = ratios.shape[1] // 2
        centre = (ratios[:, middle] + ratios[:, -middle - 1]) / 2.0
        said = self._said
        for job, *what in zip(jobs, classes.tolist(), anchors.tolist(), centre.tolist(), strict=True):
            if job.id not in said:
                said[job.id] = _Said(*what)
        trust = _TRUST[np.argmin(self._trust_losses, axis=1)][classes]
        points = np.exp(ratios + (anchors + (trust - 1.0) * centre)[:, None])
        return self._estimates(rows, points, cold)

    def state(self) -> State:
        """All that is known, for :meth:`from_state`."""
        plain, arrays = self.features.state()
        said = list(self._said.values())
        document: dict[str, Any] = {
            "features": plain,
            "forest": None,
            "parameters": {
                **self._parameters,
                "seed": self.seed,
                "first_fit": self.first_fit,
                "growth": self.growth,
                "refit_s": None if self.refit_s == math.inf else self.refit_s,
                "window": self.window,
            },
            "columns": [*FEATURES],
            "fits": self.fits,
            "count": self._count,
            "fitted_count": self._fitted_count,
            "fitted_s": None if self._fitted_s == -math.inf else self._fitted_s,
            "said": list(self._said),
        }
        kept = {f"features.{name}": array for name, array in arrays.items()}
        kept["rows"] = np.array(self._rows, np.float32).reshape(-1, len(FEATURES))
        kept["sizes"] = np.array(self._sizes, np.float64)
        kept["said"] = np.array(said, np.float64).reshape(-1, len(_Said._fields))
        kept |= {name: getattr(self, f"_{name}") for name in _KEPT}
        if self.forest is not None:
            document["forest"], trees = self.forest.state()
            kept |= {f"forest.{name}": array for name, array in trees.items()}
        return document, kept

    @classmethod
    def from_state(cls, document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ForestModel:
        """The same model again, from what :meth:`state` gave.

        Raises
        ------
        ValueError, KeyError, TypeError
            The data are of another shape.
        """
        if document["columns"] != [*FEATURES]:
            raise ValueError("the columns are not those of this version")
        parameters = dict(document["parameters"])
        parameters["refit_s"] = math.inf if parameters["refit_s"] is None else parameters["refit_s"]
        self = cls(**parameters)
        self.features = JobFeatures.from_state(document["features"], _part(arrays, "features."))
        self.fits, self._count = int(document["fits"]), int(document["count"])
        self._fitted_count = int(document["fitted_count"])
        self._fitted_s = -math.inf if document["fitted_s"] is None else float(document["fitted_s"])
        rows, sizes, said = arrays["rows"], arrays["sizes"], arrays["said"]
        if rows.shape != (len(sizes), len(FEATURES)) or said.shape != (len(document["said"]), len(_Said._fields)):
            raise ValueError("the rows are not as many as is said")
        self._rows.extend(rows.astype(np.float32))
        self._sizes.extend(sizes.tolist())
        for job_id, (known, anchor, ratio) in zip(document["said"], said.tolist(), strict=True):
            self._said[job_id] = _Said(int(known), anchor, ratio)
        classes, anchors = set(said[:, 0].tolist()), set(arrays["anchor"].tolist())
        if not classes <= set(range(len(_KNOWN) + 1)) or not anchors <= set(range(len(_ANCHORS))):
            raise ValueError("an anchor or a class is none of those known")
        for name in _KEPT:
            start = getattr(self, f"_{name}")
            if arrays[name].shape != start.shape or arrays[name].dtype != start.dtype:
                raise ValueError(f"{name} is of another shape")
            setattr(self, f"_{name}", arrays[name])
        if document["forest"] is not None:
            from frostline.prediction.forest import IterationForest

            self.forest = IterationForest.from_state(document["forest"], _part(arrays, "forest."))
            if self.forest.n_features_in_ != len(FEATURES):
                raise ValueError("the forest is of other columns")
        return self

    def _estimates(self, rows: Matrix, points: Reals, cold: NDArray[np.bool_]) -> list[Estimate | None]:
        least, most = self._range[:, rows[:, _ITERATIONS].astype(np.int64)]
        told = most > 0.0
        numbers = rows[:, BOUNDED]
        outside = ((numbers < self._bounds[0]) | (numbers > self._bounds[1])).any(axis=1)
        middle = points.shape[1] // 2
        outside |= (points[:, middle] < least) | (points[:, -middle - 1] > most)
        kept = np.clip(points, np.where(told, least, 1.0)[:, None], np.where(told, most, 1.0)[:, None])
        return [
            Estimate(sizes=sizes, source=self.name, cold_start=is_cold, outside_range=is_outside) if is_told else None
            for sizes, is_cold, is_outside, is_told in zip(
                SizeDistribution.of_rows(kept), cold.tolist(), outside.tolist(), told.tolist(), strict=True
            )
        ]


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _classes(rows: Matrix) -> Integers:
    """0 where jobs of the same user and name have finished, 1 where jobs of the user have, else 2."""
    return np.where(rows[:, _KNOWN[0]] > 0.0, 0, np.where(rows[:, _KNOWN[1]] > 0.0, 1, 2))
