"""Why a job can never run on a cluster: a reason object instead of silent waiting."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Locality
from frostline.problem.pieces import pieces_of, servers_needed

__all__ = ["Reason", "Refusal", "never_fits"]


class Reason(StrEnum):
    """The rule that an impossible request breaks."""

    CLUSTER_TOO_SMALL = "cluster_too_small"
    SERVER_TOO_SMALL = "server_too_small"
    REPLICA_TOO_LARGE = "replica_too_large"  # no server holds one of its replicas
    NO_PACKING = "no_packing"  # enough GPUs, but no way to keep every replica inside one server


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A job that can never fit, what it needs, the most that is on offer, and why that is not enough.

    Parameters
    ----------
    job : str
        Identifier of the job.
    need_gpus : int
        GPUs it asks for; for ``replica_too_large`` those of its largest replica.
    largest_offer_gpus : int
        Most GPUs that the cluster could ever give for them.
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
        need, offer = f"job {self.job!r}: gpus={self.need_gpus}", self.largest_offer_gpus
        if self.reason is Reason.NO_PACKING:
            return f"{need} of {offer}, but there is no way to keep every replica inside one server"
        if self.reason is Reason.REPLICA_TOO_LARGE:
            return f"{need} of one replica, but the largest server has {offer}"
        where = "the whole cluster" if self.reason is Reason.CLUSTER_TOO_SMALL else "the largest server"
        return f"{need} but {where} has {offer}"


def never_fits(job: Job, cluster: Cluster) -> Refusal | None:
    """Refusal of a job that no state of the cluster could ever hold, or None.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> job = Job(id="x", release_s=0, work=Fixed(duration_s=1), gpus=17)
    >>> never_fits(job, Cluster.uniform(2)).text
    "job 'x': gpus=17 but the whole cluster has 16"
    """
    need, offer = job.gpus, cluster.largest
    if need > cluster.gpus:
        offer, reason = cluster.gpus, Reason.CLUSTER_TOO_SMALL
    elif job.locality is Locality.SERVER and need > offer:
        reason = Reason.SERVER_TOO_SMALL
    elif need <= offer or not (pieces := pieces_of(job)):
        return None
    elif pieces[0][0] > offer:
        need, reason = pieces[0][0], Reason.REPLICA_TOO_LARGE
    elif servers_needed(job, cluster) > len(cluster.servers):
        offer, reason = cluster.gpus, Reason.NO_PACKING
    else:
        return None
    return Refusal(job=job.id, need_gpus=need, largest_offer_gpus=offer, reason=reason)
