"""The compiled twin of the simulator gives the schedules of the reference, byte for byte."""

from __future__ import annotations

import os
from importlib.util import find_spec
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline import check_schedule
from frostline.placement.jit import compiled
from frostline.policies import Task, make_policy
from frostline.policies.list_policy import ListPolicy
from frostline.policies.orders import ORDERS
from frostline.problem import Cluster, Fixed, Instance, Job, Schedule, Server
from frostline.simulation import run, simulate
from frostline.simulation.compiled import Twin, kernel
from frostline.simulation.compiled.columns import columns_of
from frostline.simulation.compiled.rules import keys_of
from frostline.simulation.engine import policy_text
from frostline.testing import instances
from frostline.traces import generate_jobs

LOCALITIES = ("any", "server", "fewest")
LISTS = ("fifo", "sjf", "smallest-area", "ljf", "easy")
DISCIPLINES = ("strict", "backfill", "fit-anything")
ASRPT = ("asrpt", "asrpt-strict", "asrpt-budget", "asrpt-guard")
SHARES = st.sampled_from([0.0, 0.01, 0.3, 1.0])
NAMES = st.one_of(
    st.sampled_from([*LISTS, *ASRPT]),
    st.builds("{}:discipline={}".format, st.sampled_from(LISTS), st.sampled_from(DISCIPLINES)),
    st.builds("asrpt-budget:share={}:order={}".format, SHARES, st.sampled_from(["shortest", "longest", "arrival"])),
    st.builds("asrpt-guard:patience={}:discipline={}".format, SHARES, st.sampled_from(DISCIPLINES)),
    st.builds("asrpt:patience={}:headroom={}:small={}".format, SHARES, SHARES, st.sampled_from([0.25, 0.1, 2.0])),
)
CASES = instances(max_jobs=14, max_servers=4, localities=LOCALITIES, impossible=True)
needs_numba = pytest.mark.skipif(
    find_spec("numba") is None or os.environ.get("FROSTLINE_JIT") == "0", reason="needs the extra fast"
)


def played(instance: Instance, name: str, loops: ModuleType) -> Schedule:
    policy = make_policy(name)
    twin = Twin(instance, policy, loops)
    twin.run()
    return twin.schedule(policy_text(policy))


def assert_same(instance: Instance, name: str, loops: ModuleType) -> None:
    expected, found = run(instance, make_policy(name)), played(instance, name, loops)
    assert found == expected
    assert repr(found) == repr(expected)


@given(CASES | instances(max_jobs=14, max_gpus=20, pool=True), NAMES)
def test_the_loops_as_they_are_give_the_schedules_of_the_reference(instance: Instance, name: str) -> None:
    assert_same(instance, name, kernel)


@needs_numba
class TestCompiled:
    @given(CASES | instances(max_jobs=30, max_gpus=20, max_servers=6, localities=LOCALITIES), NAMES)
    def test_compiled_loops_give_the_schedules_of_the_reference(self, instance: Instance, name: str) -> None:
        assert_same(instance, name, compiled(kernel))

    @pytest.mark.parametrize("name", [*LISTS, *ASRPT, "sjf:discipline=backfill", "asrpt:patience=0.05"])
    def test_on_a_long_trace(self, name: str) -> None:
        cluster = Cluster(servers=[Server(id=f"s{m}", gpus=8 if m % 3 else 4) for m in range(40)])
        jobs = generate_jobs(5_000, seed=7, gpus=cluster.gpus, load=1.05, histogram="mixed")
        spread = [job.replace(locality=LOCALITIES[i % 3] if job.gpus <= 8 else "any") for i, job in enumerate(jobs)]
        assert_same(Instance(cluster=cluster, jobs=spread), name, compiled(kernel))

    @given(CASES, NAMES)
    def test_what_is_reported_is_the_same(self, instance: Instance, name: str) -> None:
        expected, found = simulate(instance, name), simulate(instance, name, engine="compiled")
        assert check_schedule(instance, found.schedule).valid
        assert (found.metrics, found.guarantee) == (expected.metrics, expected.guarantee)
        assert found.prediction is found.accuracy is None

    def test_every_function_is_compiled(self) -> None:
        twin = compiled(kernel)
        names = [name for name in vars(kernel) if callable(getattr(kernel, name)) and name.islower()]
        own = [name for name in names if getattr(kernel, name).__module__ == kernel.__name__]
        assert own and all(hasattr(getattr(twin, name), "py_func") for name in own)
        assert set(kernel.INLINED) <= set(own)


@given(CASES)
def test_orders_over_columns_are_those_of_tasks(instance: Instance) -> None:
    columns = columns_of(instance)
    rows = zip(columns.jobs.release_us, columns.jobs.duration_us.tolist(), columns.line, strict=True)
    tasks = [
        Task(job=None, release_us=release, shape=columns.shapes[line], duration_us=duration, number=number)
        for number, (release, duration, line) in enumerate(rows)
    ]
    for order, key in ORDERS.items():
        found = keys_of(ListPolicy(name="any", order=order, discipline="strict"), columns)
        assert found is None if order == "root-area" else found.tolist() == [key(task) for task in tasks]


NUMBERS = st.integers(1, 50) | st.integers(1, 2**61)


@st.composite
def doubled(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Sizes that are often a power of two apart, or one more or less."""
    small, work, count, scale = draw(NUMBERS), draw(NUMBERS), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = (small * work << draw(st.integers(0, 8))) // (count * scale) + draw(st.integers(-1, 1))
    return min(max(size, 1), 2**61), count, scale, small, work


@given(doubled() | st.tuples(NUMBERS, st.integers(1, 2**30), NUMBERS, NUMBERS, NUMBERS))
def test_doublings_are_counted_exactly(numbers: tuple[int, int, int, int, int]) -> None:
    area, count, scale, small, work = numbers
    size, unit = area * count * scale, small * work
    exact = max((size**8 // unit**8).bit_length() - 1, 0)
    assert kernel.doublings(*numbers) == exact


@given(st.integers(2, 2**40), st.integers(0, 40), st.integers(-3, 3))
def test_near_an_eighth_of_a_doubling_whole_numbers_tell(small: int, eighths: int, beside: int) -> None:
    size = round(small * 2 ** (eighths / 8)) + beside
    exact = max((size**8 // small**8).bit_length() - 1, 0) if size > 0 else 0
    assert size <= 0 or kernel.doublings(size, 1, 1, small, 1) == exact


def test_equal_jobs_are_at_a_whole_number_of_doublings() -> None:
    jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=10), gpus=4) for i in range(40)]
    instance = Instance(cluster=Cluster.pool(40), jobs=jobs)
    assert kernel.doublings(40, 1, 4, 1, 40) == 16
    assert_same(instance, "asrpt:headroom=0.2", kernel)
