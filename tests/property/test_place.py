"""Every placement method, on any stage graph and any free GPUs, against all placements there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.placement.contiguous import contiguous
from frostline.placement.descent import Descent
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.local_search import local_search, merged
from frostline.placement.packing import best_fit, whole_stages
from frostline.placement.place import place
from frostline.placement.request import Request, columns_of, fewest_servers
from frostline.placement.result import PlacementResult
from frostline.problem.bin_packing import pack
from frostline.testing import stage_graphs
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime, cut_bytes, iteration_ns, total_ns
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

Case = tuple[IterationTime, list[int]]
CARDS = st.sampled_from([10e9, 25e9])
HEURISTICS = ["auto", "best-fit", "contiguous", "heavy-edge", "local-search"]


class NoTables(IterationTime):
    """A model of which nothing is known but the time of a column."""

    def __init__(self, known: IterationTime) -> None:
        self.known = known
        self.server_class, self.column_ns = known.server_class, known.column_ns  # type: ignore[method-assign]

    @property
    def graph(self) -> StageGraph:
        return self.known.graph

    @property
    def base_ns(self) -> int:
        return self.known.base_ns

    @property
    def bound_ns(self) -> int:
        return self.known.bound_ns

    @property
    def overlap(self) -> bool:
        return self.known.overlap


def timed(graph: StageGraph, kind: str, cards: list[float]) -> IterationTime:
    if kind == "link":
        return LinkTime(graph=graph, link_bytes_per_s=cards)
    return ContentionTime(graph=graph, nic_bytes_per_s=cards, overlap=kind == "overlap")


@st.composite
def cases(draw: st.DrawFn, *, max_gpus: int = 8, tables: bool | None = None) -> Case:
    """A timed stage graph and free GPUs that hold it, seldom on one server; cards of one or two speeds."""
    graph = draw(stage_graphs(max_gpus=max_gpus))
    sizes = draw(st.sampled_from([[1], [1], [1, 2], [2, 3], [1, 2, 4]]))
    graph = graph.replace(gpus_per_replica=[draw(st.sampled_from(sizes)) for _ in graph.replicas])
    servers = draw(st.integers(1, 4))
    free = draw(st.lists(st.integers(0, 1), min_size=servers, max_size=servers))
    for count, gpus in zip(graph.replicas, graph.gpus_per_replica, strict=True):
        for _ in range(count):
            free[draw(st.integers(0, servers - 1))] += gpus
    cards = draw(st.lists(CARDS, min_size=len(free), max_size=len(free)) | CARDS.map(lambda card: [card] * len(free)))
    kind = draw(st.sampled_from(["contention", "overlap", "link"]))
    timing = timed(graph, kind, cards)
    known = draw(st.sampled_from([True, True, False])) if tables is None else tables
    return timing if known else NoTables(timing), free


def least_ns(timing: IterationTime, free: list[int], most_servers: int | None = None) -> int:
    """Least iteration time over all placements on at most so many servers."""
    done = {used: value for (left, used), value in states_of(timing, free).items() if not any(left)}
    most = len(free) if most_servers is None else most_servers
    return total_ns(timing, min(value for used, value in done.items() if used <= most))


def fewest(timing: IterationTime, free: list[int]) -> int:
    """Fewest servers that hold all replicas."""
    return min(used for left, used in states_of(timing, free) if not any(left))


def states_of(timing: IterationTime, free: list[int]) -> dict[tuple[tuple[int, ...], int], int]:
    """Least time of the slowest server by replicas that are left and servers used."""
    states = {(timing.graph.replicas, 0): 0}
    for server, room in enumerate(free):
        after = dict(states)
        for (left, used), slowest in states.items():
            for column in columns_within(left, timing.graph.gpus_per_replica, room):
                key = (tuple(a - b for a, b in zip(left, column, strict=True)), used + 1)
                value = max(slowest, timing.column_ns(column, server))
                after[key] = min(value, after.get(key, value))
        states = after
    return states


def columns_within(left: tuple[int, ...], sizes: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Columns, not empty, of replicas that are left, within the room."""
    for column in np.ndindex(*(count + 1 for count in left)):
        if 0 < sum(count * gpus for count, gpus in zip(column, sizes, strict=True)) <= room:
            yield column


def assert_fits(request: Request, matrix: npt.NDArray[np.int64]) -> None:
    assert (matrix >= 0).all()
    assert tuple(matrix.sum(axis=0)) == request.counts
    assert (request.loads(matrix) <= request.room).all()


def assert_sound(result: PlacementResult, timing: IterationTime, free: list[int]) -> None:
    matrix = result.placement.matrix(len(free))
    assert tuple(matrix.sum(axis=0)) == timing.graph.replicas
    assert (matrix @ timing.graph.gpus_per_replica <= free).all()
    used = [m for m in range(len(free)) if matrix[m].any()]
    slowest = max(timing.column_ns(matrix[m].tolist(), m) for m in used)
    assert result.iteration_ns == total_ns(timing, slowest) == iteration_ns(timing, matrix)
    assert result.seconds == result.iteration_ns / 1e9
    assert result.cut_bytes == cut_bytes(timing.graph, result.placement)
    assert result.servers_used == len(used)
    assert result.status.valid


