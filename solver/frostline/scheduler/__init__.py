"""The live scheduler."""

from frostline.scheduler.outlook import Outlook, Predictor
from frostline.scheduler.scheduler import Decision, Scheduler

__all__ = ["Decision", "Outlook", "Predictor", "Scheduler"]
