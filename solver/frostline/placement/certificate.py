"""What proves a placement, as a document of integers that can be checked without this package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frostline.placement.column_space import elimination_order
from frostline.placement.pattern_problem import PatternProblem, Prices, Threshold
from frostline.placement.pattern_tree import Proof, proved_limit_ns
from frostline.placement.request import Objective, Request
from frostline.problem.placement import Placement
from frostline.timing.column_costs import ColumnCosts
from frostline.timing.iteration_time import IterationTime, total_ns

__all__ = ["CERTIFICATE_FORMAT", "Evidence", "placement_problem"]

Path = tuple[tuple[Threshold, int], ...]
"""Branches on the way to a leaf: the threshold, and 1 for more servers or -1 for fewer."""

CERTIFICATE_FORMAT = "frostline/placement-certificate"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The request that a placement answers, and prices that prove a bound on it, if any were found."""

    request: Request
    proof: Proof | None = None

    def certificate(self, placement: Placement, iteration_ns: int) -> dict[str, Any] | None:
        """Document for a placement and its time; None where the timing model has no integer tables.

        Its bound is the one that the base time or prices prove; an integer program may have proved a higher one.
        """
        request = self.request
        used = len(placement.columns) if request.objective is Objective.CONSOLIDATE else None
        problem = placement_problem(request.timing, request.free, most_servers=used)
        if problem is None:
            return None
        bound_ns, proof = request.timing.bound_ns, None
        if self.proof is not None:
            limit_ns = proved_limit_ns(self.proof)
            bound_ns = max(bound_ns, total_ns(request.timing, limit_ns + 1))
            proof = _Writer(request, limit_ns).document(self.proof)
        content = {
            "format": CERTIFICATE_FORMAT,
            "version": 1,
            "problem": problem,
            "placement": [[server, list(column)] for server, column in placement.columns],
            "iteration_ns": iteration_ns,
            "bound_ns": bound_ns,
            "proof": proof,
        }
        return {**content, "sha256": _digest(content)}


def placement_problem(
    timing: IterationTime, free: Sequence[int], *, most_servers: int | None = None
) -> dict[str, Any] | None:
    """Placement problem in integers, as certificates state it; None where the timing model has no integer tables.

    Parameters
    ----------
    timing : IterationTime
        Model of the iteration time.
    free : sequence of int, shape (servers,)
        Free GPUs of each server.
    most_servers : int, optional
        Most servers that may be used.

    Examples
    --------
    >>> from frostline.timing import ContentionTime, StageGraph
    >>> pair = StageGraph(replicas=[1, 1], compute_s=[1, 2], edges={(0, 1): 8})
    >>> problem = placement_problem(ContentionTime(graph=pair, nic_bytes_per_s=1e9), [1, 1])
    >>> problem["base_ns"], problem["classes"][0]["pairs"], problem["servers"]
    (2000000000, [[0, 1, 4]], [[0, 1], [0, 1]])
    """
    kinds = [timing.server_class(server) for server in range(len(free))]
    distinct = sorted(set(kinds))
    costs = [timing.costs(kinds.index(kind)) for kind in distinct]
    if None in costs:
        return None
    return {
        "replicas": list(timing.graph.replicas),
        "gpus_per_replica": list(timing.graph.gpus_per_replica),
        "base_ns": timing.base_ns,
        "overlap": timing.overlap,
        "classes": [_tables(table) for table in costs if table is not None],
        "servers": [[distinct.index(kind), count] for kind, count in zip(kinds, free, strict=True)],
        "most_servers": most_servers,
    }


def _tables(costs: ColumnCosts) -> dict[str, Any]:
    return {
        "kind": costs.kind.value,
        "pairs": [list(pair) for pair in costs.pairs],
        "rings": list(costs.rings),
        "local": list(costs.local),
    }


class _Writer:
    """Writes proofs of one time limit."""

    def __init__(self, request: Request, limit_ns: int) -> None:
        self._limit_ns, self._problem = limit_ns, PatternProblem(request)
        kinds = [request.timing.server_class(server) for server in range(len(request.free))]
        distinct = sorted(set(kinds))
        groups = {(kind, min(count, request.need)) for kind, count in zip(kinds, request.free, strict=True) if count}
        self._rooms = [(distinct.index(kind), kind, room) for kind, room in sorted(groups)]
        first = request.timing.costs(request.rows[0])
        self._order = () if first is None else elimination_order(first)

    def document(self, proof: Proof) -> dict[str, Any]:
        return {"limit_ns": self._limit_ns, "order": list(self._order), "tree": self._node(proof, ())}

    def _node(self, proof: Proof, path: Path) -> dict[str, Any]:
        if isinstance(proof, Prices):
            return self._leaf(proof, path)
        threshold, servers = proof.threshold, proof.servers
        return {
            "stage": threshold.stage,
            "replicas": threshold.replicas,
            "servers": servers,
            "fewer": self._node(proof.fewer, (*path, (threshold, -1))),
            "more": self._node(proof.more, (*path, (threshold, 1))),
        }

    def _leaf(self, prices: Prices, path: Path) -> dict[str, Any]:
        """Prices of replicas and of the branches on the way, and what servers earn by them at most."""
        columns = self._problem.worthiest(prices.worth, prices.extra, self._limit_ns)
        # No server of a class that has no columns holds a replica.
        earned = ((i, room, columns[kind].most_worth(room) if kind in columns else 0) for i, kind, room in self._rooms)
        return {
            "worth": prices.worth.tolist(),
            "extra": _extra(prices.extra, path),
            "earned": [list(entry) for entry in earned],
        }


def _extra(extra: Mapping[Threshold, int], path: Path) -> list[int]:
    """Worth of reaching the threshold of each branch; the last branch on it that has the same sign gets all."""
    left = dict(extra)
    found = []
    for threshold, sign in reversed(path):
        found.append(left.pop(threshold) if left.get(threshold, 0) * sign > 0 else 0)
    return found[::-1]


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
