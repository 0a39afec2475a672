"""Exact methods against each other: one optimum, no bound above it, no heuristic below it."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest

from frostline.errors import InvalidValueError, TooLargeError
from frostline.placement import cpsat as cpsat_module
from frostline.placement.answer import Answer
from frostline.placement.brute_force import MOST_STEPS, brute_force, steps
from frostline.placement.consolidate import on_fewest
from frostline.placement.cpsat import cpsat
from frostline.placement.milp import milp
from frostline.placement.packing import best_fit
from frostline.placement.patterns import patterns
from frostline.placement.place import METHODS, place
from frostline.placement.request import Objective, Request
from frostline.problem.bin_packing import pack_replicas
from frostline.timing.column_costs import ColumnCosts
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

THOROUGH = os.environ.get("FROSTLINE_PROFILE") == "thorough"
COUNT = 200 if THOROUGH else 30
SIZES = (8, 12, 16, 24, 32, 64) if THOROUGH else (8, 12, 16)
KINDS = ("contention", "overlap", "link")
REGIMES = ("full", "fragmented", "tight")
HEURISTICS = ("best-fit", "contiguous", "heavy-edge", "local-search", "auto")


@dataclass(frozen=True)
class Columns(IterationTime):
    """A timing model that keeps its tables to itself."""

    model: IterationTime

    @property
    def graph(self) -> StageGraph:
        return self.model.graph

    @property
    def base_ns(self) -> int:
        return self.model.base_ns

    @property
    def bound_ns(self) -> int:
        return self.model.bound_ns

    @property
    def overlap(self) -> bool:
        return self.model.overlap

    def server_class(self, server: int) -> int:
        return self.model.server_class(server)

    def column_ns(self, column, server: int) -> int:
        return self.model.column_ns(column, server)

    def costs(self, server: int) -> ColumnCosts | None:
        return None


def graph_of(rng: np.random.Generator, gpus: int, *, chain: bool, sized: bool) -> StageGraph:
    stages = int(rng.integers(2, min(6, gpus // 2) + 1))
    cuts = np.sort(rng.choice(np.arange(1, gpus), stages - 1, replace=False))
    shares = np.diff([0, *cuts, gpus]).tolist()
    sizes = [int(rng.choice([g for g in (1, 2, 4) if share % g == 0])) if sized else 1 for share in shares]
    megabytes = 1_000_003
    pairs = {(s, s + 1) for s in range(stages - 1)}
    if not chain:
        pairs |= {tuple(sorted(rng.choice(stages, 2, replace=False).tolist())) for _ in range(2)}
    return StageGraph(
        replicas=[share // size for share, size in zip(shares, sizes, strict=True)],
        compute_s=rng.uniform(0.001, 0.01, stages).tolist(),
        gradient_bytes=(rng.integers(0, 200, stages) * megabytes).tolist(),
        edges={pair: int(rng.integers(1, 200)) * megabytes for pair in sorted(pairs)},
        gpus_per_replica=sizes,
    )


def free_of(rng: np.random.Generator, gpus: int, regime: str, least: int) -> list[int]:
    """Servers of 8 GPUs, of 1 to 8 with a quarter to spare, or of 1 to 8 with nothing to spare."""
    free: list[int] = []
    while sum(free) < gpus * (5 if regime == "fragmented" else 4) / 4:
        left = gpus - sum(free)
        drawn = 8 if regime == "full" else int(rng.integers(least, 9))
        free.append(min(drawn, left) if regime == "tight" and left >= least else drawn)
    return free


def case(gpus: int, kind: str, number: int) -> tuple[IterationTime, list[int]]:
    """A seeded case; every other stage graph is no chain, some servers differ, some replicas fill several GPUs."""
    rng = np.random.default_rng([gpus, KINDS.index(kind), number])
    graph = graph_of(rng, gpus, chain=number % 2 == 0, sized=number % 5 == 4)
    free = free_of(rng, gpus, REGIMES[number % 3], max(graph.gpus_per_replica))
    while not servers_hold(graph, free):
        free.append(max(graph.gpus_per_replica))
    cards = [float(card) for card in rng.choice([2e9, 4e9] if number % 4 == 3 else [4e9], len(free))]
    if kind == "link":
        return LinkTime(graph=graph, link_bytes_per_s=[card / 4 for card in cards]), free
    return ContentionTime(graph=graph, nic_bytes_per_s=cards, overlap=kind == "overlap"), free


def servers_hold(graph: StageGraph, free: list[int]) -> bool:
    return pack_replicas(free, graph.gpus_per_replica, graph.replicas)[0] is not None


def is_tiny(timing: IterationTime, free: list[int], objective: str) -> bool:
    part, _, most_servers = on_fewest(Request(timing=timing, free=tuple(free), objective=Objective(objective)))
    return steps(part, most_servers) <= MOST_STEPS


@pytest.mark.parametrize("objective", ["time", "consolidate"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gpus", SIZES)
def test_exact_methods_agree(gpus, kind, objective):
    limit_s = 5.0 if gpus > 16 else None
    compared = 0
    for number in range(COUNT if gpus <= 16 else 70):
        timing, free = case(gpus, kind, number)
        limits = {"objective": objective, "time_limit_s": limit_s}
        exact = [place(timing, free, method=method, **limits) for method in ("patterns", "cpsat")]
        if is_tiny(timing, free, objective):
            exact.append(place(timing, free, method="brute-force", **limits))
            assert exact[-1].status.proved_optimal
        proved = {result.iteration_ns for result in exact if result.status.proved_optimal}
        assert len(proved) <= 1
        if not proved:
            continue
        compared += len(exact) == 3
        optimum, fewest = proved.pop(), exact[0].servers_used
        assert all(result.bound_ns <= optimum <= result.iteration_ns for result in exact)
        if gpus <= 16:
            assert all(result.status.proved_optimal for result in exact)
        for method in HEURISTICS:
            result = place(timing, free, method=method, objective=objective)
            assert result.bound_ns <= optimum <= result.iteration_ns
            if objective == "consolidate":
                assert result.servers_used == fewest == exact[-1].servers_used
    assert compared or gpus > 16


@pytest.mark.parametrize("search", [patterns, cpsat, milp])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_found_from_a_poor_start(kind, search):
    """Local search seldom leaves anything to find at these sizes."""
    better = 0
    for number in range(COUNT if search is not milp else 9):
        timing, free = case(12, kind, number)
        request = Request(timing=timing, free=tuple(free))
        optimum = request.value_ns(brute_force(request).matrix)
        start = Answer(matrix=best_fit(request), source="best-fit")
        answer = search(request, start)
        assert request.value_ns(answer.matrix) == optimum
        better += answer.source != "best-fit"
    assert better > 3


@pytest.mark.parametrize("method", ["milp-highs", "milp-cbc"])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_programs_agree_up_to_their_tolerance(kind, method):
    for gpus, count in ((8, COUNT), (12, 3)):
        for number in range(count):
            timing, free = case(gpus, kind, number)
            objective = ("time", "consolidate")[number % 2]
            optimum = place(timing, free, method="brute-force", objective=objective).iteration_ns
            result = place(timing, free, method=method, objective=objective)
            assert result.iteration_ns == optimum
            assert optimum - 1000 <= result.bound_ns <= optimum
            assert result.status.proved_optimal == (result.bound_ns == result.iteration_ns)


@pytest.mark.parametrize("number", range(6))
def test_models_without_tables(number):
    timing, free = case(8, KINDS[number % 3], number)
    optimum = place(timing, free, method="brute-force")
    for method in ("cpsat", "patterns", "local-search"):
        result = place(Columns(timing), free, method=method)
        assert result.bound_ns <= optimum.iteration_ns <= result.iteration_ns
    assert place(Columns(timing), free, method="cpsat").iteration_ns == optimum.iteration_ns
    poor = Answer(matrix=best_fit(Request(timing=timing, free=tuple(free))), source="best-fit")
    request = Request(timing=Columns(timing), free=tuple(free))
    assert request.value_ns(cpsat(request, poor).matrix) == optimum.iteration_ns


def test_linear_programs_need_tables():
    timing, free = case(12, "contention", 0)
    with pytest.raises(InvalidValueError, match="timing='Columns' must give tables of its costs"):
        place(Columns(timing), free, method="milp")
    assert place(Columns(timing), free, method="auto", time_limit_s=20).status.proved_optimal


def test_too_many_columns_are_not_listed(monkeypatch):
    timing, free = case(12, "contention", 0)
    monkeypatch.setattr(cpsat_module, "MOST_TUPLES", 100)
    with pytest.raises(TooLargeError, match="columns"):
        place(Columns(timing), free, method="cpsat")


def test_every_method_is_tried():
    assert set(METHODS) == {*HEURISTICS, "brute-force", "cpsat", "patterns", "milp", "milp-highs", "milp-cbc"}
