"""Column generation against brute force and enumeration, and its certificates, on seeded tiny cases of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from frostline.placement import place
from frostline.placement.brute_force import brute_force
from frostline.placement.column_space import FrontierSpace, TableSpace, worth_of
from frostline.placement.columns import columns_within
from frostline.placement.patterns import patterns
from frostline.placement.request import Objective, Request
from frostline.timing import ContentionTime, IterationTime, LinkTime, StageGraph
from frostline.timing.iteration_time import Matrix
from frostline.verify.placement import check_placement_certificate

SHAPES = ("chain", "random", "star", "cycle", "empty")
MODELS = ("contention", "overlap", "link")


def drawn_edges(rng: np.random.Generator, shape: str, stages: int) -> dict[tuple[int, int], int]:
    pairs = [(s, t) for t in range(stages) for s in range(t)]
    kept = {
        "chain": [(s, t) for s, t in pairs if t == s + 1],
        "star": [(s, t) for s, t in pairs if s == 0],
        "cycle": [(s, t) for s, t in pairs if t == s + 1 or (s, t) == (0, stages - 1)],
        "random": [pair for pair in pairs if rng.random() < 0.6],
        "empty": [],
    }[shape]
    return {pair: int(rng.integers(0, 4)) * 10**8 * int(rng.choice([1, 7])) for pair in kept}


def drawn_graph(rng: np.random.Generator, shape: str, *, sized: bool) -> StageGraph:
    stages = int(rng.integers(1, 5))
    counts = rng.integers(1, 4, stages).tolist()
    return StageGraph(
        replicas=counts,
        compute_s=rng.choice([0.0, 0.05, 0.2], stages).tolist(),
        gradient_bytes=(rng.integers(0, 3, stages) * 10**8).tolist(),
        edges=drawn_edges(rng, shape, stages),
        gpus_per_replica=rng.choice([1, 1, 2], stages).tolist() if sized else None,
    )


def drawn_timing(rng: np.random.Generator, graph: StageGraph, model: str, servers: int) -> IterationTime:
    cards = rng.choice([5e9, 25e9], servers).tolist() if rng.random() < 0.5 else [25e9] * servers
    if model == "link":
        return LinkTime(graph=graph, link_bytes_per_s=[card / 8 for card in cards])
    return ContentionTime(graph=graph, nic_bytes_per_s=cards, overlap=model == "overlap")


def drawn(seed: int, *, sized: bool = False) -> tuple[IterationTime, tuple[int, ...]]:
    """A request that fits: four spare GPUs for every server where replicas have sizes, so that packing is no riddle."""
    rng = np.random.default_rng([seed, sized])
    graph = drawn_graph(rng, SHAPES[seed % len(SHAPES)], sized=sized)
    free = rng.integers(1, 5, int(rng.integers(2, 5))).tolist()
    if sized:
        free = [count + 1 for count in free]
    while sum(count - sized for count in free) < graph.gpus:
        free.append(int(rng.integers(2, 5)))
    return drawn_timing(rng, graph, MODELS[seed % len(MODELS)], len(free)), tuple(free)


def requests(seeds: range, objective: Objective = Objective.TIME, *, sized: bool = False) -> Iterator[Request]:
    for seed in seeds:
        timing, free = drawn(seed, sized=sized)
        yield Request(timing=timing, free=free, objective=objective)


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_best_placement_and_its_proof(first: int) -> None:
    for request in requests(range(first, first + 100)):
        best_ns = request.value_ns(brute_force(request).matrix)
        answer = patterns(request)
        assert request.value_ns(answer.matrix) == best_ns
        assert max(answer.bound_ns, request.timing.bound_ns) == best_ns


@pytest.mark.parametrize("sized", [False, True])
def test_fewest_servers_first(sized: bool) -> None:
    for request in requests(range(150), Objective.CONSOLIDATE, sized=sized):
        expected = brute_force(request).matrix
        answer = patterns(request)
        assert answer.matrix.any(axis=1).sum() == expected.any(axis=1).sum()
        assert request.value_ns(answer.matrix) == request.value_ns(expected)
        assert answer.bound_ns <= request.value_ns(expected)


def test_replicas_of_several_gpus() -> None:
    for request in requests(range(100), sized=True):
        best_ns = request.value_ns(brute_force(request).matrix)
        answer = patterns(request)
        assert request.value_ns(answer.matrix) == best_ns == max(answer.bound_ns, request.timing.bound_ns)


def all_columns(timing: IterationTime, room: int, server: int) -> tuple[Matrix, Matrix]:
    graph = timing.graph
    columns = columns_within(graph.replicas, graph.gpus_per_replica, room)[1:]
    return columns, timing.columns_ns(columns, server)


@pytest.mark.parametrize("seed", range(90))
def test_columns_are_those_of_enumeration(seed: int) -> None:
    timing, free = drawn(seed, sized=seed % 2 == 1)
    costs, room = timing.costs(0), max(free)
    assert costs is not None
    space = FrontierSpace(costs, timing.graph.gpus_per_replica, room)
    columns, times = all_columns(timing, room, 0)
    rng = np.random.default_rng(seed)
    for limit_ns in np.quantile(times, [0, 0.3, 0.7, 1]).astype(np.int64).tolist():
        within = times <= limit_ns
        found = space.all(limit_ns, 10**6)
        assert found is not None
        assert sorted(found.matrix.tolist()) == sorted(columns[within].tolist())
        assert found.times.tolist() == timing.columns_ns(found.matrix, 0).tolist()
        worths = [rng.integers(-5, 20, count + 1) * (np.arange(count + 1) > 0) for count in timing.graph.replicas]
        best = space.worthiest(worths, limit_ns, 10**6)
        assert best is not None
        loads = columns @ np.array(timing.graph.gpus_per_replica)
        for load in range(1, room + 1):
            expected = worth_of(columns, worths)[within & (loads == load)].tolist()
            assert max(best.worths[best.loads == load].tolist(), default=None) == max(expected, default=None)
        assert best.worths.tolist() == worth_of(best.matrix, worths).tolist()


class Untabled(IterationTime):
    """The same model without its tables."""

    def __init__(self, timing: IterationTime) -> None:
        self._timing = timing

    @property
    def graph(self) -> StageGraph:
        return self._timing.graph

    @property
    def base_ns(self) -> int:
        return self._timing.base_ns

    @property
    def bound_ns(self) -> int:
        return self._timing.bound_ns

    @property
    def overlap(self) -> bool:
        return self._timing.overlap

    def server_class(self, server: int) -> int:
        return self._timing.server_class(server)

    def column_ns(self, column: object, server: int) -> int:
        return self._timing.column_ns(column, server)  # type: ignore[arg-type]


def test_models_without_tables() -> None:
    for seed in range(40):
        timing, free = drawn(seed)
        with_tables, without = (place(model, free, method="patterns") for model in (timing, Untabled(timing)))
        assert without.iteration_ns == with_tables.iteration_ns == without.bound_ns
        assert without.certificate is None


def test_too_many_columns_are_given_up() -> None:
    timing, _ = drawn(0)
    costs = timing.costs(0)
    assert costs is not None
    assert FrontierSpace(costs, timing.graph.gpus_per_replica, 4).all(10**12, 1) is None
    table = TableSpace(lambda columns: columns.sum(axis=1), (3, 3), (1, 1), 4)
    assert table.all(10**12, 3) is None
    assert table.worthiest([np.arange(4), np.arange(4)], 10**12, 3) is None


@pytest.mark.parametrize("objective", ["time", "consolidate"])
def test_certificates_are_accepted(objective: str) -> None:
    for seed in range(150):
        timing, free = drawn(seed)
        result = place(timing, free, method="patterns", objective=objective)
        certificate = result.certificate
        assert certificate is not None
        report = check_placement_certificate(json.loads(json.dumps(certificate)), certificate["problem"])
        assert report.valid, report.faults
        assert certificate["bound_ns"] <= result.bound_ns <= result.iteration_ns


def gap_cases() -> Iterator[Request]:
    """Pipelines on full servers without a spare GPU, where the linear relaxation often leaves a gap."""
    for seed in range(40):
        rng = np.random.default_rng([seed, 7])
        stages = int(rng.integers(3, 6))
        counts = rng.integers(1, 6, stages)
        counts[-1] += -int(counts.sum()) % 4
        graph = StageGraph(
            replicas=counts.tolist(),
            compute_s=[0.0] * stages,
            gradient_bytes=(rng.integers(1, 9, stages) * 10**8).tolist(),
            edges={(s, s + 1): int(rng.integers(1, 9)) * 10**8 for s in range(stages - 1)},
        )
        timing = LinkTime(graph=graph) if seed % 2 else ContentionTime(graph=graph)
        yield Request(timing=timing, free=(4,) * (graph.gpus // 4))


def test_trees_of_prices() -> None:
    trees = 0
    for request in gap_cases():
        result = place(request.timing, request.free, method="patterns")
        assert result.status.proved_optimal
        assert result.status.bound in ("base", "patterns: prices", "patterns: tree of prices")
        certificate = result.certificate
        assert certificate is not None
        assert certificate["bound_ns"] == result.iteration_ns
        assert check_placement_certificate(certificate).valid
        trees += result.status.bound == "patterns: tree of prices"
    assert trees >= 5
