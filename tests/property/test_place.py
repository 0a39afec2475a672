"""Every placement method, on any stage graph and any free GPUs, against all placements there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.placement.contiguous import contiguous
from frostline.placement.descent import Descent
from frostline.placement.local_search import merged
from frostline.placement.packing import best_fit
from frostline.placement.place import METHODS, place
from frostline.placement.request import Request, columns_of
from frostline.placement.result import PlacementResult
from frostline.testing import stage_graphs
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime, cut_bytes, iteration_ns, total_ns
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

Case = tuple[IterationTime, list[int]]
CARDS = st.sampled_from([10e9, 25e9])


def timed(graph: StageGraph, kind: str, cards: list[float]) -> IterationTime:
    if kind == "link":
        return LinkTime(graph=graph, link_bytes_per_s=cards)
    return ContentionTime(graph=graph, nic_bytes_per_s=cards, overlap=kind == "overlap")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A timed stage graph and free GPUs that hold it, seldom on one server; cards of one or two speeds."""
    graph = draw(stage_graphs(max_gpus=8))
    largest = draw(st.integers(min(2, graph.gpus), graph.gpus))
    free = draw(st.lists(st.integers(0, largest), max_size=3))
    while sum(free) < graph.gpus:
        free.append(draw(st.integers(largest - 1, largest)) or largest)
    cards = draw(st.lists(CARDS, min_size=len(free), max_size=len(free)) | CARDS.map(lambda card: [card] * len(free)))
    kind = draw(st.sampled_from(["contention", "overlap", "link"]))
    return timed(graph, kind, cards), draw(st.permutations(free))


def least_ns(timing: IterationTime, free: list[int], most_servers: int | None = None) -> int:
    """Least iteration time over all placements on at most so many servers."""
    states = {(timing.graph.replicas, 0): 0}
    for server, room in enumerate(free):
        after = dict(states)
        for (left, used), slowest in states.items():
            for column in columns_within(left, room):
                key = (tuple(a - b for a, b in zip(left, column, strict=True)), used + 1)
                value = max(slowest, timing.column_ns(column, server))
                after[key] = min(value, after.get(key, value))
        states = after
    most = len(free) if most_servers is None else most_servers
    return total_ns(timing, min(v for (left, used), v in states.items() if not any(left) and used <= most))


