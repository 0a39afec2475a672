"""The cluster round as a multiple-choice knapsack: which GPUs and which freeze level each job takes."""

from frostline.errors import TooLargeError
from frostline.freezing.optimizer.certificate import choice_problem
from frostline.freezing.optimizer.choose import METHODS, choose
from frostline.freezing.optimizer.menus import Menu, Menus, Option, menus_of
from frostline.freezing.optimizer.objectives import (
    UTILITIES,
    Candidate,
    JobScale,
    RoundRules,
    progress_utility,
    round_menu,
    round_values,
    sia_utility,
    srpt_utility,
    titan_utility,
)
from frostline.freezing.optimizer.result import Choice

__all__ = [
    "METHODS",
    "UTILITIES",
    "Candidate",
    "Choice",
    "JobScale",
    "Menu",
    "Menus",
    "Option",
    "RoundRules",
    "TooLargeError",
    "choice_problem",
    "choose",
    "menus_of",
    "progress_utility",
    "round_menu",
    "round_values",
    "sia_utility",
    "srpt_utility",
    "titan_utility",
]
