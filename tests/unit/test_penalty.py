"""Debt laws, priors, refits and gradient evidence, worked by hand."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.curve import (
    ExponentialLoss,
    MeasuredLoss,
    PowerLoss,
    TrainingCurve,
    training_curve,
    training_curves,
)
from frostline.freezing.evidence import GradientEvidence, ProgressScale, differenced_moments, gradient_moments
from frostline.freezing.penalty import DebtLaw, as_history, as_shares, frozen_shares, level_debts_points, phases_of
from frostline.freezing.priors import debt_prior, debt_priors
from frostline.freezing.refit import FinishedRun, fit_law, refit_law

LAW = DebtLaw(a=0.5, A=30, c=10, B_0=1)


def test_nothing_frozen_costs_exactly_nothing():
    """F05: level 0 has penalty exactly 0."""
    assert LAW.density_points(0, 0.0) == 0.0
    assert LAW.debt_points(0, 0, 1) == 0.0
    assert LAW.history_points([(0, 0.3, 0), (0.3, 1, 0)]) == 0.0
    assert LAW.history_points([]) == 0.0


def test_the_density_by_hand():
    assert LAW.density_points(0.25, 0.2) == pytest.approx(0.5 * (300 * math.exp(-2) + 1), rel=1e-15)


def test_the_debt_to_the_end_is_the_measured_shape():
    expected = math.sqrt(0.25) * (30 * (math.exp(-3) - math.exp(-10)) + 0.7)
    assert LAW.debt_points(0.25, 0.3, 1) == pytest.approx(expected, rel=1e-14)


def test_the_debt_is_the_integral_of_the_density():
    grid = np.linspace(0.25, 0.75, 20_001)
    densities = [LAW.density_points(0.5, float(s)) for s in grid]
    assert LAW.debt_points(0.5, 0.25, 0.75) == pytest.approx(float(np.trapezoid(densities, grid)), rel=1e-7)


def test_a_scaled_law_scales_debt_and_keeps_its_shape():
    double = LAW.scaled(2)
    assert double.debt_points(0.3, 0.2, 0.9) == pytest.approx(2 * LAW.debt_points(0.3, 0.2, 0.9), rel=1e-14)
    assert (double.a, double.c, double.warm_up) == (LAW.a, LAW.c, LAW.warm_up)


@pytest.mark.parametrize(
    ("field", "value"),
    [("a", 0), ("a", -1), ("c", 0), ("A", -1), ("B_0", math.nan), ("warm_up", 1.1), ("A", "30"), ("B_0", True)],
)
def test_a_law_out_of_bounds_is_refused(field, value):
    with pytest.raises(InvalidValueError, match=field):
        DebtLaw(**({"a": 1, "A": 1, "c": 1, "B_0": 1} | {field: value}))


@pytest.mark.parametrize(
    "phases",
    [
        [(0.5, 0.4, 0)],
        [(0, 0.5, 0), (0.4, 1, 0)],
        [(0, 1, 1.5)],
        [(0, 1, -0.1)],
        [(0, 1.1, 0)],
        [(0, 1)],
        [(0, 1, None)],
    ],
)
def test_a_history_out_of_order_or_bounds_is_refused(phases):
    with pytest.raises(InvalidValueError):
        as_history(phases)


def test_shares_are_of_the_units_before_the_head():
    assert frozen_shares([1, 1, 2, 100]) == (0.0, 0.25, 0.5, 1.0)
    for costs in ([1], [], [0, 5], [1, -1, 2], [1, math.nan, 1]):
        with pytest.raises(InvalidValueError):
            frozen_shares(costs)


@pytest.mark.parametrize("shares", [[], [0.1, 1], [0, 0.5, 0.4], [0, 1.1], [0, math.nan]])
def test_shares_that_fall_or_do_not_start_at_nothing_are_refused(shares):
    with pytest.raises(InvalidValueError, match="shares"):
        as_shares(shares)


def test_phases_of_levels_refuses_unknown_levels_and_wrong_boundaries():
    with pytest.raises(InvalidValueError, match="levels=3"):
        phases_of([0, 3], [0, 0.5, 1])
    with pytest.raises(InvalidValueError, match="boundaries"):
        phases_of([0, 1], [0, 1], [0, 1])


def test_debts_of_phases_and_levels_add_up_to_the_history():
    table = level_debts_points(LAW, (0, 0.3, 1), (0.2, 0.6, 1.0))
    history = phases_of([1, 2], (0, 0.3, 1), (0.2, 0.6, 1.0))
    assert table[0, 1] + table[1, 2] == pytest.approx(LAW.history_points(history), rel=1e-14)


def test_evidence_raises_a_level_and_those_above_but_not_beyond_freezing_everything():
    plain = level_debts_points(LAW, (0, 0.04, 0.09, 1), (0.2, 1))[0]
    raised = level_debts_points(LAW, (0, 0.04, 0.09, 1), (0.2, 1), (1, 2.5, 1, 1))[0]
    assert raised.tolist() == pytest.approx([0, 2.5 * plain[1], 2.5 * plain[1], plain[3]])
    capped = level_debts_points(LAW, (0, 0.04, 0.09, 1), (0.2, 1), (1, 25, 1, 1))[0]
    assert capped.tolist() == pytest.approx([0, plain[3], plain[3], plain[3]])


def test_every_family_has_a_prior_with_a_source():
    assert set(debt_priors()) == {"mlp", "cnn", "transformer", "fine-tuning", "unknown"}
    for prior in debt_priors().values():
        assert prior.law.warm_up == 0.2
        assert prior.source["rule"]
    with pytest.raises(UnknownNameError, match="did you mean 'transformer'"):
        debt_prior("transfomer")


def test_the_unknown_prior_is_above_all_trained_from_scratch():
    for family in ("mlp", "cnn", "transformer"):
        for x in (0.1, 0.5, 1.0):
            for start in (0.2, 0.4, 0.6, 0.8):
                assert debt_prior().debt_points(x, start, 1) >= debt_prior(family).debt_points(x, start, 1)


@pytest.mark.parametrize(
    ("table", "family", "costs"),
    [
        ("train_mlp_mnist", "mlp", [196 * 48, *[48 * 48] * 6, 1]),
        ("train_mlp_w48", "mlp", [64 * 48, *[48 * 48] * 6, 1]),
        ("train_cnn_digits", "cnn", [4608, 73728, 73728, 57344, 73728, 1]),
        ("train_tfm_digits", "transformer", [1536, *[58368] * 5, 1]),
    ],
)
def test_priors_are_above_most_measured_runs(shared, table, family, costs):
    law, shares = debt_prior(family), frozen_shares(costs)
    below = []
    with (shared / "data" / "freezing" / f"{table}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            start = int(row["step0"]) / int(row["steps"])
            if start >= law.warm_up:
                loss = 100 * (float(row["base_acc"]) - float(row["final_acc"]))
                below.append(loss <= law.debt_points(shares[int(row["k"])], start, 1))
    assert np.mean(below) >= 0.85


def test_the_fine_tuning_prior_is_above_the_published_losses():
    law, shares = debt_prior("fine-tuning"), [k / 12 for k in range(13)]
    for alpha, loss in ((1 / 5, -0.12), (1 / 4, 0.08), (1 / 3, 0.43), (2 / 5, 0.39), (1 / 2, 1.37)):
        levels = [math.floor(12 * (1 - (1 - alpha) ** epoch) + 1e-9) for epoch in range(10)]
        assert law.history_points(phases_of(levels, shares)) >= loss + 0.1


# Fits and refits


def runs_of(law, losses=lambda debt: debt):
    histories = [[(f / 10, 1, x / 4)] for f in (2, 3, 4, 6, 8) for x in (1, 2, 3, 4)]
    return [FinishedRun(history=h, loss_points=losses(law.history_points(h))) for h in histories]


def test_a_fit_finds_the_law_that_made_the_runs():
    truth = DebtLaw(a=1.5, A=20, c=8, B_0=1)
    found = fit_law(runs_of(truth))
    for x in (0.25, 0.6, 1.0):
        for start in (0.2, 0.5, 0.7):
            assert found.debt_points(x, start, 1) == pytest.approx(truth.debt_points(x, start, 1), abs=0.15)


def test_a_fit_is_above_about_its_quantile_of_noisy_runs():
    truth, rng = DebtLaw(a=1, A=20, c=8, B_0=1), np.random.default_rng(1)
    runs = [run for _ in range(10) for run in runs_of(truth, lambda debt: debt + float(rng.normal(0, 0.4)))]
    for quantile in (0.5, 0.8, 0.95):
        law = fit_law(runs, quantile)
        assert np.mean([r.loss_points <= law.history_points(r.history) for r in runs]) == pytest.approx(
            quantile, abs=0.08
        )


def test_a_fit_needs_runs_and_a_quantile():
    with pytest.raises(InvalidValueError, match="runs=3"):
        fit_law(runs_of(LAW)[:3])
    for quantile in (0, 1, math.nan):
        with pytest.raises(InvalidValueError, match="quantile"):
            fit_law(runs_of(LAW), quantile)


def test_without_runs_that_froze_the_prior_stays():
    idle = FinishedRun(history=[(0, 1, 0)], loss_points=3)
    assert refit_law(LAW, []) == LAW
    assert refit_law(LAW, [idle] * 20) == LAW


def test_one_bad_run_raises_the_law_and_it_takes_more_good_ones_to_lower_it():
    half = [(0.5, 1, 1)]
    prior = LAW.history_points(half)
    bad, good = FinishedRun(history=half, loss_points=4), FinishedRun(history=half, loss_points=0)
    assert refit_law(LAW, [bad]).history_points(half) > 3.5
    assert refit_law(LAW, [good]).history_points(half) == pytest.approx(prior, rel=0.05)
    assert refit_law(LAW, [good] * 20).history_points(half) < prior / 3


def test_a_refit_never_falls_below_its_floor():
    perfect = runs_of(LAW, lambda debt: -5.0) * 20
    law = refit_law(LAW, perfect)
    assert law.debt_points(1, LAW.warm_up, 1) >= 0.25 * LAW.debt_points(1, LAW.warm_up, 1)
    assert law.B_0 >= 0.25
    thin = DebtLaw(a=0.5, A=30, c=10, B_0=0)
    assert refit_law(thin, perfect).B_0 >= 0.1


def test_a_refit_keeps_runs_of_twice_the_debt_within_the_law():
    truth = LAW.scaled(2)
    law = refit_law(LAW, runs_of(truth) * 3)
    for run in runs_of(truth):
        assert law.history_points(run.history) >= 0.9 * run.loss_points


def test_a_prior_without_early_debt_can_be_refitted():
    flat = DebtLaw(a=1, A=0, c=5, B_0=0.5)
    assert refit_law(flat, runs_of(LAW) * 3).debt_points(1, 0.2, 1) > 3


# What a running job reports


def test_the_progress_scale_is_a_clipped_moving_average():
    scale = ProgressScale(weight=0.5)
    assert scale.observe(1, 2).value == 0.75
    assert scale.observe(-3, 2).value == 0.625  # a metric that got worse counts as 1/4
    assert scale.observe(100, 1).value == 2.5
    assert scale.observe(1, 0) is scale
    assert scale.observe(1, 2).debt_factor == pytest.approx(4 / 3)
    for _ in range(200):
        scale = scale.observe(-1, 1)
    assert scale.value == pytest.approx(0.25)
    assert scale.debt_factor <= 4.0


def test_gradient_moments_are_unbiased():
    """The mean over many steps of n noisy gradients is the true square and the variance of the base batch."""
    rng, n, true = np.random.default_rng(3), 4, np.array([1.0, 2.0, -1.0])
    pairs = []
    for _ in range(20_000):
        local = true + rng.normal(0, 1.5, (n, 3))
        mean_square = float((local**2).sum(axis=1).mean())
        pairs.append(gradient_moments(mean_square, float((local.mean(axis=0) ** 2).sum()), n, batch_scale=n))
    square, variance = np.mean(pairs, axis=0)
    assert square == pytest.approx(6.0, rel=0.02)
    assert variance == pytest.approx(3 * 1.5**2, rel=0.02)


def test_a_single_replica_is_differenced_and_one_gradient_alone_is_refused():
    assert differenced_moments(5, 7, 4) == gradient_moments(6, 4, 2, 2)
    with pytest.raises(InvalidValueError, match="replicas=1"):
        gradient_moments(6, 4, 1)


def test_averages_are_corrected_for_their_start():
    evidence = GradientEvidence.of(1).observe(1, [(3, 2)])
    assert evidence.units[0].mean_square == pytest.approx(3)
    assert evidence.units[0].mean_variance == pytest.approx(2)
    assert evidence.noise_scale(32) == pytest.approx(32 * 2 / 3)


def test_without_evidence_nothing_is_raised():
    assert GradientEvidence.of(3).factors((0, 0.5, 1), (0, 1, 2), 10) == (1, 1, 1)
    assert GradientEvidence.of(3).noise_scale(32) == math.inf


def test_a_small_gradient_share_lowers_nothing():
    evidence = GradientEvidence.of(2).observe(1, [(1, 0), (99, 0)])
    assert evidence.factors((0, 0.5), (0, 1), 1) == (1.0, 1.0)


def test_frozen_units_keep_their_value_and_it_grows_with_age():
    evidence = GradientEvidence.of(2, smoothing=0, age_steps=100).observe(0, [(1, 0), (1, 0)])
    later = evidence.observe(100, [None, (1, 0)])
    assert later.gradient_shares(100)[1] == pytest.approx(math.e / (1 + math.e))
    assert later.factors((0, 0.5), (0, 1), 100)[1] == pytest.approx(2 * math.e / (1 + math.e))


def test_odd_gradient_reports_are_refused():
    evidence = GradientEvidence.of(2).observe(5, [(1, 0), (1, 0)])
    with pytest.raises(InvalidValueError, match="moments=1"):
        evidence.observe(6, [(1, 0)])
    with pytest.raises(InvalidValueError, match="step=4"):
        evidence.observe(4, [(1, 0), (1, 0)])
    with pytest.raises(InvalidValueError, match="square"):
        evidence.observe(6, [(math.nan, 0), (1, 0)])


# The truth of a simulation


def test_a_curve_of_the_same_form_charges_what_the_law_does():
    law = DebtLaw(a=1.3, A=20, c=7, B_0=0.4)
    curve = TrainingCurve(name="same", surface=ExponentialLoss(a=1.3, A=20, c=7, B_0=0.4))
    history = [(0.2, 0.5, 0.3), (0.5, 0.8, 0.7), (0.9, 1, 1)]
    assert curve.debt_points(history) == pytest.approx(law.history_points(history), rel=1e-12)
    assert curve.misjudged(4).debt_points(history) == pytest.approx(4 * law.history_points(history), rel=1e-12)


def test_a_run_that_never_froze_loses_exactly_nothing_and_the_seed_decides_the_rest():
    curve = training_curve("mlp-mnist")
    history = [(0.2, 1, 1)]
    assert curve.realised_points([(0, 1, 0)], 7) == 0.0
    assert curve.realised_points(history, 7) == curve.realised_points(history, 7)
    assert curve.realised_points(history, 7) != curve.realised_points(history, 8)
    runs = [curve.realised_points(history, seed) for seed in range(2000)]
    assert np.mean(runs) == pytest.approx(curve.debt_points(history), abs=0.05)
    assert np.std(runs) == pytest.approx(curve.noise_points + curve.noise_share * curve.debt_points(history), rel=0.1)


@pytest.mark.parametrize("name", sorted(training_curves()))
def test_shipped_curves_rise_with_the_share_and_fall_with_the_start(name):
    curve = training_curve(name)
    starts, shares = [i / 20 for i in range(21)], [0.1, 0.3, 0.5, 0.8, 1.0]
    table = np.array([[curve.debt_points([(start, 1, share)]) for share in shares] for start in starts])
    assert (np.diff(table, axis=1) >= -1e-12).all()
    assert (np.diff(table, axis=0) <= 1e-12).all()
    assert (table[-1] == 0).all()
    assert curve.source["tables"]


def test_other_forms_have_no_loss_at_the_end():
    for surface in (PowerLoss(a=1, p=2, A=10, half=0.1), MeasuredLoss(shares=[1], starts=[0, 0.5], table=[[3], [1]])):
        assert surface.points(1, 1) == pytest.approx(0, abs=1e-15)
        assert surface.points(0, 0) == 0
        assert surface.points(1, 0) > surface.points(1, 0.5) > 0


@pytest.mark.parametrize(
    "grid",
    [
        {"shares": [0.5], "starts": [0], "table": [[1]]},
        {"shares": [1], "starts": [0.1], "table": [[1]]},
        {"shares": [0.5, 1], "starts": [0], "table": [[2, 1]]},
        {"shares": [1], "starts": [0, 0.5], "table": [[1], [2]]},
        {"shares": [1], "starts": [0, 0.5], "table": [[1]]},
        {"shares": [1, 1], "starts": [0], "table": [[1, 1]]},
        {"shares": [1], "starts": [0], "table": [[-1]]},
        {"shares": [], "starts": [0], "table": [[]]},
    ],
)
def test_measured_losses_that_make_no_sense_are_refused(grid):
    with pytest.raises(InvalidValueError, match="measured loss"):
        MeasuredLoss(**grid)


def test_an_unknown_curve_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'mlp-mnist'"):
        training_curve("mlp-mnst")
