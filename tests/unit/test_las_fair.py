"""Fair shares by hand: how many GPUs are fair, whose turn it is, and when GPUs change hands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frostline import check_schedule
from frostline.errors import InvalidValueError
from frostline.policies import LasFair, make_policy
from frostline.policies.las_fair import fair_shares
from frostline.problem import Cluster, Fixed, Instance, Job, Outage
from frostline.scheduler import Scheduler
from frostline.simulation import simulate
from frostline.simulation.engine import policy_text


def job(name: str, release_s: float, gpus: int, duration_s: float, **more: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), **more)


def pieces(
    cluster: Cluster, *jobs: Job, round_s: float = 10, restart_s: float = 0, outages: tuple[Outage, ...] = ()
) -> list[tuple[str, float, float]]:
    instance = Instance(cluster=cluster, jobs=jobs)
    result = simulate(instance, LasFair(round_s=round_s, restart_s=restart_s), outages=outages)
    assert check_schedule(instance, result.schedule).valid
    return [(segment.job, segment.start_s, segment.end_s) for segment in result.schedule.segments]


class TestShares:
    def test_nobody_gets_more_than_it_asks_for_and_others_share_what_that_leaves(self) -> None:
        assert fair_shares([1, 8, 8], [1.0, 1.0, 1.0], 8) == [1, 3.5, 3.5]
        assert fair_shares([1, 2, 3], [1.0, 1.0, 1.0], 8) == [1, 2, 3]
        assert fair_shares([], [], 8) == []

    def test_weights_count(self) -> None:
        assert fair_shares([8, 8], [1.0, 3.0], 8) == [2.0, 6.0]
        assert fair_shares([8, 2], [1.0, 3.0], 8) == [6.0, 2]

    def test_the_least_weighted_share_is_as_large_as_can_be(self) -> None:
        """Whoever has less than it asks for has as much for its weight as anybody, and all GPUs are shared."""
        dice = np.random.default_rng(4)
        for _ in range(50):
            wanted = dice.integers(1, 9, 6).tolist()
            weights = dice.choice([0.5, 1.0, 2.0], 6).tolist()
            shares = fair_shares(wanted, weights, 12)
            assert sum(shares) == pytest.approx(min(12, sum(wanted)))
            most = max(share / weight for share, weight in zip(shares, weights, strict=True))
            for share, weight, gpus in zip(shares, weights, wanted, strict=True):
                assert share == gpus or share / weight == pytest.approx(most)


ONE = Cluster.pool(1)


def test_two_take_turns_at_the_beginnings_of_rounds() -> None:
    """Each is complete after 25 s of its own; a restart of 2 s is lost at every turn but the first."""
    told = pieces(ONE, job("a", 0, 1, 25), job("b", 0, 1, 25))
    assert told == [
        ("a", 0.0, 10.0),
        ("b", 10.0, 20.0),
        ("a", 20.0, 30.0),
        ("b", 30.0, 40.0),
        ("a", 40.0, 45.0),
        ("b", 45.0, 50.0),
    ]
    assert pieces(ONE, job("a", 0, 1, 25), job("b", 0, 1, 25), restart_s=2)[-2:] == [
        ("a", 40.0, 49.0),
        ("b", 49.0, 58.0),
    ]


def test_who_has_had_least_of_its_share_since_its_release_goes_first() -> None:
    """At 30 a has had 3 of 3, at 40 3 of 4; b, of 25, 5 of 15 then, and at 50 15 of 25, less than 3 of 5."""
    told = pieces(ONE, job("a", 0, 1, 99), job("b", 25, 1, 22))
    assert told[:4] == [("a", 0.0, 30.0), ("b", 30.0, 50.0), ("a", 50.0, 60.0), ("b", 60.0, 62.0)]


def test_a_weight_of_2_is_worth_two_turns() -> None:
    told = pieces(ONE, job("a", 0, 1, 60), job("b", 0, 1, 60, weight=2.0))
    held = {"a": Fraction(0), "b": Fraction(0)}
    for name, start_s, end_s in told:
        held[name] += Fraction(max(min(end_s, 60) - start_s, 0))
    assert held == {"a": 20, "b": 40}


def test_the_share_is_of_gpus_and_not_of_time() -> None:
    """Of 4 GPUs n and o have a fair share of 1 and w one of 2: it needs all four, for half of the time.

    At 30 n has had 20 of 30 and w 40 of 60, and n is the earlier one; at 40 n has had 30 of 40 and w 40 of 80.
    """
    told = pieces(Cluster.pool(4), job("n", 0, 1, 40), job("o", 0, 1, 40), job("w", 0, 4, 40))
    wide = [(start_s, end_s) for name, start_s, end_s in told if name == "w" and end_s <= 50]
    assert wide == [(10.0, 20.0), (40.0, 50.0)]


def test_between_rounds_nobody_is_evicted_but_what_is_free_is_taken() -> None:
    told = pieces(Cluster.pool(2), job("a", 0, 1, 5), job("b", 0, 1, 30), job("c", 2, 1, 30), job("d", 3, 2, 9))
    assert told[:3] == [("a", 0.0, 5.0), ("b", 0.0, 10.0), ("c", 5.0, 10.0)]
    assert told[3] == ("d", 10.0, 19.0)


def test_where_servers_are_apart_those_give_way_that_are_chosen_later() -> None:
    """u and x, of twice the weight, are chosen after w; v and y leave one GPU in each server, and w needs two in one.

    So x, that is chosen last, gives way with y, and takes the place of v in turn.
    """
    jobs = [job(name, 0, 1, 100, weight=2.0 if name in "ux" else 1.0) for name in "uvxy"]
    told = pieces(Cluster.uniform(2, gpus=2), *jobs, job("w", 5, 2, 10, locality="server"))
    assert {piece for piece in told if piece[2] == 10.0} == {("v", 0.0, 10.0), ("x", 0.0, 10.0), ("y", 0.0, 10.0)}
    assert {name for name, start_s, _ in told if start_s == 10.0} == {"w", "x"}


def test_shares_are_of_the_servers_that_are_up() -> None:
    outage = Outage(server="s0", start_s=0, end_s=1000)
    told = pieces(Cluster.uniform(2, gpus=2), job("a", 0, 2, 15), job("b", 0, 2, 15), outages=(outage,))
    assert told == [("a", 0.0, 10.0), ("b", 10.0, 20.0), ("a", 20.0, 25.0), ("b", 25.0, 30.0)]


def test_it_wakes_at_the_next_round_as_long_as_somebody_waits() -> None:
    scheduler = Scheduler(ONE, "las-fair")
    scheduler.submit(job("a", 5, 1, 1000))
    assert scheduler.advance(5).wake_s is None
    scheduler.submit(job("b", 10, 1, 1000))
    assert scheduler.advance(10).wake_s == 360.0
    assert scheduler.advance(360).evictions == ("a",)


def test_the_name_and_the_parameters() -> None:
    policy = make_policy("las-fair:round_s=60")
    assert policy_text(policy) == "las-fair:round_s=60.0:restart_s=30.0"
    assert policy == LasFair(round_s=60)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round_s=30", "policy 'las-fair': round_s=30.0 must be above restart_s=30"),
        ("round_s=0:restart_s=0", "policy 'las-fair': round_s=0.0 must be above restart_s=0"),
        ("round_s=x", "policy 'las-fair': round_s='x' must be a number"),
        ("restart_s=-1", "policy 'las-fair': restart_s=-1 must be at least 0"),
    ],
)
def test_bad_parameters_are_named(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make_policy(f"las-fair:{text}")
