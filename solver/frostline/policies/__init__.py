"""Policies: who starts next."""

from frostline.policies.asrpt import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.base import (
    Decision,
    Offer,
    PlanningPolicy,
    Policy,
    Preempt,
    Reallocate,
    Share,
    Start,
    View,
    Wait,
)
from frostline.policies.elastic import IceFrog, Optimus, Pollux, Sia
from frostline.policies.eviction import fewest_victims
from frostline.policies.gittins import Gittins
from frostline.policies.icefrog_rigid import IceFrogRigid
from frostline.policies.las import Las
from frostline.policies.las_fair import LasFair
from frostline.policies.list_policy import ListPolicy
from frostline.policies.offline_optimal import OfflineOptimal
from frostline.policies.registry import make_policy, policy_names
from frostline.policies.reservation import Reservation
from frostline.policies.serverfilling import ServerFillingSrpt
from frostline.policies.srtf import Srtf
from frostline.policies.task import Belief, Past, Running, StartKind, Task

__all__ = [
    "Asrpt",
    "AsrptBudget",
    "AsrptGuard",
    "AsrptStrict",
    "Belief",
    "Decision",
    "Gittins",
    "IceFrog",
    "IceFrogRigid",
    "Las",
    "LasFair",
    "ListPolicy",
    "Offer",
    "OfflineOptimal",
    "Optimus",
    "Past",
    "PlanningPolicy",
    "Policy",
    "Pollux",
    "Preempt",
    "Reallocate",
    "Reservation",
    "Running",
    "ServerFillingSrpt",
    "Share",
    "Sia",
    "Srtf",
    "Start",
    "StartKind",
    "Task",
    "View",
    "Wait",
    "fewest_victims",
    "make_policy",
    "policy_names",
]
