"""Branching on how many servers hold a stage so or so far, where the linear relaxation leaves a gap.

A column where a stage is whole and one where half of it is missing cost very different things, and the relaxation mixes
them. So the search splits on the number of servers that hold at least so many replicas of a stage: at most n of them,
or more. Either way columns keep their form and prices their meaning, so that every leaf is closed by prices of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from frostline.placement.column_master import Picked, Relaxed
from frostline.placement.pattern_bound import Generation
from frostline.placement.pattern_problem import Limits, Prices, Threshold

__all__ = ["Branch", "PriceTree", "Proof", "proved_limit_ns"]

_PICK_NODES = 200


@dataclass(frozen=True, slots=True)
class Branch:
    """Either at most ``servers`` servers reach a threshold, or more: both are proved impossible."""

    threshold: Threshold
    servers: int
    fewer: Proof
    more: Proof


Proof = Prices | Branch
"""Prices, or a tree of branches with prices at the leaves."""


def proved_limit_ns(proof: Proof) -> int:
    """Largest time limit that a proof shows to be too low: later leaves of a tree may prove less than earlier ones."""
    if isinstance(proof, Prices):
        return proof.limit_ns
    return min(proved_limit_ns(proof.fewer), proved_limit_ns(proof.more))


class _UnprovedError(Exception):
    """The tree could not be finished."""


class PriceTree:
    """Search for a placement that beats the best known one, or for a proof that there is none.

    Parameters
    ----------
    generation : Generation
        Column generation.
    known_ns : callable
        Slowest column of the best placement so far; below it the search goes on.
    accept : callable
        Takes columns that place everything.
    stop : callable
        Whether to stop.
    left_s : callable
        Seconds left.
    most_nodes : int
        Most nodes of the tree.
    """

    def __init__(
        self,
        generation: Generation,
        known_ns: Callable[[], int],
        accept: Callable[[Picked], None],
        stop: Callable[[], bool],
        left_s: Callable[[], float],
        most_nodes: int,
    ) -> None:
        self._generation, self._master = generation, generation.master
        self._known_ns, self._accept, self._stop, self._left_s = known_ns, accept, stop, left_s
        self._nodes, self._most_nodes = 0, most_nodes

    def run(self) -> Proof | None:
        """Proof that no placement beats the best one known at the end; None where the search was cut short."""
        try:
            return self._proof({})
        except _UnprovedError:
            return None

    def _proof(self, limits: Limits) -> Proof:
        self._nodes += 1
        while not self._stop() and self._nodes <= self._most_nodes:
            found = self._generation.run(self._known_ns() - 1, limits)
            if isinstance(found, Prices):
                return found
            if found is None:
                break
            if not self._improved(found, limits):
                return self._branched(found, limits)
        raise _UnprovedError

    def _improved(self, relaxed: Relaxed, limits: Limits) -> bool:
        """Whether the relaxed solution is whole, or known columns have a whole one; tried at ever fewer nodes."""
        picked = self._master.whole(relaxed)
        if picked is None and self._nodes & (self._nodes - 1) == 0:
            picked, _ = self._master.pick(self._known_ns() - 1, self._left_s(), limits, _PICK_NODES)
        known_ns = self._known_ns()
        if picked is not None:
            self._accept(picked)
        return self._known_ns() < known_ns

    def _branched(self, relaxed: Relaxed, limits: Limits) -> Proof:
        doubt = self._master.doubtful(relaxed)
        if doubt is None:
            raise _UnprovedError
        threshold, servers = doubt
        self._master.watch(threshold)
        low, high = limits.get(threshold, (0, math.inf))
        more = self._proof({**limits, threshold: (servers + 1, high)})
        fewer = self._proof({**limits, threshold: (low, servers)})
        return Branch(threshold, servers, fewer, more)
