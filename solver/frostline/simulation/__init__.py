"""Simulation: drives the scheduler over an instance."""

from frostline.simulation.engine import Progress, Result, run, simulate
from frostline.simulation.metrics import Metrics, measure
from frostline.simulation.predictions import PredictionFacts

__all__ = ["Metrics", "PredictionFacts", "Progress", "Result", "measure", "run", "simulate"]
