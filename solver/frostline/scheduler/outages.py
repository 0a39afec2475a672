"""Servers that fail, are drained and come back: what was reported of them, and what becomes of it."""

from __future__ import annotations

from collections.abc import Collection

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.free_gpus import shape_of
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic
from frostline.scheduler.state import State

__all__ = ["ServerStates", "stranded"]


class ServerStates:
    """Which servers are down or drained, and the reports that take effect at the next decision.

    Parameters
    ----------
    cluster : Cluster
        The servers; all are up at first.

    Attributes
    ----------
    down, drained : set of int
        Servers that have failed, and those that run what they have but take no starts.
    failed : list of str
        Jobs that have lost their GPUs to failures and of which nobody has been told yet.
    pending : bool
        Whether something was reported that has not taken effect.
    """

    __slots__ = ("_cluster", "_draining", "_failing", "_numbers", "_recovering", "down", "drained", "failed", "pending")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._numbers = {server.id: m for m, server in enumerate(cluster.servers)}
        self.down: set[int] = set()
        self.drained: set[int] = set()
        self.failed: list[str] = []
        self._failing: set[int] = set()
        self._recovering: set[int] = set()
        self._draining: set[int] = set()
        self.pending = False

    def names(self, servers: Collection[int]) -> tuple[str, ...]:
        """Identifiers of some servers, in the order of the cluster."""
        return tuple(self._cluster.servers[m].id for m in sorted(servers))

    def fail(self, server: str) -> None:
        """A server fails; one that was to recover at this instant does not."""
        m = self._number(server)
        if m in self.down | self._failing and m not in self._recovering:
            raise InvalidValueError("scheduler", "fail", server, "must be a server that is not down already")
        self._recovering.discard(m)
        if m not in self.down:
            self._failing.add(m)
        self.pending = True

    def recover(self, server: str) -> None:
        """A server that is down or drained, or fails at this instant, takes starts again."""
        m = self._number(server)
        if m not in self.down | self.drained | self._failing or m in self._recovering:
            raise InvalidValueError("scheduler", "recover", server, "must be a server that is down or drained")
        self._recovering.add(m)
        self.pending = True

    def drain(self, server: str) -> None:
        """A server that is up takes no more starts."""
        m = self._number(server)
        if m in self.down | self.drained | self._failing | self._recovering | self._draining:
            raise InvalidValueError("scheduler", "drain", server, "must be a server that is up")
        self._draining.add(m)
        self.pending = True

    def _number(self, server: str) -> int:
        number = self._numbers.get(server) if isinstance(server, str) else None
        if number is None:
            raise UnknownNameError("server", str(server), self._numbers)
        return number

    def apply(self, state: State) -> None:
        """Let the reports take effect at the present of a state: failures first, then recoveries, then drains.

        What a policy or a predictor raises is raised once all is done.
        """
        failing, recovering, draining = self._failing, self._recovering, self._draining
        self._failing, self._recovering, self._draining = set(), set(), set()
        self.pending = False
        error = self._cut_off(state, failing)
        for m in sorted(failing - self.drained):
            state.close(m)
        self.drained -= failing
        self.down |= failing
        for m in sorted(recovering):
            state.reopen(m)
        self.down -= recovering
        self.drained -= recovering
        for m in sorted(draining - self.down):
            state.close(m)
        self.drained |= draining - self.down
        if error is not None:
            raise error

    def _cut_off(self, state: State, failing: set[int]) -> Exception | None:
        """The jobs that hold GPUs of failing servers lose all they hold, in order of arrival; the first error."""
        hit = [run for run in state.runs.values() if not failing.isdisjoint(m for m, _ in run.loads)]
        first: Exception | None = None
        for run in sorted(hit, key=lambda run: run.number):
            self.failed.append(run.task.job.id)
            try:
                state.fail(run)
            except Exception as error:
                first = first or error
        return first


def stranded(state: State) -> tuple[str, ...]:
    """Waiting jobs that need servers that are down or drained, in order of arrival."""
    if not state.free.closed:
        return ()
    waiting = sorted(state.waiting.tasks.values(), key=lambda task: task.number)
    return tuple(task.job.id for task in waiting if not _may_run(state, task))


def _may_run(state: State, task: Task) -> bool:
    """Whether the open servers could hold a task, elastic work at any of its widths where the policy may choose."""
    job, free = task.job, state.free
    if state.elastic and isinstance(job.work, Elastic):
        return any(free.could_hold(shape_of(job, state.cluster, gpus)) for gpus in job.work.widths)
    return free.could_hold(task.shape)
