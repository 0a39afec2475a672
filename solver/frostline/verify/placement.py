"""The checker of placement certificates: exact integers, the standard library, and nothing of what made them.

A certificate states a problem, a placement, its iteration time, a lower bound and what proves it. The proof gives every
replica of stage s a worth π_s. A server *earns* the worth of the column it holds; what it could earn at most with a
column that fits and needs at most T is found here by dynamic programming over the stages. Where all servers together
earn less than all replicas are worth, no placement keeps the limit T, so that every placement takes longer.

A proof may branch: either at most n servers hold at least k replicas of stage s, or more do. In either branch, reaching
k has a worth of its own, at most 0 or at least 0, and what the servers must earn grows by that worth times n or n + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from frostline.certify.document import (
    CertificateFault,
    CertificateReport,
    MalformedError,
    digest,
    fields,
    listed,
    opened,
    whole,
    wholes,
)

__all__ = ["CertificateFaultKind", "check_placement_certificate"]

_FORMAT = "frostline/placement-certificate"
_DEEPEST = 400

Path = tuple[tuple[int, int, int, int], ...]
"""Branches on the way to a leaf: stage, replicas, servers that reach them, 1 for at least so many or -1 for at most."""

Worths = Sequence[Sequence[int]]
"""For each stage, what 0, 1, 2, … of its replicas in one server are worth."""


class CertificateFaultKind(StrEnum):
    """What may be wrong with a certificate."""

    MALFORMED = "malformed"  # not a certificate, or a field that breaks its rule
    DAMAGED = "damaged"  # changed since it was written
    OTHER_PROBLEM = "other_problem"  # about another problem than the one given
    MISPLACED = "misplaced"  # the placement leaves out or repeats replicas, or fills a server beyond its free GPUs
    WRONG_TIME = "wrong_time"  # the placement does not take the time stated
    UNPROVED = "unproved"  # the proof does not reach the bound stated


def check_placement_certificate(certificate: object, problem: Mapping[str, Any] | None = None) -> CertificateReport:
    """Check a placement certificate; nothing in it is taken on trust but the problem it states.

    Parameters
    ----------
    certificate : object
        The document, as read from JSON.
    problem : mapping, optional
        The problem that it must be about (:func:`frostline.placement.certificate.placement_problem`).

    Examples
    --------
    >>> from frostline.placement import place
    >>> from frostline.timing import StageGraph
    >>> path = StageGraph(replicas=[2, 2], compute_s=[0, 0], edges={(0, 1): 10**9})
    >>> certificate = place(path, [2, 2], method="patterns").certificate
    >>> check_placement_certificate(certificate).proved
    'no placement takes less than 11666667 ns, and this one takes 11666667 ns: it is optimal'
    >>> certificate["iteration_ns"] -= 1
    >>> for fault in check_placement_certificate(certificate).faults:
    ...     print(fault.kind, "|", fault.text)
    damaged | its content does not match its SHA-256
    wrong_time | the placement takes 11666667 ns, not 11666666 ns
    unproved | the placement takes 11666666 ns, less than the bound of 11666667 ns
    """
    try:
        document = _Document(certificate)
    except MalformedError as error:
        fault = CertificateFault(CertificateFaultKind.MALFORMED, str(error))
        return CertificateReport(faults=(fault,), proved="")
    faults = tuple(document.faults(problem))
    return CertificateReport(faults=faults, proved="" if faults else document.proved())


def _rows(value: object, path: str, length: int, least: int | None = None) -> list[list[int]]:
    return [wholes(row, f"{path}[{i}]", length, least) for i, row in enumerate(listed(value, path))]


class _Class:
    """Tables of the servers of one class."""

    def __init__(self, record: object, path: str, counts: Sequence[int]) -> None:
        kind, pairs, rings, local = fields(record, path, "kind pairs rings local")
        stages = len(counts)
        if kind not in ("egress", "slowest"):
            raise MalformedError(f"{path}.kind={kind!r} must be 'egress' or 'slowest'")
        self.adds, self.counts = kind == "egress", counts
        least = 0 if self.adds else None
        self.pairs = _rows(pairs, f"{path}.pairs", 3)
        self.rings = wholes(rings, f"{path}.rings", stages, least)
        self.local = wholes(local, f"{path}.local", stages, 0)
        seen = [(s, t) for s, t, _ in self.pairs]
        if any(not 0 <= s < t < stages for s, t in seen) or len(set(seen)) < len(seen):
            raise MalformedError(f"{path}.pairs must name two stages s < t each, no two of them twice")
        if self.adds and (any(ns < 0 for *_, ns in self.pairs) or any(self.local)):
            raise MalformedError(f"{path} must have no negative pair and no local time for 'egress'")
        self.near: list[list[tuple[int, int]]] = [[] for _ in counts]
        for s, t, ns in self.pairs:
            self.near[s].append((t, ns))
            self.near[t].append((s, ns))

    def time_ns(self, column: Sequence[int]) -> int:
        """Nanoseconds of a column."""
        held, counts = [s for s, count in enumerate(column) if count], self.counts
        if not self.adds:
            return max([0, *(self.stage_ns(column, s) for s in held)])
        crossing = (column[s] * (counts[t] - column[t]) + column[t] * (counts[s] - column[s]) for s, t, _ in self.pairs)
        egress = sum(ns * pairs for (*_, ns), pairs in zip(self.pairs, crossing, strict=True))
        return egress + sum(self.rings[s] for s in held if column[s] < counts[s])

    def stage_ns(self, column: Sequence[int] | Mapping[int, int], stage: int) -> int:
        """Nanoseconds of a stage of a column, where the slowest counts."""
        far = sum(ns * (self.counts[t] - column[t]) for t, ns in self.near[stage])
        return self.local[stage] + far + (self.rings[stage] if column[stage] < self.counts[stage] else 0)

    def least_ns(self, stage: int) -> int:
        """Nanoseconds that no server with a replica of a stage goes below."""
        far = sum(min(ns, 0) * self.counts[t] for t, ns in self.near[stage])
        return max(0, 0 if self.adds else self.local[stage] + far + min(self.rings[stage], 0))

    def looked_at(self) -> list[frozenset[int]]:
        """Sets of stages whose counts some cost needs together."""
        if self.adds:
            return [frozenset((s, t)) for s, t, ns in self.pairs if ns]
        return [frozenset((s, *(t for t, _ in near))) for s, near in enumerate(self.near)]


def _check_node(node: object, path: str, stages: int, depth: int) -> None:
    """Refuse a tree whose nodes break a rule."""
    if depth > _DEEPEST:
        raise MalformedError(f"proof.tree must be at most {_DEEPEST} deep")
    if type(node) is dict and "fewer" in node:
        stage, replicas, servers, fewer, more = fields(node, path, "stage replicas servers fewer more")
        if whole(stage, f"{path}.stage", 0) >= stages or whole(replicas, f"{path}.replicas", 0) == 0:
            raise MalformedError(f"{path} must name a stage and at least one replica of it")
        whole(servers, f"{path}.servers", 0)
        _check_node(fewer, f"{path}.fewer", stages, depth + 1)
        _check_node(more, f"{path}.more", stages, depth + 1)
        return
    worth, extra, earned = fields(node, path, "worth extra earned")
    wholes(worth, f"{path}.worth", stages)
    wholes(extra, f"{path}.extra")
    _rows(earned, f"{path}.earned", 3, 0)


class _Document:
    """A certificate whose fields all keep their rules."""

    def __init__(self, certificate: object) -> None:
        values, self.intact = opened(certificate, _FORMAT, "problem placement iteration_ns bound_ns proof")
        self.problem, placement, iteration_ns, bound_ns, proof = values
        self._read_problem(self.problem)
        self.iteration_ns, self.bound_ns = whole(iteration_ns, "iteration_ns", 0), whole(bound_ns, "bound_ns", 0)
        self._read_placement(placement)
        self.proof = None if proof is None else self._read_proof(proof)

    def _read_problem(self, record: object) -> None:
        names = "replicas gpus_per_replica base_ns overlap classes servers most_servers"
        replicas, sizes, base_ns, self.overlap, classes, servers, most = fields(record, "problem", names)
        self.counts = wholes(replicas, "problem.replicas", least=1)
        self.sizes = wholes(sizes, "problem.gpus_per_replica", len(self.counts), 1)
        self.base_ns = whole(base_ns, "problem.base_ns", 0)
        if type(self.overlap) is not bool or type(classes) is not list or not self.counts:
            raise MalformedError("problem must have stages, overlap true or false, and a list of classes")
        self.classes = [_Class(tables, f"problem.classes[{i}]", self.counts) for i, tables in enumerate(classes)]
        self.servers = _rows(servers, "problem.servers", 2, 0)
        if any(kind >= len(self.classes) for kind, _ in self.servers) or not self.servers:
            raise MalformedError("problem.servers must name classes that there are")
        self.most_servers = None if most is None else whole(most, "problem.most_servers", 1)

    def _read_placement(self, value: object) -> None:
        if type(value) is not list or any(type(entry) is not list or len(entry) != 2 for entry in value):
            raise MalformedError("placement must be a list of servers and their columns")
        self.placement = [
            (whole(server, f"placement[{i}][0]", 0), wholes(column, f"placement[{i}][1]", len(self.counts), 0))
            for i, (server, column) in enumerate(value)
        ]

    def _read_proof(self, record: object) -> tuple[int, list[int], object]:
        limit_ns, order, tree = fields(record, "proof", "limit_ns order tree")
        path = wholes(order, "proof.order", len(self.counts))
        if sorted(path) != list(range(len(self.counts))):
            raise MalformedError("proof.order must name every stage once")
        _check_node(tree, "proof.tree", len(self.counts), 0)
        return whole(limit_ns, "proof.limit_ns", 0), path, tree

    def faults(self, problem: Mapping[str, Any] | None) -> Iterator[CertificateFault]:
        """What is wrong with it."""
        if not self.intact:
            yield CertificateFault(CertificateFaultKind.DAMAGED, "its content does not match its SHA-256")
        if problem is not None and digest(problem) != digest(self.problem):
            yield CertificateFault(CertificateFaultKind.OTHER_PROBLEM, "it is about another problem")
        misplaced = [*self._misplaced()]
        yield from (CertificateFault(CertificateFaultKind.MISPLACED, text) for text in misplaced)
        if not misplaced:
            slowest = max(self.classes[self.servers[m][0]].time_ns(column) for m, column in self.placement)
            if self._total_ns(slowest) != self.iteration_ns:
                text = f"the placement takes {self._total_ns(slowest)} ns, not {self.iteration_ns} ns"
                yield CertificateFault(CertificateFaultKind.WRONG_TIME, text)
        yield from (CertificateFault(CertificateFaultKind.UNPROVED, text) for text in self._unproved())

    def _misplaced(self) -> Iterator[str]:
        named = [server for server, _ in self.placement]
        if len(set(named)) < len(named) or any(server >= len(self.servers) for server in named):
            yield "the placement names a server twice, or one that there is not"
            return
        if self.most_servers is not None and len(named) > self.most_servers:
            yield f"the placement is on {len(named)} servers, more than {self.most_servers}"
        for server, column in self.placement:
            load, free = sum(c * g for c, g in zip(column, self.sizes, strict=True)), self.servers[server][1]
            if not 0 < load <= free:
                yield f"server {server} holds {load} of its {free} free GPUs"
        placed = [sum(column[s] for _, column in self.placement) for s in range(len(self.counts))]
        if placed != self.counts:
            yield f"the placement has {placed} replicas of the stages, not {self.counts}"

    def _total_ns(self, slowest_ns: int) -> int:
        return max(self.base_ns, slowest_ns) if self.overlap else self.base_ns + slowest_ns

    def _unproved(self) -> Iterator[str]:
        """What the bound lacks: the base time, or prices that leave a surplus, must reach it."""
        stages = range(len(self.counts))
        present = {kind for kind, free in self.servers if free}
        slowest = max((min((self.classes[k].least_ns(s) for k in present), default=0) for s in stages), default=0)
        proved_ns = self._total_ns(slowest)
        if self.proof is not None:
            limit_ns, order, tree = self.proof
            gaps = [*self._gaps(tree, (), limit_ns, order)]
            yield from gaps
            if not gaps:
                proved_ns = max(proved_ns, self._total_ns(limit_ns + 1))
        if proved_ns < self.bound_ns:
            yield f"only a bound of {proved_ns} ns is proved, not {self.bound_ns} ns"
        if self.iteration_ns < self.bound_ns:
            yield f"the placement takes {self.iteration_ns} ns, less than the bound of {self.bound_ns} ns"

    def _gaps(self, node: Any, path: Path, limit_ns: int, order: Sequence[int]) -> Iterator[str]:
        """What leaves of a tree do not prove."""
        if "fewer" in node:
            branch = (node["stage"], node["replicas"])
            yield from self._gaps(node["fewer"], (*path, (*branch, node["servers"], -1)), limit_ns, order)
            yield from self._gaps(node["more"], (*path, (*branch, node["servers"] + 1, 1)), limit_ns, order)
            return
        worth, extra = node["worth"], node["extra"]
        if len(extra) != len(path) or any(x * sign < 0 for x, (*_, sign) in zip(extra, path, strict=True)):
            yield "a leaf has prices of branches that do not fit its branches"
            return
        worths = [[w * count for count in range(k + 1)] for w, k in zip(worth, self.counts, strict=True)]
        for ns, (stage, replicas, _, _) in zip(extra, path, strict=True):
            for count in range(replicas, self.counts[stage] + 1):
                worths[stage][count] += ns
        earned = self._earned(limit_ns, worths, order)
        placed = sum(w * k for w, k in zip(worth, self.counts, strict=True))
        placed += sum(ns * servers for ns, (_, _, servers, _) in zip(extra, path, strict=True))
        if node["earned"] != [[kind, room, earned[kind, room]] for kind, room in sorted(earned)]:
            yield "servers do not earn what is stated"
        elif placed <= self._most_earned(earned):
            yield f"servers may earn {self._most_earned(earned)}, not less than the {placed} that must be placed"

    def _rooms(self) -> list[tuple[int, int]]:
        """Class and room of each server that has any, the whole job being the most that matters."""
        need = sum(k * g for k, g in zip(self.counts, self.sizes, strict=True))
        return [(kind, min(free, need)) for kind, free in self.servers if free]

    def _earned(self, limit_ns: int, worths: Worths, order: Sequence[int]) -> dict[tuple[int, int], int]:
        """Most that a server of each class and room earns with a column that needs at most ``limit_ns``."""
        rooms = sorted(set(self._rooms()))
        earned: dict[tuple[int, int], int] = {}
        for kind in {kind for kind, _ in rooms}:
            room = max(room for other, room in rooms if other == kind)
            best = _worthiest(self.classes[kind], self.sizes, worths, order, limit_ns, room)
            earned |= {(kind, r): max(best[: r + 1]) for other, r in rooms if other == kind}
        return earned

    def _most_earned(self, earned: Mapping[tuple[int, int], int]) -> int:
        """Most that as many servers earn together as may be used; no more than there are replicas."""
        most = sum(self.counts) if self.most_servers is None else min(self.most_servers, sum(self.counts))
        return sum(sorted((earned[room] for room in self._rooms()), reverse=True)[:most])

    def proved(self) -> str:
        """What it proves, in a sentence."""
        where = "" if self.most_servers is None else f" on at most {self.most_servers} servers"
        gap = 100 * (self.iteration_ns - self.bound_ns) / max(self.bound_ns, 1)
        how_good = f"at most {gap:.3g} % from optimal" if gap else "it is optimal"
        times = f"less than {self.bound_ns} ns, and this one takes {self.iteration_ns} ns"
        return f"no placement{where} takes {times}: {how_good}"


Labels = dict[tuple[tuple[int, ...], int], list[tuple[int, int]]]
"""Cost and worth of partial columns, by the counts that later costs look at and the GPUs used."""


def _worthiest(
    tables: _Class, sizes: Sequence[int], worths: Worths, order: Sequence[int], limit_ns: int, room: int
) -> list[int]:
    """For each load, the worth of the worthiest column that needs at most ``limit_ns``, or 0."""
    sets = tables.looked_at()
    labels: Labels = {((), 0): [(0, 0)]}
    seen: tuple[int, ...] = ()
    for position, stage in enumerate(order):
        decided = set(order[: position + 1])
        waiting = [group for group in sets if not group <= decided]
        kept = tuple(s for s in (*seen, stage) if any(s in group for group in waiting))
        due = [] if tables.adds else [s for s, group in enumerate(sets) if stage in group and group <= decided]
        longer: Labels = {}
        for (counts, used), ways in labels.items():
            held = dict(zip(seen, counts, strict=True))
            for count in range(min(tables.counts[stage], (room - used) // sizes[stage]) + 1):
                held[stage] = count
                cost = _cost(tables, held, stage, due, limit_ns)
                better = [(c + cost, w + worths[stage][count]) for c, w in ways if c + cost <= limit_ns]
                key = (tuple(held[s] for s in kept), used + count * sizes[stage])
                longer.setdefault(key, []).extend(better)
        labels = {key: _undominated(ways, tables.adds) for key, ways in longer.items() if ways}
        seen = kept
    best = [0] * (room + 1)
    for (_, used), ways in labels.items():
        best[used] = max(best[used], *(w for _, w in ways))
    return best


def _cost(tables: _Class, held: Mapping[int, int], stage: int, due: Sequence[int], limit_ns: int) -> int:
    """What a stage adds to the cost, or whether the stages that are now complete break the limit."""
    if not tables.adds:
        return limit_ns + 1 if any(held[s] and tables.stage_ns(held, s) > limit_ns for s in due) else 0
    count, total = held[stage], tables.counts
    cost = tables.rings[stage] if 0 < count < total[stage] else 0
    for other, ns in tables.near[stage]:
        if ns and other in held:
            cost += ns * (count * (total[other] - held[other]) + held[other] * (total[stage] - count))
    return cost


def _undominated(ways: list[tuple[int, int]], adds: bool) -> list[tuple[int, int]]:
    """Of costs and worths those that no other beats in both."""
    if not adds:
        return [max(ways)]
    kept: list[tuple[int, int]] = []
    for cost, worth in sorted(ways):
        if not kept or worth > kept[-1][1]:
            kept.append((cost, worth))
    return kept
