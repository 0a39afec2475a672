"""Certificates: whether a schedule is valid, checked without trusting what made it."""

from frostline.certify.schedule import Fault, FaultKind, Report, check_schedule

__all__ = ["Fault", "FaultKind", "Report", "check_schedule"]
