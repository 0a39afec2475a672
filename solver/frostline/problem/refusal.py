"""Why a job can never run on a cluster: a reason object instead of silent waiting."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Locality

__all__ = ["Reason", "Refusal", "never_fits"]


class Reason(StrEnum):
    """The rule that an impossible request breaks."""

    CLUSTER_TOO_SMALL = "cluster_too_small"
    SERVER_TOO_SMALL = "server_too_small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A job that can never fit, what it needs, the most that is on offer, and why that is not enough.

    Parameters
    ----------
    job : str
        Identifier of the job.
    need_gpus : int
        GPUs it asks for.
    largest_offer_gpus : int
        Most GPUs that the cluster could ever give it under its locality.
    reason : Reason
        The rule that is broken.
    """

    job: str
    need_gpus: int
    largest_offer_gpus: int
    reason: Reason

    @property
    def text(self) -> str:
        """One sentence for people."""
        where = "the whole cluster" if self.reason is Reason.CLUSTER_TOO_SMALL else "the largest server"
        return f"job {self.job!r}: gpus={self.need_gpus} but {where} has {self.largest_offer_gpus}"


def never_fits(job: Job, cluster: Cluster) -> Refusal | None:
    """Refusal of a job that no state of the cluster could ever hold, or None.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> job = Job(id="x", release_s=0, work=Fixed(duration_s=1), gpus=17)
    >>> never_fits(job, Cluster.uniform(2)).text
    "job 'x': gpus=17 but the whole cluster has 16"
    """
    if job.gpus > cluster.gpus:
        offer, reason = cluster.gpus, Reason.CLUSTER_TOO_SMALL
    elif job.locality is Locality.SERVER and job.gpus > cluster.largest:
        offer, reason = cluster.largest, Reason.SERVER_TOO_SMALL
    else:
        return None
    return Refusal(job=job.id, need_gpus=job.gpus, largest_offer_gpus=offer, reason=reason)