def columns_within(left: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Columns, not empty, of replicas that are left, within the room."""
    for column in np.ndindex(*(count + 1 for count in left)):
        if 0 < sum(column) <= room:
            yield column


def fewest(free: list[int], need: int) -> int:
    held = np.cumsum(sorted(free, reverse=True))
    return int(np.argmax(held >= need)) + 1


def assert_sound(result: PlacementResult, timing: IterationTime, free: list[int]) -> None:
    matrix = result.placement.matrix(len(free))
    assert tuple(matrix.sum(axis=0)) == timing.graph.replicas
    assert (matrix.sum(axis=1) <= free).all()
    used = [m for m in range(len(free)) if matrix[m].any()]
    slowest = max(timing.column_ns(matrix[m].tolist(), m) for m in used)
    assert result.iteration_ns == total_ns(timing, slowest) == iteration_ns(timing, matrix)
    assert result.seconds == result.iteration_ns / 1e9
    assert result.cut_bytes == cut_bytes(timing.graph, result.placement)
    assert result.servers_used == len(used)
    assert result.status.valid


@pytest.mark.parametrize("objective", ["time", "consolidate"])
@pytest.mark.parametrize("method", METHODS)
@given(case=cases())
def test_every_method_is_sound(method: str, objective: str, case: Case) -> None:
    timing, free = case
    result = place(timing, free, method=method, objective=objective)
    assert_sound(result, timing, free)
    need = fewest(free, timing.graph.gpus)
    if objective == "consolidate":
        assert result.servers_used == need
    optimum = least_ns(timing, free, need if objective == "consolidate" else None)
    assert timing.bound_ns <= result.bound_ns <= optimum <= result.iteration_ns
    assert result.status.proved_optimal == (result.iteration_ns == result.bound_ns)


@given(cases())
def test_local_search_beats_its_starts(case: Case) -> None:
    timing, free = case
    best = place(timing, free).iteration_ns
    assert all(best <= place(timing, free, method=method).iteration_ns for method in METHODS)


@given(cases(), st.randoms(use_true_random=False))
def test_names_of_servers_do_not_matter(case: Case, random: object) -> None:
    timing, free = case
    order = list(range(len(free)))
    random.shuffle(order)  # type: ignore[attr-defined]
    cards = timing.nic_bytes_per_s if isinstance(timing, ContentionTime) else timing.link_bytes_per_s  # type: ignore[attr-defined]
    kind = "link" if isinstance(timing, LinkTime) else "overlap" if timing.overlap else "contention"
    renamed = timed(timing.graph, kind, [cards[m] for m in order])
    renamed_free = [free[m] for m in order]
    assert least_ns(renamed, renamed_free) == least_ns(timing, free)
    for method in METHODS:
        before, after = place(timing, free, method=method), place(renamed, renamed_free, method=method)
        assert after.iteration_ns == before.iteration_ns
        assert after.servers_used == before.servers_used


@given(cases(), st.integers(0, 3))
def test_same_seed_same_placement(case: Case, seed: int) -> None:
    timing, free = case
    assert place(timing, free, seed=seed).placement == place(timing, free, seed=seed).placement


def blocks_ns(timing: IterationTime, free: list[int]) -> int:
    """Least time of the slowest server over all orders of the servers and all cuts into blocks."""
    graph = timing.graph
    stage_of = [s for s, count in enumerate(graph.replicas) for _ in range(count)]

    def column(start: int, end: int) -> list[int]:
        return [stage_of[start:end].count(s) for s in range(graph.stages)]

    best = None
    kinds = {server: (free[server], timing.server_class(server)) for server in range(len(free)) if free[server]}
    orders = {tuple(kinds[server] for server in order): order for order in permutations(kinds)}
    for order in orders.values():
        reached = {0: 0}
        for server in order:
            after = dict(reached)
            for start, slowest in reached.items():
                for end in range(start + 1, min(start + free[server], graph.gpus) + 1):
                    value = max(slowest, timing.column_ns(column(start, end), server))
                    after[end] = min(value, after.get(end, value))
            reached = after
        if graph.gpus in reached:
            best = reached[graph.gpus] if best is None else min(best, reached[graph.gpus])
    assert best is not None
    return best


@given(cases())
def test_contiguous_is_exact_among_contiguous_placements(case: Case) -> None:
    timing, free = case
    result = place(timing, free, method="contiguous")
    assert result.iteration_ns == total_ns(timing, blocks_ns(timing, free))


@given(cases())
def test_contiguous_in_a_few_orders(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frostline.placement.contiguous._exact_is_cheap", lambda *_: False)
        matrix = contiguous(request)
    assert tuple(matrix.sum(axis=0)) == timing.graph.replicas
    assert (matrix.sum(axis=1) <= request.room).all()
    assert request.value_ns(matrix) >= total_ns(timing, blocks_ns(timing, free))


@given(cases())
def test_descent_and_merging_never_lose(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    start = best_fit(request)
    found = Descent(request).run(start)
    assert sorted(request.rows_ns(found).tolist(), reverse=True) <= sorted(
        request.rows_ns(start).tolist(), reverse=True
    )
    fewer = merged(request, found)
    assert request.value_ns(fewer) <= request.value_ns(found)
    assert fewer.any(axis=1).sum() <= found.any(axis=1).sum()
    for matrix in (found, fewer):
        assert tuple(matrix.sum(axis=0)) == timing.graph.replicas
        assert (matrix.sum(axis=1) <= request.room).all()


@given(cases())
def test_best_fit_of_columns_keeps_the_time(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    matrix = best_fit(request)
    columns = columns_of(request, matrix)
    assert all(sum(column) <= free[server] for server, column in columns)
    slowest = max(timing.column_ns(column, server) for server, column in columns)
    assert total_ns(timing, slowest) == request.value_ns(matrix)
    assert sorted(column for _, column in columns) == sorted(tuple(row) for row in matrix.tolist() if any(row))
