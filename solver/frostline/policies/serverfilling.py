"""ServerFilling-SRPT: of the tasks with least GPU-time left that would fill the cluster, the widest first.

I. Grosof, Z. Scully, M. Harchol-Balter, A. Scheller-Wolf, *Optimal Scheduling in the Multiserver-job Model under Heavy
Traffic*, Proceedings of the ACM on Measurement and Analysis of Computing Systems 6 (3), 2022: where all widths, and the
GPUs of the cluster, are powers of 2, no GPU idles while enough is asked for, and as the load grows to 1 the mean flow
time comes to that of SRPT on one machine as fast as the cluster, below which no policy gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge

from frostline.policies.base import WAIT, Decision, View
from frostline.policies.disciplines import fit_anything
from frostline.policies.eviction import divisible, first_with_room
from frostline.policies.srtf import Srtf
from frostline.policies.task import Running, Task

__all__ = ["ServerFillingSrpt"]

_Ranked = tuple[int, int, Task | Running]
"""A task or its run, with the GPU-time that it has left and its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFillingSrpt(Srtf):
    """ServerFilling-SRPT: the least GPU-time left that fills the cluster, and of that the widest first.

    At each arrival and completion, tasks are taken in order of the GPU-time that they have left, waiting or not, until
    they ask for as many GPUs as there are. The widest of these are served, as many as the GPUs suffice for. Each one
    that waits starts if it fits, or if it fits once others are evicted that are not served or, where servers are
    apart, are narrower: those with most left first, and nobody who could be spared. Who was evicted too often keeps
    its GPUs, and these are not counted. Where that leaves GPUs free, because widths are no powers of 2 or servers are
    apart, others start in order, whatever fits. A restart counts as time left.

    Parameters
    ----------
    restart_s, most_evictions
        See :class:`~frostline.policies.srtf.Srtf`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "serverfilling-srpt"

    def priority(self, task: Task) -> int:
        """GPU-time that it has left, with its restart if it was evicted."""
        return task.gpus * Srtf.priority(self, task)

    def decide(self, view: View) -> Decision:
        """First task that is served and waits, if there is room for it; else what fits, at arrivals and completions."""
        now_us = view.now_us
        if view.event_us != now_us:
            return WAIT
        runs, gpus = divisible(view, self.most_evictions)
        running = sorted([(run.gpus * run.left_us(now_us), run.number, run) for run in runs])
        candidates = [*_least_left(view, running, gpus)]
        if not any(isinstance(each, Task) for *_, each in candidates):
            return fit_anything(view)
        served = _widest(candidates, gpus)
        kept = {each.number for each in served}
        others = (run for _, number, run in reversed(running) if number not in kept)
        return first_with_room(view, served, others) or fit_anything(view)


def _least_left(view: View, running: Iterable[_Ranked], gpus: int) -> Iterator[_Ranked]:
    """Tasks in order of the GPU-time that they have left, until they ask for so many GPUs; without those that cannot
    have what they ask for."""
    lines = (line for line in view.waiting.lines if line.blocks and line.shape.gpus <= gpus)
    possible = (line for line in lines if view.free.could_hold(line.shape))
    wanted = 0
    for ranked in merge(running, *((entry for block in line.blocks for entry in block) for line in possible)):
        yield ranked
        wanted += ranked[2].gpus
        if wanted >= gpus:
            return


def _widest(ranked: Iterable[_Ranked], gpus: int) -> Sequence[Task | Running]:
    """Widest tasks that so many GPUs suffice for; of equal ones those with least left."""
    served = []
    for minus, *_, each in sorted([(-each.gpus, left, number, each) for left, number, each in ranked]):
        if gpus + minus >= 0:
            gpus += minus
            served.append(each)
    return served
