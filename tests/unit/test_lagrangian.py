"""Prices of GPUs and the bound that they prove, by hand and on families of known optima."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job
from frostline.relaxation import METHODS, bound_certificate, lower_bound
from frostline.relaxation.lagrangian import (
    PriceProblem,
    Prices,
    Windows,
    best_prices,
    evaluate,
    one_shot,
    price_problem,
    prove,
)
from frostline.relaxation.lagrangian.start import breakpoints, finer, mean_busy_prices

Row = tuple[int, int, int]
"""Release, GPUs, duration."""


def rigid(gpus: int, *rows: Row) -> PriceProblem:
    return PriceProblem.of_rows(gpus, [(release, [(width, length, 0)]) for release, width, length in rows])


def instance(gpus: int, *rows: Row, weights: tuple[float, ...] = ()) -> Instance:
    weight = weights or (1.0,) * len(rows)
    jobs = [
        Job(id=f"j{i}", release_s=r, gpus=g, work=Fixed(duration_s=p), weight=weight[i])
        for i, (r, g, p) in enumerate(rows)
    ]
    return Instance(cluster=Cluster.pool(gpus), jobs=jobs)


class TestEvaluate:
    """One GPU, two jobs of 2 and 3 ticks at time 0; the optimum is 2 + 5 = 7."""

    problem = rigid(1, (0, 1, 2), (0, 1, 3))

    @pytest.mark.parametrize(
        ("numerators", "value", "starts"),
        [
            # free GPUs: both start at once
            ([0, 0, 0, 0, 0], Fraction(5), [0, 0]),
            # 3/2, 3/2 and 1/2 three times: the first pays 3 from 0 or 1 from 2; together they earn 9/2
            ([3, 3, 1, 1, 1], Fraction(7), [0, 0]),
            # 4 a tick at first: both wait until the price is gone; they pay nothing, and GPUs earn 4
            ([8, 0, 0, 0, 0], Fraction(3), [1, 1]),
        ],
    )
    def test_by_hand(self, numerators: list[int], value: Fraction, starts: list[int]) -> None:
        prices = Prices(np.arange(6), np.array(numerators), 2)
        result = evaluate(self.problem, Windows.of(self.problem), prices)
        assert result.value == value
        assert result.start.tolist() == starts

    def test_window_of_a_job(self) -> None:
        prices = Prices(np.arange(6), np.array([0] * 5), 1)
        windows = Windows.of(self.problem).after(0, 2)
        assert evaluate(self.problem, windows, prices).value == 8
        assert Windows.of(self.problem).by(0, 1).after(0, 1).empty

    def test_prices_of_widths_see_what_does_not_fit_side_by_side(self) -> None:
        problem = rigid(4, (0, 3, 1), (0, 3, 1))
        by_gpu = Prices(np.arange(3), np.array([1, 0]), 3)
        by_width = Prices(np.arange(3), np.array([[1, 0]]), 1, "width")
        assert problem.reach == 3
        assert evaluate(problem, Windows.of(problem), by_gpu).value == 3
        assert evaluate(problem, Windows.of(problem), by_width).value == 3

    def test_cheapest_start_may_end_where_a_price_rises(self) -> None:
        # 2 ticks from 1 on are free, though the job could start where it pays less later: 1 + 2 against 4 + 2.
        problem = rigid(1, (0, 1, 2))
        prices = Prices(np.array([0, 1, 3, 4]), np.array([5, 0, 9]), 1)
        result = evaluate(problem, Windows.of(problem), prices)
        assert result.start.tolist() == [1]
        assert result.value == 3 - (5 + 0 + 9)

    def test_releases_far_from_zero_change_nothing(self) -> None:
        far = rigid(1, (10**12, 1, 2), (10**12, 1, 3))
        near = best_prices(self.problem).best.bound
        assert best_prices(far).best.bound == near + 2 * 10**12


class TestStart:
    def test_prices_of_mean_busy_times_by_hand(self) -> None:
        # One GPU, jobs of 2 and 3. The price falls by 1/3 a tick to 0 at 5, so it is 1 at 2, and by 1/2 before.
        problem = rigid(1, (0, 1, 2), (0, 1, 3))
        prices = mean_busy_prices(problem, np.arange(6))
        np.testing.assert_allclose(prices, [1.75, 1.25, 5 / 6, 1 / 2, 1 / 6])

    def test_an_interrupted_job_comes_back_to_its_line(self) -> None:
        # A job of 4 from 0, one of 1 at 1: the price is that of the first before and after, not a new line.
        problem = rigid(1, (0, 1, 4), (1, 1, 1))
        prices = mean_busy_prices(problem, np.arange(6))
        line = 5 / 4 - (np.arange(5) + 0.5) / 4
        np.testing.assert_allclose(prices[[0, 2, 3, 4]], line[[0, 2, 3, 4]])
        assert prices[1] == pytest.approx(line[1] + 3 / 8)

    def test_weights(self) -> None:
        problem = PriceProblem.of_rows(2, [(0, [(1, 4, 0)]), (0, [(2, 1, 0)])], weights=[3, 1])
        # Works 4 and 2 in 1/2 ticks: slopes 3/4 and 1/2, so the first is served first; prices of two GPUs.
        prices = mean_busy_prices(problem, np.arange(4))
        np.testing.assert_allclose(prices, np.array([3.25, 1.75, 0.5]) / 2)

    def test_breakpoints_are_all_ticks_where_they_are_few(self) -> None:
        problem = rigid(2, (3, 1, 4), (5, 2, 4))
        times = breakpoints(problem)
        assert times.tolist() == list(range(int(times[-1]) + 1))
        assert times[-1] >= 2 + 4
        many = breakpoints(rigid(2, (0, 1, 10**9), (10**9, 2, 10**9)))
        assert 900 < len(many) <= 1003
        assert (np.diff(many) > 0).all()

    def test_finer_prices_are_the_same_prices(self) -> None:
        prices = Prices(np.array([0, 10, 11, 30]), np.array([6, 0, 1]), 4)
        fine = finer(prices)
        assert len(fine.times) > 4
        assert (fine.numerators * np.diff(fine.times)).sum() == 60 + 19
        problem = rigid(3, (0, 1, 7), (2, 2, 9))
        window = Windows.of(problem)
        assert evaluate(problem, window, fine).value == evaluate(problem, window, prices).value


class TestBestPrices:
    def test_refuted_sum_is_not_repeated(self) -> None:
        # srpt + ½ Σ(p − w) would claim 14.25, above the optimum 14.
        problem = rigid(4, (0, 1, 4), *((i, 3, 1) for i in range(4)))
        for prices in ("pool", "width", "job"):
            assert 13 < best_prices(problem, prices=prices).best.value <= 14
        assert prove(problem, 14).complete
        assert not prove(problem, 15, most_nodes=300).complete

    def test_one_shot_is_what_it_starts_from(self) -> None:
        problem = rigid(4, (0, 3, 5), (0, 2, 4), (1, 1, 9), (2, 4, 1))
        ascent = best_prices(problem)
        assert ascent.first.value == one_shot(problem).value <= ascent.best.value
        assert ascent.stopped in ("level", "iterations", "flat")

    def test_target_ends_it(self) -> None:
        problem = rigid(1, (0, 1, 1), (0, 1, 2), (0, 1, 3))
        ascent = best_prices(problem, target=10)
        assert (ascent.best.bound, ascent.stopped) == (10, "target")

    def test_callback_ends_it(self) -> None:
        problem = rigid(4, (0, 3, 5), (0, 2, 4), (1, 1, 9), (2, 4, 1))
        told: list[int] = []
        ascent = best_prices(problem, callback=lambda number, _: told.append(number) or number == 3)
        assert (told, ascent.iterations, ascent.stopped) == ([1, 2, 3], 3, "callback")

    def test_iterations_are_a_limit(self) -> None:
        problem = rigid(4, (0, 3, 5), (0, 2, 4), (1, 1, 9), (2, 4, 1))
        assert best_prices(problem, iterations=7).iterations <= 7
        assert best_prices(problem, prices="pool", iterations=0).best.value == one_shot(problem).value

    def test_what_is_refused(self) -> None:
        with pytest.raises(InvalidValueError, match="jobs=0 must be at least one"):
            best_prices(rigid(2))
        with pytest.raises(UnknownNameError, match="did you mean 'width'"):
            best_prices(rigid(2, (0, 1, 1)), prices="widht")  # type: ignore[arg-type]

    def test_same_prices_again(self) -> None:
        problem = rigid(8, *((i % 5, 1 + i * 7 % 8, 1 + i * 5 % 11) for i in range(12)))
        one, two = best_prices(problem).best, best_prices(problem).best
        assert one.scaled == two.scaled
        assert (one.prices.numerators == two.prices.numerators).all()


class TestOptions:
    def test_the_cheapest_of_the_options(self) -> None:
        # Alone, 4 GPUs for 5 ticks and a penalty of 1 beat 1 GPU for 9; two of them share 4 GPUs better at 1.
        options = [(1, 9, 0), (4, 5, 1)]
        assert best_prices(PriceProblem.of_rows(4, [(0, options)])).best.bound == 6
        two = PriceProblem.of_rows(4, [(0, options), (0, options)])
        assert best_prices(two).best.bound <= min(6 + 11, 9 + 9, 6 + 5 + 9)
        assert prove(two, 17).complete

    def test_weighted(self) -> None:
        problem = PriceProblem.of_rows(1, [(0, [(1, 3, 0)]), (0, [(1, 1, 0)])], weights=[4, 1])
        assert best_prices(problem).best.bound == 4 * 3 + 4
        assert prove(problem, 16).complete

    def test_elastic_work_may_choose_width_and_level(self) -> None:
        table = {"one_server": {1: (4.0, 2.0), 2: (2.5, 1.5)}}
        work = Elastic(iterations=10, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1])
        job = Job(id="a", release_s=0, gpus=1, work=work)
        problem = price_problem(Instance(cluster=Cluster.pool(2), jobs=[job]), elastic=True)
        assert (problem.width.tolist(), (problem.duration * problem.tick_us).tolist()) == ([1, 2], [20e6, 15e6])
        assert price_problem(Instance(cluster=Cluster.pool(1), jobs=[job]), elastic=True).width.tolist() == [1]
        assert price_problem(Instance(cluster=Cluster.pool(2), jobs=[job])).duration.tolist() == [1]

    def test_options_of_ones_own(self) -> None:
        problem = price_problem(instance(4, (0, 1, 8), (0, 2, 6)), options={"j1": [(2, 6 * 10**6, 0), (4, 10**6, 500)]})
        assert problem.first.tolist() == [0, 1, 3]
        assert problem.choices == "given"
        assert (problem.penalty * problem.tick_us).tolist() == [0, 0, 500]

    def test_weights_without_a_common_unit(self) -> None:
        with pytest.raises(InvalidValueError, match=r"job 'j1': weight=.* must be at most 1000000 times the unit"):
            price_problem(instance(1, (0, 1, 1), (0, 1, 1), weights=(1e-9, 1.5)), weighted=True)

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ((0, [(5, 1, 0)]), "width=5 must be 1 to 4"),
            ((0, [(1, -1, 0)]), "duration=-1 must be at least 0"),
            ((0, [(1, 1, -1)]), "penalty=-1 must be at least 0"),
            ((0, []), "options=0 must be at least one"),
        ],
    )
    def test_bad_options(self, row: tuple[int, list[tuple[int, int, int]]], message: str) -> None:
        with pytest.raises(InvalidValueError, match=message):
            PriceProblem.of_rows(4, [(0, [(1, 1, 0)]), row])


class TestProblem:
    def test_reach_is_the_largest_sum_of_widths(self) -> None:
        assert rigid(8, (0, 3, 1), (0, 3, 1), (0, 7, 1)).reach == 7
        assert rigid(8, (0, 3, 1), (0, 3, 1)).reach == 6
        assert rigid(8, (0, 3, 1), (0, 5, 1)).reach == 8
        assert rigid(1000, *((0, 64, 1) for _ in range(100))).reach == 960

    def test_tick_is_the_common_divisor(self) -> None:
        problem = price_problem(instance(4, (6, 1, 4), (10, 2, 8)))
        assert (problem.tick_us, problem.release.tolist(), problem.duration.tolist()) == (2_000_000, [3, 5], [2, 4])

    def test_tick_is_coarser_where_times_are_long(self) -> None:
        jobs = instance(4, (0, 1, 8e9), (0.000001, 2, 8e9))
        problem = price_problem(jobs)
        assert problem.tick_us > 1
        assert lower_bound(jobs, "lagrangian").total_completion_s <= 16e9 + 1
        assert lower_bound(jobs, "lagrangian").total_completion_s == pytest.approx(16e9)


class TestLowerBound:
    def test_best_is_the_greatest(self) -> None:
        problem = instance(4, (0, 1, 4), (0, 3, 2), (0, 3, 2), (1, 2, 5))
        bounds = {name: lower_bound(problem, name) for name in METHODS}
        assert bounds["best"].completion_us == max(bound.completion_us for bound in bounds.values())
        assert bounds["best"].method == "lagrangian"
        assert not bounds["best"].allows_interruptions
        assert bounds["pointwise"].allows_interruptions

    def test_prices_ignore_what_never_fits_and_need_a_job(self) -> None:
        problem = instance(4, (0, 1, 4), (0, 5, 4))
        assert lower_bound(problem, "lagrangian").jobs == 1
        assert lower_bound(instance(4), "lagrangian").completion_us == 0
        with pytest.raises(InvalidValueError, match="leaves no certificate"):
            bound_certificate(instance(4), lower_bound(instance(4)))
        with pytest.raises(InvalidValueError, match="leaves no certificate"):
            bound_certificate(problem, lower_bound(problem, "srpt"))


def test_least_quality_on_families_of_known_optima(family: dict[str, list[tuple[PriceProblem, int]]]) -> None:
    def mean(name: str, prices: str) -> float:
        ratios = [best_prices(problem, prices=prices).best.value / best for problem, best in family[name]]  # type: ignore[arg-type]
        assert max(ratios) <= 1
        return float(sum(ratios) / len(ratios))

    assert mean("narrow", "pool") >= 0.99
    assert mean("any", "pool") >= 0.91
    assert mean("any", "width") >= 0.93
    assert mean("any", "job") >= 0.96


@pytest.fixture(scope="module")
def family() -> dict[str, list[tuple[PriceProblem, int]]]:
    """Random jobs on 8 GPUs with the least totals, which CP-SAT proves: widths up to 2, and any widths."""
    return {name: [_solved(name, seed) for seed in range(12)] for name in ("narrow", "any")}


def _solved(name: str, seed: int) -> tuple[PriceProblem, int]:
    from ortools.sat.python import cp_model

    rng = np.random.default_rng([seed, 8])
    jobs = int(rng.integers(8, 11))
    widths = rng.integers(1, 3 if name == "narrow" else 9, jobs)
    lengths = rng.integers(1, 13, jobs)
    releases = rng.integers(0, int((widths * lengths).sum()) // 10 + 2, jobs)
    rows = [tuple(map(int, row)) for row in zip(releases, widths, lengths, strict=True)]
    model = cp_model.CpModel()
    latest = max(releases) + sum(lengths)
    starts = [model.new_int_var(release, int(latest), "") for release, _, _ in rows]
    intervals = [model.new_fixed_size_interval_var(s, row[2], "") for s, row in zip(starts, rows, strict=True)]
    model.add_cumulative(intervals, [width for _, width, _ in rows], 8)
    model.minimize(sum(starts))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return rigid(8, *rows), int(solver.objective_value) + int(lengths.sum())