@pytest.mark.parametrize("objective", ["time", "consolidate"])
@pytest.mark.parametrize("method", HEURISTICS)
@given(case=cases())
def test_every_heuristic_is_sound(method: str, objective: str, case: Case) -> None:
    timing, free = case
    result = place(timing, free, method=method, objective=objective)
    assert_sound(result, timing, free)
    need = fewest(timing, free)
    assert fewest_servers(Request(timing=timing, free=tuple(free))) == need
    if objective == "consolidate":
        assert result.servers_used == need
    optimum = least_ns(timing, free, need if objective == "consolidate" else None)
    assert timing.bound_ns <= result.bound_ns <= optimum <= result.iteration_ns
    assert result.status.proved_optimal == (result.iteration_ns == result.bound_ns)


@given(cases())
def test_local_search_is_never_worse_than_its_starts(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    starts = [best_fit(request), heavy_edge(request), heavy_edge(request, by_total=True)]
    starts += [contiguous(request), whole_stages(request)]
    for matrix in starts:
        assert_fits(request, matrix)
    best = request.value_ns(local_search(request))
    assert all(best <= request.value_ns(matrix) for matrix in starts)


@given(cases(tables=True), st.randoms(use_true_random=False))
def test_names_of_servers_do_not_matter(case: Case, random: object) -> None:
    timing, free = case
    order = list(range(len(free)))
    random.shuffle(order)  # type: ignore[attr-defined]
    cards = timing.nic_bytes_per_s if isinstance(timing, ContentionTime) else timing.link_bytes_per_s  # type: ignore[attr-defined]
    kind = "link" if isinstance(timing, LinkTime) else "overlap" if timing.overlap else "contention"
    renamed = timed(timing.graph, kind, [cards[m] for m in order])
    renamed_free = [free[m] for m in order]
    for method in HEURISTICS:
        before, after = place(timing, free, method=method), place(renamed, renamed_free, method=method)
        assert after.iteration_ns == before.iteration_ns
        assert after.servers_used == before.servers_used


@given(cases(), st.integers(0, 3))
def test_same_seed_same_placement(case: Case, seed: int) -> None:
    timing, free = case
    assert place(timing, free, seed=seed).placement == place(timing, free, seed=seed).placement


def blocks_ns(timing: IterationTime, free: list[int]) -> int | None:
    """Least time of the slowest server over all orders of the servers and all cuts into blocks, if there is any."""
    graph = timing.graph
    stage_of = [s for s, count in enumerate(graph.replicas) for _ in range(count)]
    filled = np.concatenate([[0], np.cumsum([graph.gpus_per_replica[s] for s in stage_of])])

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
                for end in range(start + 1, len(stage_of) + 1):
                    if filled[end] - filled[start] <= free[server]:
                        value = max(slowest, timing.column_ns(column(start, end), server))
                        after[end] = min(value, after.get(end, value))
            reached = after
        if len(stage_of) in reached:
            value = reached[len(stage_of)]
            best = value if best is None else min(best, value)
    return best


@given(cases())
def test_contiguous_is_exact_among_contiguous_placements(case: Case) -> None:
    timing, free = case
    least = blocks_ns(timing, free)
    result = place(timing, free, method="contiguous")
    if least is not None:
        assert result.iteration_ns == total_ns(timing, least)


@given(cases())
def test_contiguous_in_a_few_orders(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frostline.placement.contiguous._EXACT_WORK", 0)
        matrix = contiguous(request)
    assert_fits(request, matrix)
    least = blocks_ns(timing, free)
    if least is not None and request.packing is None:
        assert request.value_ns(matrix) >= total_ns(timing, least)


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
        assert_fits(request, matrix)


@given(cases())
def test_best_fit_of_columns_keeps_the_time(case: Case) -> None:
    timing, free = case
    request = Request(timing=timing, free=tuple(free))
    matrix = best_fit(request)
    columns = columns_of(request, matrix)
    assert all(request.sizes @ column <= free[server] for server, column in columns)
    slowest = max(timing.column_ns(column, server) for server, column in columns)
    assert total_ns(timing, slowest) == request.value_ns(matrix)
    assert sorted(column for _, column in columns) == sorted(tuple(row) for row in matrix.tolist() if any(row))


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_bin_packing_is_exact(room: list[int], sizes: list[int], data: st.DataObject) -> None:
    sizes = sorted(sizes, reverse=True)
    counts = [data.draw(st.integers(0, 3)) for _ in sizes]
    bins, certain = pack(room, sizes, counts)
    assert certain
    pieces = [size for size, count in zip(sizes, counts, strict=True) for _ in range(count)]
    assert (bins is not None) == fits(pieces, tuple(sorted(room)))
    if bins is not None:
        assert [sum(held) for held in zip(*bins, strict=True)] == counts
        loads = [sum(count * size for count, size in zip(held, sizes, strict=True)) for held in bins]
        assert all(load <= free for load, free in zip(loads, room, strict=True))


def fits(pieces: list[int], room: tuple[int, ...]) -> bool:
    """Whether pieces fit into bins, by trying all bins for each."""
    if not pieces:
        return True
    first, *rest = pieces
    shrunk = {tuple(sorted((*room[:i], free - first, *room[i + 1 :]))) for i, free in enumerate(room) if free >= first}
    return any(fits(rest, left) for left in shrunk)
