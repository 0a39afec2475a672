"""What a size model is: it learns from finished jobs and says what it believes of waiting ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from frostline.prediction.distribution import SizeDistribution
from frostline.problem.job import Job

__all__ = ["HIGH", "LOW", "Estimate", "Finished", "SizeModel"]

LOW, HIGH = 0.1, 0.9
"""The quantiles of a prediction that are called low and high."""


class Finished(NamedTuple):
    """A job that has finished, and what it turned out to be.

    Parameters
    ----------
    job : Job
        The job as submitted; its own size is not looked at.
    size : float
        Iterations done, or seconds run where the work has no iterations.
    end_s : float
        When it finished.
    status : str
        How it ended (``Pass``, ``Killed``, ``Failed`` …), empty where unknown.
    """

    job: Job
    size: float
    end_s: float
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is believed of one job.

    Parameters
    ----------
    sizes : SizeDistribution
        Equally likely sizes.
    source : str
        Where they come from: the model, and for a history of jobs also its key.
    cold_start : bool
        Whether nothing was known of the job's group or user.
    outside_range : bool
        Whether a feature lies outside the range that was learned, or the size could only be cut off there.

    Examples
    --------
    >>> Estimate(sizes=SizeDistribution([10, 20, 30]), source="last-finished", cold_start=False).median
    20.0
    """

    sizes: SizeDistribution
    source: str
    cold_start: bool
    outside_range: bool = False

    @property
    def low(self) -> float:
        """Low quantile."""
        return self.sizes.quantile(LOW)

    @property
    def median(self) -> float:
        """Median."""
        return self.sizes.median

    @property
    def high(self) -> float:
        """High quantile."""
        return self.sizes.quantile(HIGH)


@runtime_checkable
class SizeModel(Protocol):
    """A model of job sizes. What a job says of its own size and end must not matter to :meth:`predict`."""

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """Jobs that have finished since the last call, in order of (end, release, id), none of them after ``now_s``."""
        ...

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """What is believed of each job; None where the model has nothing to say."""
        ...
