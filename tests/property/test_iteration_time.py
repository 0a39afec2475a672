"""Both models of the iteration time against a slow reference that looks at every pair of replicas."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import cut_bytes, iteration_ns
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

NS = 10**9
INSIDE, CARDS = 4, (1, 2)

Placed = list[tuple[int, int]]
"""Stage and server of every replica."""


@st.composite
def exact_graphs(draw: st.DrawFn) -> StageGraph:
    """Stage graphs whose every coefficient is a whole number of nanoseconds at the bandwidths above."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    pairs = [(s, t) for t in range(len(counts)) for s in range(t)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return StageGraph(
        replicas=counts,
        compute_s=[draw(st.integers(0, 5)) for _ in counts],
        gradient_bytes=[count * draw(st.integers(0, 5)) for count in counts],
        edges={(s, t): 2 * counts[s] * counts[t] * draw(st.integers(0, 5)) for s, t in chosen},
    )


@st.composite
def placed_graphs(draw: st.DrawFn) -> tuple[StageGraph, Placed]:
    graph = draw(exact_graphs())
    replicas = [s for s, count in enumerate(graph.replicas) for _ in range(count)]
    return graph, [(s, draw(st.integers(0, len(CARDS) - 1))) for s in replicas]


def matrix_of(graph: StageGraph, placed: Placed) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    matrix = np.zeros((len(CARDS), graph.stages), np.int64)
    for stage, server in placed:
        matrix[server, stage] += 1
    return matrix


def pair_bytes(graph: StageGraph, s: int, t: int) -> Fraction:
    amount = graph.edges.get((s, t), 0) + graph.edges.get((t, s), 0)
    return Fraction(amount, graph.replicas[s] * graph.replicas[t])


def ring_crossings(graph: StageGraph, placed: Placed) -> list[tuple[int, int]]:
    """Stage and sending server of every ring link between two servers; the ring visits servers in order."""
    links = []
    for stage in range(graph.stages):
        servers = sorted(server for s, server in placed if s == stage)
        links += [(stage, a) for a, b in zip(servers, servers[1:] + servers[:1], strict=True) if a != b]
    return links


def sent_bytes(graph: StageGraph, placed: Placed) -> list[Fraction]:
    """Bytes that each server sends to others: half the traffic of each pair of replicas, and ring links."""
    sent = [Fraction(0)] * len(CARDS)
    for s, here in placed:
        for t, there in placed:
            if here != there:
                sent[here] += pair_bytes(graph, s, t) / 2
    for stage, server in ring_crossings(graph, placed):
        count = graph.replicas[stage]
        sent[server] += Fraction(2 * (count - 1), count) * graph.gradient_bytes[stage]
    return sent


def replica_s(graph: StageGraph, placed: Placed, index: int, outside: Sequence[Fraction]) -> Fraction:
    """Seconds of one replica with its own share of the card."""
    stage, server = placed[index]
    time_s = Fraction(graph.compute_s[stage])
    for t, there in placed:
        time_s += pair_bytes(graph, stage, t) / (INSIDE if there == server else outside[server])
    split = any(s == stage and there != server for s, there in placed)
    count = graph.replicas[stage]
    ring = Fraction(2 * (count - 1), count) * graph.gradient_bytes[stage]
    return time_s + ring / (outside[server] if split else INSIDE)


@given(placed_graphs(), st.booleans())
def test_contention(case: tuple[StageGraph, Placed], overlap: bool) -> None:
    graph, placed = case
    timing = ContentionTime(graph=graph, nvlink_bytes_per_s=INSIDE, nic_bytes_per_s=CARDS, overlap=overlap)
    sent = sent_bytes(graph, placed)
    matrix = matrix_of(graph, placed)
    columns = [timing.column_ns(row, m) for m, row in enumerate(matrix.tolist())]
    assert columns == [amount / card * NS for amount, card in zip(sent, CARDS, strict=True)]
    together = [(s, 0) for s, _ in placed]
    base = max(replica_s(graph, together, i, [Fraction(INSIDE)] * 2) for i in range(len(placed)))
    assert timing.base_ns == base * NS
    expected = max(timing.base_ns, *columns) if overlap else timing.base_ns + max(columns)
    assert iteration_ns(timing, matrix) == expected >= timing.bound_ns
    assert cut_bytes(graph, matrix) == sum(sent)


@given(placed_graphs())
def test_link(case: tuple[StageGraph, Placed]) -> None:
    graph, placed = case
    timing = LinkTime(graph=graph, nvlink_bytes_per_s=INSIDE, link_bytes_per_s=CARDS)
    slowest = max(replica_s(graph, placed, i, [Fraction(b) for b in CARDS]) for i in range(len(placed)))
    assert iteration_ns(timing, matrix_of(graph, placed)) == slowest * NS >= timing.bound_ns


@given(exact_graphs(), st.data())
def test_many_columns_at_once(graph: StageGraph, data: st.DataObject) -> None:
    columns = [[data.draw(st.integers(0, count)) for count in graph.replicas] for _ in range(4)]
    for timing in (
        ContentionTime(graph=graph, nvlink_bytes_per_s=INSIDE, nic_bytes_per_s=CARDS),
        LinkTime(graph=graph, nvlink_bytes_per_s=INSIDE, link_bytes_per_s=CARDS),
    ):
        for server in range(len(CARDS)):
            many = timing.columns_ns(np.array(columns, np.int64), server)
            assert many.tolist() == [timing.column_ns(column, server) for column in columns]
