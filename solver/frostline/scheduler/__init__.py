"""The live scheduler."""

from frostline.scheduler.outlook import Outlook, Predictor
from frostline.scheduler.scheduler import Decision, Scheduler
from frostline.scheduler.snapshot import Snapshot

__all__ = ["Decision", "Outlook", "Predictor", "Scheduler", "Snapshot"]
