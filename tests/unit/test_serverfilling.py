"""ServerFilling-SRPT by hand: who fills the cluster, who is served of them, and who gives way."""

from __future__ import annotations

import pytest

from frostline import check_schedule
from frostline.errors import InvalidValueError
from frostline.policies import ServerFillingSrpt, make_policy
from frostline.problem import Cluster, Fixed, Instance, Job, Outage
from frostline.simulation import simulate
from frostline.simulation.engine import policy_text


def job(name: str, release_s: float, gpus: int, duration_s: float, locality: str = "any") -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), locality=locality)


def pieces(cluster: Cluster, *jobs: Job, restart_s: float = 0, **more: object) -> list[tuple[str, float, float]]:
    instance = Instance(cluster=cluster, jobs=jobs)
    result = simulate(instance, ServerFillingSrpt(restart_s=restart_s, **more))  # type: ignore[arg-type]
    assert check_schedule(instance, result.schedule).valid
    return [(segment.job, segment.start_s, segment.end_s) for segment in result.schedule.segments]


FOUR = Cluster.pool(4)


def test_narrow_ones_that_do_not_fill_the_cluster_wait_for_the_wide_one_that_does() -> None:
    """10 + 20 GPU-s on 2 GPUs are not enough: w, of 120, is among the first, and the widest."""
    told = pieces(FOUR, job("a", 0, 1, 10), job("b", 0, 1, 20), job("w", 0, 4, 30))
    assert told == [("w", 0.0, 30.0), ("a", 30.0, 40.0), ("b", 30.0, 50.0)]


def test_those_that_fill_it_go_first_however_narrow() -> None:
    """c and d make four: w gives way to all of them, and comes back as soon as one has ended, for the others."""
    narrow = [job("a", 0, 1, 10), job("b", 0, 1, 10), job("c", 5, 1, 3), job("d", 5, 1, 9)]
    told = pieces(FOUR, *narrow, job("w", 0, 4, 30))
    assert told == [
        ("w", 0.0, 5.0),
        ("a", 5.0, 8.0),
        ("b", 5.0, 8.0),
        ("c", 5.0, 8.0),
        ("d", 5.0, 8.0),
        ("w", 8.0, 33.0),
        ("d", 33.0, 39.0),
        ("a", 33.0, 40.0),
        ("b", 33.0, 40.0),
    ]


def test_a_restart_counts_as_time_left() -> None:
    """When y ends, x, evicted with 9 s left, takes 9 + 4 with its restart: z with 12 goes first."""
    jobs = job("x", 0, 4, 10), job("y", 1, 4, 2), job("z", 2, 4, 12)
    assert pieces(FOUR, *jobs, restart_s=0) == [
        ("x", 0.0, 1.0),
        ("y", 1.0, 3.0),
        ("x", 3.0, 12.0),
        ("z", 12.0, 24.0),
    ]
    assert pieces(FOUR, *jobs, restart_s=4)[2:] == [("z", 3.0, 15.0), ("x", 15.0, 28.0)]


def test_what_is_left_free_is_given_away_in_order() -> None:
    """Widths of 3 and 2 do not fill four GPUs; the least left that fits takes the fourth."""
    jobs = job("a", 0, 3, 1), job("b", 0, 2, 10), job("c", 0, 1, 60), job("d", 0, 1, 50)
    assert pieces(FOUR, *jobs)[:2] == [("a", 0.0, 1.0), ("d", 0.0, 50.0)]


def test_victims_have_most_left_and_none_is_spared_in_vain() -> None:
    """n of 20 GPU-s joins a and b, that have 30 and 40 left: c, of 99, is not needed, and no other gives way."""
    jobs = job("a", 0, 1, 31), job("b", 0, 1, 41), job("c", 0, 2, 50), job("n", 1, 2, 10)
    assert [piece for piece in pieces(FOUR, *jobs) if piece[2] == 1.0] == [("c", 0.0, 1.0)]


def test_nothing_is_decided_between_arrivals_and_completions() -> None:
    """At 0 the wide w of 80 s is served; it comes to have less left than s, which changes nothing before it ends."""
    told = pieces(Cluster.uniform(2, gpus=2), job("w", 0, 2, 40, "server"), job("s", 0, 2, 50), job("t", 0, 1, 70))
    assert told == [("w", 0.0, 40.0), ("s", 0.0, 50.0), ("t", 40.0, 110.0)]


def test_one_that_was_evicted_often_enough_keeps_its_gpus_and_counts() -> None:
    jobs = job("long", 0, 4, 100), *(job(f"s{i}", 10 * i, 4, 1) for i in range(1, 6))
    evictions = [sum(name == "long" for name, *_ in pieces(FOUR, *jobs, most_evictions=most)) - 1 for most in (0, 2)]
    assert evictions == [0, 2]
    # Beside it there are two GPUs, which a cannot do with: b and c fill them, and c is the wider one.
    beside = job("long", 0, 2, 100), job("a", 1, 4, 1), job("b", 1, 1, 9), job("c", 1, 2, 8)
    assert pieces(FOUR, *beside, most_evictions=0)[:3] == [("long", 0.0, 100.0), ("c", 1.0, 9.0), ("b", 9.0, 18.0)]


def test_gpus_of_servers_that_are_down_do_not_count() -> None:
    """With one server down a and b fill the other; before, w was needed too, and is the widest."""
    jobs = job("a", 0, 1, 10), job("b", 0, 1, 20), job("w", 0, 4, 30)
    instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=jobs)
    outage = Outage(server="s0", start_s=5, end_s=50)
    result = simulate(instance, ServerFillingSrpt(restart_s=0), outages=[outage])
    told = [(segment.job, segment.start_s, segment.end_s) for segment in result.schedule.segments]
    assert told[:3] == [("w", 0.0, 5.0), ("a", 5.0, 15.0), ("b", 5.0, 25.0)]


def test_the_name_and_the_parameters() -> None:
    policy = make_policy("serverfilling-srpt:restart_s=5")
    assert policy_text(policy) == "serverfilling-srpt:restart_s=5.0:most_evictions=100"
    with pytest.raises(InvalidValueError, match="policy 'serverfilling-srpt': restart_s=-1 must be at least 0"):
        make_policy("serverfilling-srpt:restart_s=-1")
