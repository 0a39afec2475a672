"""The virtual machine and the bounds, by hand."""

from __future__ import annotations

import pytest

from frostline.errors import UnknownNameError
from frostline.problem import Cluster, Fixed, Instance, Job
from frostline.relaxation import BOUNDS, VirtualMachine, lower_bound, virtual_completions


def instance(gpus: int, *jobs: tuple[str, float, int, float]) -> Instance:
    made = [Job(id=i, release_s=r, gpus=g, work=Fixed(duration_s=p)) for i, r, g, p in jobs]
    return Instance(cluster=Cluster.pool(gpus), jobs=made)


def test_three_jobs_on_one_machine() -> None:
    # J1(0, 10), J2(1, 2), J3(2, 0.5): the third interrupts the second, which interrupted the first.
    completions = virtual_completions([(0, 10_000), (1_000, 2_000), (2_000, 500)], gpus=1)
    assert completions == [12_500, 3_500, 2_500]


def test_remaining_work_decides_and_ties_go_to_the_earlier() -> None:
    machine = VirtualMachine(gpus=1)
    machine.arrive(0, 0, work=10)
    machine.arrive(5, 1, work=5)  # equal remaining work: the first is not interrupted
    assert machine.advance(100) == [(10, 0), (15, 1)]


def test_completion_between_two_microseconds_is_exact_and_due_is_rounded_up() -> None:
    machine = VirtualMachine(gpus=3)
    machine.arrive(0, 0, work=4)
    assert machine.next_completion_us == 2
    assert machine.advance(1) == []
    assert machine.advance(2) == [(4, 0)]


def test_machine_may_start_before_time_zero() -> None:
    assert virtual_completions([(-5, 2), (3, 1)], gpus=1) == [-3, 4]


def test_relaxation_of_the_gang_of_six() -> None:
    problem = instance(8, ("J1", 0, 6, 100), ("J2", 1, 8, 10), ("J3", 2, 2, 5))
    assert lower_bound(problem, "srpt").total_flow_s == 98.75


def test_relaxation_of_two_waves() -> None:
    problem = instance(12, *((f"j{i}", 0, 1, 10) for i in range(24)))
    assert lower_bound(problem, "srpt").total_flow_s == 250.0
    assert lower_bound(problem, "pointwise").total_flow_s >= 250.0


def test_relaxation_of_the_consolidation_case() -> None:
    problem = instance(16, ("J1", 0, 4, 10), ("J2", 0, 4, 10), ("J3", 0, 6, 10))
    assert lower_bound(problem, "srpt").total_flow_s == 16.25


def test_refuted_sum_is_not_repeated() -> None:
    # srpt + ½ Σ(p − w) would claim 14.25, above the optimum 14.
    problem = instance(4, ("a", 0, 1, 4), *((f"b{i}", i, 3, 1) for i in range(4)))
    values = {name: lower_bound(problem, name).total_completion_s for name in BOUNDS}
    assert values["srpt"] == 12.25
    assert values["mean_busy"] == 13.875
    assert max(values.values()) <= 14


def test_best_is_named_after_its_method() -> None:
    problem = instance(4, ("a", 0, 1, 4), *((f"b{i}", i, 3, 1) for i in range(4)))
    best = lower_bound(problem, "best")
    assert best.completion_us == max(lower_bound(problem, name).completion_us for name in BOUNDS)
    assert best.method in BOUNDS


def test_jobs_that_never_fit_are_left_out() -> None:
    bound = lower_bound(instance(4, ("a", 0, 1, 4), ("wide", 0, 5, 4)))
    assert bound.jobs == 1
    assert bound.total_flow_s == 4.0


def test_no_jobs() -> None:
    bound = lower_bound(instance(4))
    assert (bound.jobs, bound.total_flow_s, bound.mean_flow_s) == (0, 0.0, None)


def test_shifted_arrivals_shift_the_bound() -> None:
    near = instance(4, ("a", 0, 3, 4), ("b", 1, 2, 1))
    far = instance(4, ("a", 1e9, 3, 4), ("b", 1e9 + 1, 2, 1))
    for name in BOUNDS:
        assert lower_bound(far, name).total_flow_s == pytest.approx(lower_bound(near, name).total_flow_s, abs=1e-6)


def test_certificate_holds_the_exact_value() -> None:
    certificate = lower_bound(instance(3, ("a", 0, 1, 1), ("b", 0, 1, 1)), "srpt").certificate
    assert certificate["total_completion_us"] == [1_000_000, 1]
    assert certificate["method"] == "srpt"


def test_unknown_bound_is_named() -> None:
    with pytest.raises(UnknownNameError, match="unknown bound 'pointwize'; did you mean 'pointwise'"):
        lower_bound(instance(1), "pointwize")
