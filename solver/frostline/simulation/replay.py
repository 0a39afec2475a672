"""A scheduler that is told all jobs before the first one comes, for policies that plan them as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frostline.errors import InvalidValueError
from frostline.policies.base import Policy
from frostline.policies.registry import make_policy
from frostline.policies.task import Offer, Task
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Job
from frostline.problem.schedule import Segment
from frostline.scheduler.outlook import Predictor
from frostline.scheduler.scheduler import Scheduler
from frostline.scheduler.state import State
from frostline.timing.duration import job_duration_us

__all__ = ["Replay"]


class Replay(Scheduler):
    """A scheduler whose policy has planned all jobs, and that offers them the GPUs of the plan.

    Parameters
    ----------
    cluster : Cluster
        The servers.
    policy : Policy or str
        A policy with a method ``whole_plan``, such as ``"offline-optimal"``, which gives the run of every job of an
        instance that fits; the policy finds it in the ``plan`` of its view.
    expected : iterable of Job
        All jobs that will come.
    placement, predictor
        As of :class:`~frostline.scheduler.Scheduler`; there must be no predictor.

    Raises
    ------
    InvalidValueError
        The policy does not plan a whole instance, or there is a predictor.
    TooLargeError
        The instance is too large for the policy.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="b", release_s=1, work=Fixed(duration_s=2), gpus=4)]
    >>> scheduler = Replay(Cluster.uniform(1), "offline-optimal", jobs)
    >>> scheduler.submit(jobs[0])
    >>> scheduler.advance(0)
    Decision(starts=(), wake_s=3.0, evictions=(), failed=())
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy | str,
        expected: Iterable[Job] = (),
        *,
        placement: str = "local-search",
        predictor: Predictor | None = None,
    ) -> None:
        chosen, jobs = make_policy(policy) if isinstance(policy, str) else policy, tuple(expected)
        plan = getattr(chosen, "whole_plan", None)
        if plan is None:
            raise InvalidValueError("replay", "policy", chosen.name, "must plan a whole instance")
        if predictor is not None:
            rule = f"must be None: policy {chosen.name!r} must know the sizes"
            raise InvalidValueError("scheduler", "predictor", type(predictor).__name__, rule)
        super().__init__(cluster, chosen, jobs, placement=placement)
        self._state = _Planned(cluster, chosen, placement, plan(Instance(cluster=cluster, jobs=jobs)))

    def fail(self, server: str) -> None:
        """Refused: the plan is for servers that do not fail."""
        raise _unplanned("fail", server)

    def drain(self, server: str) -> None:
        """Refused: the plan is for servers that are not drained."""
        raise _unplanned("drain", server)


def _unplanned(event: str, server: str) -> InvalidValueError:
    return InvalidValueError("replay", event, server, "must not be reported: the plan needs all servers")


class _Planned(State):
    """State in which every job is offered its place in a plan."""

    __slots__ = ("plan",)

    def __init__(self, cluster: Cluster, policy: Policy, placement: str, plan: Mapping[str, Segment]) -> None:
        super().__init__(cluster, policy, (), placement)
        self.plan = dict(plan)

    def offer(self, task: Task) -> Offer | None:
        """The GPUs of the plan; None while they are not free."""
        segment = self.plan.get(task.job.id)
        if segment is None:
            return super().offer(task)
        if any(self.free.by_server[server] < gpus for server, gpus in segment.placement.loads):
            return None
        return Offer(segment.placement, job_duration_us(task.job, self.cluster, segment.placement))
