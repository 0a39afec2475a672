"""What can be wrong with a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Fault", "FaultKind", "Report"]


class FaultKind(StrEnum):
    """The rules of a schedule, by the name of their breach."""

    UNKNOWN_JOB = "unknown_job"  # a segment or a refusal of a job that the instance does not have
    MISSING_JOB = "missing_job"  # neither run nor refused
    REFUSED_BUT_FITS = "refused_but_fits"  # refused, although the empty cluster could hold it
    REFUSED_BUT_RAN = "refused_but_ran"  # refused, and run all the same
    BAD_INTERVAL = "bad_interval"  # end not after start, or not in whole microseconds
    STARTS_BEFORE_RELEASE = "starts_before_release"
    UNFINISHED = "unfinished"  # left to wait, although all servers come back
    UNKNOWN_SERVER = "unknown_server"  # a server that the cluster does not have
    SERVER_DOWN = "server_down"  # on a server while it is down
    WRONG_GPUS = "wrong_gpus"  # not the GPUs it asks for or may take, or not the replicas of each stage of its plan
    LOCALITY = "locality"  # on more servers than its locality allows
    WRONG_LEVEL = "wrong_level"  # a freeze level that its work does not have, or before its warm-up is over
    WRONG_DURATION = "wrong_duration"  # not as long as its work takes where it was placed
    INTERRUPTED = "interrupted"  # in several pieces, although the schedule evicts no job and no server failed
    DOUBLE_BOOKING = "double_booking"  # holds two sets of GPUs at once
    OVER_CAPACITY = "over_capacity"  # a server holds more than its GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One breach of one rule.

    Parameters
    ----------
    kind : FaultKind
        The rule.
    job : str
        The job at fault, empty for an outage; for ``over_capacity`` the last of those on the server to start before it
        is full.
    server : str or None
        Identifier of the server, where the fault lies on one; the index of an unknown server.
    at_s : float or None
        When it happens, in seconds.
    text : str
        One sentence for people.
    """

    kind: FaultKind
    job: str
    server: str | None = None
    at_s: float | None = None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All faults of a schedule, in order of time (those of no instant come first).

    Parameters
    ----------
    faults : tuple of Fault
        What is wrong; empty for a valid schedule.
    """

    faults: tuple[Fault, ...]

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults
