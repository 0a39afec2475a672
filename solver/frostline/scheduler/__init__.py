"""The live scheduler."""

from frostline.scheduler.scheduler import Decision, Scheduler

__all__ = ["Decision", "Scheduler"]
