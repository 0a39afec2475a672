"""Simulation: drives the scheduler over an instance."""

from frostline.simulation.engine import Progress, Result, run, simulate
from frostline.simulation.metrics import Metrics, measure

__all__ = ["Metrics", "Progress", "Result", "measure", "run", "simulate"]
