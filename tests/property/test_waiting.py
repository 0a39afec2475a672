"""The waiting queue, the free GPUs, reservations and the saturation against slow references."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.placement.free_gpus import FreeGpus, Loads, Shape
from frostline.placement.saturation import busy_when_blocked
from frostline.policies import waiting
from frostline.policies.reservation import reserve
from frostline.policies.task import Running, Task
from frostline.policies.waiting import Line, WaitingQueue
from frostline.problem import Cluster, Fixed, Job, Server

ONE = Shape(1, 1)
JOB = Job(id="x", release_s=0, gpus=1, work=Fixed(duration_s=1))
CAPACITIES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def task(number: int, priority: int, duration_us: int, shape: Shape = ONE) -> Task:
    return Task(job=JOB, number=number, release_us=0, shape=shape, duration_us=duration_us, priority=priority)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_BLOCK", 2)


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "ask"]), st.integers(0, 9), st.integers(1, 9))))
def test_line_is_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    line, reference = Line(Shape(1, 1)), []
    for number, (step, a, b) in enumerate(steps):
        if step == "add":
            entry = (a, number, task(number, a, b))
            line.add(entry)
            reference = sorted([*reference, entry], key=lambda e: e[:2])
        elif step == "remove" and reference:
            entry = reference.pop(a % len(reference))
            line.remove(entry)
        assert list(line) == [entry[2] for entry in reference]
        assert bool(line) == bool(reference)
        assert line.first_within(b) == next((e for e in reference if e[2].duration_us <= b), None)
        if reference:
            assert line.head == reference[0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=12))
def test_queue_keeps_one_order_over_all_shapes(rows: list[tuple[int, int]]) -> None:
    queue = WaitingQueue()
    tasks = [task(number, priority, 1, Shape(gpus, 1)) for number, (priority, gpus) in enumerate(rows)]
    for count, one in enumerate(tasks, start=1):
        queue.add(one)
        assert queue.first is min(tasks[:count], key=lambda t: (t.priority, t.number))
    expected = sorted(tasks, key=lambda t: (t.priority, t.number))
    assert list(queue) == expected
    while expected:
        assert queue.first is expected[0]
        queue.remove(expected.pop(0))
        assert len(queue) == len(expected)
    assert queue.first is None


def fits(free: list[int], shape: Shape) -> bool:
    return sum(sorted(free, reverse=True)[: shape.most_servers]) >= shape.gpus


@given(CAPACITIES, st.lists(st.tuples(st.booleans(), st.integers(1, 12), st.integers(1, 4)), max_size=12))
def test_free_gpus_are_a_list_of_numbers(capacities: list[int], steps: list[tuple[bool, int, int]]) -> None:
    free, held = FreeGpus(capacities), []
    for give, gpus, servers in steps:
        before = list(free.by_server)
        shape = Shape(gpus, servers)
        assert free.fits(shape) == fits(before, shape)
        loads = free.best_fit(shape)
        assert (loads is not None) == fits(before, shape)
        if give and held:
            free.give(held.pop())
        elif loads is not None:
            check_best_fit(before, shape, loads)
            free.take(loads)
            held.append(loads)
        taken = [sum(g for load in held for m, g in load if m == server) for server in range(len(capacities))]
        assert free.by_server == [c - t for c, t in zip(capacities, taken, strict=True)]
        assert free.total == sum(free.by_server)
        assert free.largest == max(free.by_server)
    twin = free.copy()
    assert [twin.fits(Shape(g, 1)) for g in range(1, 9)] == [free.fits(Shape(g, 1)) for g in range(1, 9)]


def check_best_fit(before: list[int], shape: Shape, loads: Loads) -> None:
    assert sum(gpus for _, gpus in loads) == shape.gpus
    assert list(loads) == sorted(set(loads))
    assert all(0 < gpus <= before[server] for server, gpus in loads)
    fewest = next(k for k in range(1, len(before) + 1) if fits(before, Shape(shape.gpus, k)))
    assert len(loads) == fewest <= shape.most_servers
    if fewest == 1:
        server = loads[0][0]
        holes = [(hole, m) for m, hole in enumerate(before) if hole >= shape.gpus]
        assert (before[server], server) == min(holes)


@given(CAPACITIES, st.integers(1, 16), st.integers(1, 4))
def test_saturation_is_exact(capacities: list[int], gpus: int, servers: int) -> None:
    shape = Shape(gpus, min(servers, len(capacities)))
    if not fits(capacities, shape):
        return
    cluster = Cluster(servers=tuple(Server(id=str(i), gpus=c) for i, c in enumerate(capacities)))
    blocked = [free for free in product(*(range(c + 1) for c in capacities)) if not fits(list(free), shape)]
    assert busy_when_blocked(shape, cluster) == min(sum(capacities) - sum(free) for free in blocked)


@st.composite
def blocked(draw: st.DrawFn) -> tuple[FreeGpus, list[Running], Shape]:
    """Busy servers and a shape that does not fit now but will."""
    capacities = draw(CAPACITIES)
    free, running = FreeGpus(capacities), []
    for end, width in draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=6)):
        loads = free.best_fit(Shape(width, len(capacities)))
        if loads is not None:
            free.take(loads)
            running.append(Running(end, len(running), task(0, 0, 1), loads, width))
    shape = Shape(draw(st.integers(1, 12)), draw(st.integers(1, len(capacities))))
    assume(fits(capacities, shape) and not free.fits(shape))
    return free, sorted(running), shape


def free_at(free: FreeGpus, running: list[Running], now: int, time: int, without: Loads = ()) -> list[int]:
    """Free GPUs of each server at a time if nothing starts, less some; jobs that are late end just after now."""
    at = list(free.by_server)
    for server, gpus in (load for run in running if max(run.end_us, now + 1) <= time for load in run.loads):
        at[server] += gpus
    for server, gpus in without:
        at[server] -= gpus
    return at


@given(blocked(), st.integers(0, 4), st.integers(0, 4))
def test_reservation_is_the_earliest_fit(case: tuple[FreeGpus, list[Running], Shape], now: int, headroom: int) -> None:
    free, running, shape = case
    assume(shape.gpus + headroom <= free.capacity)

    def suits(at: list[int]) -> bool:
        return fits(at, shape) and sum(at) >= shape.gpus + headroom

    reservation = reserve(shape, now, free, running, headroom)
    ends = sorted({max(run.end_us, now + 1) for run in running})
    assert reservation.time_us == next(end for end in ends if suits(free_at(free, running, now, end)))
    for width, most in product(range(1, 5), range(1, len(free.by_server) + 1)):
        loads = free.best_fit(Shape(width, most))
        if loads is not None:
            assert reservation.spares(loads) == suits(free_at(free, running, now, reservation.time_us, loads))
