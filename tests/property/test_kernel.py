"""The loops of the placement search: against what they compute step by step, and compiled against as they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from frostline.placement import jit, kernel, kernel_starts
from frostline.placement.contiguous import blocks_of, contiguous
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.local_search import local_search, merged
from frostline.placement.packing import best_fit, whole_stages
from frostline.placement.request import Request
from frostline.placement.tables import problem_of
from frostline.testing import stage_graphs
from frostline.timing.contention import ContentionTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

Ints = npt.NDArray[np.int64]
METHODS = (best_fit, heavy_edge, contiguous, whole_stages, local_search)


@st.composite
def requests(draw: st.DrawFn, *, max_gpus: int = 20, max_stages: int = 6) -> Request:
    """Requests on servers of two sizes and up to two speeds, with room for all and some to spare."""
    graph = draw(stage_graphs(max_gpus=max_gpus, max_stages=max_stages))
    graph = graph.replace(gpus_per_replica=[draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in graph.replicas])
    largest = draw(st.integers(max(graph.gpus_per_replica), 8))
    servers = sum(graph.replicas) * max(graph.gpus_per_replica) // largest + 2
    free = [largest] * servers + draw(st.lists(st.integers(0, 8), max_size=3))
    free += [max(graph.gpus_per_replica)] * (sum(graph.replicas) if max(graph.gpus_per_replica) > 1 else 0)
    cards = draw(st.sampled_from([10e9, [10e9 + 15e9 * (m % 2) for m in range(len(free))]]))
    if draw(st.booleans()):
        return Request(timing=LinkTime(graph=graph, link_bytes_per_s=cards), free=tuple(free))
    timing = ContentionTime(graph=graph, nic_bytes_per_s=cards, overlap=draw(st.booleans()))
    return Request(timing=timing, free=tuple(free), seed=draw(st.integers(0, 3)))


def scattered(request: Request, draw: st.DataObject) -> Ints:
    """Any placement: every replica in turn on any row with room, if it can be."""
    matrix, left = request.empty(), request.room.copy()
    for stage in np.argsort(-request.sizes, kind="stable").tolist():
        for _ in range(request.counts[stage]):
            rows = np.flatnonzero(left >= request.sizes[stage]).tolist()
            if not rows:
                return best_fit(request)
            row = draw.draw(st.sampled_from(rows))
            matrix[row, stage] += 1
            left[row] -= request.sizes[stage]
    return matrix


@given(requests(), st.data())
def test_a_state_is_what_follows_from_its_matrix(request_: Request, data: st.DataObject) -> None:
    problem = problem_of(request_)
    assert problem is not None
    matrix = scattered(request_, data)
    state = kernel.state_of(problem, matrix)
    assert state.figures[:, kernel.TIME].tolist() == request_.rows_ns(matrix).tolist()
    assert state.figures[:, kernel.LOAD].tolist() == request_.loads(matrix).tolist()
    assert kernel.slowest_time(problem, matrix) == request_.rows_ns(matrix).max()


@given(requests(), st.data())
def test_a_move_is_timed_without_being_made(request_: Request, data: st.DataObject) -> None:
    p = problem_of(request_)
    assert p is not None
    state = kernel.state_of(p, scattered(request_, data))
    row = data.draw(st.sampled_from(np.flatnonzero(state.figures[:, kernel.LOAD]).tolist()))
    column, stages = state.cells[row, kernel.HELD].copy(), range(len(request_.counts))
    leaves = data.draw(st.sampled_from([-1, *np.flatnonzero(column).tolist()]))
    enters = data.draw(st.sampled_from([-1, *(s for s in stages if s != leaves and column[s] < request_.counts[s])]))
    kind = int(p.rows[row, kernel.CLASS])
    told = kernel.time_after(p.summed, p.stages, p.cost, *state, row, kind, leaves, enters, kernel.NEVER)
    for stage, change in ((leaves, -1), (enters, 1)):
        if stage >= 0:
            kernel.shift(p.stages, p.cost, p.first, p.near, *state, row, kind, stage, change)
    after = kernel.state_of(p, state.cells[:, kernel.HELD])
    assert told == after.figures[row, kernel.TIME]
    assert (state.cells == after.cells).all()
    assert (state.figures[:, kernel.LOAD] == after.figures[:, kernel.LOAD]).all()


@given(requests(max_gpus=10), st.data())
def test_two_rows_are_divided_in_the_best_way(request_: Request, data: st.DataObject) -> None:
    problem = problem_of(request_)
    assert problem is not None
    matrix = scattered(request_, data)
    assume(len(matrix) > 1)
    used = np.flatnonzero(matrix.any(axis=1)).tolist()
    row = data.draw(st.sampled_from(used))
    other = data.draw(st.sampled_from([r for r in range(len(matrix)) if r != row]))
    both = matrix[row] + matrix[other]
    classes = request_.classes[[row, other]]

    def times(column: tuple[int, ...]) -> list[int]:
        pair = np.array([column, both - column])
        if (request_.loads(pair) > request_.room[[row, other]]).any():
            return [1 << 62]
        return sorted(request_.columns_ns(pair, classes).tolist(), reverse=True)

    state = kernel.state_of(problem, matrix)
    before = times(tuple(matrix[row].tolist()))
    found = kernel.divide(problem, state, row, other)
    after = times(tuple(state.cells[row, kernel.HELD].tolist()))
    assert after == min(times(column) for column in itertools.product(*(range(count + 1) for count in both.tolist())))
    assert found == (after < before)
    rest = np.delete(np.arange(len(matrix)), [row, other])
    assert (state.cells[rest, kernel.HELD] == matrix[rest]).all()
    assert (state.cells == kernel.state_of(problem, state.cells[:, kernel.HELD]).cells).all()


@given(requests(), st.data())
def test_descent_falls_lexicographically(request_: Request, data: st.DataObject) -> None:
    problem = problem_of(request_)
    assert problem is not None
    matrix = scattered(request_, data)
    before = sorted(request_.rows_ns(matrix).tolist(), reverse=True)
    for _ in range(200):
        slowest_ns, after = kernel.descended(problem, matrix, np.array([500], np.int64), 1)
        assert tuple(after.sum(axis=0)) == request_.counts
        assert (request_.loads(after) <= request_.room).all()
        times = sorted(request_.rows_ns(after).tolist(), reverse=True)
        if slowest_ns >= 0:
            assert (after == matrix).all() and slowest_ns == times[0]
            return
        assert times < before
        matrix, before = after, times


@given(requests(), st.data())
def test_merging_frees_rows_and_keeps_the_limit(request_: Request, data: st.DataObject) -> None:
    matrix = scattered(request_, data)
    fewer = merged(request_, matrix)
    assert tuple(fewer.sum(axis=0)) == request_.counts
    assert (request_.loads(fewer) <= request_.room).all()
    assert fewer.any(axis=1).sum() <= matrix.any(axis=1).sum()
    assert request_.value_ns(fewer) <= request_.value_ns(matrix)


@given(requests())
def test_tables_of_blocks_are_their_times(request_: Request) -> None:
    problem = problem_of(request_)
    known, asked = blocks_of(request_, problem), blocks_of(request_, None)
    assert (known.tables == asked.tables).all()
    assert (known.filled == asked.filled).all()


@pytest.mark.skipif(find_spec("numba") is None, reason="needs the extra fast")
class TestCompiled:
    """Nothing may depend on whether numba is installed."""

    @staticmethod
    def answers(request: Request, fastest: object) -> list[list[list[int]]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jit, "_fastest", fastest)
            return [method(request).tolist() for method in METHODS]

    @settings(max_examples=40)
    @given(requests(max_gpus=30))
    def test_compiled_and_plain_loops_agree(self, request_: Request) -> None:
        assert self.answers(request_, jit.compiled) == self.answers(request_, as_it_is)

    def test_they_agree_on_a_large_job(self) -> None:
        graph = StageGraph(
            replicas=[48, 24, 64, 32, 96, 7],
            compute_s=[0.1] * 6,
            gradient_bytes=[10**8, 10**9, 0, 10**7, 10**8, 10**6],
            edges={(s, t): 10**8 * (s + 3 * t) for t in range(6) for s in range(t) if (s + t) % 3},
        )
        for timing in (ContentionTime(graph=graph), LinkTime(graph=graph)):
            request = Request(timing=timing, free=(8, 7, 5) * 16)
            assert self.answers(request, jit.compiled) == self.answers(request, as_it_is)

    def test_every_function_is_compiled(self) -> None:
        for module in (kernel, kernel_starts):
            twin = jit.compiled(module)
            names = [name for name in vars(module) if callable(getattr(module, name)) and name.islower()]
            own = [name for name in names if getattr(module, name).__module__ == module.__name__]
            assert own and all(hasattr(getattr(twin, name), "py_func") for name in own)
            assert set(module.INLINED) <= set(own)


def as_it_is(module: ModuleType) -> ModuleType:
    return module


class TestChoice:
    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        jit._fastest.cache_clear()
        yield
        jit._fastest.cache_clear()

    def test_switched_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FROSTLINE_JIT", "0")
        assert jit.search_loops() is kernel and jit.start_loops() is kernel_starts

    def test_without_numba(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(module: ModuleType) -> ModuleType:
            raise ImportError(module)

        monkeypatch.setenv("FROSTLINE_JIT", "1")
        monkeypatch.setattr(jit, "compiled", missing)
        assert jit.search_loops() is kernel

    def test_with_numba(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("numba")
        monkeypatch.setenv("FROSTLINE_JIT", "1")
        assert jit.search_loops() is jit.compiled(kernel)

    def test_without_a_folder_for_compiled_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        numba = pytest.importorskip("numba")

        def njit(**options: object) -> object:
            if options.get("cache"):
                raise RuntimeError("no locator available")
            return lambda function: function

        assert jit._can_cache()
        monkeypatch.setattr(numba, "njit", njit)
        assert not jit._can_cache()
