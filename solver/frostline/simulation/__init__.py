"""Simulation: drives the scheduler over an instance."""

from frostline.simulation.accuracy import (
    CURVE_OF_FAMILY,
    AccuracyReport,
    FamilyAccuracy,
    JobAccuracy,
    curve_of,
    family_curves,
    frozen_stretches,
    true_accuracy,
)
from frostline.simulation.engine import Progress, Result, run, simulate
from frostline.simulation.engines import ENGINES
from frostline.simulation.metrics import Metrics, choices_made, measure
from frostline.simulation.predictions import PredictionFacts
from frostline.simulation.replay import Replay
from frostline.simulation.reports import MetricReports

__all__ = [
    "CURVE_OF_FAMILY",
    "ENGINES",
    "AccuracyReport",
    "FamilyAccuracy",
    "JobAccuracy",
    "MetricReports",
    "Metrics",
    "PredictionFacts",
    "Progress",
    "Replay",
    "Result",
    "choices_made",
    "curve_of",
    "family_curves",
    "frozen_stretches",
    "measure",
    "run",
    "simulate",
    "true_accuracy",
]
