"""Relaxations: the virtual single machine and every lower bound."""

from frostline.relaxation.bounds import BOUNDS, Bound, Rigid, lower_bound, rigid_jobs
from frostline.relaxation.srpt import VirtualMachine, virtual_completions

__all__ = ["BOUNDS", "Bound", "Rigid", "VirtualMachine", "lower_bound", "rigid_jobs", "virtual_completions"]
