"""A predictor that believes what it is told, and a strategy for what to tell it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from hypothesis import strategies as st

from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.model import Estimate
from frostline.prediction.size import size_of
from frostline.problem.instance import Instance
from frostline.problem.job import Job

__all__ = ["ScriptedPredictor", "predictions"]


class ScriptedPredictor:
    """Believes of each job what it is told, and writes down all that it hears.

    Parameters
    ----------
    sizes : mapping of str to iterable of float
        Equally likely sizes of each job, by its id.
    deflation : float
        By how much predicted work is divided for the virtual machine.
    unknown : container of str
        Jobs that count as cold starts.

    Attributes
    ----------
    heard : list of tuple
        What was reported: (event, job, …, instant in seconds).
    asked : list of (list of Job, float)
        The batches that were predicted, and when.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> predictor = ScriptedPredictor({"a": [10, 20, 30]})
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=1)
    >>> predictor.predict([job], 0.0)[0].median, predictor.remaining("a", 25.0).points
    (20.0, (5.0,))
    """

    def __init__(
        self, sizes: Mapping[str, Iterable[float]], *, deflation: float = 1.0, unknown: Container[str] = ()
    ) -> None:
        self._sizes = {job: SizeDistribution(points) for job, points in sizes.items()}
        self.deflation = deflation
        self._unknown = unknown
        self.heard: list[tuple[object, ...]] = []
        self.asked: list[tuple[list[Job], float]] = []

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate]:
        """What it was told of each job."""
        self.asked.append((list(jobs), now_s))
        return [
            Estimate(sizes=self._sizes[job.id], source="script", cold_start=job.id in self._unknown) for job in jobs
        ]

    def start(self, job_id: str, now_s: float) -> None:
        """Write down a start."""
        self.heard.append(("start", job_id, now_s))

    def finish(self, job_id: str, size: float, now_s: float, status: str = "") -> None:
        """Write down a completion."""
        self.heard.append(("finish", job_id, size, status, now_s))

    def progress(
        self, job_id: str, iterations: float, now_s: float, seconds_per_iteration: float | None = None
    ) -> None:
        """Write down progress."""
        self.heard.append(("progress", job_id, iterations, seconds_per_iteration, now_s))

    def remaining(self, job_id: str, done: float) -> SizeDistribution:
        """What is left of a job by what it was told, given that its size is above ``done``."""
        return SizeDistribution([point - done for point in self._sizes[job_id].beyond(done).points])


@st.composite
def predictions(draw: st.DrawFn, instance: Instance, *, worst: float = 50.0) -> ScriptedPredictor:
    """Predictors that are wrong by a factor of up to ``worst`` either way, and deflate by anything.

    Parameters
    ----------
    instance : Instance
        The jobs as they are.
    worst : float
        Largest factor, at least 1.
    """
    factors = st.sampled_from([1 / worst, 0.5, 1.0, 2.0, worst]) | st.floats(1 / worst, worst)
    few = st.lists(factors, min_size=1, max_size=4)
    sizes = {job.id: [max(size_of(job) * factor, 1e-6) for factor in draw(few)] for job in instance.jobs}
    return ScriptedPredictor(sizes, deflation=draw(st.sampled_from([1.0, 0.25, 7.5]) | st.floats(0.1, 10)))
