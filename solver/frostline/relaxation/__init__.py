"""Relaxations: the virtual single machine and every lower bound."""

from frostline.relaxation.bounds import BOUNDS, METHODS, Bound, bound_certificate, lower_bound
from frostline.relaxation.rigid import Rigid, RigidColumns, rigid_columns, rigid_jobs
from frostline.relaxation.srpt import VirtualMachine, virtual_completions

__all__ = [
    "BOUNDS",
    "METHODS",
    "Bound",
    "Rigid",
    "RigidColumns",
    "VirtualMachine",
    "bound_certificate",
    "lower_bound",
    "rigid_columns",
    "rigid_jobs",
    "virtual_completions",
]
