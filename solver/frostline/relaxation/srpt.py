"""The virtual single machine: preemptive shortest remaining processing time, in exact integers.

The machine has the speed of all G GPUs together. Job i brings w_i = g_i · p_i GPU-microseconds of work, and the
machine serves G of them in a microsecond. Time is kept in units of 1/G microseconds, so that every completion is
a whole number. SRPT leaves the fewest unfinished jobs at every instant (L. Schrage, *A proof of the optimality of
the shortest remaining processing time discipline*, Operations Research 16(3), 1968, doi:10.1287/opre.16.3.687).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

__all__ = ["VirtualMachine", "virtual_completions"]


class VirtualMachine:
    """Preemptive SRPT on one machine, fed with one arrival at a time, O(log n) each.

    Parameters
    ----------
    gpus : int
        G, the speed of the machine.

    Notes
    -----
    Ties of remaining work go to the job that arrived first.

    Examples
    --------
    >>> machine = VirtualMachine(gpus=2)
    >>> machine.arrive(0, 0, work=20)
    >>> machine.arrive(1, 1, work=2)
    >>> machine.next_completion_us
    2
    >>> machine.advance(11)
    [(4, 1), (22, 0)]
    """

    __slots__ = ("_alive", "_clock", "gpus")

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self._clock = 0  # in 1/G microseconds
        self._alive: list[tuple[int, int]] = []  # (remaining work, job); the first one is being served

    def arrive(self, time_us: int, job: int, work: int) -> None:
        """Add a job; ``job`` numbers must rise with arrivals, and completions before ``time_us`` be collected.

        Parameters
        ----------
        time_us : int
            Arrival in microseconds, not before the last :meth:`advance` or :meth:`arrive`.
        job : int
            Number of the job, which breaks ties.
        work : int
            Work in GPU-microseconds, at least 1.
        """
        self._serve(time_us * self.gpus)
        heappush(self._alive, (work, job))

    def _serve(self, until: int) -> None:
        """Serve the first job until an instant before which nothing completes."""
        if self._alive:
            remaining, job = self._alive[0]
            self._alive[0] = (remaining - until + self._clock, job)
        self._clock = until

    @property
    def next_completion_us(self) -> int | None:
        """Next completion if nothing arrives, rounded up to a microsecond; None when the machine is idle."""
        if not self._alive:
            return None
        return -((self._clock + self._alive[0][0]) // -self.gpus)

    def advance(self, time_us: int) -> list[tuple[int, int]]:
        """Run until ``time_us``; completions as (time in 1/G microseconds, job), in order."""
        until = time_us * self.gpus
        done: list[tuple[int, int]] = []
        while self._alive and self._clock + self._alive[0][0] <= until:
            remaining, job = heappop(self._alive)
            self._clock += remaining
            done.append((self._clock, job))
        self._serve(until)
        return done

    def drain(self) -> Iterator[tuple[int, int]]:
        """Run until idle; completions as in :meth:`advance`."""
        while self._alive:
            remaining, job = heappop(self._alive)
            self._clock += remaining
            yield self._clock, job


def virtual_completions(jobs: Iterable[tuple[int, int]], gpus: int) -> list[int]:
    """Virtual completion of every job, in units of 1/G microseconds.

    Parameters
    ----------
    jobs : iterable of (int, int)
        Release in microseconds and work in GPU-microseconds, sorted by release.
    gpus : int
        G.

    Examples
    --------
    Three jobs on a machine of speed 8; their flows add up to 98.75.

    >>> completions = virtual_completions([(0, 600), (1, 80), (2, 10)], gpus=8)
    >>> [completion / 8 - release for completion, release in zip(completions, (0, 1, 2))]
    [86.25, 11.25, 1.25]
    """
    machine = VirtualMachine(gpus)
    completion: dict[int, int] = {}
    for job, (release_us, work) in enumerate(jobs):
        completion.update((number, at) for at, number in machine.advance(release_us))
        machine.arrive(release_us, job, work)
    completion.update((number, at) for at, number in machine.drain())
    return [completion[job] for job in range(len(completion))]
