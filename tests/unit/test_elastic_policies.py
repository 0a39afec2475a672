"""Elastic policies by hand: what an option is worth, when they decide, and how far they freeze."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing import plan_trajectory
from frostline.freezing.belief import spent_points, state_of, terms_of
from frostline.freezing.penalty import DebtLaw, level_debts_points
from frostline.freezing.rising import LawArrays, hulls_of, rising_vertices
from frostline.placement.free_gpus import Shape
from frostline.policies import IceFrog, Pollux, Sia, Task, View, make_policy
from frostline.policies.base import Decision, Reallocate, Share, Wait
from frostline.policies.elastic.allocate import best_options
from frostline.policies.elastic.menu import RoundMenu
from frostline.policies.elastic.optimus import greedy_options, remaining_s
from frostline.policies.elastic.options import Options
from frostline.policies.elastic.pollux import fair_rates, power_mean_values, restart_factors
from frostline.policies.elastic.prices import completion_order, work_prices
from frostline.policies.elastic.sia import configurations, sia_costs
from frostline.policies.task import Offer, Running
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job, Placement, Schedule, Server
from frostline.scheduler import Scheduler
from frostline.simulation import run
from frostline.simulation.accuracy import frozen_stretches
from frostline.verify import check_schedule

S = 1_000_000
TWO = Cluster.uniform(2, gpus=4)
ONE = {1: (1.0,)}


def elastic(
    iterations: int = 1000,
    times: dict[int, tuple[float, ...]] | None = None,
    budget: float = 0.0,
    warm_up: float = 0.2,
) -> Elastic:
    """Work on 1, 2 or 4 GPUs of one server or of many; halving the time needs more than twice the GPUs."""
    times = {1: (1.0,), 2: (0.625,), 4: (0.4,)} if times is None else times
    levels = len(next(iter(times.values())))
    return Elastic(
        iterations=iterations,
        widths=tuple(times),
        seconds_per_iteration={"one_server": times},
        compute_shares=tuple(level / (levels - 1) for level in range(levels)) if levels > 1 else (0.0,),
        family="fine-tuning",
        quality_budget_points=budget,
        warm_up=warm_up,
    )


def job(name: str = "a", release_s: float = 0, gpus: int = 1, locality: str = "any", **work: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=elastic(**work), locality=locality)


def menu_of(*rows: tuple[list[int], list[float], int], age_s: float = 60.0, evictions: int = 0) -> RoundMenu:
    """Tasks with their widths, seconds and GPUs held, 0 for none."""
    tasks, runs, options, held, first = [], [], [], [], [0]
    for number, (widths, seconds, gpus) in enumerate(rows):
        table = {width: (second,) for width, second in zip(widths, seconds, strict=True)}
        work = Elastic(iterations=100, widths=widths, seconds_per_iteration={"one_server": table})
        made = Job(id=str(number), release_s=0, gpus=widths[0], work=work)
        task = Task(job=made, release_us=0, shape=Shape(widths[0], 1), duration_us=S, number=number)
        tasks.append(task)
        column = np.array(seconds)[:, None]
        options.append(Options(gpus=np.array(widths), seconds=column, spread=column))
        held.append(first[-1] + (1 + widths.index(gpus) if gpus else 0))
        offer = Offer(Placement([(0, (gpus,))]), S) if gpus else None
        runs.append(Running(S, number, task, ((0, gpus),), gpus, offer=offer) if gpus else None)
        first.append(first[-1] + 1 + len(widths))
    counts = np.diff(first)
    return RoundMenu(
        tasks=tasks,
        runs=runs,
        options=options,
        first=np.array(first),
        job=np.repeat(np.arange(len(rows)), counts),
        gpus=np.concatenate([[0, *each.gpus] for each in options]),
        spread=np.zeros(first[-1], bool),
        seconds=np.concatenate([[np.inf, *each.seconds[:, 0]] for each in options]),
        held=np.array(held),
        done=[0] * len(rows),
        total=[100] * len(rows),
        age_s=np.full(len(rows), age_s),
        evictions=np.full(len(rows), evictions),
        capacity=4,
    )


def pieces(schedule: Schedule) -> list[tuple[str, float, float, int, int]]:
    return [(s.job, s.start_s, s.end_s, s.placement.gpus, s.freeze_level) for s in schedule.segments]


def play(policy: str | Any, *jobs: Job, cluster: Cluster | None = None) -> Schedule:
    instance = Instance(cluster=Cluster.uniform(1, gpus=4) if cluster is None else cluster, jobs=jobs)
    schedule = run(instance, make_policy(policy) if isinstance(policy, str) else policy)
    assert check_schedule(instance, schedule).faults == ()
    assert set(schedule.completion_us) == {made.id for made in jobs}
    return schedule


class TestPollux:
    def test_a_fair_share_lies_between_widths_and_below_the_least(self) -> None:
        menu = menu_of(([1, 4], [1.0, 0.4], 0), ([4], [0.5], 0))
        # Half of four GPUs: a third of the way from rate 1 to 2.5, and half of rate 2.
        assert fair_rates(menu, 4).tolist() == pytest.approx([1.5, 1.0])
        # Eight tasks on four GPUs have one each.
        crowd = menu_of(*[([1, 4], [1.0, 0.4], 0)] * 8)
        assert fair_rates(crowd, 4).tolist() == pytest.approx([1.0] * 8)

    def test_the_restart_factor_is_that_of_the_paper(self) -> None:
        menu = menu_of(([1], [1.0], 0), age_s=120, evictions=2)
        assert restart_factors(menu, 30).tolist() == pytest.approx([(120 - 60) / 150])
        young = menu_of(([1], [1.0], 0), age_s=40, evictions=2)
        assert restart_factors(young, 30).tolist() == [0.0]
        assert restart_factors(menu_of(([1], [1.0], 0), age_s=0), 0.0).tolist() == [1.0]

    @pytest.mark.parametrize("power", [-1.0, -2.0, 0.0, 0.5, 1.0])
    def test_the_values_rank_choices_as_the_power_mean_does(self, power: float) -> None:
        dice = np.random.default_rng(3)
        speedups = dice.uniform(0, 3, size=(50, 4))

        def mean(row: np.ndarray) -> float:
            if power == 0:
                return float(np.exp(np.log(np.maximum(row, 1e-3)).mean()))
            return float(((row + 1e-3) ** power).mean() ** (1 / power))

        means, sums = [mean(row) for row in speedups], power_mean_values(speedups, power).sum(axis=1)
        assert np.argsort(means).tolist() == np.argsort(sums).tolist()

    def test_two_tasks_share_alike(self) -> None:
        schedule = play("pollux:restart_s=0", job("a"), job("b"))
        assert pieces(schedule)[:2] == [("a", 0.0, 625.0, 2, 0), ("b", 0.0, 625.0, 2, 0)]

    def test_nobody_waits_as_long_as_there_are_gpus(self) -> None:
        schedule = play("pollux", *(job(name) for name in "abcd"))
        assert sorted(piece[:2] for piece in pieces(schedule)[:4]) == [(name, 0.0) for name in "abcd"]


class TestSia:
    def menu(self) -> RoundMenu:
        return menu_of(([1, 2, 4], [1.0, 0.625, 0.4], 2), ([1, 4], [2.0, 0.5], 0), age_s=60)

    def test_rows_are_over_their_least_and_changes_cost(self) -> None:
        menu = self.menu()
        costs = sia_costs(menu, np.ones(len(menu.gpus), bool), Sia())
        factor = 60 / 90
        assert costs.tolist() == pytest.approx(
            [
                1.1 + 0.01,  # waits and leaves its configuration
                round(factor**-0.5, 2) + 0.02,
                round(1.6**-0.5, 2),  # goes on
                round((factor * 2.5) ** -0.5, 2) + 0.02,
                1.1,
                1.0 + 0.01,  # never ran: no restart
                0.5 + 0.01,
            ]
        )

    def test_a_factor_of_nothing_is_clipped(self) -> None:
        menu = menu_of(([1, 2], [1.0, 0.5], 1), age_s=10, evictions=1)
        costs = sia_costs(menu, np.ones(3, bool), Sia())
        assert costs[2] == 200 + 0.02

    def test_configurations_are_powers_of_two_and_whole_servers(self) -> None:
        menu = menu_of(([1, 2, 3, 4, 6, 8, 12, 16], [1.0] * 8, 0), ([3, 6], [1.0] * 2, 0))
        offered = configurations(menu, Cluster.uniform(4, gpus=4))
        assert [k for k, good in zip(menu.gpus[:9].tolist(), offered[:9], strict=True) if good] == [
            0,
            1,
            2,
            4,
            8,
            12,
            16,
        ]
        assert offered[9:].all()  # it has no other widths
        assert configurations(menu, Cluster.uniform(2, gpus=8))[:9].tolist() == [
            k in (0, 1, 2, 4, 8, 16) for k in menu.gpus[:9]
        ]

    def test_a_task_waits_where_others_gain_more(self) -> None:
        # One GPU each costs 3 x 1.01, and 1.1 + 1.01 + (0.79 + 0.01) is less; if waiting costs 1.3 it is not.
        three = [job(name) for name in "abc"]
        schedule = play("sia", *three, cluster=Cluster.uniform(1, gpus=3))
        assert [(at, gpus) for _, at, _, gpus, _ in pieces(schedule)[:2]] == [(0.0, 2), (0.0, 1)]
        schedule = play("sia:waiting_cost=1.3", *three, cluster=Cluster.uniform(1, gpus=3))
        assert [(at, gpus) for _, at, _, gpus, _ in pieces(schedule)[:3]] == [(0.0, 1)] * 3


class TestOptimus:
    def gpus(self, *rows: tuple[list[int], list[float], int], restart_s: float = 0.0, **more: Any) -> list[int]:
        menu = replace(menu_of(*rows), **more)
        chosen: list[int] = menu.gpus[greedy_options(menu, remaining_s(menu, restart_s, 300.0))].tolist()
        return chosen

    def test_whose_remaining_time_drops_most_gets_more(self) -> None:
        tables = ([1, 2, 4], [1.0, 0.625, 0.4], 0), ([1, 2, 4], [1.0, 0.625, 0.4], 0)
        assert self.gpus(*tables) == [2, 2]
        # 1000 units left: the first GPU drops them by 375 s, the next two by 112.5 s each; 100 left by 37.5 s.
        assert self.gpus(*tables, total=[1000, 100], capacity=5) == [4, 1]
        assert self.gpus(*tables, total=[100, 1000], capacity=5) == [1, 4]
        # Two more GPUs are not there: the one that is left goes to the other one.
        assert self.gpus(*tables, total=[1000, 100], capacity=4) == [2, 2]

    def test_a_step_may_skip_widths_and_none_is_made_in_vain(self) -> None:
        assert self.gpus(([1, 2, 4], [1.0, 0.99, 0.4], 0)) == [4]
        assert self.gpus(([1, 2, 4], [1.0, 0.99, 0.4], 0), capacity=3) == [2]
        assert self.gpus(([1, 2, 4], [1.0, 1.2, 1.0], 0)) == [1]

    def test_of_equal_gains_the_earlier_task_has_the_first(self) -> None:
        table = ([1, 2], [1.0, 0.6], 0)
        assert self.gpus(table, table, table) == [2, 1, 1]

    def test_the_least_gpus_are_given_in_order_of_arrival(self) -> None:
        assert self.gpus(([3], [1.0], 0), ([2], [1.0], 0), ([1, 2], [1.0, 0.5], 0)) == [3, 0, 1]

    def test_a_restart_counts_as_remaining_time(self) -> None:
        menu = menu_of(([1, 2, 4], [1.0, 0.625, 0.4], 2), ([1, 2], [2.0, 1.0], 0))
        expected = [np.inf, 130.0, 62.5, 70.0, np.inf, 200.0, 100.0]
        assert remaining_s(menu, 30.0, 300.0).tolist() == expected
        # Where a decision lasts for 25 s, a restart of 30 s makes a second of work 2.2 s.
        dear = [np.inf, 100 * 2.2, 62.5, 40 * 2.2, np.inf, 200.0, 100.0]
        assert remaining_s(menu, 30.0, 25.0).tolist() == pytest.approx(dear)
        # Alone it would take all four GPUs for 22.5 s, but not for a restart of as much.
        alone = ([1, 2, 4], [1.0, 0.625, 0.4], 2)
        assert [self.gpus(alone, restart_s=restart_s) for restart_s in (0.0, 22.0, 22.5)] == [[4], [4], [2]]

    def test_a_newcomer_gets_its_least_gpus_at_once(self) -> None:
        schedule = play("optimus:restart_s=5", job("a"), job("b", 100))
        # At 100 a has 750 left. Each has one GPU; a second one saves b 375 s and a 281.25 s, and then all are given.
        assert pieces(schedule)[:3] == [("a", 0.0, 100.0, 4, 0), ("a", 100.0, 573.75, 2, 0), ("b", 100.0, 573.75, 2, 0)]

    def test_a_wide_task_gets_its_gpus_once_all_before_it_have_ended(self) -> None:
        wide = Job(id="w", release_s=0, gpus=4, work=Fixed(duration_s=100))
        narrow = [Job(id=f"n{i}", release_s=20 * i, gpus=1, work=Fixed(duration_s=100)) for i in range(6)]
        schedule = play("optimus", wide, *narrow)
        assert (schedule.start_us["w"], schedule.evictions) == (100 * S, 3)


class TestAllocation:
    def test_of_equal_choices_the_present_one_stays(self) -> None:
        menu = menu_of(([1, 2], [1.0, 1.0], 2), ([1, 2], [1.0, 1.0], 0))
        value = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
        assert menu.gpus[best_options(menu, value)].tolist() == [2, 1]

    def test_gpus_run_short(self) -> None:
        menu = menu_of(([2, 4], [1.0, 1.0], 0), ([2, 4], [1.0, 1.0], 0))
        value = np.array([0.0, 3.0, 4.0, 0.0, 2.0, 6.0])
        assert menu.gpus[best_options(menu, value)].tolist() == [0, 4]


class TestPrices:
    def test_one_task_is_worth_its_fastest_pace(self) -> None:
        assert work_prices([0], [np.array([1.0, 1.6])], [np.array([1, 2])], 4).tolist() == [1 / 1.6]

    @pytest.mark.parametrize("p", [0.3, 0.5, 0.8])
    def test_power_speedups_give_hesrpt(self, p: float) -> None:
        """With k^p the price of the i-th from the last is (i^q - (i-1)^q)^(1/q) / N^p, q = 1/(1-p)."""
        gpus, count = 600, 5
        widths, q = np.arange(1, gpus + 1), 1 / (1 - p)
        prices = work_prices(range(count), [widths**p] * count, [widths] * count, gpus)
        expected = [(i**q - (i - 1) ** q) ** (1 / q) / gpus**p for i in range(1, count + 1)]
        assert prices.tolist() == pytest.approx(expected, rel=1e-3)

    def test_the_best_shares_at_these_prices_are_worth_the_number_of_tasks(self) -> None:
        dice = np.random.default_rng(1)
        widths = [np.array([1, 2, 4, 8])] * 4
        rates = [np.sort(dice.uniform(0.5, 4, 4)) for _ in range(4)]
        order = [2, 0, 3, 1]
        prices = work_prices(order, rates, widths, 8)
        for count in range(1, 5):
            worth = np.zeros(9)
            for task in order[:count]:
                each = [
                    worth,
                    *(
                        np.r_[np.full(k, -9), worth[: 9 - k] + prices[task] * r]
                        for k, r in zip(widths[task], rates[task], strict=True)
                    ),
                ]
                worth = np.max(each, axis=0)
            assert worth[8] == pytest.approx(count)

    def test_the_largest_completes_last(self) -> None:
        rates = [np.array([1.0, 2.0]), np.array([1.0])]
        assert completion_order(np.array([4.0, 3.0]), rates, np.ones(2), 4) == [1, 0]
        assert completion_order(np.array([9.0, 9.0]), rates[1:] * 2, np.ones(2), 4) == [0, 1]


class TestRounds:
    @pytest.mark.parametrize("policy", ["pollux", "sia", "optimus", "icefrog"])
    def test_rounds_begin_at_whole_multiples(self, policy: str) -> None:
        jobs = job("a", 7, times=ONE), job("b", 61, times=ONE), job("c", 100, times=ONE)
        schedule = play(f"{policy}:event_driven=false:round_s=50", *jobs)
        assert schedule.start_us == {"a": 50 * S, "b": 100 * S, "c": 100 * S}
        assert all(segment.start_us % (50 * S) == 0 for segment in schedule.segments)

    @pytest.mark.parametrize("policy", ["pollux", "sia", "optimus", "icefrog"])
    def test_events_are_answered_at_once(self, policy: str) -> None:
        schedule = play(policy, job("a", 7), job("b", 61), cluster=TWO)
        assert schedule.start_us == {"a": 7 * S, "b": 61 * S}

    @pytest.mark.parametrize("policy", ["pollux", "sia", "optimus", "icefrog"])
    def test_nothing_is_decided_between_events(self, policy: str) -> None:
        class Probe:
            elastic, uses_virtual_machine, restart_s = True, False, 30.0

            def __init__(self) -> None:
                self.inner, self.name, self.parameters, self.decisions = make_policy(policy), policy, {}, []

            def priority(self, task: Task) -> int:
                return task.number

            def decide(self, view: View) -> Decision:
                decision = self.inner.decide(view)
                self.decisions.append((view.now_us // S, decision))
                return decision

        probe = Probe()
        play(probe, job("a", 7), job("b", 10))
        for now_s, decision in probe.decisions:
            assert decision.until_us == (now_s // 60 + 1) * 60 * S
            assert isinstance(decision, Wait | Reallocate)
        assert all(decision.shares for _, decision in probe.decisions if isinstance(decision, Reallocate))

    def test_only_what_changes_is_named(self) -> None:
        seen: list[tuple[Share, ...]] = []

        class Noting(IceFrog):
            def shares(self, view: View) -> tuple[Share, ...]:
                seen.append(IceFrog.shares(self, view))
                return seen[-1]

        play(Noting(), job("a", times={1: (1.0,)}), job("b", 5, times={1: (1.0,)}))
        named = [[share.task.job.id for share in shares] for shares in seen if shares]
        assert named == [["a"], ["b"]]

    @pytest.mark.parametrize("policy", ["pollux", "sia", "optimus", "icefrog"])
    def test_a_job_that_outlives_its_work_is_left_running(self, policy: str) -> None:
        scheduler = Scheduler(TWO, policy)
        for submitted in (job("a", iterations=10), job("b", iterations=10**6)):
            scheduler.submit(submitted)
        assert {start.job for start in scheduler.advance(0).starts} == {"a", "b"}
        for now_s in (300, 600, 900):  # nobody reports that the first one has ended
            assert "a" not in scheduler.advance(now_s).evictions

    def test_a_job_does_not_sway_between_one_server_and_a_width_that_it_gets_on_two_alone(self) -> None:
        cluster = Cluster(servers=[Server(id="s0", gpus=1), Server(id="s1", gpus=2)])
        table = {"one_server": {1: (1.0,), 2: (0.8,)}, "many_servers": {1: (1.5,), 2: (1.2,)}}
        work = Elastic(iterations=343, widths=(1, 2), seconds_per_iteration=table)
        jobs = (
            Job(id="a", release_s=0, gpus=1, work=Fixed(duration_s=135)),
            Job(id="b", release_s=0, gpus=1, work=work),
            Job(id="c", release_s=120, gpus=1, work=Fixed(duration_s=121)),
        )
        schedule = run(Instance(cluster=cluster, jobs=jobs), make_policy("icefrog:round_s=60"))
        spread = [s for s in schedule.segments if s.job == "b" and len(s.placement.loads) > 1]
        assert spread == []
        assert schedule.evictions <= 1  # it takes two GPUs of one server once they are free

    @pytest.mark.parametrize("policy", ["pollux", "sia", "optimus", "icefrog"])
    def test_rigid_work_is_one_option(self, policy: str) -> None:
        fixed = Job(id="f", release_s=0, gpus=3, work=Fixed(duration_s=10))
        schedule = play(policy, fixed, job("a"))
        assert {s.placement.gpus for s in schedule.segments if s.job == "f"} == {3}

    def test_a_task_that_was_evicted_too_often_is_left_alone(self) -> None:
        often = play(Pollux(round_s=10, restart_s=1), *(job(str(i), 40 * i) for i in range(6)))
        never = play(Pollux(round_s=10, restart_s=1, most_evictions=0), *(job(str(i), 40 * i) for i in range(6)))
        assert often.evictions > 0 == never.evictions

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("pollux:round_s=0", "policy 'pollux': round_s=0.0 must be above 0"),
            ("pollux:power=2", "policy 'pollux': power=2"),
            ("sia:power=1", "policy 'sia': power=1"),
            ("optimus:restart_s=-1", "policy 'optimus': restart_s=-1"),
            ("optimus:horizon_s=0", "policy 'optimus': horizon_s=0"),
            ("sia:event_driven=maybe", "policy 'sia': event_driven='maybe' must be true or false"),
            ("icefrog:horizon_s=0", "policy 'icefrog': horizon_s=0"),
            ("icefrog:most_evictions=-1", "policy 'icefrog': most_evictions=-1"),
        ],
    )
    def test_bad_parameters_are_refused(self, text: str, message: str) -> None:
        with pytest.raises(InvalidValueError, match=message):
            make_policy(text)

    def test_an_unknown_utility_is_answered_with_the_known_ones(self) -> None:
        with pytest.raises(UnknownNameError, match="unknown utility of policy 'icefrog' 'flaw'; did you mean 'flow'"):
            make_policy("icefrog:utility=flaw")


FROZEN = {1: (1.0, 0.9, 0.5), 2: (0.6, 0.55, 0.35)}


class TestLevels:
    def test_nothing_is_frozen_before_the_warm_up(self) -> None:
        schedule = play("icefrog", job(times=FROZEN, budget=5.0, warm_up=0.5), cluster=Cluster.pool(2))
        done = 0.0
        for segment in schedule.segments:
            if segment.freeze_level:
                assert done >= 500
            done += (segment.end_s - segment.start_s) / FROZEN[segment.placement.gpus][segment.freeze_level]
        assert max(segment.freeze_level for segment in schedule.segments) == 2

    def test_levels_follow_the_fastest_plan(self) -> None:
        schedule = play("icefrog:round_s=5", job(times=FROZEN, budget=0.6), cluster=Cluster.pool(2))
        work = elastic(times=FROZEN, budget=0.6)
        terms = terms_of(work)
        edges = np.linspace(0.2, 1, 401)
        debts = level_debts_points(terms.law, terms.shares, edges.tolist())
        plan = plan_trajectory(np.array(FROZEN[2]) * 1000 * 0.8 / 400, debts, 0.6)
        took_s = schedule.completion_us["a"] / S - 0.2 * 1000 * 0.6
        assert plan.time_s <= took_s <= plan.time_s + 8
        assert [level for *_, level in pieces(schedule)] == sorted(level for *_, level in pieces(schedule))

    @pytest.mark.parametrize("budget", [0.1, 0.5, 2.0])
    def test_the_budget_is_kept_and_used(self, budget: float) -> None:
        jobs = tuple(job(name, 100 * i, times=FROZEN, budget=budget) for i, name in enumerate("abc"))
        instance = Instance(cluster=Cluster.pool(2), jobs=jobs)
        stretches = frozen_stretches(instance, run(instance, make_policy("icefrog:round_s=5")))
        terms = terms_of(elastic(times=FROZEN, budget=budget))
        for made in jobs:
            spent = spent_points(1000, stretches[made.id], terms)
            assert spent <= budget * (1 + 1e-9)
            assert spent > 0.8 * min(budget, terms.law.debt_points(1, 0.2, 1))

    @pytest.mark.parametrize("utility", ["flow", "progress", "sia", "titan", "srpt"])
    def test_without_a_budget_it_is_as_without_freezing(self, utility: str) -> None:
        def segments(budget: float, freeze: bool) -> object:
            jobs = [job(str(i), 90 * i, times=FROZEN, budget=budget) for i in range(5)]
            return play(
                f"icefrog:utility={utility}:freeze={freeze}", *jobs, cluster=Cluster.uniform(2, gpus=2)
            ).segments

        assert segments(0.0, True) == segments(0.0, False) == segments(0.7, False)
        assert segments(0.7, True) != segments(0.7, False)

    def test_a_level_that_saves_little_is_left_alone(self) -> None:
        times = {1: (1.0, 0.98)}
        assert play("icefrog", job(times=times, budget=50.0)).level_changes == 0
        assert play("icefrog:hysteresis=0", job(times=times, budget=50.0)).level_changes == 1
        assert play("icefrog:hysteresis=0:level_change_s=900", job(times=times, budget=50.0)).level_changes == 0


class TestRising:
    def test_only_corners_of_the_hull_count(self) -> None:
        hulls = hulls_of([[9, 8, 7, 1], [9, 5, 4.5, 3], [9, 9, 9, 9]], [0, 0.1, 0.5, 1], 5)
        assert hulls.level.tolist() == [[0, 1, 3, 3, 3], [0, 1, 3, 3, 3], [0, 0, 0, 0, 0]]

    def test_a_level_that_costs_nothing_is_free(self) -> None:
        hulls = hulls_of([[9, 5, 3]], [0, 0, 1])
        law = LawArrays(np.array([1.0]), np.array([5.0]), np.array([1.0]))
        assert hulls.level.tolist() == [[1, 2, 2]]
        assert rising_vertices(hulls, law, np.array([0.3]), np.array([0.0])).tolist() == [0]

    @pytest.mark.parametrize("budget", [0.0, 0.05, 0.2, 0.5, 1.0, 3.0, 100.0])
    @pytest.mark.parametrize("progress", [0.2, 0.5, 0.9])
    def test_it_begins_as_the_exact_plan_in_many_phases(self, budget: float, progress: float) -> None:
        law, shares = DebtLaw(a=1.5, A=20, c=9, B_0=1), (0.0, 0.2, 0.5, 0.8, 1.0)
        times = np.array([10.0, 9.0, 7.0, 5.0, 4.5])
        edges = np.linspace(progress, 1, 801)
        debts = level_debts_points(law, shares, edges.tolist())
        plan = plan_trajectory(times * (1 - progress) / 800, debts, budget)
        hulls = hulls_of(times[None], [share**law.a for share in shares])
        one = LawArrays(*(np.array([getattr(law, name)]) for name in ["A", "c", "B_0"]))
        vertex = rising_vertices(hulls, one, np.array([progress]), np.array([budget]))
        level = int(hulls.level[0, vertex[0]])
        # The level at once, up to the phase in which the plan changes.
        assert level in plan.levels[:3]


class TestBelief:
    def test_what_was_frozen_is_owed(self) -> None:
        terms = terms_of(elastic(times=FROZEN, budget=0.5))
        law = terms.law
        frozen = [(300, 400, 1), (400, 900, 2)]
        expected = law.debt_points(0.5, 0.3, 0.4) + law.debt_points(1.0, 0.4, 0.9)
        state = state_of(1000, frozen, 950, 2, terms)
        assert (state.progress, state.level) == (0.95, 2)
        assert state.spent_points == pytest.approx(expected)

    def test_the_later_warm_up_holds(self) -> None:
        assert terms_of(elastic(warm_up=0.6)).law.warm_up == 0.6
        assert terms_of(elastic(warm_up=0.1)).law.warm_up == 0.2

    @pytest.mark.parametrize("bad", [{"done": 1001}, {"frozen": [(5, 3, 1)]}, {"level": 7}, {"total": 0}])
    def test_what_cannot_be_is_refused(self, bad: dict[str, Any]) -> None:
        settings: dict[str, Any] = {"total": 1000, "frozen": [], "done": 10, "level": 0} | bad
        with pytest.raises(InvalidValueError):
            state_of(terms=terms_of(elastic(times=FROZEN, budget=0.5)), **settings)
