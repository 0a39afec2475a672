"""Policies: who starts next."""

from frostline.policies.asrpt import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.base import Decision, Offer, Policy, Start, View, Wait
from frostline.policies.list_policy import ListPolicy
from frostline.policies.registry import make_policy, policy_names
from frostline.policies.reservation import Reservation
from frostline.policies.task import Running, Task

__all__ = [
    "Asrpt",
    "AsrptBudget",
    "AsrptGuard",
    "AsrptStrict",
    "Decision",
    "ListPolicy",
    "Offer",
    "Policy",
    "Reservation",
    "Running",
    "Start",
    "Task",
    "View",
    "Wait",
    "make_policy",
    "policy_names",
]
