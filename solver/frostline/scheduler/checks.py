"""What a scheduler refuses to be told."""

from __future__ import annotations

from frostline.errors import InvalidValueError
from frostline.policies.base import Policy
from frostline.problem.job import Fixed, Job
from frostline.units import as_finite

__all__ = ["LATEST_S", "check_size", "not_running", "stated"]

LATEST_S = 1e18
"""Latest instant, in seconds."""


def stated(restart_s: float | None, policy: Policy) -> float | None:
    """Restart that was stated, if it may be."""
    if restart_s is None:
        return None
    if getattr(policy, "restart_s", None) is not None:
        rule = f"must be None: policy {policy.name!r} tells its own"
        raise InvalidValueError("scheduler", "restart_s", restart_s, rule)
    return as_finite(restart_s, "scheduler", "restart_s", 0.0)


def not_running(job: str, event: str) -> InvalidValueError:
    """Error where an event is told of a job that does not run."""
    return InvalidValueError("scheduler", event, job, "is not a running job")


def check_size(job: Job, size: float | None) -> None:
    """Refuse a size that a job cannot have, and none where the job has iterations."""
    if size is not None and as_finite(size, f"job {job.id!r}", "size", maximum=LATEST_S) <= 0:
        raise InvalidValueError(f"job {job.id!r}", "size", size, "must be above 0")
    if size is None and not isinstance(job.work, Fixed):
        raise InvalidValueError(f"job {job.id!r}", "size", size, "must tell the iterations that were done")
